/* The adapter's answers: messages of its driver, and its configuration space. */
#include <libtlp.h>

#include "peer.h"

static int sockets[3]; /* messages, and configuration at the newer and the older port */
static const unsigned char first[64] = { 0x76, 0x37, 0x22, 0x80, 6, 0, 0x10, 0, 0xFF };
static unsigned char space[64]; /* the server's alone, once it runs */
static struct in_addr device, adapter;
static _Atomic int quits, accesses, noise;

static void configuration(int fd)
{
	unsigned char in[64];
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	ssize_t got = recvfrom(fd, in, sizeof(in), 0, (struct sockaddr *)&from, &size);
	unsigned int at = ((in[0] & 3u) << 8 | in[1]) * 4;

	CHECK_IS(got, 6);
	CHECK(at + 4 <= sizeof(space));
	accesses++;
	if (in[0] >> 6 == 1) {
		for (int i = 0; i < 4; i++)
			if (in[0] >> 2 >> i & 1)
				space[at + i] = in[5 - i];
		return; /* nothing confirms a write */
	}
	if (noise) { /* a late answer to another question, then ours, padded as short frames are */
		unsigned char other[6] = { 0x3C, 15, 0xDE, 0xAD, 0xBE, 0xEF };

		peer_send(fd, &from, other, 6);
		memset(in + 6, 0x77, 12);
	}
	for (int i = 0; i < 4; i++)
		in[5 - i] = space[at + i];
	peer_send(fd, &from, in, noise ? 18 : 6);
}

static void message(int fd)
{
	unsigned char in[8], out[192];
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	size_t bytes = 0;

	CHECK_IS(recvfrom(fd, in, sizeof(in), 0, (struct sockaddr *)&from, &size), 4);
	CHECK(!in[1] && !in[2] && !in[3]);
	memset(out, 0, sizeof(out));
	switch (in[0]) {
	case 1:
		memcpy(out, "\0\0\0\x90\x01\0\0\0", bytes = 8);
		break;
	case 2:
		memcpy(out, "\x08\x1b", bytes = 2);
		break;
	case 3:
		for (unsigned char i = 0; i < 16; i++) {
			out[i * 12] = (unsigned char)(i * 4);
			out[i * 12 + 2] = 0xE0;
			out[i * 12 + 3] = 0xFE;
			out[i * 12 + 8] = (unsigned char)(0x21 + i);
		}
		bytes = 192;
		break;
	default:
		abort();
	}
	peer_send(fd, &from, out, bytes);
}

static void *serve(void *arg)
{
	struct pollfd polled[3];

	(void)arg;
	while (!quits) {
		for (int i = 0; i < 3; i++)
			polled[i] = (struct pollfd){ sockets[i], POLLIN, 0 };
		if (poll(polled, 3, 20) <= 0)
			continue;
		for (int i = 0; i < 3; i++)
			if (polled[i].revents & POLLIN)
				(i ? configuration : message)(sockets[i]);
	}
	return NULL;
}

static void configure(void)
{
	struct nettlp_pcie_cfg cfg;
	unsigned char found[64], model[64];

	memset(&cfg, 0, sizeof(cfg));
	cfg.remote_addr = adapter;
	cfg.local_addr = device;
	CHECK_IS(nettlp_pcie_cfg_init(&cfg), 0);
	for (noise = 0; noise < 2; noise++)
		for (uint16_t at = 0; at < 9; at++)
			for (size_t count = 0; count < 10; count++) {
				memset(found, 0xEE, sizeof(found));
				CHECK_IS(nettlp_pcie_cfg_read(&cfg, at, found, count), (long long)count);
				CHECK(!memcmp(found, first + at, count));
				CHECK_IS(found[count], 0xEE);
			}
	noise = 0;
	memcpy(model, first, sizeof(model));
	for (uint16_t at = 32; at < 40; at++)
		for (size_t count = 1; count < 9; count++) {
			for (size_t i = 0; i < count; i++)
				model[at + i] = found[i] = (unsigned char)(at * 17 + count * 3 + i);
			CHECK_IS(nettlp_pcie_cfg_write(&cfg, at, found, count), (long long)count);
			CHECK_IS(nettlp_pcie_cfg_read(&cfg, 0, found, 64), 64);
			CHECK(!memcmp(found, model, 64));
		}
	CHECK_FAILS(nettlp_pcie_cfg_read(&cfg, 4094, found, 3), EINVAL);
	CHECK_FAILS(nettlp_pcie_cfg_read(&cfg, 0, NULL, 3), EFAULT);
	CHECK_FAILS(nettlp_pcie_cfg_init(NULL), EFAULT);
	close(cfg.sockfd);
}

int main(void)
{
	struct nettlp_msix table[17];
	struct nettlp_pcie_cfg cfg;
	pthread_t server;
	uint32_t id;

	device = peer_address(1);
	adapter = peer_address(2);
	errno = 0;
	CHECK_IS(nettlp_msg_get_bar4_start(adapter), 0); /* nobody there yet */
	CHECK_IS(errno, ECONNREFUSED);
	CHECK_FAILS(nettlp_msg_get_msix_table(adapter, table, 16), ECONNREFUSED);

	memcpy(space, first, sizeof(space));
	sockets[0] = peer_socket(adapter, 12287);
	sockets[1] = peer_socket(adapter, 0x5001);
	sockets[2] = peer_socket(adapter, 0x4001);
	CHECK_IS(pthread_create(&server, NULL, serve, NULL), 0);
	CHECK_IS(nettlp_msg_get_bar4_start(adapter), 0x190000000);
	CHECK_IS(nettlp_msg_get_dev_id(adapter), 0x1b08);
	memset(table, 0xEE, sizeof(table));
	CHECK_IS(nettlp_msg_get_msix_table(adapter, table, 2), 0);
	CHECK(table[1].addr == 0xFEE00004 && table[1].data == 0x22);
	CHECK_IS(table[2].data, 0xEEEEEEEE); /* no more than were asked for */
	CHECK_IS(nettlp_msg_get_msix_table(adapter, table, 16), 0);
	CHECK(table[15].addr == 0xFEE0003C && table[15].data == 0x30);
	CHECK_FAILS(nettlp_msg_get_msix_table(adapter, table, 17), EINVAL);
	CHECK_FAILS(nettlp_msg_get_msix_table(adapter, NULL, 2), EFAULT);
	configure();

	/* An older adapter, which knows the older port alone. */
	quits = 1;
	pthread_join(server, NULL);
	close(sockets[1]);
	sockets[1] = -1;
	quits = 0;
	CHECK_IS(pthread_create(&server, NULL, serve, NULL), 0);
	memset(&cfg, 0, sizeof(cfg));
	cfg.remote_addr = adapter;
	cfg.local_addr = device;
	CHECK_IS(nettlp_pcie_cfg_init(&cfg), 0);
	CHECK_IS(nettlp_pcie_cfg_read(&cfg, 0, &id, 4), 4);
	CHECK_IS(id, 0x80223776);
	quits = 1;
	pthread_join(server, NULL);
	close(sockets[2]);
	CHECK_FAILS(nettlp_pcie_cfg_read(&cfg, 0, &id, 4), ECONNREFUSED);
	CHECK_FAILS(nettlp_pcie_cfg_write(&cfg, 0, &id, 4), ECONNREFUSED);
	close(cfg.sockfd);
	return 0;
}
