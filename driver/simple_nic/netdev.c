// SPDX-License-Identifier: GPL-2.0
/* The network interface: up and down, MTU, counters, and what is done when nothing gets on. */
#include <linux/etherdevice.h>
#include <linux/rtnetlink.h>

#include "simple_nic.h"

/* Between two looks of the watch. */
#define WATCH	HZ
/* A write to the card may be lost on its way. */
#define TRIES	3

/* Makes the card forget its rings: nothing of it is under way after this. */
static void silence(struct simple_nic *nic)
{
	simple_nic_write(nic, SIMPLE_NIC_ENABLED, 0);
	writeq(0, nic->registers + SIMPLE_NIC_TX_DESC_BASE);
	writeq(0, nic->registers + SIMPLE_NIC_RX_DESC_BASE);
	/* The answer comes behind what the card has written. */
	if (simple_nic_read(nic, SIMPLE_NIC_ENABLED) == ~0u)
		/* None: it is gone, or has to be kept from memory that is not its own any more. */
		pci_clear_master(nic->pdev);
}

static void write_rings(struct simple_nic *nic)
{
	struct simple_nic_ring *sent = &nic->rings[SIMPLE_NIC_SENT];
	struct simple_nic_ring *received = &nic->rings[SIMPLE_NIC_RECEIVED];

	if (!nic->published) {
		simple_nic_write(nic, SIMPLE_NIC_TX_SIZE, sent->size);
		simple_nic_write(nic, SIMPLE_NIC_RX_SIZE, received->size);
		simple_nic_write(nic, SIMPLE_NIC_MODERATION, nic->moderation_us * NSEC_PER_USEC);
		writeq(nic->heads_bus, nic->registers + SIMPLE_NIC_HEADS);
	}
	writeq(sent->bus, nic->registers + SIMPLE_NIC_TX_DESC_BASE);
	writeq(received->bus, nic->registers + SIMPLE_NIC_RX_DESC_BASE);
	simple_nic_write(nic, SIMPLE_NIC_ENABLED, 1);
}

/* Has the card heard of all that? The published one need not answer reads. */
static bool has_rings(struct simple_nic *nic)
{
	struct simple_nic_ring *sent = &nic->rings[SIMPLE_NIC_SENT];
	struct simple_nic_ring *received = &nic->rings[SIMPLE_NIC_RECEIVED];

	return nic->published ||
	       (simple_nic_read(nic, SIMPLE_NIC_TX_SIZE) == sent->size &&
		simple_nic_read(nic, SIMPLE_NIC_RX_SIZE) == received->size &&
		readq(nic->registers + SIMPLE_NIC_HEADS) == nic->heads_bus &&
		readq(nic->registers + SIMPLE_NIC_TX_DESC_BASE) == sent->bus &&
		readq(nic->registers + SIMPLE_NIC_RX_DESC_BASE) == received->bus &&
		simple_nic_read(nic, SIMPLE_NIC_ENABLED) == 1);
}

static int tell_rings(struct simple_nic *nic)
{
	unsigned int tries;

	nic->heads[SIMPLE_NIC_SENT] = 0;
	nic->heads[SIMPLE_NIC_RECEIVED] = 0;
	for (tries = 0; tries < TRIES; tries++) {
		write_rings(nic);
		if (has_rings(nic))
			return 0;
	}
	netdev_err(nic->netdev, "the card does not take its rings\n");
	return -EIO;
}

int simple_nic_start(struct simple_nic *nic)
{
	unsigned int i;
	int error;

	for (i = 0; i < SIMPLE_NIC_VECTORS; i++) {
		error = simple_nic_ring_alloc(&nic->rings[i]);
		if (error)
			goto free;
	}
	pci_set_master(nic->pdev);
	error = tell_rings(nic);
	if (error) {
		silence(nic);
		goto free;
	}
	for (i = 0; i < SIMPLE_NIC_VECTORS; i++)
		napi_enable(&nic->rings[i].napi);
	simple_nic_ring_doorbell(&nic->rings[SIMPLE_NIC_RECEIVED]);
	netdev_reset_queue(nic->netdev);
	netif_start_queue(nic->netdev);
	netif_carrier_on(nic->netdev);
	nic->running = true;
	/* A doorbell that is said twice would be another frame there. */
	if (!nic->published)
		schedule_delayed_work(&nic->watch, WATCH);
	return 0;

free:
	while (i-- > 0)
		simple_nic_ring_free(&nic->rings[i]);
	return error;
}

