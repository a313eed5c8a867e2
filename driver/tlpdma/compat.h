/* SPDX-License-Identifier: GPL-2.0 */
/* Functions that kernels before 6.3 do not have. */
#ifndef TLPDMA_COMPAT_H
#define TLPDMA_COMPAT_H

#include <linux/mm.h>
#include <linux/uio.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define iov_iter_extract_will_pin user_backed_iter

/* Of a program's memory only, so without buffers that are registered with io_uring. */
static inline ssize_t iov_iter_extract_pages(struct iov_iter *iter, struct page ***pages,
					     size_t bytes, unsigned int most,
					     unsigned int extraction_flags, size_t *offset)
{
	unsigned int flags = iov_iter_rw(iter) == READ ? FOLL_WRITE : 0;
	unsigned long address;
	int pinned;

	if (!user_backed_iter(iter))
		return -EOPNOTSUPP;
	bytes = min(bytes, iov_iter_count(iter));
	if (!bytes)
		return 0;
	if (iter_is_ubuf(iter)) {
		address = (unsigned long)iter->ubuf + iter->iov_offset;
	} else {
		/* Empty ones are passed over. */
		while (iter->iov_offset == iter->iov->iov_len) {
			iter->iov++;
			iter->nr_segs--;
			iter->iov_offset = 0;
		}
		address = (unsigned long)iter->iov->iov_base + iter->iov_offset;
		bytes = min(bytes, iter->iov->iov_len - iter->iov_offset);
	}
	*offset = offset_in_page(address);
	pinned = pin_user_pages_fast(address,
				     min_t(size_t, most, DIV_ROUND_UP(*offset + bytes, PAGE_SIZE)),
				     flags, *pages);
	if (pinned <= 0)
		return pinned ? pinned : -EFAULT;
	bytes = min_t(size_t, bytes, pinned * PAGE_SIZE - *offset);
	iov_iter_advance(iter, bytes);
	return bytes;
}

static inline void vm_flags_set(struct vm_area_struct *area, unsigned long flags)
{
	area->vm_flags |= flags;
}
#endif

#endif
