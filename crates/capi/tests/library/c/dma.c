/* DMA: every offset and length, and everything that can go wrong. */
#include <time.h>

#include <libtlp.h>

#include "peer.h"

static struct nettlp context(const struct peer *peer, int tag)
{
	struct nettlp nt;

	memset(&nt, 0, sizeof(nt));
	nt.remote_addr = peer->remote;
	nt.local_addr = peer->local;
	nt.requester = 0x1b << 8 | 0x01;
	nt.tag = (uint8_t)tag;
	CHECK_IS(nettlp_init(&nt), 0);
	CHECK_IS(nt.port, 0x3000 + tag);
	CHECK(nt.sockfd > 2);
	return nt;
}

static long long milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Completions are cut at 64 bytes: an unaligned read of several puts its bytes together right only if it knows where each begins. */
static void reads(struct peer *peer, struct nettlp *nt)
{
	static unsigned char buffer[4096 + 2];
	static const size_t lengths[] = { 1, 2, 3, 4, 5, 63, 64, 65, 255, 256, 257, 511, 512, 513, 1024, 4095, 4096 };

	for (uintptr_t offset = 0; offset < 70; offset += offset < 8 ? 1 : 31)
		for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			size_t count = lengths[i];

			memset(buffer, 0xEE, sizeof(buffer));
			CHECK_IS(dma_read(nt, PEER_MEMORY + offset, buffer + 1, count), (long long)count);
			CHECK(!memcmp(buffer + 1, peer->memory + offset, count));
			CHECK_IS(buffer[0], 0xEE);
			CHECK_IS(buffer[count + 1], 0xEE);
		}
	/* A whole page is one request, whose length and byte count are 0 in their fields. */
	peer->requests = 0;
	CHECK_IS(dma_read(nt, PEER_MEMORY, buffer, 4096), 4096);
	CHECK_IS(peer->requests, 1);
	CHECK_IS(peer->longest, 1024);
	CHECK_IS(peer->crossing, 0); /* none of the above */
}

static void writes(struct peer *peer, struct nettlp *nt)
{
	static unsigned char model[PEER_BYTES], data[4096 * 3], page[4096];
	static const size_t lengths[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 255, 256, 257, 4095, 4096, 4097, 4096 * 3 };

	memcpy(model, peer->memory, sizeof(model));
	for (uintptr_t offset = 0xFF8; offset < 0x1008; offset++) {
		for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			size_t count = lengths[i];

			for (size_t j = 0; j < count; j++)
				data[j] = (unsigned char)(offset + i * 31 + j);
			CHECK_IS(dma_write(nt, PEER_MEMORY + offset, data, count), (long long)count);
			memcpy(model + offset, data, count);
		}
		/* The writes before it are in memory then. (And nothing else slows them down.) */
		CHECK_IS(dma_read(nt, PEER_MEMORY, NULL, 0), 0);
	}
	pthread_mutex_lock(&peer->lock);
	CHECK(!memcmp(model, peer->memory, sizeof(model)));
	CHECK_IS(peer->crossing, 0);
	pthread_mutex_unlock(&peer->lock);
	CHECK_IS(dma_write(nt, PEER_MEMORY, NULL, 0), 0);
	CHECK_IS(dma_read(nt, PEER_MEMORY + 0x1000, page, 4096), 4096);
	CHECK(!memcmp(page, model + 0x1000, 4096));
}

/* The published variants return what the last request carried. */
static void aligned(struct peer *peer, struct nettlp *nt)
{
	static unsigned char buffer[9001]; /* the part that a socket holds in the smallest pieces */
	static const size_t limits[] = { 64, 128, 256, 512, 100, 4096, 1 << 20 };

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		size_t limit = limits[i], dwords = limit > 4096 ? 1024 : limit / 4;

		peer->longest = 0;
		memset(buffer, 0, sizeof(buffer));
		CHECK_IS(dma_read_aligned(nt, PEER_MEMORY + 0xF01, buffer, sizeof(buffer), limit), (long long)sizeof(buffer));
		CHECK(!memcmp(buffer, peer->memory + 0xF01, sizeof(buffer)));
		CHECK_IS(peer->longest, (long long)dwords);
		buffer[i] ^= 0xFF;
		peer->longest = 0;
		CHECK_IS(dma_write_aligned(nt, PEER_MEMORY + 0xF01, buffer, sizeof(buffer), limit), (long long)sizeof(buffer));
		CHECK_IS(dma_read_aligned(nt, PEER_MEMORY, buffer, 0, limit), 0);
		pthread_mutex_lock(&peer->lock);
		CHECK(!memcmp(buffer, peer->memory + 0xF01, sizeof(buffer)));
		CHECK_IS(peer->longest, (long long)dwords);
		pthread_mutex_unlock(&peer->lock);
	}
	CHECK_IS(peer->crossing, 0);
	CHECK_FAILS(dma_read_aligned(nt, PEER_MEMORY, buffer, 64, 0), EINVAL);
	CHECK_FAILS(dma_write_aligned(nt, PEER_MEMORY, buffer, 64, 0), EINVAL);
}

