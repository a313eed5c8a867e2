/*
 * A host behind an adapter, for tests: answers what contexts read and write,
 * and does all the things wrong that a network and a host may. It knows the
 * protocol by its description alone and uses nothing of the library.
 */
#ifndef PEER_H
#define PEER_H

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

#define PEER_MEMORY 0x10000000UL /* answered as it should be */
#define PEER_BYTES  0x20000UL

/* One page each, where things go wrong. */
enum peer_page {
	PEER_UR = 0xBAD0,
	PEER_CA,
	PEER_CRS,
	PEER_POISONED,
	PEER_SILENT,     /* never answered */
	PEER_LATE,       /* answered when the next request is there, before that */
	PEER_STRANGER,   /* the first answer is another requester's, the second ours */
	PEER_OTHER_TAG,  /* the first answer has another tag, the second ours */
	PEER_ELSEWHERE,  /* its lower address is another one */
	PEER_CUT,        /* fewer bytes than the header says */
	PEER_TWICE,      /* the answer comes twice, with one sequence number */
};
#define PEER_AT(page) ((uintptr_t)(page) << 12)

struct peer {
	struct in_addr local, remote; /* the device's address, the adapter's */
	int            sockets[17];
	int            count;
	int            stop[2];
	pthread_t      thread;
	_Atomic unsigned int requests; /* that came */
	_Atomic unsigned int longest;  /* doublewords of the longest */
	_Atomic unsigned int crossing; /* requests over a 4 KiB boundary */
	pthread_mutex_t lock; /* of all below */
	unsigned char  memory[PEER_BYTES];
	unsigned char  kept[64]; /* the late answer */
	size_t         kept_bytes;
	uint16_t       sequence;
};

static uint32_t peer_be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Loopback addresses that no other test has: they tell the process. */
static inline struct in_addr peer_address(int end)
{
	struct in_addr address;
	unsigned int pid = (unsigned int)getpid();

	address.s_addr = htonl(127u << 24 | (64 + (pid >> 14 & 63)) << 16 | (pid >> 6 & 255) << 8 | (pid & 63) << 2 | (unsigned)end);
	return address;
}

