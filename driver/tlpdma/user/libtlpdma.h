/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libtlpdma: a tlpdma card's memory, read and written by DMA from and to memory of the program.
 *
 * A card is a character device of the Linux driver; a function that this program drives itself, by VFIO and
 * with the driver's ring code; or a simulated one: then an experiment of tlplab is
 * the machine, this library plays the kernel with the driver's own ring code, and times are simulated.
 *
 * Functions that can fail return -1 (pointers: NULL), set errno, and leave a sentence for tlpdma_error().
 * On hardware each direction may be used by a thread of its own; a simulated card is for one thread.
 */
#ifndef LIBTLPDMA_H
#define LIBTLPDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tlpdma_card;

/*
 * The card at `where`: "/dev/tlpdma0", "vfio:0000:01:00.0", or "sim:EXPERIMENT.toml", the device called "card" of that
 * experiment, or "sim:EXPERIMENT.toml#NAME". `set` overrides keys of the experiment as `tlplab run --set`
 * does, "key=value" each, with NULL at the end; it may be NULL, and is refused with hardware. If the card
 * cannot be used, what is wrong is put into `message`, cut to its `size`.
 */
struct tlpdma_card *tlpdma_open(const char *where, const char *const *set, char *message, size_t size);
void tlpdma_close(struct tlpdma_card *card);

/* The message of the last function that failed in this thread. */
const char *tlpdma_error(const struct tlpdma_card *card);

struct tlpdma_description {
	bool simulated;
	bool vfio;		/* this program drives it */
	uint64_t memory;	/* of the card, bytes */
	unsigned tags;		/* reads of the card that can be under way */
	unsigned mps, mrrs;	/* largest payload and read request, bytes */
	unsigned vectors;	/* of MSI-X; 0: a legacy interrupt */
	uint64_t interrupts[2];	/* so far: to the card, from the card */
	uint64_t missed[2];	/* transfers that were done, but had not interrupted in time */
};
int tlpdma_describe(struct tlpdma_card *card, struct tlpdma_description *description);

/* Moves all bytes, from or to any address of the program. `address` is the card's. */
int tlpdma_to_card(struct tlpdma_card *card, uint64_t address, const void *data, size_t bytes);
int tlpdma_from_card(struct tlpdma_card *card, uint64_t address, void *data, size_t bytes);

/*
 * Memory that is used again and again: with VFIO it is mapped for the card once, instead of for each transfer.
 * It must stay where it is until it is unregistered, by an address in it, or the card is closed.
 */
int tlpdma_register(struct tlpdma_card *card, void *data, size_t bytes);
void tlpdma_unregister(struct tlpdma_card *card, void *data);

/*
 * The card's memory, or what a design has in its place (registers), by loads and stores of the program: whole pages, within one
 * MiB. While any are mapped, no other MiB can be (EBUSY). Registers are to be touched a doubleword at a time; what is stored
 * has arrived when something was loaded after it. A touch when the card is gone raises SIGBUS, or loads all ones. A simulated
 * card, and one under User Mode Linux, has no memory that a program can touch (ENODEV).
 */
void *tlpdma_map(struct tlpdma_card *card, uint64_t address, size_t bytes);
void tlpdma_unmap(struct tlpdma_card *card, void *memory, size_t bytes);

/* The clock that goes with the card, in picoseconds: the system's, or simulated time. */
uint64_t tlpdma_clock(struct tlpdma_card *card);

/* The times of transfers, one after the other, in picoseconds. */
struct tlpdma_latency {
	uint64_t runs, min, median, mean, p99, max;
};
/* Transfers of one doubleword, which goes to the card and back each time; -1, EIO: it came back as another. */
int tlpdma_measure_latency(struct tlpdma_card *card, bool to_card, uint64_t address, size_t runs,
			   struct tlpdma_latency *latency);
/*
 * Loads of one doubleword from memory that tlpdma_map() has mapped for it, stored before each; the times are of the load. As
 * above, and as tlpdma_map() where it cannot be.
 */
int tlpdma_measure_load(struct tlpdma_card *card, uint64_t address, size_t runs, struct tlpdma_latency *latency);

#ifdef __cplusplus
}
#endif

#endif
