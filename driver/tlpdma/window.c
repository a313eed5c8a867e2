// SPDX-License-Identifier: GPL-2.0
/*
 * mmap() of /dev/tlpdmaN: the card's local memory, or what a user's design has in its place
 * (registers), by loads and stores of the program. BAR 2 shows 1 MiB of it at a time, so whatever
 * is mapped at one time is in one MiB.
 *
 * A mapping is filled in when it is touched, and emptied whenever the card must be left alone: then
 * a touch waits for the end of a reset, or raises SIGBUS.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sizes.h>

#include "compat.h"
#include "tlpdma.h"

/* Of a BAR whose loads and stores are calls of a driver (User Mode Linux) a program has none. */
#define BARS_CAN_BE_MAPPED	(!IS_ENABLED(CONFIG_INDIRECT_IOMEM))

#define TLPDMA_WINDOW_BAR	2

static struct tlpdma_card *card_of(struct vm_area_struct *area)
{
	return area->vm_file->private_data;
}

static void opened(struct vm_area_struct *area)
{
	struct tlpdma_window *window = &card_of(area)->window;

	mutex_lock(&window->lock);
	window->users++;
	mutex_unlock(&window->lock);
}

static void closed(struct vm_area_struct *area)
{
	struct tlpdma_window *window = &card_of(area)->window;

	mutex_lock(&window->lock);
	window->users--;
	mutex_unlock(&window->lock);
}

static vm_fault_t touched(struct vm_fault *fault)
{
	struct tlpdma_card *card = card_of(fault->vma);
	u64 at = ((u64)fault->pgoff << PAGE_SHIFT) % SZ_1M;
	vm_fault_t result = VM_FAULT_SIGBUS;

	down_read(&card->window.reachable);
	if (!tlpdma_refusal(card))
		result = vmf_insert_pfn(fault->vma, fault->address,
					(card->window.bar + at) >> PAGE_SHIFT);
	up_read(&card->window.reachable);
	return result;
}

static const struct vm_operations_struct operations = {
	.open = opened,
	.close = closed,
	.fault = touched,
};

/* Has the window look at a MiB, or finds that it does. */
static int look_at(struct tlpdma_card *card, u32 mib)
{
	struct tlpdma_window *window = &card->window;
	int error;

	down_read(&window->reachable);
	mutex_lock(&window->lock);
	error = tlpdma_refusal(card);
	if (!error && window->users && window->mib != mib)
		error = -EBUSY;
	if (!error) {
		window->mib = mib;
		window->users++;
		tlpdma_write(&card->io, TLPDMA_WINDOW, mib);
	}
	mutex_unlock(&window->lock);
	up_read(&window->reachable);
	return error;
}

void tlpdma_window_init(struct tlpdma_card *card)
{
	mutex_init(&card->window.lock);
	init_rwsem(&card->window.reachable);
	if (BARS_CAN_BE_MAPPED && pci_resource_len(card->pdev, TLPDMA_WINDOW_BAR) >= SZ_1M)
		card->window.bar = pci_resource_start(card->pdev, TLPDMA_WINDOW_BAR);
}

int tlpdma_mmap(struct file *file, struct vm_area_struct *area)
{
	struct tlpdma_card *card = file->private_data;
	u64 begin = (u64)area->vm_pgoff << PAGE_SHIFT;
	u64 last = begin + (area->vm_end - area->vm_start) - 1;
	int error;

	if (!card->window.bar)
		return -ENODEV;
	if (!(area->vm_flags & VM_SHARED) || begin / SZ_1M != last / SZ_1M)
		return -EINVAL;
	if (last / SZ_1M >= card->features.memory_mib)
		return -ENXIO;
	error = look_at(card, begin / SZ_1M);
	if (error)
		return error;
	vm_flags_set(area, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	area->vm_page_prot = pgprot_noncached(area->vm_page_prot);
	area->vm_ops = &operations;
	return 0;
}

void tlpdma_window_open(struct tlpdma_card *card, struct inode *inode, struct file *file)
{
	/* Of all nodes in file systems that are this card: what empties one empties all. */
	if (!card->window.inode) {
		ihold(inode);
		card->window.inode = inode;
	}
	file->f_mapping = card->window.inode->i_mapping;
}

void tlpdma_window_close(struct tlpdma_card *card)
{
	/* A touch that saw the card there has been answered by then. */
	down_write(&card->window.reachable);
	if (card->window.inode)
		unmap_mapping_range(card->window.inode->i_mapping, 0, 0, true);
}

void tlpdma_window_reopen(struct tlpdma_card *card)
{
	up_write(&card->window.reachable);
}

void tlpdma_window_empty(struct tlpdma_card *card)
{
	tlpdma_window_close(card);
	tlpdma_window_reopen(card);
}
