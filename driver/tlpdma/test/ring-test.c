// SPDX-License-Identifier: MIT OR Apache-2.0
/* Tests of ring.c against a model of the card. */
#include "fake_card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
			exit(1); \
		} \
	} while (0)

enum { RINGS = 0, RECORDS = 2 << 20, BUFFER = 4 << 20 };

/* A driver as small as it can be: a buffer of scattered pages, in reverse order. */
struct driver {
	struct fake_card card;
	struct tlpdma_ring ring;
	unsigned int channel;
	u64 buffer_offset;	/* of the buffer in its first page */
	u64 bytes;
	u32 local;
	u32 step;		/* descriptors that the card works off between two looks */
	int map_error;		/* the error of mapping at map_error_at */
	u64 map_error_at;
	bool vanish_in_wait;
	int mapped[2];
	bool unsafe;		/* it cannot be cut off */
	unsigned int cuts;
};

static u64 page_of(u64 offset)
{
	const u64 pages = (FAKE_HOST - BUFFER) / 4096;

	return BUFFER + (pages - 1 - offset / 4096) * 4096 + offset % 4096;
}

static int map(void *context, unsigned int slot, u64 offset, u32 bytes)
{
	struct driver *driver = context;
	const u32 before = driver->ring.tail;

	CHECK(!driver->mapped[slot]);
	for (u32 done = 0; done < bytes;) {
		const u64 at = driver->buffer_offset + offset + done;
		u32 part = 4096 - at % 4096;

		part = part < bytes - done ? part : bytes - done;
		CHECK(tlpdma_ring_add(&driver->ring, page_of(at), (u32)(driver->local + offset + done), part,
				      done + part == bytes ? TLPDMA_INTERRUPT : 0) == 0);
		done += part;
	}
	if (driver->map_error && offset >= driver->map_error_at) {
		tlpdma_ring_take_back(&driver->ring, before);
		return driver->map_error;
	}
	driver->mapped[slot] = 1;
	return (int)bytes;
}

static void unmap(void *context, unsigned int slot)
{
	struct driver *driver = context;

	CHECK(driver->mapped[slot]);
	driver->mapped[slot] = 0;
}

static int wait(void *context, u32 count)
{
	struct driver *driver = context;

	for (int looks = 0; looks < 10000; looks++) {
		int done = tlpdma_ring_done(&driver->ring, count, false);

		if (done)
			return done < 0 ? done : 0;
		fake_card_work(&driver->card, driver->step);
		if (driver->vanish_in_wait)
			driver->card.gone = true;
	}
	int done = tlpdma_ring_done(&driver->ring, count, true);

	return done < 0 ? done : done ? 0 : -ETIMEDOUT;
}

static bool cut_off(void *context)
{
	struct driver *driver = context;

	driver->cuts++;
	return !driver->unsafe;
}

static const struct tlpdma_transfer_ops ops = { map, unmap, wait, cut_off };

static void open_driver(struct driver *driver, unsigned int channel, u32 log2)
{
	struct tlpdma_features features;

	*driver = (struct driver){ .channel = channel, .step = 7 };
	fake_card_open(&driver->card);
	CHECK(tlpdma_card_start(&driver->card.io, &features) == 0);
	CHECK(features.tags == 32 && features.mps == 256 && features.mrrs == 512 && features.vectors == 4);
	CHECK(features.memory_mib == FAKE_LOCAL >> 20);
	CHECK(driver->card.irq_enable == TLPDMA_IRQ_ALL);
	driver->ring = (struct tlpdma_ring){
		.io = &driver->card.io,
		.descriptors = { RINGS + (channel << 20) },
		.record = { RECORDS + 8 * channel },
		.block = TLPDMA_CHANNEL(channel),
		.log2 = log2,
	};
	tlpdma_ring_start(&driver->ring);
}

static void close_driver(struct driver *driver)
{
	CHECK(!driver->mapped[0] && !driver->mapped[1]);
	fake_card_close(&driver->card);
}

static u32 random_state = 1;

static u32 draw(u32 below)
{
	random_state = random_state * 1664525 + 1013904223;
	return (u32)(((u64)random_state * below) >> 32);
}

