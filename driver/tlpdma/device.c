// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/tlpdmaN: the card's local memory as a file. A read or write pins pieces of the caller's
 * memory, hands them to the ring of the channel and sleeps until the card is done; while one
 * piece moves, the next is pinned (ring.c, tlpdma_transfer()).
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "tlpdma.h"
#include "tlpdma_ioctl.h"

static unsigned int timeout_ms = 5000;
module_param(timeout_ms, uint, 0644);
MODULE_PARM_DESC(timeout_ms, "longest time for a piece of a transfer, 4 MiB at most, in ms (5000)");

/* Error recovery resets a link and may wait for the card behind it. */
#define TLPDMA_RECOVERY	msecs_to_jiffies(60000)

static unsigned int poll_us;
module_param(poll_us, uint, 0644);
MODULE_PARM_DESC(poll_us, "look for the end of a transfer for so long before sleeping until the interrupt, in us (0)");

static void tlpdma_unpin(struct tlpdma_channel *channel, struct tlpdma_mapping *mapping)
{
	bool written = channel->direction == DMA_FROM_DEVICE;

	unpin_user_pages_dirty_lock(mapping->pages, mapping->count, written);
}

static void tlpdma_unmap(void *context, unsigned int slot)
{
	struct tlpdma_channel *channel = context;
	struct tlpdma_mapping *mapping = &channel->mappings[slot];

	dma_unmap_sgtable(&channel->card->pdev->dev, &mapping->table, channel->direction, 0);
	sg_free_table(&mapping->table);
	tlpdma_unpin(channel, mapping);
}

/* Pins at most `bytes` bytes; the number of bytes that were, or an error. */
static int tlpdma_pin(struct tlpdma_channel *channel, struct tlpdma_mapping *mapping,
		      unsigned long address, u32 bytes)
{
	unsigned int flags = channel->direction == DMA_FROM_DEVICE ? FOLL_WRITE : 0;
	unsigned int offset = offset_in_page(address);
	int pinned;

	pinned = pin_user_pages_fast(address, DIV_ROUND_UP(offset + bytes, PAGE_SIZE), flags,
				     mapping->pages);
	if (pinned <= 0)
		return pinned ? pinned : -EFAULT;
	mapping->count = pinned;
	return min_t(u32, bytes, pinned * PAGE_SIZE - offset);
}

static int tlpdma_fill(struct tlpdma_channel *channel, struct tlpdma_mapping *mapping, u32 local)
{
	const u32 begin = channel->ring.tail;
	struct scatterlist *sg;
	unsigned int i;
	int error;

	for_each_sgtable_dma_sg(&mapping->table, sg, i) {
		u32 last = i + 1 == mapping->table.nents ? TLPDMA_INTERRUPT : 0;

		error = tlpdma_ring_add(&channel->ring, sg_dma_address(sg), local, sg_dma_len(sg),
					last);
		if (error) {
			tlpdma_ring_take_back(&channel->ring, begin);
			return error;
		}
		local += sg_dma_len(sg);
	}
	return 0;
}

static int tlpdma_map(void *context, unsigned int slot, u64 offset, u32 bytes)
{
	struct tlpdma_channel *channel = context;
	struct tlpdma_mapping *mapping = &channel->mappings[slot];
	struct device *dev = &channel->card->pdev->dev;
	unsigned long address = channel->buffer + offset;
	/* What a bounce buffer holds limits a segment, where there is one. */
	size_t segment = min_t(size_t, dma_max_mapping_size(dev), TLPDMA_PIECE) & PAGE_MASK;
	int pinned, error;

	/* A signal ends the transfer here, between two pieces. */
	if (signal_pending(current))
		return -ERESTARTSYS;
	pinned = tlpdma_pin(channel, mapping, address, bytes);
	if (pinned < 0)
		return pinned;
	error = sg_alloc_table_from_pages_segment(&mapping->table, mapping->pages, mapping->count,
						  offset_in_page(address), pinned, segment,
						  GFP_KERNEL);
	if (error)
		goto unpin;
	error = dma_map_sgtable(dev, &mapping->table, channel->direction, 0);
	if (error)
		goto free;
	error = tlpdma_fill(channel, mapping, channel->local + offset);
	if (error)
		goto unmap;
	return pinned;

unmap:
	dma_unmap_sgtable(dev, &mapping->table, channel->direction, 0);
free:
	sg_free_table(&mapping->table);
unpin:
	tlpdma_unpin(channel, mapping);
	return error;
}

