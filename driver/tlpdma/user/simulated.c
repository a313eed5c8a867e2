// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The card in a simulated machine. This plays the kernel: the ring code is the Linux driver's, but memory is
 * not pinned and mapped, it is copied to and from the simulated machine's, page for page, which takes no
 * simulated time. What a transfer takes is the card's and the machine's share, without system calls.
 */
#include "../ring.h"
#include "backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tlplab_machine.h>

enum { PATIENCE_MS = 5000, PAUSE_US = 100, LEGACY = 1 };

/* A channel, and the transfer under way on it. */
struct channel {
	struct simulated *owner;
	struct tlpdma_ring ring;
	bool to_card;
	char *data;
	u32 local;
	u32 halted;	/* the channel's status, if it halted */
	struct {
		u64 offset;
		u32 bytes;
	} mapped[2];
};

struct simulated {
	struct tlpdma_card card;
	struct tlplab_machine *machine;
	struct tlpdma_io io;
	struct tlpdma_features features;
	bool legacy;
	struct channel channels[2];
	u64 interrupts[2], missed[2];
	/* Pages of the simulated machine for the program's memory: page i of a transfer is the i-th. */
	u64 *pages;
	size_t page_count;
	bool failed;	/* an access was not possible; the machine has said why */
	bool cut;	/* it did not come to rest, and is not used any more */
};

static u32 read_register(void *host, u32 offset)
{
	struct simulated *card = host;
	__le32 value;

	if (tlplab_machine_read(card->machine, 0, offset, &value, sizeof(value))) {
		/* A processor reads all ones where nobody answers. */
		card->failed |= errno != EOPNOTSUPP && errno != ETIME;
		return ~0u;
	}
	return le32toh(value);
}

static void write_register(void *host, u32 offset, u32 value)
{
	struct simulated *card = host;
	const __le32 data = htole32(value);

	if (tlplab_machine_write(card->machine, 0, offset, &data, sizeof(data)))
		card->failed = true;
}

static void store(void *host, u64 bus, const void *data, size_t bytes)
{
	struct simulated *card = host;

	if (tlplab_machine_store(card->machine, bus, data, bytes))
		card->failed = true;
}

static u64 load(void *host, u64 bus)
{
	struct simulated *card = host;
	u64 value = 0;

	if (tlplab_machine_load(card->machine, bus, &value, sizeof(value)))
		card->failed = true;
	return le64toh(value);
}

/* An interrupt that comes meanwhile is no loss: whoever waits looks at the record first. */
static void pause_card(void *host)
{
	struct simulated *card = host;
	const uint64_t end = tlplab_machine_now(card->machine) + TLPLAB_NS(PAUSE_US * 1000);

	for (;;) {
		const uint64_t now = tlplab_machine_now(card->machine);

		if (now >= end || tlplab_machine_wait(card->machine, end - now, NULL) < 0)
			break;
	}
}

/* Copies a part of the transfer from the program's memory to the simulated machine's, or back. */
static void copy(struct channel *channel, u64 offset, u32 bytes, bool back)
{
	struct simulated *card = channel->owner;
	const u64 in_page = (uintptr_t)channel->data % TLPLAB_PAGE;

	for (u32 done = 0; done < bytes;) {
		const u64 at = in_page + offset + done;
		const u64 bus = card->pages[at / TLPLAB_PAGE] + at % TLPLAB_PAGE;
		char *data = channel->data + offset + done;
		u32 part = TLPLAB_PAGE - (u32)(at % TLPLAB_PAGE);
		int error;

		if (part > bytes - done)
			part = bytes - done;
		error = back ? tlplab_machine_load(card->machine, bus, data, part)
			     : tlplab_machine_store(card->machine, bus, data, part);
		if (error)
			card->failed = true;
		done += part;
	}
}

