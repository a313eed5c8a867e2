// SPDX-License-Identifier: GPL-2.0
/*
 * Transfers on a channel. A piece is up to 4 MiB of a program's memory, pinned and mapped, and its
 * descriptors. A call that waits makes pieces of its buffer one after the other, of which the next
 * is pinned while one moves (ring.c, tlpdma_transfer()). One that does not wait, of io_uring or
 * libaio, is one piece in the channel's queue; a worker has many of them in the ring (ring.c,
 * tlpdma_stream()). The channel's lock is held by the one or by the other.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "tlpdma.h"

static unsigned int timeout_ms = 5000;
module_param(timeout_ms, uint, 0644);
MODULE_PARM_DESC(timeout_ms, "longest time for a piece of a transfer, 4 MiB at most, in ms (5000)");

/* Error recovery resets a link and may wait for the card behind it. */
#define TLPDMA_RECOVERY	msecs_to_jiffies(60000)

static unsigned int poll_us;
module_param(poll_us, uint, 0644);
MODULE_PARM_DESC(poll_us, "look for the end of a transfer for so long before sleeping until the interrupt, in us (0)");

/* Pages that are pinned at a time. */
#define PINS	16
/* The number of requests that a worker does before others have their turn. */
#define TURN	1024

/* A read or write that its caller does not wait for. */
struct tlpdma_request {
	struct list_head entry;
	struct kiocb *iocb;
	u32 local;
	struct tlpdma_piece piece;
};

static struct device *dma_device(struct tlpdma_channel *channel)
{
	return &channel->card->pdev->dev;
}

static void unpin(struct tlpdma_channel *channel, struct tlpdma_piece *piece)
{
	bool written = channel->direction == DMA_FROM_DEVICE;
	unsigned int i;

	for (i = 0; piece->pinned && i < piece->table.orig_nents; i++) {
		struct page *page = sg_page(&piece->table.sgl[i]);

		unpin_user_pages_dirty_lock(&page, 1, written);
	}
}

/* Pins at most `bytes` bytes; the number of bytes that were, or an error. */
static int pin(struct tlpdma_piece *piece, unsigned int entries, struct iov_iter *iter, u32 bytes)
{
	unsigned int count = 0, i;
	ssize_t got = 0;

	piece->bytes = 0;
	/* Pages of registered buffers are pinned by whoever has registered them. */
	piece->pinned = iov_iter_extract_will_pin(iter);
	sg_init_table(piece->table.sgl, entries);
	while (piece->bytes < bytes && count < entries) {
		struct page *pages[PINS], **list = pages;
		size_t offset;

		got = iov_iter_extract_pages(iter, &list, bytes - piece->bytes,
					     min_t(unsigned int, PINS, entries - count), 0,
					     &offset);
		if (got <= 0)
			break;
		piece->bytes += got;
		for (i = 0; got > 0; i++) {
			u32 part = min_t(size_t, got, PAGE_SIZE - offset);

			sg_set_page(&piece->table.sgl[count++], pages[i], part, offset);
			got -= part;
			offset = 0;
		}
	}
	if (!count)
		return got ? got : -EFAULT;
	sg_mark_end(&piece->table.sgl[count - 1]);
	piece->table.nents = count;
	piece->table.orig_nents = count;
	return piece->bytes;
}

/* Puts the descriptors of a piece into the ring; what is adjacent on the bus is one. */
static int fill(struct tlpdma_channel *channel, struct tlpdma_piece *piece, u32 local)
{
	const u32 begin = channel->ring.tail;
	dma_addr_t bus = 0;
	u32 bytes = 0;
	struct scatterlist *sg;
	unsigned int i;
	int error = 0;

	for_each_sgtable_dma_sg(&piece->table, sg, i) {
		if (bytes && bus + bytes == sg_dma_address(sg)) {
			bytes += sg_dma_len(sg);
			continue;
		}
		if (bytes)
			error = tlpdma_ring_add(&channel->ring, bus, local, bytes, 0);
		if (error)
			goto take_back;
		local += bytes;
		bus = sg_dma_address(sg);
		bytes = sg_dma_len(sg);
	}
	error = tlpdma_ring_add(&channel->ring, bus, local, bytes, TLPDMA_INTERRUPT);
	if (!error)
		return 0;

take_back:
	tlpdma_ring_take_back(&channel->ring, begin);
	return error;
}

