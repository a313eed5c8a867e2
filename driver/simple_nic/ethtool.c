// SPDX-License-Identifier: GPL-2.0
/* The queries and settings of ethtool. */
#include <linux/ethtool.h>
#include <linux/log2.h>
#include <linux/rtnetlink.h>

#include "simple_nic.h"

/* Counters of the card, in the order of its registers. */
static const char * const card_counters[] = {
	"card_tx_frames", "card_tx_errors", "card_rx_frames", "card_rx_too_long", "card_rx_errors",
	"card_refused_doorbells",
};

static const char * const driver_counters[] = {
	"restarts", "tx_repeated_doorbells", "tx_missed_interrupts", "rx_missed_interrupts",
	"refused_heads",
};

static void get_drvinfo(struct net_device *netdev, struct ethtool_drvinfo *info)
{
	struct simple_nic *nic = netdev_priv(netdev);

	strscpy(info->driver, "simple_nic", sizeof(info->driver));
	strscpy(info->bus_info, pci_name(nic->pdev), sizeof(info->bus_info));
}

static int get_sset_count(struct net_device *netdev, int set)
{
	if (set != ETH_SS_STATS)
		return -EOPNOTSUPP;
	return ARRAY_SIZE(card_counters) + ARRAY_SIZE(driver_counters);
}

static void get_strings(struct net_device *netdev, u32 set, u8 *data)
{
	unsigned int i;

	if (set != ETH_SS_STATS)
		return;
	for (i = 0; i < ARRAY_SIZE(card_counters); i++)
		ethtool_sprintf(&data, "%s", card_counters[i]);
	for (i = 0; i < ARRAY_SIZE(driver_counters); i++)
		ethtool_sprintf(&data, "%s", driver_counters[i]);
}

static void get_ethtool_stats(struct net_device *netdev, struct ethtool_stats *stats, u64 *data)
{
	struct simple_nic *nic = netdev_priv(netdev);
	const struct simple_nic_ring *sent = &nic->rings[SIMPLE_NIC_SENT];
	const struct simple_nic_ring *received = &nic->rings[SIMPLE_NIC_RECEIVED];
	unsigned int i;

	/* The published card has none. */
	for (i = 0; i < ARRAY_SIZE(card_counters); i++)
		*data++ = nic->published ? 0 :
			  readq(nic->registers + SIMPLE_NIC_COUNTERS + i * sizeof(u64));
	*data++ = nic->restarts;
	*data++ = sent->repeated_doorbells;
	*data++ = sent->missed_interrupts;
	*data++ = received->missed_interrupts;
	*data++ = sent->refused_heads + received->refused_heads;
}

static void get_ringparam(struct net_device *netdev, struct ethtool_ringparam *ring,
			  struct kernel_ethtool_ringparam *kernel_ring,
			  struct netlink_ext_ack *extack)
{
	struct simple_nic *nic = netdev_priv(netdev);
	u32 most = nic->published ? 1 : SIMPLE_NIC_LARGEST_RING;

	ring->tx_max_pending = most;
	ring->rx_max_pending = most;
	ring->tx_pending = min(nic->rings[SIMPLE_NIC_SENT].wanted, most);
	ring->rx_pending = min(nic->rings[SIMPLE_NIC_RECEIVED].wanted, most);
}

static int set_ringparam(struct net_device *netdev, struct ethtool_ringparam *ring,
			 struct kernel_ethtool_ringparam *kernel_ring,
			 struct netlink_ext_ack *extack)
{
	struct simple_nic *nic = netdev_priv(netdev);
	bool running = nic->running;

	if (!is_power_of_2(ring->tx_pending) || !is_power_of_2(ring->rx_pending)) {
		NL_SET_ERR_MSG(extack, "rings have a power of two descriptors");
		return -EINVAL;
	}
	if (nic->published)
		return 0;
	if (running)
		simple_nic_stop(nic);
	nic->rings[SIMPLE_NIC_SENT].wanted = ring->tx_pending;
	nic->rings[SIMPLE_NIC_RECEIVED].wanted = ring->rx_pending;
	if (running && simple_nic_start(nic)) {
		/* Memory does not suffice for so many. */
		nic->rings[SIMPLE_NIC_SENT].wanted = SIMPLE_NIC_RING;
		nic->rings[SIMPLE_NIC_RECEIVED].wanted = SIMPLE_NIC_RING;
		if (simple_nic_start(nic))
			dev_close(netdev);
		return -ENOMEM;
	}
	return 0;
}

static int get_coalesce(struct net_device *netdev, struct ethtool_coalesce *coalesce,
			struct kernel_ethtool_coalesce *kernel_coalesce,
			struct netlink_ext_ack *extack)
{
	struct simple_nic *nic = netdev_priv(netdev);

	coalesce->rx_coalesce_usecs = nic->moderation_us;
	return 0;
}

/* The card has one register for both directions. */
static int set_coalesce(struct net_device *netdev, struct ethtool_coalesce *coalesce,
			struct kernel_ethtool_coalesce *kernel_coalesce,
			struct netlink_ext_ack *extack)
{
	struct simple_nic *nic = netdev_priv(netdev);

	if (nic->published)
		return -EOPNOTSUPP;
	if (coalesce->rx_coalesce_usecs > U32_MAX / NSEC_PER_USEC) {
		NL_SET_ERR_MSG(extack, "the card's register holds 4 s of nanoseconds");
		return -ERANGE;
	}
	nic->moderation_us = coalesce->rx_coalesce_usecs;
	if (nic->running)
		simple_nic_write(nic, SIMPLE_NIC_MODERATION, nic->moderation_us * NSEC_PER_USEC);
	return 0;
}

const struct ethtool_ops simple_nic_ethtool_ops = {
	.supported_coalesce_params = ETHTOOL_COALESCE_RX_USECS,
	.get_drvinfo = get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_ts_info = ethtool_op_get_ts_info,
	.get_sset_count = get_sset_count,
	.get_strings = get_strings,
	.get_ethtool_stats = get_ethtool_stats,
	.get_ringparam = get_ringparam,
	.set_ringparam = set_ringparam,
	.get_coalesce = get_coalesce,
	.set_coalesce = set_coalesce,
};
