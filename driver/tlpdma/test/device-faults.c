// SPDX-License-Identifier: MIT OR Apache-2.0
/* Transfers that the card fails, because somebody makes faults on its link meanwhile. */
#define _GNU_SOURCE
#include "device.h"

void test_queue_halts(void)
{
	const size_t part = PIECE / 4;
	unsigned char *data = buffer_of(64 * part);
	struct queue queue = { 0 };
	int file = open_card(0), failed = 0, last = 0;

	fill(data, 64 * part, 5);
	GIVES(syscall(SYS_io_setup, 64, &queue.context), 0);
	for (int i = 0; i < 64; i++)
		submit(&queue, file, true, data + (size_t)i * part, part, (off_t)((size_t)i * part));
	collect(&queue);
	for (int i = 0; i < 64; i++) {
		CHECK(queue.results[i] == (long long)part || queue.results[i] == -EIO, "request %d gave %lld", i, queue.results[i]);
		if (queue.results[i] < 0) {
			failed++;
			last = i;
		}
	}
	GIVES(failed, 1);
	CHECK(last > 0 && last < 63, "the card halted at request %d, with none before or behind it", last);
	for (size_t i = 0; i < 64; i++) {
		static unsigned char back[PIECE / 4];

		if (queue.results[i] < 0)
			continue;
		GIVES(pread(file, back, part, (off_t)(i * part)), part);
		CHECK(!memcmp(back, data + i * part, part), "request %zu was done, and its data are others", i);
	}
	GIVES(syscall(SYS_io_destroy, queue.context), 0);
	munmap(data, 64 * part);
	check_works(file);
	close(file);
}

/* Half of them to the card, half back; TLPDMA_TRANSFERS asks for fewer. */
#define TRANSFERS	100000
#define TRIES		8
#define LARGEST		8192

static unsigned int random_below(unsigned int end)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)(state >> 33) % end;
}

/* Moves bytes until it works: the number of failures. */
static int insist(int file, bool to_card, unsigned char *data, size_t bytes, off_t at)
{
	for (int failures = 0; failures < TRIES; failures++) {
		const ssize_t moved = to_card ? pwrite(file, data, bytes, at) : pread(file, data, bytes, at);

		if (moved == (ssize_t)bytes)
			return failures;
		CHECK(moved == -1 && errno == EIO, "%zu bytes %s card: %zd (%s)", bytes, to_card ? "to" : "from", moved,
		      strerror(errno));
	}
	fail(__FILE__, __LINE__, "%zu bytes %s card failed %d times", bytes, to_card ? "to" : "from", TRIES);
}

void test_faults(void)
{
	unsigned char *sent = buffer_of(LARGEST), *back = buffer_of(LARGEST);
	const char *asked = getenv("TLPDMA_TRANSFERS");
	const int transfers = asked ? atoi(asked) : TRANSFERS;
	int file = open_card(0), failures = 0;

	for (int i = 0; i < transfers / 2; i++) {
		const size_t bytes = 1 + random_below(LARGEST);
		const off_t at = random_below(MIB);
		const int seed = (int)random_below(256);

		memset(sent, seed, bytes);
		sent[0] = (unsigned char)i;
		sent[bytes - 1] = (unsigned char)(i >> 8);
		failures += insist(file, true, sent, bytes, at);
		memset(back, seed + 1, bytes);
		failures += insist(file, false, back, bytes, at);
		CHECK(!memcmp(sent, back, bytes), "transfer %d, of %zu bytes, came back as others", i, bytes);
	}
	printf("    %d transfers, of which %d failed and were repeated\n", transfers + failures, failures);
	CHECK(failures > transfers / 1000, "the card failed %d transfers: too few to tell anything", failures);
	munmap(sent, LARGEST);
	munmap(back, LARGEST);
	check_works(file);
	close(file);
}
