/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * The software interface of a simple NIC: registers in BAR 4 and descriptors in memory,
 * little-endian.
 *
 * The first five registers are those of the NIC that NetTLP (2020, section 5.4) publishes, which
 * sends or receives one frame at a time; crates/device/src/simple_nic/regs.rs has all of them.
 */
#ifndef SIMPLE_NIC_REGS_H
#define SIMPLE_NIC_REGS_H

#define SIMPLE_NIC_VENDOR_ID	0x71ab
#define SIMPLE_NIC_DEVICE_ID	0x0004
#define SIMPLE_NIC_BAR		4
/* The published card has 256 MiB there. */
#define SIMPLE_NIC_BAR_BYTES	4096

/* Addresses of the rings, 64 bits. A write starts the ring anew. */
#define SIMPLE_NIC_TX_DESC_BASE	0x00
#define SIMPLE_NIC_RX_DESC_BASE	0x08
/*
 * Doorbells: descriptors ever posted, modulo 2^32; in a ring of size 0 the number of the
 * descriptor to send, or of that with the next buffer.
 */
#define SIMPLE_NIC_TX_IDX	0x10
#define SIMPLE_NIC_RX_IDX	0x14
#define SIMPLE_NIC_ENABLED	0x18

/* Descriptors in the rings; 0 for the published protocol. A write starts the ring anew. */
#define SIMPLE_NIC_TX_SIZE	0x20
#define SIMPLE_NIC_RX_SIZE	0x24
/* The address at which both heads are written before each interrupt, 64 bits; 0 for none. */
#define SIMPLE_NIC_HEADS	0x28
/* Least time between two interrupts of a vector, ns. */
#define SIMPLE_NIC_MODERATION	0x30
/* Bytes of the longest frame, without its check sequence. */
#define SIMPLE_NIC_MAX_FRAME	0x34
/* Descriptors done, of both rings. */
#define SIMPLE_NIC_HEAD(vector)	(0x38 + 4 * (vector))
#define SIMPLE_NIC_MAC		0x40
/* Counters, 64 bits. */
#define SIMPLE_NIC_COUNTERS	0x48

#define SIMPLE_NIC_LARGEST_RING	32768

/* Vectors of MSI-X. */
#define SIMPLE_NIC_SENT		0
#define SIMPLE_NIC_RECEIVED	1
#define SIMPLE_NIC_VECTORS	2

struct simple_nic_descriptor {
	__le64 address;
	__le64 length; /* of the buffer; after reception that of the frame, 0 if it was lost */
};

#endif
