/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * Software's operations on a tlpdma card: the card as a whole, the ring of a channel, and
 * transfers of any length on it.
 *
 * This is one implementation for the kernel module and for programs that play the kernel against
 * a model of the card. Nothing in it waits or takes locks: the caller has the ring for itself,
 * and brings the waiting (struct tlpdma_transfer_ops).
 */
#ifndef TLPDMA_RING_H
#define TLPDMA_RING_H

#ifdef __KERNEL__
#include "platform.h"
#else
#include "user/platform.h"
#endif
#include "tlpdma_regs.h"

/* The properties that a card reports. */
struct tlpdma_features {
	u32 version;
	u32 memory_mib;
	u32 tags;
	u32 mps;	/* bytes */
	u32 mrrs;	/* bytes */
	u32 vectors;	/* of MSI-X */
};

/*
 * Brings the card from any state to one in which nothing is under way and its channels can be
 * started. -ENODEV: it is no tlpdma card that this code knows, or it is gone; -ETIMEDOUT: it does
 * not come to rest.
 */
int tlpdma_card_start(struct tlpdma_io *io, struct tlpdma_features *features);
/* No interrupts and no requests of the card after this; -ETIMEDOUT: it does not come to rest. */
int tlpdma_card_stop(struct tlpdma_io *io);
bool tlpdma_card_is_gone(struct tlpdma_io *io);
/* The name of a channel's error. */
const char *tlpdma_error_name(u32 channel_status);

/* The ring of a channel. */
struct tlpdma_ring {
	struct tlpdma_io *io;
	struct tlpdma_memory descriptors; /* 2^log2 of them, aligned to 4 KiB or their size */
	struct tlpdma_memory record;	  /* of write-back, aligned to 8 bytes */
	u32 block;	/* the channel's registers */
	u32 log2;
	u32 tail;	/* descriptors put in */
	u32 head;	/* descriptors done, as far as we know */
	u32 status;	/* of the channel, likewise */
};

/*
 * Starts a channel that has been reset, with an empty ring. The caller has filled in io,
 * descriptors, record, block and log2.
 */
void tlpdma_ring_start(struct tlpdma_ring *ring);
/* Descriptors that may be put in. */
u32 tlpdma_ring_room(const struct tlpdma_ring *ring);
/*
 * Puts a descriptor in; the card hears of it with tlpdma_ring_submit(). -ENOSPC: the ring is
 * full; -EINVAL: it cannot be so long, or has no bytes.
 */
int tlpdma_ring_add(struct tlpdma_ring *ring, u64 host, u32 local, u32 bytes, u32 flags);
void tlpdma_ring_submit(struct tlpdma_ring *ring);
/* Takes descriptors back that the card has not heard of. */
void tlpdma_ring_take_back(struct tlpdma_ring *ring, u32 tail);
/*
 * 1: all descriptors before `count` are done; 0: not yet; -EIO: the channel halted before.
 * Looks into memory only, or, with `ask`, asks the card; then -ENODEV: it is gone.
 */
int tlpdma_ring_done(struct tlpdma_ring *ring, u32 count, bool ask);
/*
 * Resets the channel, whatever it does, and starts it anew. After 0 the card has forgotten the
 * descriptors; -ENODEV: it is gone; -ETIMEDOUT: it does not come to rest, and may still use the
 * memory that the descriptors name.
 */
int tlpdma_ring_reset(struct tlpdma_ring *ring);

/*
 * Longest piece of a transfer. Two of them are in flight: one is made ready while the other
 * moves.
 */
#define TLPDMA_PIECE		(4u << 20)
/* A ring has room for two pieces of 4 KiB pages, of which the first and last are parts. */
#define TLPDMA_PIECE_PAGES	(TLPDMA_PIECE / 4096 + 1)
#define TLPDMA_LOG2_TRANSFER	12

/*
 * The callbacks of a stream of pieces; each gets `context`. `slot` is below the
 * number of slots, and a piece has it until it is unmapped.
 */
struct tlpdma_stream_ops {
	/*
	 * Makes the next piece ready for the card and puts its descriptors into the ring, the last
	 * with TLPDMA_INTERRUPT: 1. Otherwise nothing is left in the ring; 0: there is none now,
	 * and an error ends the stream when what is in flight has arrived.
	 */
	int (*map)(void *context, unsigned int slot);
	/*
	 * The card is done with a slot, or, with an error, the channel was reset. Behind a piece at
	 * which the card has halted (-EIO) the others have -ECANCELED: they may be tried again.
	 */
	void (*unmap)(void *context, unsigned int slot, int error);
	/* The card may still reach a slot, which stays mapped for good: its owner is told. */
	void (*abandon)(void *context, unsigned int slot, int error);
	/* Waits for tlpdma_ring_done(count); 0 or an error, which ends the stream. */
	int (*wait)(void *context, u32 count);
	/*
	 * The card does not answer, or does not come to rest: see to it that it reaches no
	 * memory. If false, that is not certain, and what is mapped is left so for good.
	 */
	bool (*cut_off)(void *context);
};

/* Most slots of a stream: a power of two. */
#define TLPDMA_SLOTS_MAX	32

/*
 * Moves pieces until there is none, with at most `slots` of them in flight: 0, or the error that
 * ended it. The ring is empty then.
 */
int tlpdma_stream(struct tlpdma_ring *ring, const struct tlpdma_stream_ops *ops, void *context,
		  unsigned int slots);

/* The callbacks of a transfer; each gets `context`. `slot` is 0 or 1. */
struct tlpdma_transfer_ops {
	/*
	 * Makes up to `bytes` bytes of the buffer, from `offset`, ready for the card and puts
	 * their descriptors into the ring, the last with TLPDMA_INTERRUPT. The number of bytes,
	 * at least 1, or an error, after which nothing is left in the ring.
	 */
	int (*map)(void *context, unsigned int slot, u64 offset, u32 bytes);
	/* The card is done with a slot, or the channel was reset. */
	void (*unmap)(void *context, unsigned int slot);
	/* As for a stream. */
	int (*wait)(void *context, u32 count);
	bool (*cut_off)(void *context);
};

/*
 * Moves `bytes` bytes. Returns how many were moved, which are fewer after an error, or the error
 * if there are none. The ring is empty then.
 */
s64 tlpdma_transfer(struct tlpdma_ring *ring, const struct tlpdma_transfer_ops *ops, void *context,
		    u64 bytes);

#endif
