// SPDX-License-Identifier: GPL-2.0
/*
 * The two rings. The card counts the descriptors that it is done with, and writes both counts to
 * memory before it interrupts; we count those that we post, and ring a doorbell with that count.
 * By the published protocol a ring has one descriptor, and an interrupt says that it is done.
 */
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/slab.h>

#include "simple_nic.h"

static bool is_of_reception(const struct simple_nic_ring *ring)
{
	return ring->vector == SIMPLE_NIC_RECEIVED;
}

static struct device *dma_device(struct simple_nic_ring *ring)
{
	return &ring->nic->pdev->dev;
}

static struct simple_nic_slot *slot_of(struct simple_nic_ring *ring, u32 number, u32 *place)
{
	/* Sizes are powers of two: the count may pass 2^32. */
	*place = number & (ring->size - 1);
	return &ring->slots[*place];
}

bool simple_nic_ring_is_full(const struct simple_nic_ring *ring)
{
	return READ_ONCE(ring->posted) - READ_ONCE(ring->head) == ring->size;
}

void simple_nic_ring_doorbell(struct simple_nic_ring *ring)
{
	u32 doorbell = is_of_reception(ring) ? SIMPLE_NIC_RX_IDX : SIMPLE_NIC_TX_IDX;

	simple_nic_write(ring->nic, doorbell, ring->nic->published ? 0 : READ_ONCE(ring->posted));
}

/* Puts a descriptor in. */
static void post(struct simple_nic_ring *ring, struct simple_nic_slot slot, u32 bytes)
{
	u32 place;

	*slot_of(ring, ring->posted, &place) = slot;
	ring->descriptors[place].address = cpu_to_le64(slot.bus);
	ring->descriptors[place].length = cpu_to_le64(bytes);
	/* Whoever sees the count sees the descriptor, too. */
	smp_store_release(&ring->posted, ring->posted + 1);
}

/* Gives the next descriptor a buffer; false if there is none. */
static bool post_buffer(struct simple_nic_ring *ring)
{
	struct simple_nic *nic = ring->nic;
	struct simple_nic_slot slot;

	slot.skb = netdev_alloc_skb_ip_align(nic->netdev, nic->longest);
	if (!slot.skb)
		return false;
	slot.bus = dma_map_single(dma_device(ring), slot.skb->data, nic->longest, DMA_FROM_DEVICE);
	if (dma_mapping_error(dma_device(ring), slot.bus)) {
		dev_kfree_skb_any(slot.skb);
		return false;
	}
	post(ring, slot, nic->longest);
	return true;
}

/* Takes what a descriptor had. */
static struct sk_buff *take(struct simple_nic_ring *ring, u32 number)
{
	bool received = is_of_reception(ring);
	struct simple_nic_slot *slot;
	struct sk_buff *skb;
	u32 place;

	slot = slot_of(ring, number, &place);
	skb = slot->skb;
	dma_unmap_single(dma_device(ring), slot->bus, received ? ring->nic->longest : skb->len,
			 received ? DMA_FROM_DEVICE : DMA_TO_DEVICE);
	slot->skb = NULL;
	return skb;
}

int simple_nic_ring_alloc(struct simple_nic_ring *ring)
{
	ring->size = ring->nic->published ? 1 : ring->wanted;
	ring->posted = 0;
	ring->head = 0;
	ring->interrupted = 0;
	ring->watched = 0;
	ring->descriptors = dma_alloc_coherent(dma_device(ring),
					       ring->size * sizeof(*ring->descriptors), &ring->bus,
					       GFP_KERNEL);
	if (!ring->descriptors)
		return -ENOMEM;
	ring->slots = kvcalloc(ring->size, sizeof(*ring->slots), GFP_KERNEL);
	if (!ring->slots)
		goto free;
	while (is_of_reception(ring) && !simple_nic_ring_is_full(ring))
		if (!post_buffer(ring))
			goto free;
	return 0;

free:
	simple_nic_ring_free(ring);
	return -ENOMEM;
}

void simple_nic_ring_free(struct simple_nic_ring *ring)
{
	for (; ring->slots && ring->head != ring->posted; ring->head++) {
		/* A frame that was not sent is counted, a buffer without one is not. */
		if (!is_of_reception(ring))
			dev_core_stats_tx_dropped_inc(ring->nic->netdev);
		dev_kfree_skb_any(take(ring, ring->head));
	}
	kvfree(ring->slots);
	ring->slots = NULL;
	dma_free_coherent(dma_device(ring), ring->size * sizeof(*ring->descriptors),
			  ring->descriptors, ring->bus);
	ring->descriptors = NULL;
}

/* The card's head, as the card reports it. */
static u32 head_of_card(const struct simple_nic_ring *ring)
{
	if (ring->nic->published)
		return READ_ONCE(ring->interrupted);
	return le32_to_cpu(READ_ONCE(ring->nic->heads[ring->vector]));
}

/* The card's head; an impossible value counts as no progress. */
static u32 checked_head(struct simple_nic_ring *ring)
{
	u32 head = head_of_card(ring);

	/* Finished descriptors were written before. */
	dma_rmb();
	/* Posted descriptors are visible with the count: post(). */
	if (head - ring->head <= smp_load_acquire(&ring->posted) - ring->head)
		return head;
	ring->refused_heads++;
	return ring->head;
}

