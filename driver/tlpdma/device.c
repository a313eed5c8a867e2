// SPDX-License-Identifier: GPL-2.0
/* /dev/tlpdmaN: the card's local memory as a file, and the card's description. */
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "tlpdma.h"
#include "tlpdma_ioctl.h"

static struct tlpdma_card *card_of(struct file *file)
{
	return file->private_data;
}

static loff_t size_of(struct tlpdma_card *card)
{
	return (loff_t)card->features.memory_mib << 20;
}

/* Can it be a single piece, whatever the memory of the program looks like? */
static bool is_piece(const struct iov_iter *iter)
{
	return iov_iter_count(iter) <= TLPDMA_PIECE &&
	       iov_iter_npages(iter, TLPDMA_PIECE_PAGES + 1) <= TLPDMA_PIECE_PAGES;
}

static ssize_t move(struct kiocb *iocb, struct iov_iter *iter, unsigned int number)
{
	struct tlpdma_channel *channel = &card_of(iocb->ki_filp)->channels[number];
	u32 local = iocb->ki_pos;
	ssize_t moved;

	if (!is_sync_kiocb(iocb) && is_piece(iter))
		return tlpdma_enqueue(channel, iocb, iter, local);
	/* A transfer that is waited for takes its time: io_uring does it elsewhere then. */
	if (iocb->ki_flags & IOCB_NOWAIT)
		return -EAGAIN;
	moved = tlpdma_move(channel, iter, local, iocb->ki_filp->f_flags & O_NONBLOCK);
	if (moved > 0)
		iocb->ki_pos += moved;
	return moved;
}

static ssize_t write_iter(struct kiocb *iocb, struct iov_iter *iter)
{
	loff_t size = size_of(card_of(iocb->ki_filp));

	if (!iov_iter_count(iter))
		return 0;
	if (iocb->ki_pos >= size)
		return -ENOSPC;
	iov_iter_truncate(iter, size - iocb->ki_pos);
	return move(iocb, iter, 0);
}

static ssize_t read_iter(struct kiocb *iocb, struct iov_iter *iter)
{
	loff_t size = size_of(card_of(iocb->ki_filp));

	if (!iov_iter_count(iter) || iocb->ki_pos >= size)
		return 0;
	iov_iter_truncate(iter, size - iocb->ki_pos);
	return move(iocb, iter, 1);
}

static loff_t seek(struct file *file, loff_t offset, int whence)
{
	return fixed_size_llseek(file, offset, whence, size_of(card_of(file)));
}

/* A direction is ready when nothing is under way in it: a call begins at once. */
static __poll_t poll(struct file *file, poll_table *table)
{
	struct tlpdma_card *card = card_of(file);
	__poll_t ready = 0;

	poll_wait(file, &card->changed, table);
	if (READ_ONCE(card->gone))
		return EPOLLERR | EPOLLHUP;
	if (tlpdma_is_idle(&card->channels[0]))
		ready |= EPOLLOUT | EPOLLWRNORM;
	if (tlpdma_is_idle(&card->channels[1]))
		ready |= EPOLLIN | EPOLLRDNORM;
	return ready;
}

/* Programs may know less of the structure than the driver, or more: the first field is its size. */
static long describe(struct tlpdma_card *card, struct tlpdma_info __user *to)
{
	struct tlpdma_info info = {
		.size = sizeof(info),
		.version = card->features.version,
		.memory_mib = card->features.memory_mib,
		.tags = card->features.tags,
		.mps = card->features.mps,
		.mrrs = card->features.mrrs,
		.vectors = card->vectors,
	};
	unsigned int i;
	u32 size;

	if (get_user(size, &to->size))
		return -EFAULT;
	if (size < TLPDMA_INFO_SIZE_0)
		return -EINVAL;
	for (i = 0; i < 2; i++) {
		info.interrupts[i] = atomic64_read(&card->channels[i].interrupts);
		info.missed[i] = READ_ONCE(card->channels[i].missed);
	}
	size = min_t(u32, size, sizeof(info));
	return copy_to_user(to, &info, size) ? -EFAULT : 0;
}

static long control(struct file *file, unsigned int command, unsigned long argument)
{
	struct tlpdma_card *card = card_of(file);

	if (command != TLPDMA_IOC_INFO)
		return -ENOTTY;
	if (READ_ONCE(card->gone))
		return -ENODEV;
	return describe(card, (struct tlpdma_info __user *)argument);
}

static int open(struct inode *inode, struct file *file)
{
	/* The misc device's own lock keeps the card from being unregistered meanwhile. */
	struct tlpdma_card *card = container_of(file->private_data, struct tlpdma_card, misc);

	kref_get(&card->references);
	file->private_data = card;
	tlpdma_window_open(card, inode, file);
	file->f_mode |= FMODE_NOWAIT;
	return 0;
}

static int release(struct inode *inode, struct file *file)
{
	tlpdma_put(card_of(file));
	return 0;
}

static const struct file_operations tlpdma_file_operations = {
	.owner = THIS_MODULE,
	.open = open,
	.release = release,
	.read_iter = read_iter,
	.write_iter = write_iter,
	.llseek = seek,
	.poll = poll,
	.mmap = tlpdma_mmap,
	.unlocked_ioctl = control,
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
	tlpdma_window_empty(card);
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
	tlpdma_window_empty(card);
	for (i = 0; i < 2; i++) {
		struct tlpdma_channel *channel = &card->channels[i];

		/* A program that saw the card present has put its request into the queue by now. */
		spin_lock(&channel->queue_lock);
		spin_unlock(&channel->queue_lock);
		flush_work(&channel->work);
		mutex_lock(&channel->lock);
		mutex_unlock(&channel->lock);
	}
}
