// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The cost of the ways to a card: calls that wait, a queue of requests, VFIO. Of each size, as many transfers as
 * fit into some time; bytes a second, and the time of all processors for each transfer. That is the
 * machine's, from /proc/stat, since a kernel thread or an interrupt works for the program, too: nothing else should run.
 */
#define _GNU_SOURCE
#include "../user/libtlpdma.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH_MAX = 64 };

static const char usage[] =
	"usage: tlpdma-compare [--queue N] [--register] [--sizes FROM:TO] [--seconds S] CARD\n"
	"Transfers of sizes in bytes, quadrupling (4096:4194304), for S seconds each (1), by calls that wait, one\n"
	"after the other, or with N of them in a queue (/dev/tlpdmaN only). CARD is /dev/tlpdmaN or vfio:ADDRESS; for\n"
	"VFIO, --register maps the buffer once. One line each: size, direction, transfers, MB/s, and us of the\n"
	"machine's processors for each transfer.\n";

struct options {
	const char *card;
	int queue;
	bool registered;
	size_t from, to;
	double seconds;
};

static void fail(const char *what)
{
	fprintf(stderr, "tlpdma-compare: %s\n", what);
	exit(1);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Seconds that the processors were not idle, together. */
static double busy(void)
{
	unsigned long long user, nice, system, idle, wait, irq, softirq;
	FILE *file = fopen("/proc/stat", "re");

	if (!file || fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &wait, &irq,
			    &softirq) != 7)
		fail("/proc/stat does not have the processors' time");
	fclose(file);
	return (double)(user + nice + system + irq + softirq) / (double)sysconf(_SC_CLK_TCK);
}

static unsigned long calls(struct tlpdma_card *card, bool to_card, void *data, size_t size, double until)
{
	unsigned long count = 0;

	do {
		if (to_card ? tlpdma_to_card(card, 0, data, size) : tlpdma_from_card(card, 0, data, size))
			fail(tlpdma_error(card));
		count++;
	} while (now() < until);
	return count;
}

static void submit(aio_context_t context, int file, bool to_card, char *data, size_t size, int slot)
{
	struct iocb block = {
		.aio_data = (unsigned int)slot,
		.aio_lio_opcode = to_card ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD,
		.aio_fildes = (unsigned int)file,
		.aio_buf = (unsigned long)(data + (size_t)slot * size),
		.aio_nbytes = size,
		.aio_offset = (long long)((size_t)slot * size),
	}, *blocks = &block;

	if (syscall(SYS_io_submit, context, 1, &blocks) != 1)
		fail(strerror(errno));
}

/* Each request that is done is the next one. */
static unsigned long queued(int file, int depth, bool to_card, char *data, size_t size, double until)
{
	struct io_event events[DEPTH_MAX];
	aio_context_t context = 0;
	unsigned long count = 0;
	int under_way;

	if (syscall(SYS_io_setup, depth, &context))
		fail(strerror(errno));
	for (under_way = 0; under_way < depth; under_way++)
		submit(context, file, to_card, data, size, under_way);
	while (under_way > 0) {
		const long got = syscall(SYS_io_getevents, context, 1, depth, events, NULL);

		for (long i = 0; i < got; i++) {
			if (events[i].res != (long long)size)
				fail("a request did not move all of its bytes");
			under_way--;
			count++;
			if (now() < until) {
				submit(context, file, to_card, data, size, (int)events[i].data);
				under_way++;
			}
		}
	}
	syscall(SYS_io_destroy, context);
	return count;
}

static void measure(const struct options *options, struct tlpdma_card *card, int file, char *data, size_t size, bool to_card)
{
	const double before = busy(), begin = now(), until = begin + options->seconds;
	const unsigned long count = options->queue ? queued(file, options->queue, to_card, data, size, until)
						   : calls(card, to_card, data, size, until);
	const double took = now() - begin, worked = busy() - before;

	printf("%zu %s %lu %.2f %.2f\n", size, to_card ? "to-card" : "from-card", count, (double)count * (double)size / took / 1e6,
	       worked * 1e6 / (double)count);
	fflush(stdout);
}

static struct options read_options(int count, char **arguments)
{
	struct options options = { .from = 4096, .to = 4 << 20, .seconds = 1 };

	for (int i = 1; i < count; i++) {
		const char *value = i + 1 < count ? arguments[i + 1] : "";

		if (!strcmp(arguments[i], "--register"))
			options.registered = true;
		else if (!strcmp(arguments[i], "--queue"))
			options.queue = atoi(arguments[++i < count ? i : 0]);
		else if (!strcmp(arguments[i], "--seconds"))
			options.seconds = atof(arguments[++i < count ? i : 0]);
		else if (!strcmp(arguments[i], "--sizes") && sscanf(value, "%zu:%zu", &options.from, &options.to) == 2)
			i++;
		else
			options.card = arguments[i];
	}
	if (!options.card || options.queue < 0 || options.queue > DEPTH_MAX || options.seconds <= 0 || !options.from ||
	    (options.queue && options.card[0] != '/')) {
		fputs(usage, stderr);
		exit(2);
	}
	return options;
}

int main(int count, char **arguments)
{
	const struct options options = read_options(count, arguments);
	const size_t bytes = options.to * (size_t)(options.queue ? options.queue : 1);
	char message[512];
	struct tlpdma_card *card = tlpdma_open(options.card, NULL, message, sizeof(message));
	const int file = options.queue ? open(options.card, O_RDWR | O_CLOEXEC) : -1;
	char *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (!card)
		fail(message);
	if (data == MAP_FAILED || (options.queue && file < 0))
		fail(strerror(errno));
	if (options.registered && tlpdma_register(card, data, bytes))
		fail(tlpdma_error(card));
	for (size_t size = options.from; size <= options.to; size *= 4)
		for (int to_card = 1; to_card >= 0; to_card--)
			measure(&options, card, file, data, size, to_card);
	tlpdma_close(card);
	return 0;
}