static int map(void *context, unsigned int slot, u64 offset, u32 bytes)
{
	struct channel *channel = context;
	const u32 begin = channel->ring.tail;
	const u64 in_page = (uintptr_t)channel->data % TLPLAB_PAGE;

	/* From the card, too: what it does not write stays as the program has it. */
	copy(channel, offset, bytes, false);
	for (u32 done = 0; done < bytes;) {
		const u64 at = in_page + offset + done;
		u32 part = TLPLAB_PAGE - (u32)(at % TLPLAB_PAGE);
		int error;

		if (part > bytes - done)
			part = bytes - done;
		error = tlpdma_ring_add(&channel->ring,
					channel->owner->pages[at / TLPLAB_PAGE] + at % TLPLAB_PAGE,
					channel->local + (u32)(offset + done), part,
					done + part == bytes ? TLPDMA_INTERRUPT : 0);
		if (error) {
			tlpdma_ring_take_back(&channel->ring, begin);
			return error;
		}
		done += part;
	}
	channel->mapped[slot].offset = offset;
	channel->mapped[slot].bytes = bytes;
	return (int)bytes;
}

static void unmap(void *context, unsigned int slot)
{
	struct channel *channel = context;

	if (!channel->to_card)
		copy(channel, channel->mapped[slot].offset, channel->mapped[slot].bytes, true);
}

/* The interrupt handler: counts, and tells a legacy card that it was heard. */
static void handle_interrupt(struct simulated *card, unsigned int vector)
{
	u32 status = 1u << vector;

	if (card->legacy) {
		status = read_register(card, TLPDMA_IRQ_STATUS) & TLPDMA_IRQ_ALL;
		if (status) {
			write_register(card, TLPDMA_IRQ_STATUS, status);
			/* As in the driver: what is cleared is clear before the next transfer. */
			read_register(card, TLPDMA_IRQ_STATUS);
		}
	}
	card->interrupts[0] += !!(status & TLPDMA_IRQ_H2C);
	card->interrupts[1] += !!(status & TLPDMA_IRQ_C2H);
}

static int wait_done(void *context, u32 count)
{
	struct channel *channel = context;
	struct simulated *card = channel->owner;
	const uint64_t end = tlplab_machine_now(card->machine) + TLPLAB_NS(PATIENCE_MS * 1000000ull);
	unsigned int vector;
	int done, heard = 1;

	for (;;) {
		const uint64_t now = tlplab_machine_now(card->machine);

		done = tlpdma_ring_done(&channel->ring, count, false);
		if (done || card->failed || heard <= 0 || now >= end)
			break;
		heard = tlplab_machine_wait(card->machine, end - now, &vector);
		if (heard > 0)
			handle_interrupt(card, vector);
	}
	if (!done && heard >= 0 && !card->failed) {
		done = tlpdma_ring_done(&channel->ring, count, true);
		card->missed[!channel->to_card] += done > 0;
	}
	if (done > 0)
		return 0;
	channel->halted = channel->ring.status;
	if (heard < 0 || card->failed)
		return -EIO;
	return done < 0 ? done : -ETIMEDOUT;
}

/* The simulated machine's memory is ours: nobody else suffers. */
static bool cut_off(void *context)
{
	((struct channel *)context)->owner->cut = true;
	return true;
}

static const struct tlpdma_transfer_ops ops = { map, unmap, wait_done, cut_off };

/* There are pages for so much of the program's memory. */
static int provide_pages(struct simulated *card, const void *data, size_t bytes)
{
	const size_t needed = ((uintptr_t)data % TLPLAB_PAGE + bytes + TLPLAB_PAGE - 1) / TLPLAB_PAGE;
	u64 *pages;

	if (needed <= card->page_count)
		return 0;
	pages = realloc(card->pages, needed * sizeof(*pages));
	if (!pages)
		return tlpdma_fail(&card->card, ENOMEM, "there is no memory left");
	card->pages = pages;
	if (tlplab_machine_alloc_pages(card->machine, needed - card->page_count, pages + card->page_count))
		return tlpdma_fail(&card->card, ENOMEM, "%s; host.memory.size in the experiment gives more",
				   tlplab_machine_error(card->machine));
	card->page_count = needed;
	return 0;
}

static int explain(struct simulated *card, struct channel *channel, s64 error)
{
	if (card->failed)
		return tlpdma_fail(&card->card, EIO, "%s", tlplab_machine_error(card->machine));
	if (error == -EIO)
		return tlpdma_fail(&card->card, EIO, "the card halted: %s", tlpdma_error_name(channel->halted));
	if (error == -ENODEV)
		return tlpdma_fail(&card->card, ENODEV, "the card is gone: its registers read as all ones");
	if (card->cut)
		return tlpdma_fail(&card->card, ENODEV, "the card does not come to rest, and is not used any more");
	return tlpdma_fail(&card->card, (int)-error, "%s", strerror((int)-error));
}

