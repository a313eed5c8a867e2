/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * tlpdma: what software and card agree on. Registers in BAR 0, descriptors and write-back records
 * in host memory.
 *
 * Everything is little endian. Counters of descriptors (TAIL, HEAD) run freely over 32
 * bits; the slot of a descriptor is its count modulo the ring's size.
 */
#ifndef TLPDMA_REGS_H
#define TLPDMA_REGS_H

#define TLPDMA_VENDOR_ID	0x71ab
#define TLPDMA_DEVICE_ID	0x7d0a

/* Registers of the card. */
#define TLPDMA_ID		0x000	/* ro, TLPDMA_ID_VALUE */
#define TLPDMA_VERSION		0x004	/* ro, major in the upper half */
#define TLPDMA_CONTROL		0x008
#define TLPDMA_STATUS		0x00c	/* ro */
#define TLPDMA_CONFIG		0x010	/* ro */
#define TLPDMA_IRQ_STATUS	0x014	/* write 1 to clear; MSI-X clears what it sends */
#define TLPDMA_IRQ_ENABLE	0x018
/* [15:0] least gap, 64 cycles; [31:16] descriptors that raise at once, 0: none */
#define TLPDMA_IRQ_MODERATION	0x01c
#define TLPDMA_ERRORS		0x020	/* write 1 to clear */
#define TLPDMA_UNEXPECTED	0x024	/* ro, completions that nobody waited for */
#define TLPDMA_TIMEOUT		0x028	/* of completions, 256 cycles; 0: never */
#define TLPDMA_MAX_TAGS		0x02c	/* most tags in use; any write clears */
#define TLPDMA_CYCLES_LO	0x030	/* ro, of the user clock */
#define TLPDMA_CYCLES_HI	0x034
#define TLPDMA_H2C_BYTES	0x038	/* ro, modulo 2^32 */
#define TLPDMA_C2H_BYTES	0x03c
#define TLPDMA_SCRATCH		0x040
#define TLPDMA_WINDOW		0x044	/* the part of local memory in BAR 2, MiB */
#define TLPDMA_MEM_MIB		0x048	/* ro, size of local memory */

#define TLPDMA_ID_VALUE		0x544c5044	/* "TLPD" */
#define TLPDMA_VERSION_MAJOR	1

#define TLPDMA_CONTROL_ENABLE	0x1
#define TLPDMA_CONTROL_RESET	0x2	/* reads 1 until everything is drained and cleared */

#define TLPDMA_STATUS_DRAINED	0x1
#define TLPDMA_STATUS_MASTER	0x2
#define TLPDMA_STATUS_MSIX	0x4

#define TLPDMA_CONFIG_TAGS(x)	(1u << ((x) & 0xff))
#define TLPDMA_CONFIG_MPS(x)	(128u << (((x) >> 8) & 0xf))	/* bytes */
#define TLPDMA_CONFIG_MRRS(x)	(128u << (((x) >> 12) & 0xf))	/* bytes */
#define TLPDMA_CONFIG_VECTORS(x) (((x) >> 16) & 0xff)

/* Interrupts: bits of IRQ_STATUS and IRQ_ENABLE, and, by their numbers, MSI-X vectors. */
#define TLPDMA_IRQ_H2C		0x1
#define TLPDMA_IRQ_C2H		0x2
#define TLPDMA_IRQ_ERROR	0x4
#define TLPDMA_IRQ_ALL		0x7
#define TLPDMA_VECTORS		3

/* Registers of a channel, from the beginning of its block. */
#define TLPDMA_CHANNEL(n)	(0x100 + 0x80 * (n))	/* 0: host to card, 1: card to host */
#define TLPDMA_BASE_LO		0x00
#define TLPDMA_BASE_HI		0x04
#define TLPDMA_LOG2		0x08	/* of the descriptors in the ring */
#define TLPDMA_TAIL		0x0c	/* doorbell */
#define TLPDMA_HEAD		0x10	/* ro, descriptors done */
#define TLPDMA_FETCHED		0x14	/* ro, modulo 2^17 */
#define TLPDMA_WB_LO		0x18	/* address of the write-back record; 0: none */
#define TLPDMA_WB_HI		0x1c
#define TLPDMA_CH_CONTROL	0x20
#define TLPDMA_CH_STATUS	0x24	/* ro */
#define TLPDMA_PIO		0x30	/* a descriptor; its last doubleword pushes it */
#define TLPDMA_PIO_ROOM		0x40	/* ro, descriptors that may be pushed */

#define TLPDMA_CH_RUN		0x1
#define TLPDMA_CH_RESET		0x2	/* reads 1 until done */
#define TLPDMA_CH_PIO		0x4

/* CH_STATUS and, but for PIO_OVERRUN, the second half of the write-back record. */
#define TLPDMA_CH_ERROR		0x7	/* enum tlpdma_error */
#define TLPDMA_CH_HALTED	0x8
#define TLPDMA_CH_PIO_MODE	0x10
#define TLPDMA_CH_PIO_OVERRUN	0x100

enum tlpdma_error {
	TLPDMA_OK,
	TLPDMA_UNSUPPORTED_REQUEST,
	TLPDMA_COMPLETER_ABORT,
	TLPDMA_POISONED,
	TLPDMA_MISMATCH,
	TLPDMA_COMPLETION_TIMEOUT,
	TLPDMA_NOT_MASTER,
	TLPDMA_WAS_RESET,
};

#define TLPDMA_LOG2_MIN		4
#define TLPDMA_LOG2_MAX		16

/*
 * Descriptor: 16 bytes, four doublewords.
 *   0: host address, low   1: host address, high   2: local address
 *   3: [23:0] length in bytes, not 0; [31:24] flags
 */
#define TLPDMA_DESCRIPTOR	16
#define TLPDMA_LENGTH_MAX	0xffffffu
#define TLPDMA_INTERRUPT	0x01000000u	/* raise the channel's interrupt when it is done */
#define TLPDMA_WRITE_BACK	0x02000000u	/* write the record when it is done */

/*
 * Write-back record: HEAD in [31:0], CH_STATUS in [63:32], aligned to its size. It is in memory
 * before an MSI-X. A legacy interrupt may overtake it on its way, the answer to a read after that
 * does not, nor does the answer that a reset has ended.
 */
#define TLPDMA_RECORD		8

#endif
