/*
 * Contexts shared by threads: reads of several on one context, and callbacks
 * run on it meanwhile, as programs do that answer the host and read its memory
 * at once.
 */
#include <libtlp.h>

#include "peer.h"

static struct nettlp nt;
static struct peer *peer;
static _Atomic int heard, reading;

static void *read_all(void *arg)
{
	uintptr_t seed = (uintptr_t)arg;
	unsigned char buffer[300];

	for (unsigned int i = 0; i < 300; i++) {
		size_t offset = (seed * 7919 + i * 104729) % (PEER_BYTES - 300), count = 1 + (seed + i) % 300;

		CHECK_IS(dma_read(&nt, PEER_MEMORY + offset, buffer, count), (long long)count);
		CHECK(!memcmp(buffer, peer->memory + offset, count));
	}
	reading--;
	return NULL;
}

/* The host's writes come to the same socket. A callback uses the context that it is called for. */
static int on_mwr(struct nettlp *context, struct tlp_mr_hdr *mh, void *m, size_t count, void *arg)
{
	unsigned char buffer[64];

	(void)arg;
	CHECK_IS(tlp_mr_addr(mh), 0x5000);
	CHECK(count == 4 && !memcmp(m, "ding", 4));
	if (heard++ % 4 == 0) {
		CHECK_IS(dma_read(context, PEER_MEMORY + 5, buffer, 64), 64);
		CHECK(!memcmp(buffer, peer->memory + 5, 64));
	}
	return 0;
}

static void *run(void *arg)
{
	struct nettlp_cb cb;
	struct nettlp *one = &nt;

	(void)arg;
	memset(&cb, 0, sizeof(cb));
	cb.mwr = on_mwr;
	CHECK_IS(nettlp_run_cb(&one, 1, &cb, NULL), 0);
	return NULL;
}

static void *write_all(void *arg)
{
	unsigned char tlp[6 + 16] = { 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 1, 0, 8, 0, 0x0F, 0, 0, 0x50, 0, 'd', 'i', 'n', 'g' };
	struct sockaddr_in to;

	(void)arg;
	memset(&to, 0, sizeof(to));
	to.sin_family = AF_INET;
	to.sin_addr = peer->local;
	to.sin_port = htons(nt.port);
	for (int i = 0; i < 200; i++) {
		peer_send(peer->sockets[0], &to, tlp, sizeof(tlp));
		usleep(200);
	}
	return NULL;
}

int main(void)
{
	pthread_t readers[3], runner, writer;

	peer = peer_start(7, 1);
	nt.remote_addr = peer->remote;
	nt.local_addr = peer->local;
	nt.requester = 0x1b00;
	nt.tag = 7;
	CHECK_IS(nettlp_init(&nt), 0);
	CHECK_IS(nettlp_set_timeout(&nt, 5000), 0);
	reading = 3;
	CHECK_IS(pthread_create(&runner, NULL, run, NULL), 0);
	CHECK_IS(pthread_create(&writer, NULL, write_all, NULL), 0);
	for (intptr_t i = 0; i < 3; i++)
		CHECK_IS(pthread_create(&readers[i], NULL, read_all, (void *)i), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(readers[i], NULL);
	pthread_join(writer, NULL);
	for (int i = 0; i < 3000 && heard < 200; i++)
		usleep(1000);
	CHECK_IS(heard, 200); /* none was lost to the readers */
	nettlp_stop_cb();
	pthread_join(runner, NULL);
	CHECK_IS(nettlp_close(&nt), 0);
	peer_end(peer);
	return 0;
}
