/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tlplab_machine.h: a simulated machine under a driver written in C.
 *
 * The machine is an experiment of tlplab, of which the caller drives one
 * device: it reads and writes the device's BARs, uses host memory as a driver
 * would and waits for interrupts. Everything else in the experiment (links,
 * switches, other devices and their loads) goes on meanwhile. Simulated time
 * passes only within the calls that say so, and has nothing to do with the
 * clock on the wall; the same calls give the same times, always.
 *
 * A machine is for one thread at a time. Functions that can fail return -1
 * (pointers: NULL), set errno, and leave a sentence for tlplab_machine_error().
 */
#ifndef TLPLAB_MACHINE_H
#define TLPLAB_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Simulated time is counted in femtoseconds, from 0 to some five hours. */
#define TLPLAB_NS(n) ((uint64_t)(n) * 1000000u)
#define TLPLAB_PAGE  4096u

struct tlplab_machine;

/*
 * The machine of the experiment in the file `experiment`, after enumeration,
 * with its device called `device` for the caller to drive: the device's own
 * driver and the host's loads on it do not run, and the experiment's `stop`
 * does not count. `set` overrides keys of the experiment as `tlplab run --set`
 * does, "key=value" each, with NULL at the end; it may be NULL. If it cannot
 * be, what is wrong is put into `message`, cut to its `size`.
 */
struct tlplab_machine *tlplab_machine_open(const char *experiment, const char *device,
					   const char *const *set, char *message, size_t size);
void tlplab_machine_close(struct tlplab_machine *machine);

/* The message of the last function that failed. Valid until the next that fails. */
const char *tlplab_machine_error(const struct tlplab_machine *machine);

struct tlplab_machine_info {
	uint16_t vendor, device;
	uint16_t id;		/* bus, device, function */
	uint16_t interrupts;	/* 0: none, 1: legacy, 2: MSI, 3: MSI-X */
	uint64_t bar_base[6];	/* as the device sees and is seen on the bus */
	uint64_t bar_size[6];	/* 0: no such BAR */
};
int tlplab_machine_info(struct tlplab_machine *machine, struct tlplab_machine_info *info);

/*
 * Accesses of the processor to a BAR. They take simulated time: a read returns
 * when its data are there, a write when it has left the processor. Accesses
 * keep their order. EOPNOTSUPP: Unsupported Request; ECONNABORTED: Completer
 * Abort; ETIME: no completion came.
 */
int tlplab_machine_read(struct tlplab_machine *machine, unsigned bar, uint64_t offset, void *data,
			size_t bytes);
int tlplab_machine_write(struct tlplab_machine *machine, unsigned bar, uint64_t offset,
			 const void *data, size_t bytes);

/*
 * Host memory, for rings, buffers and whatever else the device is to reach. It
 * cannot be given back before the machine is closed. Contiguous, at a multiple
 * of `align`, a power of two; or `count` pages, no two of them that follow each
 * other being neighbours. ENOMEM: there is no more.
 */
int tlplab_machine_alloc(struct tlplab_machine *machine, uint64_t bytes, uint64_t align,
			 uint64_t *address);
int tlplab_machine_alloc_pages(struct tlplab_machine *machine, size_t count, uint64_t *addresses);

/* The processor's accesses to host memory. They take no simulated time. */
int tlplab_machine_load(struct tlplab_machine *machine, uint64_t address, void *data, size_t bytes);
int tlplab_machine_store(struct tlplab_machine *machine, uint64_t address, const void *data,
			 size_t bytes);

/*
 * Waits, in simulated time, until the device raises an interrupt, or has since
 * the last wait: 1, and its vector. 0: none came for `fs` femtoseconds. A legacy
 * interrupt is vector 0, again and again until the device lowers it.
 */
int tlplab_machine_wait(struct tlplab_machine *machine, uint64_t fs, unsigned *vector);

/* Simulated time, in femtoseconds. */
uint64_t tlplab_machine_now(struct tlplab_machine *machine);

#ifdef __cplusplus
}
#endif

#endif /* TLPLAB_MACHINE_H */