/* The card is gone, or out of reach: there is nothing more to wait for. */
static bool tlpdma_is_cut_short(struct tlpdma_card *card)
{
	return READ_ONCE(card->gone) || READ_ONCE(card->recovery) != TLPDMA_RUNS;
}

/* Looks for a while, without sleeping. */
static void tlpdma_spin(struct tlpdma_channel *channel, u32 count)
{
	ktime_t end = ktime_add_us(ktime_get(), poll_us);

	while (!tlpdma_ring_done(&channel->ring, count, false) &&
	       ktime_before(ktime_get(), end) && !need_resched() &&
	       !fatal_signal_pending(current) && !tlpdma_is_cut_short(channel->card))
		cpu_relax();
}

/* Is there nothing more to wait for? */
static bool tlpdma_is_over(struct tlpdma_channel *channel, u32 count, int *done)
{
	*done = tlpdma_ring_done(&channel->ring, count, false);
	return *done || tlpdma_is_cut_short(channel->card);
}

static int tlpdma_wait(void *context, u32 count)
{
	struct tlpdma_channel *channel = context;
	struct tlpdma_card *card = channel->card;
	int done = 0;
	long left;

	if (poll_us)
		tlpdma_spin(channel, count);
	/* What has begun ends soon: who gave it up at every signal might never get on. */
	left = wait_event_killable_timeout(channel->done, tlpdma_is_over(channel, count, &done),
					   msecs_to_jiffies(timeout_ms));
	if (done > 0)
		return 0;
	if (READ_ONCE(card->gone))
		return -ENODEV;
	if (READ_ONCE(card->recovery) != TLPDMA_RUNS)
		return -EIO;
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
		dev_err_ratelimited(&card->pdev->dev, "%s card: %s after %u descriptors (error %d)\n",
				    channel->direction == DMA_TO_DEVICE ? "to" : "from",
				    tlpdma_error_name(channel->ring.status), channel->ring.head,
				    done);
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
	/* What was in line leaves within this time; the answer to a read is behind it. */
	usleep_range(1000, 2000);
	if (!tlpdma_card_is_gone(&card->io))
		return true;
	dev_err(&pdev->dev, "the card may still write: what it was given is not given back\n");
	return false;
}

static bool tlpdma_cut_off(void *context)
{
	struct tlpdma_channel *channel = context;
	struct tlpdma_card *card = channel->card;

	if (READ_ONCE(card->recovery) != TLPDMA_RUNS)
		wait_event_timeout(card->changed, READ_ONCE(card->gone) ||
				   READ_ONCE(card->recovery) == TLPDMA_RESTARTS, TLPDMA_RECOVERY);
	return READ_ONCE(card->recovery) == TLPDMA_RESTARTS || tlpdma_silence(card);
}

static const struct tlpdma_transfer_ops tlpdma_ops = {
	.map = tlpdma_map,
	.unmap = tlpdma_unmap,
	.wait = tlpdma_wait,
	.cut_off = tlpdma_cut_off,
};

static struct tlpdma_card *tlpdma_card_of(struct file *file)
{
	return file->private_data;
}

static loff_t tlpdma_size(struct tlpdma_card *card)
{
	return (loff_t)card->features.memory_mib << 20;
}

static ssize_t tlpdma_move(struct file *file, unsigned long buffer, size_t bytes, loff_t position,
			   unsigned int number)
{
	struct tlpdma_card *card = tlpdma_card_of(file);
	struct tlpdma_channel *channel = &card->channels[number];
	ssize_t moved;

	if (file->f_flags & O_NONBLOCK) {
		if (!mutex_trylock(&channel->lock))
			return -EAGAIN;
	} else if (mutex_lock_interruptible(&channel->lock)) {
		return -ERESTARTSYS;
	}
	if (READ_ONCE(card->gone)) {
		moved = -ENODEV;
	} else if (READ_ONCE(card->recovery) != TLPDMA_RUNS) {
		moved = -EIO;
	} else {
		channel->buffer = buffer;
		channel->local = position;
		moved = tlpdma_transfer(&channel->ring, &tlpdma_ops, channel, bytes);
	}
	mutex_unlock(&channel->lock);
	wake_up_interruptible(&card->changed);
	return moved;
}

static ssize_t tlpdma_write_file(struct file *file, const char __user *buffer, size_t bytes,
				 loff_t *position)
{
	loff_t size = tlpdma_size(tlpdma_card_of(file));
	ssize_t moved;

	if (!bytes)
		return 0;
	if (*position >= size)
		return -ENOSPC;
	bytes = min_t(loff_t, bytes, size - *position);
	moved = tlpdma_move(file, (unsigned long)buffer, bytes, *position, 0);
	if (moved > 0)
		*position += moved;
	return moved;
}

