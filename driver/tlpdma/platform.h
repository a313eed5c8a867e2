/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * The base of ring.c in the kernel: registers, memory that the card reads and writes, and
 * their order. user/platform.h is the same for programs that play the kernel.
 */
#ifndef TLPDMA_PLATFORM_H
#define TLPDMA_PLATFORM_H

#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/io.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/barrier.h>
#include <asm/byteorder.h>

/* The card's registers. */
struct tlpdma_io {
	void __iomem *registers;
};

/* A piece of coherent memory, as the processor and as the card sees it. */
struct tlpdma_memory {
	void *cpu;
	dma_addr_t bus;
};

static inline u32 tlpdma_read(struct tlpdma_io *io, u32 offset)
{
	return readl(io->registers + offset);
}

/* Earlier stores are in memory when the card sees this: writel() guarantees it. */
static inline void tlpdma_write(struct tlpdma_io *io, u32 offset, u32 value)
{
	writel(value, io->registers + offset);
}

static inline void tlpdma_store(struct tlpdma_io *io, struct tlpdma_memory *memory, size_t offset,
				const void *data, size_t bytes)
{
	memcpy(memory->cpu + offset, data, bytes);
}

/*
 * Data loaded or copied after this were written before the value that it returns. Not every
 * processor loads 64 bits at once: the lower half is never older than the upper one.
 */
static inline u64 tlpdma_load(struct tlpdma_io *io, struct tlpdma_memory *memory)
{
	const __le32 *halves = memory->cpu;
	u32 high = le32_to_cpu(READ_ONCE(halves[1])), low;

	dma_rmb();
	low = le32_to_cpu(READ_ONCE(halves[0]));
	dma_rmb();
	return (u64)high << 32 | low;
}

/* Lets some 100 us pass. */
static inline void tlpdma_pause(struct tlpdma_io *io)
{
	usleep_range(50, 100);
}

#endif
