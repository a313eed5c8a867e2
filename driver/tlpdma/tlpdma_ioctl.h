/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * /dev/tlpdmaN: the card's local memory as a file. Reads and writes at any offset and of any
 * length are transfers of the card, straight from and to the caller's memory; one at a time in
 * each direction. What a card is, and what happened to it, tells an ioctl.
 */
#ifndef TLPDMA_IOCTL_H
#define TLPDMA_IOCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * A program sets `size` to that of the structure that it knows; the driver fills in what both know.
 * Fields are only added at the end.
 */
struct tlpdma_info {
	__u32 size;
	__u32 version;		/* of the card */
	__u32 memory_mib;	/* of local memory, MiB */
	__u32 tags;		/* reads of the card that can be under way */
	__u32 mps;		/* largest payload, bytes */
	__u32 mrrs;		/* largest read request, bytes */
	__u32 vectors;		/* of MSI-X in use; 0: a shared legacy interrupt */
	__u32 reserved;
	__u64 interrupts[2];	/* of the channels: to the card, from the card */
	__u64 missed[2];	/* transfers that were done, but had not interrupted in time */
};

/* Of the first version. */
#define TLPDMA_INFO_SIZE_0 64

#define TLPDMA_IOC_INFO _IO(0xda, 1)

#endif
