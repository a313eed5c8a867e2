// SPDX-License-Identifier: MIT OR Apache-2.0
#include "backend.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char simulated_prefix[] = "sim:", vfio_prefix[] = "vfio:";
/* Each direction may have a thread of its own. */
static _Thread_local char sentence[256];

int tlpdma_fail(struct tlpdma_card *card, int number, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)card;
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	errno = number;
	return -1;
}

uint64_t tlpdma_system_clock(struct tlpdma_card *card)
{
	struct timespec now;

	(void)card;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) * 1000u;
}

int tlpdma_check_place(struct tlpdma_card *card, uint64_t memory, uint64_t address, size_t bytes)
{
	if (address <= memory && bytes <= memory - address)
		return 0;
	return tlpdma_fail(card, ENOSPC, "the card has no %zu bytes at address 0x%llx, only %llu in all", bytes,
			   (unsigned long long)address, (unsigned long long)memory);
}

#ifdef TLPDMA_SIMULATED
static struct tlpdma_card *open_simulated(const char *where, const char *const *set, char *message, size_t size)
{
	char *experiment = strdup(where), *name;
	struct tlpdma_card *card;

	if (!experiment) {
		snprintf(message, size, "there is no memory left");
		return NULL;
	}
	name = strrchr(experiment, '#');
	if (name)
		*name++ = '\0';
	card = tlpdma_open_simulated(experiment, name ? name : "card", set, message, size);
	free(experiment);
	return card;
}
#else
static struct tlpdma_card *open_simulated(const char *where, const char *const *set, char *message, size_t size)
{
	(void)set;
	snprintf(message, size, "%s: this program was built without the simulator; `make driver-test` builds it with", where);
	errno = EOPNOTSUPP;
	return NULL;
}
#endif

struct tlpdma_card *tlpdma_open(const char *where, const char *const *set, char *message, size_t size)
{
	const size_t prefix = sizeof(simulated_prefix) - 1;

	if (!strncmp(where, simulated_prefix, prefix))
		return open_simulated(where + prefix, set, message, size);
	if (set && set[0]) {
		snprintf(message, size, "%s: \"%s\" cannot be set; only a simulated card (sim:EXPERIMENT.toml) has settings",
			 where, set[0]);
		errno = EINVAL;
		return NULL;
	}
	if (!strncmp(where, vfio_prefix, sizeof(vfio_prefix) - 1))
		return tlpdma_open_vfio(where + sizeof(vfio_prefix) - 1, message, size);
	return tlpdma_open_device(where, message, size);
}

void tlpdma_close(struct tlpdma_card *card)
{
	if (card)
		card->backend->close(card);
}

const char *tlpdma_error(const struct tlpdma_card *card)
{
	(void)card;
	return sentence;
}

int tlpdma_describe(struct tlpdma_card *card, struct tlpdma_description *description)
{
	return card->backend->describe(card, description);
}

int tlpdma_to_card(struct tlpdma_card *card, uint64_t address, const void *data, size_t bytes)
{
	return card->backend->move(card, true, address, (void *)data, bytes);
}

int tlpdma_from_card(struct tlpdma_card *card, uint64_t address, void *data, size_t bytes)
{
	return card->backend->move(card, false, address, data, bytes);
}

int tlpdma_register(struct tlpdma_card *card, void *data, size_t bytes)
{
	return card->backend->register_memory ? card->backend->register_memory(card, data, bytes) : 0;
}

void tlpdma_unregister(struct tlpdma_card *card, void *data)
{
	if (card->backend->unregister_memory)
		card->backend->unregister_memory(card, data);
}

