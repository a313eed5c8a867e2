/* Many operations at once. */
#include <libtlp.h>

#include "peer.h"

#define READS 2000

static struct tlp_async *open_at(const struct peer *peer, uint8_t first_tag, uint16_t tags, uint32_t timeout_ms)
{
	struct tlp_async_config config;
	struct tlp_async *context;

	memset(&config, 0, sizeof(config));
	config.remote_addr = peer->remote;
	config.local_addr = peer->local;
	config.requester = 0x1b00;
	config.first_tag = first_tag;
	config.tags = tags;
	config.timeout_ms = timeout_ms;
	context = tlp_async_open(&config);
	CHECK(context != NULL);
	return context;
}

/* More reads than tags, each into its place; done in whatever order, each once. */
static void many(struct peer *peer)
{
	struct tlp_async *context = open_at(peer, 0, 16, 0);
	struct tlp_async_done done[7];
	unsigned char *buffers = (unsigned char *)malloc(READS * 600);
	unsigned char *told = (unsigned char *)calloc(READS, 1);
	int over = 0;

	for (intptr_t i = 0; i < READS; i++)
		CHECK_IS(tlp_async_read(context, PEER_MEMORY + (uintptr_t)i * 13, buffers + i * 600, (size_t)(i % 600), (void *)i), 0);
	CHECK_IS(tlp_async_pending(context), READS);
	while (over < READS) {
		int count = tlp_async_wait(context, done, 7, 5000);

		CHECK(count > 0);
		for (int j = 0; j < count; j++) {
			intptr_t i = (intptr_t)done[j].user;

			CHECK_IS(done[j].error, 0);
			CHECK_IS(done[j].count, i % 600);
			CHECK(!told[i]++);
			CHECK(!memcmp(buffers + i * 600, peer->memory + i * 13, (size_t)(i % 600)));
		}
		over += count;
	}
	CHECK_IS(tlp_async_pending(context), 0);
	CHECK_IS(tlp_async_wait(context, done, 7, -1), 0); /* nothing to wait for */
	CHECK_IS(peer->crossing, 0);
	CHECK(peer->longest <= 128);
	tlp_async_close(context);
	free(buffers);
	free(told);
}

struct waiting {
	struct tlp_async *context;
	int count;
};

static void *wait_for_one(void *argument)
{
	struct waiting *waiting = (struct waiting *)argument;
	struct tlp_async_done done[4];

	waiting->count = tlp_async_wait(waiting->context, done, 4, -1);
	return NULL;
}

/* Two threads wait for one read that times out: one is told of it, and the other has nothing to wait for. */
static void two_wait(struct peer *peer)
{
	struct tlp_async *context = open_at(peer, 0, 1, 3);
	struct waiting waiting[2] = { { context, 0 }, { context, 0 } };
	unsigned char data[8];
	pthread_t threads[2];

	for (int round = 0; round < 20; round++) {
		CHECK_IS(tlp_async_read(context, PEER_AT(PEER_SILENT), data, 8, data), 0);
		for (int i = 0; i < 2; i++)
			CHECK_IS(pthread_create(&threads[i], NULL, wait_for_one, &waiting[i]), 0);
		for (int i = 0; i < 2; i++)
			CHECK_IS(pthread_join(threads[i], NULL), 0);
		CHECK_IS(waiting[0].count + waiting[1].count, 1);
	}
	tlp_async_close(context);
}

/* By the file descriptor alone, as an event loop does it: it must tell of writes that are over at once, of data, and of deadlines. */
static void by_descriptor(struct peer *peer)
{
	struct tlp_async *context = open_at(peer, 0, 4, 100);
	struct pollfd polled = { tlp_async_fd(context), POLLIN, 0 };
	unsigned char buffer[64], data[64] = "written";
	struct tlp_async_done done[4];
	int seen = 0;

	CHECK_IS(poll(&polled, 1, 0), 0);
	CHECK_IS(tlp_async_write(context, PEER_MEMORY + 3, data, sizeof(data), data), 0);
	memset(data, 0, sizeof(data)); /* the buffer is free */
	CHECK_IS(poll(&polled, 1, 1000), 1);
	CHECK_IS(tlp_async_poll(context, done, 4), 1);
	CHECK(done[0].user == data && done[0].error == 0 && done[0].count == 64);
	CHECK_IS(poll(&polled, 1, 0), 0);

	CHECK_IS(tlp_async_read(context, PEER_MEMORY + 3, buffer, 64, buffer), 0);
	CHECK_IS(tlp_async_read(context, PEER_AT(PEER_SILENT), data, 8, data), 0);
	CHECK_IS(tlp_async_read(context, PEER_AT(PEER_UR), data, 8, &seen), 0);
	while (tlp_async_pending(context) > 0) {
		CHECK_IS(poll(&polled, 1, 2000), 1);
		for (int count = tlp_async_poll(context, done, 4), j = 0; j < count; j++, seen++)
			if (done[j].user == buffer) {
				CHECK_IS(done[j].error, 0);
				CHECK(!strcmp((char *)buffer, "written"));
			} else {
				CHECK_IS(done[j].error, done[j].user == data ? ETIME : EOPNOTSUPP);
				CHECK_IS(done[j].count, 0);
			}
	}
	CHECK_IS(seen, 3);
	/* Tags that rest end their rest without a word: at most a few calls for nothing, no endless loop. */
	for (seen = 0; seen < 5 && poll(&polled, 1, 300) > 0; seen++)
		CHECK_IS(tlp_async_poll(context, done, 4), 0);
	CHECK(seen < 5);
	tlp_async_close(context);
}

