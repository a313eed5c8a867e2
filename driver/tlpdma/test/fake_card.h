/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A model of the tlpdma card for tests of the ring code: registers, two channels, local memory, and the host's memory beside it. It works when
 * it is told to (fake_card_work), and fails in the ways that a test asks for.
 */
#ifndef FAKE_CARD_H
#define FAKE_CARD_H

#include "../ring.h"

enum { FAKE_HOST = 64 << 20, FAKE_LOCAL = 32 << 20, FAKE_CHANNELS = 2 };

struct fake_channel {
	u64 base, record;
	u32 log2, tail, head, control, status;
};

struct fake_card {
	struct tlpdma_io io;
	u8 *host, *local;
	u32 id, version, control, irq_enable, irq_status;
	struct fake_channel channel[FAKE_CHANNELS];
	bool gone;		/* every read gives all ones, writes go nowhere */
	bool stuck;		/* resets do not end */
	bool silent;		/* works off no descriptors */
	u32 lost_at;		/* this read, counted from 1, gives all ones; 0: none */
	u32 reads;
	u32 fail_at;		/* this descriptor of all, counted from 1, halts its channel; 0: none */
	u32 fail_with;		/* enum tlpdma_error */
	u32 worked;		/* descriptors */
	u32 interrupts, doorbells, pauses;
};

void fake_card_open(struct fake_card *card);
void fake_card_close(struct fake_card *card);
/* Works off at most `descriptors`. */
void fake_card_work(struct fake_card *card, u32 descriptors);

#endif
