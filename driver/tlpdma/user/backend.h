/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A card as the library sees it: one of three ways to reach it. */
#ifndef TLPDMA_BACKEND_H
#define TLPDMA_BACKEND_H

#include "libtlpdma.h"

struct tlpdma_backend {
	void (*close)(struct tlpdma_card *card);
	int (*describe)(struct tlpdma_card *card, struct tlpdma_description *description);
	/* `data` is only read if `to_card`. */
	int (*move)(struct tlpdma_card *card, bool to_card, uint64_t address, void *data, size_t bytes);
	uint64_t (*clock)(struct tlpdma_card *card);
	/* NULL where nothing is to be gained. */
	int (*register_memory)(struct tlpdma_card *card, void *data, size_t bytes);
	void (*unregister_memory)(struct tlpdma_card *card, void *data);
	/* NULL where there is nothing to map. The pages are in the card's memory, and within one MiB. */
	void *(*map)(struct tlpdma_card *card, uint64_t address, size_t bytes);
	void (*unmap)(struct tlpdma_card *card, void *memory, size_t bytes);
};

/* Each way to reach a card begins with this. */
struct tlpdma_card {
	const struct tlpdma_backend *backend;
};

/* Leaves a sentence, as printf() would write it, sets errno, and returns -1. */
__attribute__((format(printf, 3, 4))) int tlpdma_fail(struct tlpdma_card *card, int number,
						       const char *format, ...);

/* The system's clock, of cards that are no simulated ones: as tlpdma_clock(). */
uint64_t tlpdma_system_clock(struct tlpdma_card *card);
/* As tlpdma_fail() where a card with so much memory has not all of these bytes; 0 where it has. */
int tlpdma_check_place(struct tlpdma_card *card, uint64_t memory, uint64_t address, size_t bytes);

/* As tlpdma_open(). */
struct tlpdma_card *tlpdma_open_device(const char *path, char *message, size_t size);
struct tlpdma_card *tlpdma_open_vfio(const char *address, char *message, size_t size);
struct tlpdma_card *tlpdma_open_simulated(const char *experiment, const char *device,
					  const char *const *set, char *message, size_t size);

#endif