static void cancelled(struct peer *peer)
{
	struct tlp_async *context = open_at(peer, 0, 1, 50);
	unsigned char *buffer = (unsigned char *)malloc(16), other[16];
	struct tlp_async_done done[4];

	CHECK_IS(tlp_async_read(context, PEER_MEMORY, buffer, 16, done), 0);
	CHECK_IS(tlp_async_read(context, PEER_MEMORY + 16, other, 16, other), 0);
	CHECK_IS(tlp_async_cancel(context, done), 1);
	free(buffer); /* the answer still comes, and must not be written there */
	CHECK_IS(tlp_async_cancel(context, done), 0);
	CHECK_IS(tlp_async_wait(context, done, 1, 1000), 1);
	CHECK(done[0].user == (void *)done);
	CHECK_IS(done[0].error, ECANCELED);
	CHECK_IS(tlp_async_wait(context, done, 4, 1000), 1);
	CHECK(done[0].user == other && done[0].error == 0 && !memcmp(other, peer->memory + 16, 16));
	CHECK_IS(tlp_async_read(context, PEER_AT(PEER_SILENT), other, 16, other), 0);
	tlp_async_close(context); /* with something under way */
	tlp_async_close(NULL);
}

static void mistakes(struct peer *peer)
{
	struct tlp_async_config config;
	struct nettlp_counters counters;
	struct tlp_async_done done;
	struct tlp_async *context = open_at(peer, 0, 2, 0);
	unsigned char byte;

	memset(&config, 0, sizeof(config));
	config.remote_addr = peer->remote;
	config.local_addr = peer->local;
	errno = 0;
	CHECK(tlp_async_open(&config) == NULL); /* tag 0 is taken */
	CHECK_IS(errno, EADDRINUSE);
	config.first_tag = 250;
	config.tags = 7;
	CHECK(tlp_async_open(&config) == NULL);
	CHECK_IS(errno, EINVAL);
	config.first_tag = 255;
	config.tags = 65535;
	CHECK(tlp_async_open(&config) == NULL);
	CHECK_IS(errno, EINVAL);
	config.first_tag = 250;
	config.tags = 2;
	config.timeout_ms = UINT32_MAX;
	CHECK(tlp_async_open(&config) == NULL);
	CHECK_IS(errno, EINVAL);
	config.timeout_ms = 0;
	config.mrrs = 100;
	CHECK(tlp_async_open(&config) == NULL);
	CHECK_IS(errno, EINVAL);
	CHECK_FAILS(tlp_async_read(context, PEER_MEMORY, NULL, 1, NULL), EFAULT);
	CHECK_FAILS(tlp_async_read(context, UINTPTR_MAX, &byte, 2, NULL), EINVAL);
	CHECK_FAILS(tlp_async_poll(context, &done, 0), EINVAL);
	CHECK_FAILS(tlp_async_poll(context, NULL, 1), EFAULT);
	CHECK_IS(tlp_async_pending(context), 0);
	CHECK_IS(tlp_async_get_counters(context, &counters), 0);
	CHECK_IS(counters.datagrams_out, 0);
	CHECK_IS(tlp_async_read(context, PEER_MEMORY, &byte, 1, NULL), 0);
	CHECK_IS(tlp_async_wait(context, &done, 1, 1000), 1);
	CHECK_IS(tlp_async_get_counters(context, &counters), 0);
	CHECK_IS(counters.datagrams_out, 1);
	CHECK_IS(counters.completions, 1);
	CHECK_FAILS(tlp_async_get_counters(context, NULL), EFAULT);
	tlp_async_close(context);

	context = open_at(peer, 100, 2, 0); /* no program listens there */
	CHECK_IS(tlp_async_read(context, PEER_MEMORY, &byte, 1, NULL), 0);
	CHECK_IS(tlp_async_wait(context, &done, 1, 300), 1);
	CHECK_IS(done.error, ECONNREFUSED);
	tlp_async_close(context);
}

/* Threads that submit and threads that wait, on one context. */
static struct tlp_async *shared;
static _Atomic int waited;
static unsigned char shared_buffers[4][500][64];

static void *submit(void *arg)
{
	intptr_t thread = (intptr_t)arg;

	for (intptr_t i = 0; i < 500; i++)
		CHECK_IS(tlp_async_read(shared, PEER_MEMORY + (uintptr_t)(thread * 500 + i) * 64, shared_buffers[thread][i], 64, (void *)(thread * 500 + i)), 0);
	return NULL;
}

static void *wait_for(void *arg)
{
	struct peer *peer = (struct peer *)arg;
	struct tlp_async_done done[5];

	while (waited < 2000) {
		int count = tlp_async_wait(shared, done, 5, 20);

		CHECK(count >= 0);
		for (int j = 0; j < count; j++) {
			intptr_t i = (intptr_t)done[j].user;

			CHECK_IS(done[j].error, 0);
			CHECK(!memcmp(shared_buffers[i / 500][i % 500], peer->memory + i * 64 % PEER_BYTES, 64));
			waited++;
		}
	}
	return NULL;
}

static void threads(struct peer *peer)
{
	pthread_t all[6];

	shared = open_at(peer, 0, 16, 5000);
	for (intptr_t i = 0; i < 6; i++)
		CHECK_IS(pthread_create(&all[i], NULL, i < 4 ? submit : wait_for, i < 4 ? (void *)i : (void *)peer), 0);
	for (int i = 0; i < 6; i++)
		pthread_join(all[i], NULL);
	CHECK_IS(waited, 2000);
	tlp_async_close(shared);
}

int main(void)
{
	struct peer *peer = peer_start(0, 16);

	many(peer);
	two_wait(peer);
	by_descriptor(peer);
	cancelled(peer);
	mistakes(peer);
	threads(peer);
	peer_end(peer);
	return 0;
}