static ssize_t tlpdma_read_file(struct file *file, char __user *buffer, size_t bytes,
				loff_t *position)
{
	loff_t size = tlpdma_size(tlpdma_card_of(file));
	ssize_t moved;

	if (!bytes || *position >= size)
		return 0;
	bytes = min_t(loff_t, bytes, size - *position);
	moved = tlpdma_move(file, (unsigned long)buffer, bytes, *position, 1);
	if (moved > 0)
		*position += moved;
	return moved;
}

static loff_t tlpdma_seek(struct file *file, loff_t offset, int whence)
{
	return fixed_size_llseek(file, offset, whence, tlpdma_size(tlpdma_card_of(file)));
}

/* A direction is ready when its channel is idle: a call without O_NONBLOCK would begin at once. */
static __poll_t tlpdma_poll(struct file *file, poll_table *table)
{
	struct tlpdma_card *card = tlpdma_card_of(file);
	__poll_t ready = 0;

	poll_wait(file, &card->changed, table);
	if (READ_ONCE(card->gone))
		return EPOLLERR | EPOLLHUP;
	if (!mutex_is_locked(&card->channels[0].lock))
		ready |= EPOLLOUT | EPOLLWRNORM;
	if (!mutex_is_locked(&card->channels[1].lock))
		ready |= EPOLLIN | EPOLLRDNORM;
	return ready;
}

static long tlpdma_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct tlpdma_card *card = tlpdma_card_of(file);
	struct tlpdma_info info = {
		.version = card->features.version,
		.memory_mib = card->features.memory_mib,
		.tags = card->features.tags,
		.mps = card->features.mps,
		.mrrs = card->features.mrrs,
		.vectors = card->vectors,
	};
	unsigned int i;

	if (command != TLPDMA_IOC_INFO)
		return -ENOTTY;
	if (READ_ONCE(card->gone))
		return -ENODEV;
	for (i = 0; i < 2; i++) {
		info.interrupts[i] = atomic64_read(&card->channels[i].interrupts);
		info.missed[i] = READ_ONCE(card->channels[i].missed);
	}
	return copy_to_user((void __user *)argument, &info, sizeof(info)) ? -EFAULT : 0;
}

static int tlpdma_open(struct inode *inode, struct file *file)
{
	/* The misc device's own lock keeps the card from being unregistered meanwhile. */
	struct tlpdma_card *card = container_of(file->private_data, struct tlpdma_card, misc);

	kref_get(&card->references);
	file->private_data = card;
	return 0;
}

static int tlpdma_release(struct inode *inode, struct file *file)
{
	tlpdma_put(tlpdma_card_of(file));
	return 0;
}

static const struct file_operations tlpdma_file_operations = {
	.owner = THIS_MODULE,
	.open = tlpdma_open,
	.release = tlpdma_release,
	.read = tlpdma_read_file,
	.write = tlpdma_write_file,
	.llseek = tlpdma_seek,
	.poll = tlpdma_poll,
	.unlocked_ioctl = tlpdma_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

void tlpdma_lose(struct tlpdma_card *card)
{
	unsigned int i;

	WRITE_ONCE(card->gone, true);
	for (i = 0; i < 2; i++)
		wake_up(&card->channels[i].done);
	wake_up(&card->changed);
}

void tlpdma_freeze(struct tlpdma_card *card)
{
	unsigned int i;

	WRITE_ONCE(card->recovery, TLPDMA_FROZEN);
	for (i = 0; i < 2; i++)
		wake_up(&card->channels[i].done);
}

int tlpdma_device_register(struct tlpdma_card *card)
{
	int error;

	card->misc.minor = MISC_DYNAMIC_MINOR;
	card->misc.fops = &tlpdma_file_operations;
	card->misc.parent = &card->pdev->dev;
	card->misc.name = kasprintf(GFP_KERNEL, "tlpdma%d", card->number);
	if (!card->misc.name)
		return -ENOMEM;
	error = misc_register(&card->misc);
	if (error)
		kfree(card->misc.name);
	return error;
}

void tlpdma_device_unregister(struct tlpdma_card *card)
{
	unsigned int i;

	misc_deregister(&card->misc);
	kfree(card->misc.name);
	tlpdma_lose(card);
	for (i = 0; i < 2; i++) {
		mutex_lock(&card->channels[i].lock);
		mutex_unlock(&card->channels[i].lock);
	}
}