/* Moves bytes and looks at every one of them, and at its neighbours. */
static void move(struct driver *driver, u32 local, u64 offset, u64 bytes)
{
	u8 *card = driver->card.local + local;
	const u8 seed = (u8)draw(256);
	s64 moved;

	driver->local = local;
	driver->buffer_offset = offset;
	memset(driver->card.local, 0xaa, FAKE_LOCAL);
	memset(driver->card.host + BUFFER, 0xaa, FAKE_HOST - BUFFER);
	for (u64 i = 0; i < bytes; i++) {
		u8 *from = driver->channel == 0 ? driver->card.host + page_of(offset + i) : card + i;

		*from = (u8)(seed + i + (i >> 8));
	}
	moved = tlpdma_transfer(&driver->ring, &ops, driver, bytes);
	CHECK(moved == (s64)bytes);
	CHECK(tlpdma_ring_room(&driver->ring) == 1u << driver->ring.log2);
	for (u64 i = 0; i < bytes; i++) {
		const u8 *to = driver->channel == 0 ? card + i : driver->card.host + page_of(offset + i);

		CHECK(*to == (u8)(seed + i + (i >> 8)));
	}
	CHECK(local == 0 || driver->channel == 1 || card[-1] == 0xaa);
	CHECK(driver->channel == 1 || card[bytes] == 0xaa);
	CHECK(driver->channel == 0 || driver->card.host[page_of(offset + bytes)] == 0xaa);
}

static void moves_every_byte(void)
{
	static const u64 sizes[] = { 1, 4, 31, 4096, 4097, 65536, TLPDMA_PIECE - 1, TLPDMA_PIECE, TLPDMA_PIECE + 1,
				     3 * TLPDMA_PIECE + 5 };

	for (unsigned int channel = 0; channel < 2; channel++) {
		struct driver driver;

		open_driver(&driver, channel, TLPDMA_LOG2_TRANSFER);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			move(&driver, draw(1 << 20), draw(4096), sizes[i]);
		CHECK(driver.card.worked > 1u << driver.ring.log2); /* the ring has wrapped */
		CHECK(driver.card.interrupts == 8 + 2 + 4);
		CHECK(driver.card.doorbells == driver.card.interrupts);
		close_driver(&driver);
	}
}

static void knows_other_cards(void)
{
	struct tlpdma_features features;
	struct fake_card card;

	fake_card_open(&card);
	card.version = 0x00020000;
	CHECK(tlpdma_card_start(&card.io, &features) == -ENODEV);
	card.version = 0x00010007; /* a newer one of the same kind */
	CHECK(tlpdma_card_start(&card.io, &features) == 0);
	card.id = 0;
	CHECK(tlpdma_card_start(&card.io, &features) == -ENODEV);
	CHECK(!tlpdma_card_is_gone(&card.io));
	card.gone = true;
	CHECK(tlpdma_card_start(&card.io, &features) == -ENODEV);
	CHECK(tlpdma_card_is_gone(&card.io));
	CHECK(tlpdma_card_stop(&card.io) == -ENODEV);
	card.gone = false;
	card.id = TLPDMA_ID_VALUE;
	card.stuck = true;
	CHECK(tlpdma_card_start(&card.io, &features) == -ETIMEDOUT);
	CHECK(card.pauses > 0);
	fake_card_close(&card);
}

/* The smallest ring, filled and emptied, with counters that pass 2^32. */
static void fills_and_wraps(void)
{
	const u32 begin = 0xfffffff9u;
	struct driver driver;
	u32 put = begin, done = begin;

	open_driver(&driver, 0, TLPDMA_LOG2_MIN);
	driver.ring.tail = driver.ring.head = begin;
	driver.card.channel[0].tail = driver.card.channel[0].head = begin;
	CHECK(tlpdma_ring_add(&driver.ring, BUFFER, 0, 0, 0) == -EINVAL);
	CHECK(tlpdma_ring_add(&driver.ring, BUFFER, 0, TLPDMA_LENGTH_MAX + 1, 0) == -EINVAL);
	for (int round = 0; round < 1000; round++) {
		for (u32 i = draw(20); i > 0; i--) {
			const int added = tlpdma_ring_add(&driver.ring, BUFFER, put % 1024, 1, TLPDMA_WRITE_BACK);

			CHECK(added == (put - done == 16 ? -ENOSPC : 0));
			put += added == 0;
		}
		tlpdma_ring_submit(&driver.ring);
		fake_card_work(&driver.card, draw(20));
		(void)tlpdma_ring_done(&driver.ring, put, draw(2));
		done = driver.card.channel[0].head;
		CHECK(tlpdma_ring_done(&driver.ring, done, false) == 1);
		CHECK(put == done || tlpdma_ring_done(&driver.ring, done + 1, true) == 0);
		CHECK(tlpdma_ring_room(&driver.ring) == 16 - (put - done));
	}
	CHECK(done > 100 && done < begin);
	close_driver(&driver);
}

