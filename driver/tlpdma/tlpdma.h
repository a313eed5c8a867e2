/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts that pci.c (the card comes and goes), device.c (its file), transfer.c and counters.c
 * have in common.
 */
#ifndef TLPDMA_H
#define TLPDMA_H

#include <linux/dma-mapping.h>
#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/ratelimit.h>
#include <linux/rwsem.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/uio.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "ring.h"

/* A piece of a program's memory while the card works at it; an entry for each page. */
struct tlpdma_piece {
	struct sg_table table;
	bool pinned;	/* by us */
	u32 bytes;
};

struct tlpdma_request;

struct tlpdma_channel {
	struct tlpdma_card *card;
	enum dma_data_direction direction;
	/* Held during a transfer; with it all that follows but the interrupt's part. */
	struct mutex lock;
	struct tlpdma_ring ring;
	/* The transfer under way that a program waits for. */
	struct tlpdma_piece pieces[2];
	struct iov_iter *buffer;
	u32 local;
	/* The requests of the queue that the card has; they are begun before others have a turn. */
	struct tlpdma_request *requests[TLPDMA_SLOTS_MAX];
	unsigned int turn;
	u64 missed;
	/* Requests that nobody waits for, and the worker that has them moved. */
	spinlock_t queue_lock;
	struct list_head queue;
	struct list_head again;	/* of the queue, what the card had and did not come to */
	struct work_struct work;
	atomic64_t transfers;
	atomic64_t bytes;
	atomic64_t errors;
	/* The interrupt's part. */
	wait_queue_head_t done;
	atomic64_t interrupts;
};

/* The state of the bus's error recovery; no transfer begins unless it runs. */
enum tlpdma_recovery {
	TLPDMA_RUNS,
	TLPDMA_FROZEN,	/* the card may be unreachable until it has been reset */
	TLPDMA_RESTARTS, /* it was reset: no earlier transfer is under way any more */
};

/* The part of local memory that programs have mapped (window.c). */
struct tlpdma_window {
	struct mutex lock;	/* of users and mib */
	unsigned int users;	/* mappings */
	u32 mib;		/* that BAR 2 shows */
	/* Held for writing while the function is reset. */
	struct rw_semaphore reachable;
	resource_size_t bar;	/* 0: there is none that a program can reach */
	struct inode *inode;	/* the owner of all mapped pages, from the first open() on */
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
	struct workqueue_struct *workers;
	/* Of errors in the log. */
	struct ratelimit_state told;
	/* Set once: no transfer begins from then on, and those under way end. */
	bool gone;
	enum tlpdma_recovery recovery;
	struct tlpdma_window window;
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
/* The errno that forbids access to the card, or 0. */
int tlpdma_refusal(struct tlpdma_card *card);

/*
 * Moves what the iterator has, from or to local memory, and waits for it: the number of bytes, or
 * an error. With `nowait`, -EAGAIN if another transfer is under way in that direction.
 */
ssize_t tlpdma_move(struct tlpdma_channel *channel, struct iov_iter *iter, u32 local, bool nowait);
/* Has it moved, a piece at most, and tells the owner when it is done: -EIOCBQUEUED, or an error. */
ssize_t tlpdma_enqueue(struct tlpdma_channel *channel, struct kiocb *iocb, struct iov_iter *iter,
		       u32 local);
/* Nothing is under way on a channel. */
bool tlpdma_is_idle(struct tlpdma_channel *channel);
void tlpdma_work_off(struct work_struct *work);

void tlpdma_window_init(struct tlpdma_card *card);
int tlpdma_mmap(struct file *file, struct vm_area_struct *area);
void tlpdma_window_open(struct tlpdma_card *card, struct inode *inode, struct file *file);
/* Takes the card from all mappings; what touches them waits until the window is reopened. */
void tlpdma_window_close(struct tlpdma_card *card);
void tlpdma_window_reopen(struct tlpdma_card *card);
/* Takes the card, which is refused by now, from all mappings. */
void tlpdma_window_empty(struct tlpdma_card *card);

extern const struct attribute_group *tlpdma_counters[];

int tlpdma_device_register(struct tlpdma_card *card);
/*
 * Returns when no program touches the card any more. Open files remain; their calls fail with
 * ENODEV.
 */
void tlpdma_device_unregister(struct tlpdma_card *card);

#endif
