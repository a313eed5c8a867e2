/*
 * The least that a vfio-user server can do: one function with one BAR of 4 KiB, which is memory, and an interrupt (MSI-X) as soon as byte 16 of it is
 * written. The peer of bench/machine.py.
 *
 *   vfio_user SOCKET
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { VERSION = 1, DMA_MAP, DMA_UNMAP, GET_INFO, REGION_INFO, REGION_FDS, IRQ_INFO, SET_IRQS, REGION_READ, REGION_WRITE, RESET = 13 };
enum { BAR0 = 0, CONFIG = 7, MSIX = 2, BELL = 16, REPLY = 1, NO_REPLY = 0x10 };

struct header {
	uint16_t id, command;
	uint32_t size, flags, error;
};

struct access {
	uint64_t offset;
	uint32_t region, count;
	uint8_t data[4096];
};

static uint8_t bar[4096], config[4096];
/* The last descriptor that came beside a message, and that of the interrupt. */
static int came = -1, trigger = -1;
static union {
	uint8_t bytes[1 << 16];
	struct access access;
	uint32_t words[4];
} in;

/* Reads all of it, and keeps the last descriptor that comes beside. */
static int receive(int client, void *to, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		char beside[CMSG_SPACE(16 * sizeof(int))];
		struct iovec part = { (char *)to + at, bytes - at };
		struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = beside, .msg_controllen = sizeof(beside) };
		ssize_t got = recvmsg(client, &message, 0);

		if (got <= 0)
			return 0;
		for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one))
			for (size_t n = 0; n < (one->cmsg_len - CMSG_LEN(0)) / sizeof(int); n++) {
				if (came >= 0)
					close(came);
				came = ((int *)CMSG_DATA(one))[n];
			}
		at += got;
	}
	return 1;
}

static void reply(int client, struct header *header, const void *payload, size_t bytes)
{
	uint8_t out[sizeof(*header) + 4128];

	if (header->flags & NO_REPLY)
		return;
	header->flags = REPLY;
	header->size = sizeof(*header) + bytes;
	memcpy(out, header, sizeof(*header));
	memcpy(out + sizeof(*header), payload, bytes);
	if (send(client, out, header->size, MSG_NOSIGNAL) < 0)
		exit(1);
}

static void answer(int client, struct header *header, size_t bytes)
{
	static const char version[] = "\0\0\0\0{\"capabilities\":{\"max_msg_fds\":8}}";
	uint8_t *space = in.access.region == CONFIG ? config : bar;
	uint32_t index = in.words[2];
	struct {
		uint32_t argsz, flags, index, cap;
		uint64_t size, offset;
	} region = { 32, 3, index, 0, index == BAR0 || index == CONFIG ? 4096 : 0, (uint64_t)index << 40 };

	switch (header->command) {
	case VERSION:
		return reply(client, header, version, sizeof(version));
	case GET_INFO:
		return reply(client, header, (uint32_t[]){ 16, 3, 9, 5 }, 16);
	case REGION_INFO:
		region.flags = region.size ? 3 : 0;
		return reply(client, header, &region, sizeof(region));
	case IRQ_INFO:
		return reply(client, header, (uint32_t[]){ 16, index == MSIX ? 9 : 0, index, index == MSIX }, 16);
	case SET_IRQS:
		if (index == MSIX && came >= 0) {
			trigger = came;
			came = -1;
		}
		return reply(client, header, NULL, 0);
	case REGION_READ:
		memcpy(in.access.data, space + in.access.offset, in.access.count);
		return reply(client, header, &in.access, 16 + in.access.count);
	case REGION_WRITE:
		memcpy(space + in.access.offset, in.access.data, in.access.count);
		if (space == bar && in.access.offset == BELL && trigger >= 0 && write(trigger, (uint64_t[]){ 1 }, 8) != 8)
			exit(1);
		return reply(client, header, &in.access, 16);
	case DMA_UNMAP:
		return reply(client, header, in.bytes, bytes);
	default:
		return reply(client, header, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), client;
	struct header header;

	if (argc != 2)
		return 2;
	memcpy(config, (uint8_t[]){ 0xab, 0x71, 0xa2, 0xba, 0, 0, 0x10, 0, 0, 0, 0, 0xff }, 12);
	config[0x34] = 0x40;
	memcpy(config + 0x40, (uint8_t[]){ 0x11, 0, 0, 0, 0, 8, 0, 0, 0, 12, 0, 0 }, 12);
	strncpy(address.sun_path, argv[1], sizeof(address.sun_path) - 1);
	if (bind(listener, (void *)&address, sizeof(address)) || listen(listener, 1))
		return 1;
	client = accept(listener, NULL, NULL);
	while (receive(client, &header, sizeof(header))) {
		size_t bytes = header.size - sizeof(header);

		if (bytes > sizeof(in) || !receive(client, in.bytes, bytes))
			return 1;
		answer(client, &header, bytes);
	}
	return 0;
}