static void believes_no_nonsense(void)
{
	static const u32 heads[] = { 5, 0xffffffff, 0x80000000 };
	struct driver driver;

	open_driver(&driver, 0, TLPDMA_LOG2_MIN);
	for (int i = 0; i < 4; i++)
		CHECK(tlpdma_ring_add(&driver.ring, BUFFER, 0, 1, 0) == 0);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		const u64 record = htole64(heads[i] | (u64)TLPDMA_CH_HALTED << 32);

		memcpy(driver.card.host + driver.ring.record.bus, &record, sizeof(record));
		CHECK(tlpdma_ring_done(&driver.ring, 1, false) == 0);
		CHECK(tlpdma_ring_room(&driver.ring) == 12);
	}
	close_driver(&driver);
}

/* A transfer that fails in its first, second or third piece; afterwards the channel works. */
static void halts_and_goes_on(void)
{
	for (u32 piece = 0; piece < 3; piece++) {
		struct driver driver;

		open_driver(&driver, 0, TLPDMA_LOG2_TRANSFER);
		driver.card.fail_at = piece * 1024 + 500;
		driver.card.fail_with = TLPDMA_COMPLETER_ABORT;
		CHECK(tlpdma_transfer(&driver.ring, &ops, &driver, 3 * TLPDMA_PIECE) ==
		      (piece == 0 ? -EIO : (s64)piece * TLPDMA_PIECE));
		CHECK(!strcmp(tlpdma_error_name(TLPDMA_CH_HALTED | driver.card.fail_with), "completer abort"));
		move(&driver, 3, 5, 100000);
		close_driver(&driver);
	}
}

static void ends_without_card(void)
{
	struct driver driver;

	open_driver(&driver, 1, TLPDMA_LOG2_TRANSFER);
	driver.vanish_in_wait = true;
	CHECK(tlpdma_transfer(&driver.ring, &ops, &driver, 2 * TLPDMA_PIECE) == -ENODEV);
	CHECK(driver.cuts == 1); /* it may only seem to be gone */
	close_driver(&driver);
}

/* A read now and then gives all ones: its completion was lost, and the card is there all the same. */
static void survives_lost_completions(void)
{
	struct driver driver;

	open_driver(&driver, 1, TLPDMA_LOG2_TRANSFER);
	driver.card.silent = true;
	for (u32 lost = 0; lost < 6; lost++) {
		driver.card.lost_at = driver.card.reads + 1 + lost;
		CHECK(tlpdma_transfer(&driver.ring, &ops, &driver, 10000) == -ETIMEDOUT);
		CHECK(driver.cuts == 0);
	}
	driver.card.silent = false;
	move(&driver, 3, 5, 100000);
	close_driver(&driver);
}

static void cuts_off_what_does_not_rest(void)
{
	struct driver driver;

	open_driver(&driver, 0, TLPDMA_LOG2_TRANSFER);
	driver.card.silent = true;
	CHECK(tlpdma_transfer(&driver.ring, &ops, &driver, 10000) == -ETIMEDOUT);
	CHECK(driver.cuts == 0); /* it could be reset */
	driver.card.stuck = true;
	CHECK(tlpdma_transfer(&driver.ring, &ops, &driver, 10000) == -ETIMEDOUT);
	CHECK(driver.cuts == 1);
	CHECK(!driver.mapped[0] && !driver.mapped[1]);
	driver.unsafe = true;
	CHECK(tlpdma_transfer(&driver.ring, &ops, &driver, 10000) == -ETIMEDOUT);
	CHECK(driver.mapped[0]); /* the card may still write there */
	driver.mapped[0] = 0;
	close_driver(&driver);
}

/* Memory that cannot be had ends a transfer after what was under way. */
static void ends_without_memory(void)
{
	struct driver driver;

	open_driver(&driver, 0, TLPDMA_LOG2_TRANSFER);
	driver.map_error = -EFAULT;
	CHECK(tlpdma_transfer(&driver.ring, &ops, &driver, 5000) == -EFAULT);
	CHECK(driver.card.doorbells == 0);
	driver.map_error_at = 2 * TLPDMA_PIECE;
	CHECK(tlpdma_transfer(&driver.ring, &ops, &driver, 3 * TLPDMA_PIECE) == 2 * TLPDMA_PIECE);
	CHECK(tlpdma_ring_room(&driver.ring) == 1u << TLPDMA_LOG2_TRANSFER);
	driver.map_error = 0;
	move(&driver, 0, 0, 5000);
	close_driver(&driver);
}