/* Each kind of failure has a number of its own, and leaves the buffer alone. */
static void failures(struct nettlp *nt)
{
	static const struct {
		enum peer_page page;
		int error;
	} cases[] = {
		{ PEER_UR, EOPNOTSUPP }, { PEER_CA, ECONNABORTED }, { PEER_POISONED, EHWPOISON },
		{ PEER_ELSEWHERE, EBADMSG }, { PEER_CRS, EBADMSG }, /* only for configuration requests */
	};
	unsigned char buffer[8];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		memset(buffer, 0xEE, sizeof(buffer));
		CHECK_FAILS(dma_read(nt, PEER_AT(cases[i].page) + 5, buffer, 7), cases[i].error);
		for (size_t j = 0; j < sizeof(buffer); j++)
			CHECK_IS(buffer[j], 0xEE);
		CHECK(strcmp(tlp_strerror(cases[i].error), strerror(cases[i].error)) != 0);
		CHECK_IS(dma_read(nt, PEER_MEMORY, buffer, 8), 8);
	}
	CHECK_FAILS(dma_read(nt, PEER_MEMORY, NULL, 8), EFAULT);
	CHECK_FAILS(dma_write(nt, PEER_MEMORY, NULL, 8), EFAULT);
	CHECK_FAILS(dma_read(NULL, PEER_MEMORY, buffer, 8), EFAULT);
	CHECK_FAILS(dma_read(nt, UINTPTR_MAX - 3, buffer, 8), EINVAL);
}

/* Answers that are somebody else's, or came before, are nobody's data. */
static void strangers(struct peer *peer, struct nettlp *nt)
{
	struct nettlp_counters counters;
	unsigned char buffer[8];

	CHECK_IS(dma_read(nt, PEER_AT(PEER_STRANGER), buffer, 8), 8);
	CHECK(!memcmp(buffer, peer->memory, 8));
	CHECK_IS(dma_read(nt, PEER_AT(PEER_OTHER_TAG), buffer, 8), 8);
	CHECK(!memcmp(buffer, peer->memory, 8));
	CHECK_IS(dma_read(nt, PEER_AT(PEER_TWICE), buffer, 8), 8);
	CHECK(!memcmp(buffer, peer->memory, 8));
	CHECK_IS(dma_read(nt, PEER_MEMORY + 0x80, buffer, 8), 8);
	CHECK(!memcmp(buffer, peer->memory + 0x80, 8));
	CHECK_IS(nettlp_get_counters(&nt, 1, &counters), 0);
	CHECK(counters.unexpected >= 2);
	CHECK_IS(counters.duplicates, 1);
	CHECK_IS(counters.lost, 0);
}

/* The answer to the read that was given up, now. */
static void answer_late(struct peer *peer, const struct nettlp *nt)
{
	struct sockaddr_in to;

	memset(&to, 0, sizeof(to));
	to.sin_family = AF_INET;
	to.sin_addr = peer->local;
	to.sin_port = htons(nt->port);
	pthread_mutex_lock(&peer->lock);
	CHECK(peer->kept_bytes > 0);
	peer_send(peer->sockets[0], &to, peer->kept, peer->kept_bytes);
	peer->kept_bytes = 0;
	pthread_mutex_unlock(&peer->lock);
}