static inline int peer_socket(struct in_addr address, uint16_t port)
{
	struct sockaddr_in to;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK(fd >= 0);
	memset(&to, 0, sizeof(to));
	to.sin_family = AF_INET;
	to.sin_addr = address;
	to.sin_port = htons(port);
	CHECK_IS(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

/* NetTLP header, counted as an adapter does, and a completion with data. */
static size_t peer_completion(struct peer *peer, unsigned char *out, const unsigned char *request, unsigned int status,
			      unsigned int remaining, unsigned int low, const unsigned char *data, unsigned int bytes)
{
	unsigned int dwords = data ? (low % 4 + bytes + 3) / 4 : 0;
	unsigned char *tlp = out + 6;

	peer->sequence++;
	out[0] = (unsigned char)(peer->sequence >> 8);
	out[1] = (unsigned char)peer->sequence;
	memset(out + 2, 0x55, 4);
	memset(tlp, 0, 12 + dwords * 4);
	tlp[0] = data ? 0x4A : 0x0A;
	tlp[2] = (unsigned char)(dwords >> 8 & 3);
	tlp[3] = (unsigned char)dwords;
	tlp[6] = (unsigned char)(status << 5 | (remaining >> 8 & 15));
	tlp[7] = (unsigned char)remaining;
	memcpy(tlp + 8, request + 4, 3);
	tlp[11] = (unsigned char)(low & 0x7F);
	if (data)
		memcpy(tlp + 12 + low % 4, data, bytes);
	return 6 + 12 + dwords * 4;
}

static void peer_send(int fd, const struct sockaddr_in *to, const unsigned char *out, size_t bytes)
{
	CHECK_IS(sendto(fd, out, bytes, 0, (const struct sockaddr *)to, sizeof(*to)), (long long)bytes);
}

/* The whole answer: cut at 64 bytes, up to 192 at a time. */
static void peer_answer(struct peer *peer, int fd, const struct sockaddr_in *to, const unsigned char *request,
			uintptr_t address, unsigned int bytes, const unsigned char *data)
{
	static _Thread_local unsigned char out[6 + 12 + 4096 + 4];
	unsigned int sent = 0;

	if (bytes == 0) { /* a flush */
		size_t size = peer_completion(peer, out, request, 0, 1, address & 0x7F, (const unsigned char *)"", 1);

		peer_send(fd, to, out, size);
		return;
	}
	while (sent < bytes) {
		uintptr_t at = address + sent;
		unsigned int part = (unsigned int)(((at / 64) + 3) * 64 - at);

		if (part > bytes - sent)
			part = bytes - sent;
		peer_send(fd, to, out, peer_completion(peer, out, request, 0, bytes - sent, sent ? at & 0x7F : address & 0x7F, data + sent, part));
		sent += part;
	}
}

static void peer_misbehave(struct peer *peer, int fd, const struct sockaddr_in *to, const unsigned char *request,
			   uintptr_t address, unsigned int bytes)
{
	unsigned char out[64], data[16] = "WRONG DATA HERE";
	unsigned int low = address & 0x7F;
	size_t size;

	CHECK(bytes <= 16);
	switch ((enum peer_page)(address >> 12)) {
	case PEER_UR:
		peer_send(fd, to, out, peer_completion(peer, out, request, 1, bytes, low, NULL, 0));
		break;
	case PEER_CA:
		peer_send(fd, to, out, peer_completion(peer, out, request, 4, bytes, low, NULL, 0));
		break;
	case PEER_CRS:
		peer_send(fd, to, out, peer_completion(peer, out, request, 2, bytes, low, NULL, 0));
		break;
	case PEER_POISONED:
		size = peer_completion(peer, out, request, 0, bytes, low, data, bytes);
		out[6 + 2] |= 0x40;
		peer_send(fd, to, out, size);
		break;
	case PEER_SILENT:
		break;
	case PEER_LATE:
		peer->kept_bytes = peer_completion(peer, peer->kept, request, 0, bytes, low, data, bytes);
		break;
	case PEER_STRANGER:
		size = peer_completion(peer, out, request, 0, bytes, low, data, bytes);
		out[6 + 8] ^= 0x10;
		peer_send(fd, to, out, size);
		peer_answer(peer, fd, to, request, address, bytes, peer->memory);
		break;
	case PEER_OTHER_TAG:
		size = peer_completion(peer, out, request, 0, bytes, low, data, bytes);
		out[6 + 10] ^= 1;
		peer_send(fd, to, out, size);
		peer_answer(peer, fd, to, request, address, bytes, peer->memory);
		break;
	case PEER_ELSEWHERE:
		peer_send(fd, to, out, peer_completion(peer, out, request, 0, bytes, low ^ 64, data, bytes));
		break;
	case PEER_CUT:
		size = peer_completion(peer, out, request, 0, bytes, low, data, bytes);
		peer_send(fd, to, out, size - 1);
		break;
	case PEER_TWICE:
		size = peer_completion(peer, out, request, 0, bytes, low, peer->memory, bytes);
		peer_send(fd, to, out, size);
		peer_send(fd, to, out, size);
		break;
	default:
		fprintf(stderr, "a request at %#lx\n", (unsigned long)address);
		abort();
	}
}

/* A request as it stands in the datagram, its byte enables contiguous. */
static void peer_handle(struct peer *peer, int fd, const struct sockaddr_in *from, const unsigned char *request, size_t size)
{
	unsigned int fmt = request[0] >> 5, dwords = (request[2] & 3u) << 8 | request[3];
	unsigned int first = request[7] & 15u, last = request[7] >> 4, header = fmt & 1 ? 16 : 12;
	uintptr_t dword = fmt & 1 ? (uintptr_t)peer_be32(request + 8) << 32 | peer_be32(request + 12) : peer_be32(request + 8);
	uintptr_t address = dword;
	unsigned int bytes;

	dwords = dwords ? dwords : 1024;
	CHECK_IS(request[0] & 0x1F, 0);
	CHECK_IS(size, header + (fmt & 2 ? dwords * 4 : 0));
	CHECK(!(fmt & 1) || dword >> 32); /* 3DW headers below 4 GiB */
	for (bytes = dwords * 4; first && !(first & 1); first >>= 1, address++)
		bytes--;
	if (!(request[7] & 15))
		bytes = 0;
	else if (dwords == 1)
		for (bytes = 0; first & 1; first >>= 1)
			bytes++;
	else
		for (; !(last & 8); last <<= 1)
			bytes--;
	peer->requests++;
	if (dwords > peer->longest)
		peer->longest = dwords;
	peer->crossing += (dword & 0xFFF) + dwords * 4 > 4096;
	if (peer->kept_bytes) {
		peer_send(fd, from, peer->kept, peer->kept_bytes);
		peer->kept_bytes = 0;
	}
	if (address < PEER_MEMORY || address + bytes > PEER_MEMORY + PEER_BYTES)
		peer_misbehave(peer, fd, from, request, address, bytes);
	else if (fmt & 2)
		memcpy(peer->memory + (address - PEER_MEMORY), request + header + (address - dword), bytes);
	else
		peer_answer(peer, fd, from, request, address, bytes, peer->memory + (address - PEER_MEMORY));
}

static void *peer_run(void *arg)
{
	struct peer *peer = (struct peer *)arg;
	struct pollfd polled[18];
	static _Thread_local unsigned char datagram[8192];

	for (int i = 0; i < peer->count; i++)
		polled[i] = (struct pollfd){ peer->sockets[i], POLLIN, 0 };
	polled[peer->count] = (struct pollfd){ peer->stop[0], POLLIN, 0 };
	while (poll(polled, (nfds_t)peer->count + 1, -1) > 0 && !polled[peer->count].revents)
		for (int i = 0; i < peer->count; i++) {
			struct sockaddr_in from;
			socklen_t size = sizeof(from);
			ssize_t got;

			if (!(polled[i].revents & POLLIN))
				continue;
			got = recvfrom(polled[i].fd, datagram, sizeof(datagram), 0, (struct sockaddr *)&from, &size);
			CHECK(got >= 6 + 12);
			CHECK_IS(from.sin_addr.s_addr, peer->local.s_addr);
			pthread_mutex_lock(&peer->lock);
			peer_handle(peer, polled[i].fd, &from, datagram + 6, (size_t)got - 6);
			pthread_mutex_unlock(&peer->lock);
		}
	return NULL;
}

/* A host that hears the tags from `first_tag` on. */
static inline struct peer *peer_start(int first_tag, int tags)
{
	struct peer *peer = (struct peer *)calloc(1, sizeof(*peer));

	CHECK(tags <= 16);
	peer->local = peer_address(1);
	peer->remote = peer_address(2);
	pthread_mutex_init(&peer->lock, NULL);
	for (peer->count = 0; peer->count < tags; peer->count++)
		peer->sockets[peer->count] = peer_socket(peer->remote, (uint16_t)(0x3000 + first_tag + peer->count));
	for (size_t i = 0; i < PEER_BYTES; i++)
		peer->memory[i] = (unsigned char)(i * 7 + i / 251);
	CHECK_IS(pipe(peer->stop), 0);
	CHECK_IS(pthread_create(&peer->thread, NULL, peer_run, peer), 0);
	return peer;
}

static inline void peer_end(struct peer *peer)
{
	CHECK_IS(write(peer->stop[1], "", 1), 1);
	pthread_join(peer->thread, NULL);
	for (int i = 0; i < peer->count; i++)
		close(peer->sockets[i]);
	close(peer->stop[0]);
	close(peer->stop[1]);
	pthread_mutex_destroy(&peer->lock);
	free(peer);
}

#endif
