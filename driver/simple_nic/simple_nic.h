/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Driver of the simple NIC: pci.c (the card comes and goes), netdev.c (the interface), ring.c (its
 * two rings) and ethtool.c.
 */
#ifndef SIMPLE_NIC_H
#define SIMPLE_NIC_H

#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/u64_stats_sync.h>
#include <linux/workqueue.h>

#include "simple_nic_regs.h"

/* A descriptor's frame, or buffer. */
struct simple_nic_slot {
	struct sk_buff *skb;
	dma_addr_t bus;
};

/* One direction. Its NAPI owns it, but for what start_xmit posts. */
struct simple_nic_ring {
	struct simple_nic *nic;
	unsigned int vector; /* of MSI-X, and the head's place in the record */
	struct napi_struct napi;
	/* While the interface is up. */
	struct simple_nic_descriptor *descriptors;
	dma_addr_t bus;
	struct simple_nic_slot *slots;
	u32 size;
	u32 posted;	/* descriptors ever put in, modulo 2^32 */
	u32 head;	/* descriptors done, as far as we know */
	u32 interrupted; /* of the published protocol: descriptors posted when it interrupted */
	u32 watched;	/* the head, when the watch looked last */
	/* The number of descriptors when the interface comes up. */
	u32 wanted;
	struct u64_stats_sync sync;
	u64_stats_t packets;
	u64_stats_t bytes;
	u64_stats_t errors;
	/* Of the watch. */
	u64 repeated_doorbells;
	u64 missed_interrupts;
	u64 refused_heads;
};

/* Descriptors of a ring, unless ethtool -G says otherwise. */
#define SIMPLE_NIC_RING		256

struct simple_nic {
	struct pci_dev *pdev;
	struct net_device *netdev;
	void __iomem *registers;
	/* One frame at a time, as the published driver works. */
	bool published;
	bool running;		/* with rings; the interface's lock guards it */
	u32 longest;		/* bytes of a frame */
	u32 moderation_us;
	__le32 *heads;		/* written by the card: its progress */
	dma_addr_t heads_bus;
	struct simple_nic_ring rings[SIMPLE_NIC_VECTORS];
	struct delayed_work watch;
	struct work_struct restart;
	u64 restarts;
};

static inline u32 simple_nic_read(struct simple_nic *nic, u32 offset)
{
	return readl(nic->registers + offset);
}

static inline void simple_nic_write(struct simple_nic *nic, u32 offset, u32 value)
{
	writel(value, nic->registers + offset);
}

/* ring.c */
void simple_nic_ring_init(struct simple_nic *nic, unsigned int vector);
/* Descriptors, and for reception the buffers. */
int simple_nic_ring_alloc(struct simple_nic_ring *ring);
void simple_nic_ring_free(struct simple_nic_ring *ring);
/* The card hears of all that is posted. */
void simple_nic_ring_doorbell(struct simple_nic_ring *ring);
/* True if there is no room for another descriptor. */
bool simple_nic_ring_is_full(const struct simple_nic_ring *ring);
netdev_tx_t simple_nic_start_xmit(struct sk_buff *skb, struct net_device *netdev);
irqreturn_t simple_nic_interrupt(int irq, void *data);
/* A doorbell or an interrupt may be lost on its way: makes good what does not get on. */
void simple_nic_ring_watch(struct simple_nic_ring *ring);

/* netdev.c */
extern const struct net_device_ops simple_nic_netdev_ops;
/*
 * Registers, rings and NAPI, from nothing to running and back, if it is not so already; the
 * interface's lock is held.
 */
int simple_nic_start(struct simple_nic *nic);
void simple_nic_stop(struct simple_nic *nic);
void simple_nic_init_work(struct simple_nic *nic);

/* ethtool.c */
extern const struct ethtool_ops simple_nic_ethtool_ops;

#endif