static void timeouts(struct peer *peer, struct nettlp *nt)
{
	struct nettlp other;
	struct nettlp_counters counters;
	unsigned char buffer[8];
	long long start = milliseconds();

	CHECK_FAILS(dma_read(nt, PEER_AT(PEER_SILENT), buffer, 8), ETIME);
	CHECK(milliseconds() - start >= 490 && milliseconds() - start < 5000);
	CHECK_IS(nettlp_set_timeout(nt, 50), 0);
	CHECK_FAILS(nettlp_set_timeout(nt, 0), EINVAL);
	start = milliseconds();
	CHECK_FAILS(dma_read(nt, PEER_AT(PEER_CUT), buffer, 8), ETIME);
	CHECK(milliseconds() - start >= 45 && milliseconds() - start < 2000);
	CHECK_IS(nettlp_get_counters(&nt, 1, &counters), 0);
	CHECK_IS(counters.malformed, 1);
	CHECK_IS(counters.timeouts, 2);
	CHECK_IS(dma_read(nt, PEER_MEMORY, buffer, 8), 8);
	CHECK(!memcmp(buffer, peer->memory, 8));

	/* Given up, then answered: in the socket when the next read begins, long after the tag has rested. Taken for that read's
	 * answer, which is as long and as aligned, the data would be wrong. */
	CHECK_FAILS(dma_read(nt, PEER_AT(PEER_LATE), buffer, 8), ETIME);
	answer_late(peer, nt);
	usleep(200 * 1000);
	CHECK_IS(dma_read(nt, PEER_MEMORY, buffer, 8), 8);
	CHECK(!memcmp(buffer, peer->memory, 8));

	/* A new time limit, or another requester meanwhile, makes no answer another read's. */
	CHECK_FAILS(dma_read(nt, PEER_AT(PEER_LATE), buffer, 8), ETIME);
	CHECK_IS(nettlp_set_timeout(nt, 60), 0);
	answer_late(peer, nt);
	CHECK_IS(dma_read(nt, PEER_MEMORY, buffer, 8), 8);
	CHECK(!memcmp(buffer, peer->memory, 8));
	CHECK_FAILS(dma_read(nt, PEER_AT(PEER_LATE), buffer, 8), ETIME);
	other = *nt;
	other.requester = 0x2200;
	CHECK_IS(dma_write(&other, PEER_MEMORY + 64, buffer, 8), 8); /* on which the late answer comes */
	CHECK_IS(dma_read(nt, PEER_MEMORY, buffer, 8), 8);
	CHECK(!memcmp(buffer, peer->memory, 8));
	CHECK_FAILS(nettlp_set_timeout(nt, UINT32_MAX), EINVAL);
	CHECK_FAILS(nettlp_set_timeout(nt, 3600001), EINVAL);

	/* And answered when the next request is there: that one waits until the tag has rested, or fails; it never has the other's data. */
	CHECK_FAILS(dma_read(nt, PEER_AT(PEER_LATE), buffer, 8), ETIME);
	if (dma_read(nt, PEER_MEMORY + 0x44, buffer, 8) == 8)
		CHECK(!memcmp(buffer, peer->memory + 0x44, 8));
	else
		CHECK_IS(errno, EBADMSG);
	CHECK_IS(dma_read(nt, PEER_MEMORY, buffer, 8), 8);
	CHECK(!memcmp(buffer, peer->memory, 8));
}

static void refused(struct peer *peer)
{
	struct nettlp nt = context(peer, 100); /* no program listens there */
	unsigned char buffer[8] = { 0 };
	long long start = milliseconds();

	CHECK_FAILS(dma_read(&nt, PEER_MEMORY, buffer, 8), ECONNREFUSED);
	CHECK(milliseconds() - start < 300);
	CHECK_FAILS(dma_write(&nt, PEER_MEMORY, buffer, 8), ECONNREFUSED);
	CHECK_FAILS(dma_write(&nt, PEER_MEMORY, buffer, 8), ECONNREFUSED);
	CHECK_IS(nettlp_close(&nt), 0);
	CHECK_FAILS(dma_read(&nt, PEER_MEMORY, buffer, 8), EBADF);
	CHECK_FAILS(nettlp_close(&nt), EBADF);
}

/* Contexts as programs treat them: copied, changed, forgotten, their socket closed behind our back. */
static void lives(struct peer *peer)
{
	struct nettlp nt = context(peer, 2), copy = nt, other;
	unsigned char buffer[64];

	CHECK_IS(dma_read(&copy, PEER_MEMORY + 9, buffer, 64), 64);
	CHECK(!memcmp(buffer, peer->memory + 9, 64));
	copy.requester = 0x2200;
	CHECK_IS(dma_read(&copy, PEER_MEMORY + 3, buffer, 64), 64);
	CHECK(!memcmp(buffer, peer->memory + 3, 64));
	other = nt;
	other.sockfd = -1;
	CHECK_FAILS(nettlp_init(&other), EADDRINUSE);
	other.dir = (enum dma_direction)7;
	CHECK_FAILS(nettlp_init(&other), EINVAL);
	other = nt;
	CHECK_IS(inet_pton(AF_INET, "198.51.100.1", &other.local_addr), 1);
	CHECK_FAILS(nettlp_init(&other), EADDRNOTAVAIL);
	CHECK_FAILS(nettlp_init(NULL), EFAULT);

	for (int i = 0; i < 3; i++) { /* the same number again, for another socket */
		int fd = nt.sockfd;

		CHECK_IS(close(nt.sockfd), 0);
		nt = context(peer, i + 1);
		CHECK_IS(nt.sockfd, fd);
		CHECK_IS(dma_read(&nt, PEER_MEMORY, buffer, 64), 64);
		CHECK(!memcmp(buffer, peer->memory, 64));
	}
	CHECK_IS(close(nt.sockfd), 0);
	CHECK_FAILS(dma_read(&nt, PEER_MEMORY, buffer, 64), EBADF);
}

int main(void)
{
	struct peer *peer = peer_start(0, 4);
	struct nettlp nt = context(peer, 0);

	reads(peer, &nt);
	writes(peer, &nt);
	aligned(peer, &nt);
	failures(&nt);
	strangers(peer, &nt);
	timeouts(peer, &nt);
	refused(peer);
	lives(peer);
	CHECK_IS(nettlp_close(&nt), 0);
	peer_end(peer);
	return 0;
}
