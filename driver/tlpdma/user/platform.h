/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The base of ring.c outside the kernel: the user of the ring brings registers and memory,
 * because there the card is a model.
 */
#ifndef TLPDMA_PLATFORM_H
#define TLPDMA_PLATFORM_H

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef int32_t s32;
typedef int64_t s64;
typedef uint64_t u64;
typedef uint32_t __le32;

#define cpu_to_le32(x) htole32(x)

/* The card: `host` is given back to each function. The functions keep the order in which they are called. */
struct tlpdma_io {
	void *host;
	u32 (*read)(void *host, u32 offset);
	void (*write)(void *host, u32 offset, u32 value);
	void (*store)(void *host, u64 bus, const void *data, size_t bytes);
	u64 (*load)(void *host, u64 bus); /* 8 bytes at once, in the processor's byte order */
	void (*pause)(void *host);	  /* lets some 100 us pass */
};

struct tlpdma_memory {
	u64 bus;
};

static inline u32 tlpdma_read(struct tlpdma_io *io, u32 offset)
{
	return io->read(io->host, offset);
}

static inline void tlpdma_write(struct tlpdma_io *io, u32 offset, u32 value)
{
	io->write(io->host, offset, value);
}

static inline void tlpdma_store(struct tlpdma_io *io, struct tlpdma_memory *memory, size_t offset,
				const void *data, size_t bytes)
{
	io->store(io->host, memory->bus + offset, data, bytes);
}

static inline u64 tlpdma_load(struct tlpdma_io *io, struct tlpdma_memory *memory)
{
	return io->load(io->host, memory->bus);
}

static inline void tlpdma_pause(struct tlpdma_io *io)
{
	io->pause(io->host);
}

#endif