void *tlpdma_map(struct tlpdma_card *card, uint64_t address, size_t bytes)
{
	const uint64_t mib = 1 << 20, page = 4096;
	struct tlpdma_description description;

	if (!card->backend->map) {
		tlpdma_fail(card, ENODEV, "a simulated card has no memory that a program can touch: its loads and stores are transfers");
		return NULL;
	}
	if (!bytes || address % page || bytes % page || address / mib != (address + bytes - 1) / mib) {
		tlpdma_fail(card, EINVAL, "%zu bytes at 0x%llx cannot be mapped: whole pages of %llu bytes can, within one MiB", bytes,
			    (unsigned long long)address, (unsigned long long)page);
		return NULL;
	}
	if (tlpdma_describe(card, &description) || tlpdma_check_place(card, description.memory, address, bytes))
		return NULL;
	return card->backend->map(card, address, bytes);
}

void tlpdma_unmap(struct tlpdma_card *card, void *memory, size_t bytes)
{
	if (memory)
		card->backend->unmap(card, memory, bytes);
}

uint64_t tlpdma_clock(struct tlpdma_card *card)
{
	return card->backend->clock(card);
}

static int compare(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static void summarise(uint64_t *times, size_t runs, struct tlpdma_latency *latency)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < runs; i++)
		sum += times[i];
	qsort(times, runs, sizeof(*times), compare);
	*latency = (struct tlpdma_latency){
		.runs = runs,
		.min = times[0],
		.median = times[(runs - 1) / 2],
		.mean = sum / runs,
		.p99 = times[(runs - 1) * 99 / 100],
		.max = times[runs - 1],
	};
}

/* Moves a doubleword to the card and back; `took` is of one direction, and the word looked at. */
static int move_word(struct tlpdma_card *card, bool to_card, uint64_t address, uint32_t word, uint64_t *took)
{
	uint32_t back = ~word;
	uint64_t times[3] = { tlpdma_clock(card) };

	if (card->backend->move(card, true, address, &word, sizeof(word)))
		return -1;
	times[1] = tlpdma_clock(card);
	if (card->backend->move(card, false, address, &back, sizeof(back)))
		return -1;
	times[2] = tlpdma_clock(card);
	*took = to_card ? times[1] - times[0] : times[2] - times[1];
	if (back != word)
		return tlpdma_fail(card, EIO, "0x%08x went to the card and came back as 0x%08x", word, back);
	return 0;
}

int tlpdma_measure_latency(struct tlpdma_card *card, bool to_card, uint64_t address, size_t runs,
			   struct tlpdma_latency *latency)
{
	uint64_t *times = runs ? calloc(runs, sizeof(*times)) : NULL;
	int failed = 0;

	if (!times)
		return tlpdma_fail(card, runs ? ENOMEM : EINVAL, "%zu runs cannot be measured", runs);
	for (size_t i = 0; i < runs && !failed; i++)
		failed = move_word(card, to_card, address, (uint32_t)i * 0x9e3779b9u + 1, &times[i]);
	if (!failed)
		summarise(times, runs, latency);
	free(times);
	return failed;
}

int tlpdma_measure_load(struct tlpdma_card *card, uint64_t address, size_t runs, struct tlpdma_latency *latency)
{
	const size_t page = 4096;
	char *memory = tlpdma_map(card, address / page * page, page);
	volatile uint32_t *word = memory ? (volatile uint32_t *)(memory + address % page / 4 * 4) : NULL;
	uint64_t *times = runs ? calloc(runs, sizeof(*times)) : NULL;
	int failed = word ? 0 : -1;

	if (word && !times)
		failed = tlpdma_fail(card, runs ? ENOMEM : EINVAL, "%zu runs cannot be measured", runs);
	for (size_t i = 0; i < runs && !failed; i++) {
		const uint32_t stored = (uint32_t)i * 0x9e3779b9u + 1;
		uint64_t begin;
		uint32_t loaded;

		*word = stored;
		(void)*word; /* the store has arrived */
		begin = tlpdma_clock(card);
		loaded = *word;
		times[i] = tlpdma_clock(card) - begin;
		if (loaded != stored)
			failed = tlpdma_fail(card, EIO, "0x%08x was stored and loaded as 0x%08x", stored, loaded);
	}
	if (!failed)
		summarise(times, runs, latency);
	tlpdma_unmap(card, memory, page);
	free(times);
	return failed;
}
