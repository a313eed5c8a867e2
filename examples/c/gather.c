/*
 * Reads a range of the host's memory with many reads in flight, and writes it
 * to standard output.
 *
 *   gather ADAPTER LOCAL REQUESTER ADDRESS BYTES > memory.bin
 *   gather 127.0.0.2 127.0.0.1 1b00 0x100000 65536 > memory.bin
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libtlp.h>

#define PIECE 512

int main(int argc, char **argv)
{
	struct tlp_async_config config;
	struct tlp_async_done done[16];
	struct tlp_async *context;
	unsigned char *memory;
	uintptr_t address;
	size_t bytes;
	int count, status = 1;

	memset(&config, 0, sizeof(config));
	if (argc != 6 || inet_pton(AF_INET, argv[1], &config.remote_addr) != 1 ||
	    inet_pton(AF_INET, argv[2], &config.local_addr) != 1) {
		fprintf(stderr, "usage: gather ADAPTER LOCAL REQUESTER ADDRESS BYTES\n");
		return 2;
	}
	config.requester = (uint16_t)strtoul(argv[3], NULL, 16);
	address = strtoull(argv[4], NULL, 0);
	bytes = strtoull(argv[5], NULL, 0);

	context = tlp_async_open(&config);
	if (!context) {
		fprintf(stderr, "gather: %s\n", tlp_strerror(errno));
		return 1;
	}
	memory = malloc(bytes);
	if (!memory && bytes) {
		perror("gather");
		tlp_async_close(context);
		return 1;
	}
	for (size_t at = 0; at < bytes; at += PIECE) {
		size_t piece = bytes - at < PIECE ? bytes - at : PIECE;

		if (tlp_async_read(context, address + at, memory + at, piece, memory + at) < 0) {
			fprintf(stderr, "gather: %s\n", tlp_strerror(errno));
			goto out;
		}
	}
	/* An event loop would wait for tlp_async_fd(context) and then call tlp_async_poll(). */
	while ((count = tlp_async_wait(context, done, 16, -1)) > 0)
		for (int i = 0; i < count; i++)
			if (done[i].error) {
				size_t at = (size_t)((unsigned char *)done[i].user - memory);

				fprintf(stderr, "gather: at %#lx: %s\n", (unsigned long)(address + at),
					tlp_strerror(done[i].error));
				goto out;
			}
	if (count < 0)
		fprintf(stderr, "gather: %s\n", tlp_strerror(errno));
	else if (fwrite(memory, 1, bytes, stdout) != bytes || fflush(stdout))
		perror("gather");
	else
		status = 0;
out:
	/* Requests that are still under way write nothing after this. */
	tlp_async_close(context);
	free(memory);
	return status;
}