static int map(struct tlpdma_channel *channel, struct tlpdma_piece *piece, u32 local)
{
	int error = dma_map_sgtable(dma_device(channel), &piece->table, channel->direction, 0);

	if (error)
		return error;
	error = fill(channel, piece, local);
	if (error)
		dma_unmap_sgtable(dma_device(channel), &piece->table, channel->direction, 0);
	return error;
}

static void unmap(struct tlpdma_channel *channel, struct tlpdma_piece *piece)
{
	dma_unmap_sgtable(dma_device(channel), &piece->table, channel->direction, 0);
}

/* The card is gone, or out of reach: there is nothing more to wait for. */
static bool is_cut_short(struct tlpdma_card *card)
{
	return READ_ONCE(card->gone) || READ_ONCE(card->recovery) != TLPDMA_RUNS;
}

int tlpdma_refusal(struct tlpdma_card *card)
{
	if (READ_ONCE(card->gone))
		return -ENODEV;
	return READ_ONCE(card->recovery) == TLPDMA_RUNS ? 0 : -EIO;
}

/* Looks for a while, without sleeping. */
static void spin(struct tlpdma_channel *channel, u32 count)
{
	ktime_t end = ktime_add_us(ktime_get(), poll_us);

	while (!tlpdma_ring_done(&channel->ring, count, false) &&
	       ktime_before(ktime_get(), end) && !need_resched() &&
	       !fatal_signal_pending(current) && !is_cut_short(channel->card))
		cpu_relax();
}

/* True if there is no more reason to wait. */
static bool is_over(struct tlpdma_channel *channel, u32 count, int *done)
{
	*done = tlpdma_ring_done(&channel->ring, count, false);
	return *done || is_cut_short(channel->card);
}

/* For whoever looks why: the program hears of it, so this is no warning. */
static void tell_of_halt(struct tlpdma_channel *channel, int error)
{
	if (!__ratelimit(&channel->card->told))
		return;
	dev_info(dma_device(channel), "%s card: %s after %u descriptors (error %d), %lld errors before\n",
		 channel->direction == DMA_TO_DEVICE ? "to" : "from",
		 tlpdma_error_name(channel->ring.status), channel->ring.head, error,
		 atomic64_read(&channel->errors));
}

static int wait(void *context, u32 count)
{
	struct tlpdma_channel *channel = context;
	struct tlpdma_card *card = channel->card;
	int done = 0;
	long left;

	if (poll_us)
		spin(channel, count);
	/*
	 * A transfer that has begun ends soon: a program that gave it up at every signal might
	 * never finish one.
	 */
	left = wait_event_killable_timeout(channel->done, is_over(channel, count, &done),
					   msecs_to_jiffies(timeout_ms));
	if (done > 0)
		return 0;
	if (tlpdma_refusal(card))
		return tlpdma_refusal(card);
	if (left < 0)
		return left;
	if (!done) {
		done = tlpdma_ring_done(&channel->ring, count, true);
		if (done > 0)
			channel->missed++;
		else if (!done)
			done = -ETIMEDOUT;
	}
	if (done == -ENODEV)
		tlpdma_lose(card);
	else if (done < 0)
		tell_of_halt(channel, done);
	return done < 0 ? done : 0;
}

