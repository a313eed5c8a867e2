/* SPDX-License-Identifier: GPL-2.0 */
/* What pci.c (the card comes and goes) and device.c (what programs do with it) have in common. */
#ifndef TLPDMA_H
#define TLPDMA_H

#include <linux/dma-mapping.h>
#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <linux/wait.h>

#include "ring.h"

/* A piece of a program's memory while the card works at it. */
struct tlpdma_mapping {
	struct page *pages[TLPDMA_PIECE_PAGES];
	unsigned int count;
	struct sg_table table;
};

struct tlpdma_channel {
	struct tlpdma_card *card;
	enum dma_data_direction direction;
	/* Held during a transfer; with it all that follows but the interrupt's part. */
	struct mutex lock;
	struct tlpdma_ring ring;
	struct tlpdma_mapping mappings[2];
	/* The transfer under way. */
	unsigned long buffer;
	u32 local;
	u64 missed;
	/* The interrupt's part. */
	wait_queue_head_t done;
	atomic64_t interrupts;
};

/* What the bus's error recovery is at; while it is at something, no transfer begins. */
enum tlpdma_recovery {
	TLPDMA_RUNS,
	TLPDMA_FROZEN,	/* the card may be unreachable until it has been reset */
	TLPDMA_RESTARTS, /* it was reset: what was under way is not any more */
};

struct tlpdma_card {
	/* Of the driver, while the card is there, and of open files. */
	struct kref references;
	struct pci_dev *pdev;
	struct miscdevice misc;
	int number;
	struct tlpdma_io io;
	struct tlpdma_features features;
	u32 vectors;
	/* Set once: no transfer begins from then on, and those under way end. */
	bool gone;
	enum tlpdma_recovery recovery;
	/* A channel became idle, or the card is gone: for poll(). */
	wait_queue_head_t changed;
	struct tlpdma_channel channels[2];
};

/* The card is gone, or has to be left alone: transfers end, new ones are refused. */
void tlpdma_lose(struct tlpdma_card *card);
/* The bus's error recovery begins: transfers end when the card has been reset. */
void tlpdma_freeze(struct tlpdma_card *card);
/*
 * Cuts a card off from memory that does not answer or come to rest. False: it may reach memory
 * all the same.
 */
bool tlpdma_silence(struct tlpdma_card *card);
void tlpdma_put(struct tlpdma_card *card);

int tlpdma_device_register(struct tlpdma_card *card);
/*
 * Returns when no program touches the card any more. Open files remain; their calls fail with
 * ENODEV.
 */
void tlpdma_device_unregister(struct tlpdma_card *card);

#endif