/* Pieces of a page each, so many of them; what became of each. */
struct pieces {
	struct driver driver;
	unsigned int next, count, abandoned;
	unsigned int of_slot[8];
	int ended[16];
};

enum { PENDING = 1 };

static int map_page(void *context, unsigned int slot)
{
	struct pieces *pieces = context;

	if (pieces->next == pieces->count)
		return 0;
	CHECK(tlpdma_ring_add(&pieces->driver.ring, BUFFER, pieces->next * 4096, 4096, TLPDMA_INTERRUPT) == 0);
	pieces->of_slot[slot] = pieces->next++;
	return 1;
}

static void unmap_page(void *context, unsigned int slot, int error)
{
	struct pieces *pieces = context;

	CHECK(pieces->ended[pieces->of_slot[slot]] == PENDING);
	pieces->ended[pieces->of_slot[slot]] = error;
}

static void abandon_page(void *context, unsigned int slot, int error)
{
	struct pieces *pieces = context;

	pieces->abandoned++;
	unmap_page(context, slot, error);
}

/* wait() of a driver, which is what the pieces begin with. */
static const struct tlpdma_stream_ops page_ops = { map_page, unmap_page, abandon_page, wait, cut_off };

/* The piece at which the card halts has failed, and those behind it may be tried again. */
static void tells_which_piece_halted_a_stream(void)
{
	for (u32 at = 1; at <= 16; at++) {
		struct pieces pieces = { .count = 16 };
		unsigned int halted_after;

		open_driver(&pieces.driver, 0, TLPDMA_LOG2_MIN);
		pieces.driver.step = 3;
		pieces.driver.card.fail_at = at;
		pieces.driver.card.fail_with = TLPDMA_POISONED;
		for (unsigned int i = 0; i < 16; i++)
			pieces.ended[i] = PENDING;
		CHECK(tlpdma_stream(&pieces.driver.ring, &page_ops, &pieces, 8) == -EIO);
		halted_after = pieces.next;
		CHECK(halted_after >= at && halted_after < at + 8);
		for (unsigned int i = 0; i < halted_after; i++)
			CHECK(pieces.ended[i] == (i + 1 < at ? 0 : i + 1 == at ? -EIO : -ECANCELED));
		/* The channel works: what the card had not heard of moves now. */
		CHECK(tlpdma_stream(&pieces.driver.ring, &page_ops, &pieces, 8) == 0);
		CHECK(pieces.next == 16);
		for (unsigned int i = halted_after; i < 16; i++)
			CHECK(pieces.ended[i] == 0);
		close_driver(&pieces.driver);
	}
}

/* Each piece has an end, also where the card cannot be cut off from it. */
static void abandons_a_stream(void)
{
	for (int unsafe = 0; unsafe < 2; unsafe++) {
		struct pieces pieces = { .count = 16 };

		open_driver(&pieces.driver, 0, TLPDMA_LOG2_MIN);
		pieces.driver.card.silent = true;
		pieces.driver.card.stuck = true;
		pieces.driver.unsafe = unsafe;
		for (unsigned int i = 0; i < 16; i++)
			pieces.ended[i] = PENDING;
		CHECK(tlpdma_stream(&pieces.driver.ring, &page_ops, &pieces, 8) == -ETIMEDOUT);
		CHECK(pieces.driver.cuts == 1 && pieces.next == 8);
		CHECK(pieces.abandoned == (unsafe ? 8 : 0));
		for (unsigned int i = 0; i < 8; i++)
			CHECK(pieces.ended[i] == -ETIMEDOUT);
		close_driver(&pieces.driver);
	}
}

int main(void)
{
	moves_every_byte();
	knows_other_cards();
	fills_and_wraps();
	believes_no_nonsense();
	halts_and_goes_on();
	ends_without_card();
	survives_lost_completions();
	cuts_off_what_does_not_rest();
	ends_without_memory();
	tells_which_piece_halted_a_stream();
	abandons_a_stream();
	puts("ring: 11 tests passed");
	return 0;
}