bool tlpdma_silence(struct tlpdma_card *card)
{
	struct pci_dev *pdev = card->pdev;

	tlpdma_lose(card);
	if (!pci_device_is_present(pdev))
		return true;
	dev_err(&pdev->dev, "the card does not answer or come to rest: cut off from memory until bound anew\n");
	pci_clear_master(pdev);
	/* TLPs in line leave within this time; the answer to a read is behind them. */
	usleep_range(1000, 2000);
	if (!tlpdma_card_is_gone(&card->io))
		return true;
	dev_err(&pdev->dev, "the card may still write: its buffers are not freed\n");
	return false;
}

static bool cut_off(void *context)
{
	struct tlpdma_channel *channel = context;
	struct tlpdma_card *card = channel->card;

	if (READ_ONCE(card->recovery) != TLPDMA_RUNS)
		wait_event_timeout(card->changed, READ_ONCE(card->gone) ||
				   READ_ONCE(card->recovery) == TLPDMA_RESTARTS, TLPDMA_RECOVERY);
	return READ_ONCE(card->recovery) == TLPDMA_RESTARTS || tlpdma_silence(card);
}

static int map_of_buffer(void *context, unsigned int slot, u64 offset, u32 bytes)
{
	struct tlpdma_channel *channel = context;
	struct tlpdma_piece *piece = &channel->pieces[slot];
	int pinned, error;

	/* A signal ends the transfer here, between two pieces. */
	if (signal_pending(current))
		return -ERESTARTSYS;
	pinned = pin(piece, TLPDMA_PIECE_PAGES, channel->buffer, bytes);
	if (pinned < 0)
		return pinned;
	error = map(channel, piece, channel->local + offset);
	if (!error)
		return pinned;
	unpin(channel, piece);
	return error;
}

static void unmap_of_buffer(void *context, unsigned int slot)
{
	struct tlpdma_channel *channel = context;

	unmap(channel, &channel->pieces[slot]);
	unpin(channel, &channel->pieces[slot]);
}

static const struct tlpdma_transfer_ops buffer_ops = {
	.map = map_of_buffer,
	.unmap = unmap_of_buffer,
	.wait = wait,
	.cut_off = cut_off,
};

static void count(struct tlpdma_channel *channel, s64 moved)
{
	if (moved > 0)
		atomic64_add(moved, &channel->bytes);
	else if (moved < 0 && moved != -ERESTARTSYS)
		atomic64_inc(&channel->errors);
	atomic64_inc(&channel->transfers);
}

ssize_t tlpdma_move(struct tlpdma_channel *channel, struct iov_iter *iter, u32 local, bool nowait)
{
	ssize_t moved;

	if (nowait) {
		if (!tlpdma_is_idle(channel) || !mutex_trylock(&channel->lock))
			return -EAGAIN;
	} else if (mutex_lock_interruptible(&channel->lock)) {
		return -ERESTARTSYS;
	}
	moved = tlpdma_refusal(channel->card);
	if (!moved) {
		channel->buffer = iter;
		channel->local = local;
		moved = tlpdma_transfer(&channel->ring, &buffer_ops, channel, iov_iter_count(iter));
		count(channel, moved);
	}
	mutex_unlock(&channel->lock);
	wake_up_interruptible(&channel->card->changed);
	return moved;
}

/* The owner of a request hears of its end; its memory is still pinned. */
static void tell(struct tlpdma_channel *channel, struct tlpdma_request *request, int error)
{
	s64 moved = error ? (s64)error : request->piece.bytes;

	count(channel, moved);
	if (!error)
		request->iocb->ki_pos += moved;
	request->iocb->ki_complete(request->iocb, moved);
}

static void end(struct tlpdma_channel *channel, struct tlpdma_request *request, int error)
{
	unpin(channel, &request->piece);
	tell(channel, request, error);
	kvfree(request->piece.table.sgl);
	kfree(request);
}

static struct tlpdma_request *next_request(struct tlpdma_channel *channel)
{
	struct tlpdma_request *request;