netdev_tx_t simple_nic_start_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	struct simple_nic *nic = netdev_priv(netdev);
	struct simple_nic_ring *ring = &nic->rings[SIMPLE_NIC_SENT];
	struct simple_nic_slot slot = { .skb = skb };
	bool told;

	if (unlikely(simple_nic_ring_is_full(ring))) {
		netif_stop_queue(netdev);
		return NETDEV_TX_BUSY;
	}
	slot.bus = dma_map_single(dma_device(ring), skb->data, skb->len, DMA_TO_DEVICE);
	if (unlikely(dma_mapping_error(dma_device(ring), slot.bus))) {
		dev_core_stats_tx_dropped_inc(netdev);
		dev_kfree_skb_any(skb);
		return NETDEV_TX_OK;
	}
	skb_tx_timestamp(skb);
	told = __netdev_sent_queue(netdev, skb->len, netdev_xmit_more());
	post(ring, slot, skb->len);
	if (simple_nic_ring_is_full(ring)) {
		netif_stop_queue(netdev);
		/* The poll may have made room before it could see that the queue is stopped. */
		smp_mb();
		if (!simple_nic_ring_is_full(ring))
			netif_start_queue(netdev);
	}
	if (told || netif_queue_stopped(netdev))
		simple_nic_ring_doorbell(ring);
	return NETDEV_TX_OK;
}

static void count(struct simple_nic_ring *ring, u64_stats_t *counter, unsigned long more)
{
	u64_stats_update_begin(&ring->sync);
	u64_stats_add(counter, more);
	u64_stats_update_end(&ring->sync);
}

static int poll_sent(struct napi_struct *napi, int budget)
{
	struct simple_nic_ring *ring = container_of(napi, struct simple_nic_ring, napi);
	struct net_device *netdev = ring->nic->netdev;
	unsigned int packets = 0, bytes = 0;
	u32 head = checked_head(ring);

	for (; ring->head + packets != head; packets++) {
		struct sk_buff *skb = take(ring, ring->head + packets);

		bytes += skb->len;
		napi_consume_skb(skb, budget);
	}
	if (packets) {
		WRITE_ONCE(ring->head, head);
		netdev_completed_queue(netdev, packets, bytes);
		count(ring, &ring->packets, packets);
		count(ring, &ring->bytes, bytes);
		/* Room is made before this looks whether start_xmit has stopped for it. */
		smp_mb();
		if (netif_queue_stopped(netdev))
			netif_wake_queue(netdev);
	}
	if (budget)
		napi_complete_done(napi, 0);
	return 0;
}

/* Gives the stack the frame of the oldest descriptor, if there is one in it. */
static void receive(struct simple_nic_ring *ring)
{
	struct simple_nic *nic = ring->nic;
	struct simple_nic_slot slot;
	u64 length;
	u32 place;

	slot = *slot_of(ring, ring->head, &place);
	length = le64_to_cpu(READ_ONCE(ring->descriptors[place].length));
	WRITE_ONCE(ring->head, ring->head + 1);
	if (length < ETH_HLEN || length > nic->longest) {
		count(ring, &ring->errors, 1);
		post(ring, slot, nic->longest);
		return;
	}
	if (!post_buffer(ring)) {
		/* The frame is lost, for its buffer is the next one's. */
		dev_core_stats_rx_dropped_inc(nic->netdev);
		post(ring, slot, nic->longest);
		return;
	}
	dma_unmap_single(dma_device(ring), slot.bus, nic->longest, DMA_FROM_DEVICE);
	count(ring, &ring->packets, 1);
	count(ring, &ring->bytes, length);
	skb_put(slot.skb, length);
	slot.skb->protocol = eth_type_trans(slot.skb, nic->netdev);
	napi_gro_receive(&ring->napi, slot.skb);
}

static int poll_received(struct napi_struct *napi, int budget)
{
	struct simple_nic_ring *ring = container_of(napi, struct simple_nic_ring, napi);
	u32 head = checked_head(ring);
	int done = 0;

	for (; done < budget && ring->head != head; done++)
		receive(ring);
	if (done)
		simple_nic_ring_doorbell(ring);
	if (done < budget)
		napi_complete_done(napi, done);
	return done;
}

irqreturn_t simple_nic_interrupt(int irq, void *data)
{
	struct simple_nic_ring *ring = data;

	WRITE_ONCE(ring->interrupted, READ_ONCE(ring->posted));
	napi_schedule(&ring->napi);
	return IRQ_HANDLED;
}

/* Asks the card how far it is, for what it has written of that may be lost, too. */
static bool is_behind(struct simple_nic_ring *ring, u32 head)
{
	u32 asked = simple_nic_read(ring->nic, SIMPLE_NIC_HEAD(ring->vector));

	if (head_of_card(ring) == head && asked != ~0u)
		WRITE_ONCE(ring->nic->heads[ring->vector], cpu_to_le32(asked));
	return head_of_card(ring) != head;
}

void simple_nic_ring_watch(struct simple_nic_ring *ring)
{
	u32 head = READ_ONCE(ring->head);

	if (head == ring->watched && head != READ_ONCE(ring->posted)) {
		if (is_behind(ring, head)) {
			ring->missed_interrupts++;
			napi_schedule(&ring->napi);
		} else {
			/* A line without frames looks the same: then this costs a write. */
			ring->repeated_doorbells += !is_of_reception(ring);
			simple_nic_ring_doorbell(ring);
		}
	}
	ring->watched = head;
}

void simple_nic_ring_init(struct simple_nic *nic, unsigned int vector)
{
	struct simple_nic_ring *ring = &nic->rings[vector];

	ring->nic = nic;
	ring->vector = vector;
	ring->wanted = SIMPLE_NIC_RING;
	u64_stats_init(&ring->sync);
	if (is_of_reception(ring))
		netif_napi_add(nic->netdev, &ring->napi, poll_received);
	else
		netif_napi_add_tx(nic->netdev, &ring->napi, poll_sent);
}