static int move(struct tlpdma_card *base, bool to_card, uint64_t address, void *data, size_t bytes)
{
	struct simulated *card = (struct simulated *)base;
	struct channel *channel = &card->channels[!to_card];
	size_t done = 0;

	if (tlpdma_check_place(base, (uint64_t)card->features.memory_mib << 20, address, bytes))
		return -1;
	if (card->cut)
		return tlpdma_fail(base, ENODEV, "the card was lost before");
	while (done < bytes) {
		s64 moved;

		if (provide_pages(card, (char *)data + done, bytes - done))
			return -1;
		channel->data = (char *)data + done;
		channel->local = (u32)(address + done);
		moved = tlpdma_transfer(&channel->ring, &ops, channel, bytes - done);
		if (moved < 0 || card->failed || card->cut)
			return explain(card, channel, moved);
		done += (size_t)moved;
	}
	return 0;
}

static int describe(struct tlpdma_card *base, struct tlpdma_description *description)
{
	struct simulated *card = (struct simulated *)base;

	*description = (struct tlpdma_description){
		.simulated = true,
		.memory = (uint64_t)card->features.memory_mib << 20,
		.tags = card->features.tags,
		.mps = card->features.mps,
		.mrrs = card->features.mrrs,
		.vectors = card->legacy ? 0 : card->features.vectors,
		.interrupts = { card->interrupts[0], card->interrupts[1] },
		.missed = { card->missed[0], card->missed[1] },
	};
	return 0;
}

static uint64_t read_clock(struct tlpdma_card *card)
{
	return tlplab_machine_now(((struct simulated *)card)->machine) / 1000;
}

static void close_card(struct tlpdma_card *base)
{
	struct simulated *card = (struct simulated *)base;

	tlplab_machine_close(card->machine);
	free(card->pages);
	free(card);
}

static const struct tlpdma_backend backend = {
	.close = close_card, .describe = describe, .move = move, .clock = read_clock,
};

static int start_channel(struct simulated *card, unsigned int number)
{
	struct channel *channel = &card->channels[number];
	const u64 bytes = (u64)TLPDMA_DESCRIPTOR << TLPDMA_LOG2_TRANSFER;

	channel->owner = card;
	channel->to_card = number == 0;
	channel->ring.io = &card->io;
	channel->ring.block = TLPDMA_CHANNEL(number);
	channel->ring.log2 = TLPDMA_LOG2_TRANSFER;
	if (tlplab_machine_alloc(card->machine, bytes, bytes, &channel->ring.descriptors.bus) ||
	    tlplab_machine_alloc(card->machine, TLPDMA_RECORD, 64, &channel->ring.record.bus))
		return -ENOMEM;
	tlpdma_ring_start(&channel->ring);
	return 0;
}

static int start(struct simulated *card)
{
	struct tlplab_machine_info info;
	int error;

	if (tlplab_machine_info(card->machine, &info))
		return -EIO;
	card->legacy = info.interrupts == LEGACY;
	error = tlpdma_card_start(&card->io, &card->features);
	for (unsigned int i = 0; i < 2 && !error; i++)
		error = start_channel(card, i);
	return error;
}

struct tlpdma_card *tlpdma_open_simulated(const char *experiment, const char *device,
					  const char *const *set, char *message, size_t size)
{
	struct simulated *card = calloc(1, sizeof(*card));
	int error;

	if (!card) {
		snprintf(message, size, "there is no memory left");
		return NULL;
	}
	card->card.backend = &backend;
	card->machine = tlplab_machine_open(experiment, device, set, message, size);
	if (!card->machine) {
		free(card);
		return NULL;
	}
	card->io = (struct tlpdma_io){ card, read_register, write_register, store, load, pause_card };
	error = start(card);
	if (!error && !card->failed)
		return &card->card;
	if (card->failed)
		snprintf(message, size, "%s: device %s: %s", experiment, device, tlplab_machine_error(card->machine));
	else
		snprintf(message, size, "%s: device %s is not a tlpdma card, or does not come to rest (%s)", experiment,
			 device, strerror(-error));
	close_card(&card->card);
	return NULL;
}