	spin_lock(&channel->queue_lock);
	request = list_first_entry_or_null(&channel->queue, struct tlpdma_request, entry);
	if (request)
		list_del(&request->entry);
	spin_unlock(&channel->queue_lock);
	return request;
}

static int map_of_queue(void *context, unsigned int slot)
{
	struct tlpdma_channel *channel = context;
	struct tlpdma_request *request;
	int error;

	for (; channel->turn; channel->turn--) {
		/* Each page may be a descriptor. */
		if (tlpdma_ring_room(&channel->ring) < TLPDMA_PIECE_PAGES)
			return 0;
		request = next_request(channel);
		if (!request)
			return 0;
		error = map(channel, &request->piece, request->local);
		if (!error) {
			channel->requests[slot] = request;
			return 1;
		}
		end(channel, request, error);
	}
	return 0;
}

static void unmap_of_queue(void *context, unsigned int slot, int error)
{
	struct tlpdma_channel *channel = context;
	struct tlpdma_request *request = channel->requests[slot];

	unmap(channel, &request->piece);
	if (error == -ECANCELED)
		list_add_tail(&request->entry, &channel->again);
	else
		end(channel, request, error);
}

static void abandon_of_queue(void *context, unsigned int slot, int error)
{
	struct tlpdma_channel *channel = context;

	tell(channel, channel->requests[slot], error);
}

static const struct tlpdma_stream_ops queue_ops = {
	.map = map_of_queue,
	.unmap = unmap_of_queue,
	.abandon = abandon_of_queue,
	.wait = wait,
	.cut_off = cut_off,
};

void tlpdma_work_off(struct work_struct *work)
{
	struct tlpdma_channel *channel = container_of(work, struct tlpdma_channel, work);
	struct tlpdma_request *request;
	bool more;
	int error;

	mutex_lock(&channel->lock);
	channel->turn = TURN;
	error = tlpdma_refusal(channel->card);
	if (!error)
		tlpdma_stream(&channel->ring, &queue_ops, channel, TLPDMA_SLOTS_MAX);
	else
		while ((request = next_request(channel)))
			end(channel, request, error);
	spin_lock(&channel->queue_lock);
	list_splice_init(&channel->again, &channel->queue);
	more = !list_empty(&channel->queue);
	spin_unlock(&channel->queue_lock);
	mutex_unlock(&channel->lock);
	if (more)
		queue_work(channel->card->workers, &channel->work);
	wake_up_interruptible(&channel->card->changed);
}

bool tlpdma_is_idle(struct tlpdma_channel *channel)
{
	return !mutex_is_locked(&channel->lock) && list_empty_careful(&channel->queue);
}

ssize_t tlpdma_enqueue(struct tlpdma_channel *channel, struct kiocb *iocb, struct iov_iter *iter,
		       u32 local)
{
	unsigned int entries = iov_iter_npages(iter, TLPDMA_PIECE_PAGES);
	struct tlpdma_request *request;
	bool refused;
	int pinned;

	request = kzalloc(sizeof(*request), GFP_KERNEL);
	if (!request)
		return -ENOMEM;
	request->iocb = iocb;
	request->local = local;
	request->piece.table.sgl = kvmalloc_array(entries, sizeof(struct scatterlist), GFP_KERNEL);
	if (!request->piece.table.sgl) {
		kfree(request);
		return -ENOMEM;
	}
	pinned = pin(&request->piece, entries, iter, TLPDMA_PIECE);
	if (pinned < 0) {
		kvfree(request->piece.table.sgl);
		kfree(request);
		return pinned;
	}
	/* With the card gone, nobody waits for the worker any more. */
	spin_lock(&channel->queue_lock);
	refused = READ_ONCE(channel->card->gone);
	if (!refused) {
		list_add_tail(&request->entry, &channel->queue);
		queue_work(channel->card->workers, &channel->work);
	}
	spin_unlock(&channel->queue_lock);
	if (refused)
		end(channel, request, -ENODEV);
	return -EIOCBQUEUED;
}