void simple_nic_stop(struct simple_nic *nic)
{
	unsigned int i;

	/* An interface that is up has no rings while its card is out of reach. */
	if (!nic->running)
		return;
	nic->running = false;
	netif_carrier_off(nic->netdev);
	netif_tx_disable(nic->netdev);
	cancel_delayed_work_sync(&nic->watch);
	silence(nic);
	for (i = 0; i < SIMPLE_NIC_VECTORS; i++) {
		synchronize_irq(pci_irq_vector(nic->pdev, i));
		napi_disable(&nic->rings[i].napi);
		simple_nic_ring_free(&nic->rings[i]);
	}
}

static int simple_nic_open(struct net_device *netdev)
{
	return simple_nic_start(netdev_priv(netdev));
}

static int simple_nic_close(struct net_device *netdev)
{
	simple_nic_stop(netdev_priv(netdev));
	return 0;
}

static void simple_nic_watch(struct work_struct *work)
{
	struct simple_nic *nic = container_of(work, struct simple_nic, watch.work);
	unsigned int i;

	/* NAPI is scheduled here, and would wait for the next interrupt otherwise. */
	local_bh_disable();
	for (i = 0; i < SIMPLE_NIC_VECTORS; i++)
		simple_nic_ring_watch(&nic->rings[i]);
	local_bh_enable();
	schedule_delayed_work(&nic->watch, WATCH);
}

static void simple_nic_restart(struct work_struct *work)
{
	struct simple_nic *nic = container_of(work, struct simple_nic, restart);

	rtnl_lock();
	if (nic->running) {
		nic->restarts++;
		simple_nic_stop(nic);
		if (simple_nic_start(nic))
			dev_close(nic->netdev);
	}
	rtnl_unlock();
}

static void simple_nic_tx_timeout(struct net_device *netdev, unsigned int queue)
{
	struct simple_nic *nic = netdev_priv(netdev);

	schedule_work(&nic->restart);
}

void simple_nic_init_work(struct simple_nic *nic)
{
	INIT_DELAYED_WORK(&nic->watch, simple_nic_watch);
	INIT_WORK(&nic->restart, simple_nic_restart);
}

static void simple_nic_get_stats64(struct net_device *netdev, struct rtnl_link_stats64 *stats)
{
	struct simple_nic *nic = netdev_priv(netdev);
	struct simple_nic_ring *sent = &nic->rings[SIMPLE_NIC_SENT];
	struct simple_nic_ring *received = &nic->rings[SIMPLE_NIC_RECEIVED];
	unsigned int start;

	do {
		start = u64_stats_fetch_begin(&sent->sync);
		stats->tx_packets = u64_stats_read(&sent->packets);
		stats->tx_bytes = u64_stats_read(&sent->bytes);
	} while (u64_stats_fetch_retry(&sent->sync, start));
	do {
		start = u64_stats_fetch_begin(&received->sync);
		stats->rx_packets = u64_stats_read(&received->packets);
		stats->rx_bytes = u64_stats_read(&received->bytes);
		stats->rx_errors = u64_stats_read(&received->errors);
	} while (u64_stats_fetch_retry(&received->sync, start));
}

const struct net_device_ops simple_nic_netdev_ops = {
	.ndo_open = simple_nic_open,
	.ndo_stop = simple_nic_close,
	.ndo_start_xmit = simple_nic_start_xmit,
	.ndo_tx_timeout = simple_nic_tx_timeout,
	.ndo_get_stats64 = simple_nic_get_stats64,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};
