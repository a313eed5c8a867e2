// SPDX-License-Identifier: GPL-2.0
/* The card comes and goes, sleeps, and is reset. */
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/pm.h>
#include <linux/rtnetlink.h>

#include "simple_nic.h"

static bool rings = true;
module_param(rings, bool, 0444);
MODULE_PARM_DESC(rings, "use rings where the card has them; otherwise one frame at a time, as NetTLP's simple NIC does (true)");

/* Ethernet's, and a VLAN tag. */
#define FRAME	(ETH_FRAME_LEN + 4)

/* True if the card has more than the published registers, by its longest frame. */
static bool can_have_rings(u32 longest)
{
	return longest >= ETH_ZLEN && longest <= ETH_MAX_MTU + ETH_HLEN + 4;
}

static void identify(struct simple_nic *nic)
{
	u32 longest = simple_nic_read(nic, SIMPLE_NIC_MAX_FRAME);
	u8 address[ETH_ALEN] = {};

	if (can_have_rings(longest)) {
		nic->longest = longest;
		memcpy_fromio(address, nic->registers + SIMPLE_NIC_MAC, sizeof(address));
	} else {
		nic->longest = FRAME;
	}
	nic->published = !rings || !can_have_rings(longest);
	if (is_valid_ether_addr(address))
		eth_hw_addr_set(nic->netdev, address);
	else
		eth_hw_addr_random(nic->netdev);
	nic->netdev->min_mtu = ETH_MIN_MTU;
	nic->netdev->max_mtu = nic->longest - ETH_HLEN - 4;
	nic->netdev->mtu = min_t(u32, nic->netdev->max_mtu, ETH_DATA_LEN);
}

static int request_interrupts(struct simple_nic *nic)
{
	static const char * const names[] = { "sent", "received" };
	unsigned int i;
	int error;

	error = pci_alloc_irq_vectors(nic->pdev, SIMPLE_NIC_VECTORS, SIMPLE_NIC_VECTORS,
				      PCI_IRQ_MSIX);
	if (error < 0)
		return error;
	for (i = 0; i < SIMPLE_NIC_VECTORS; i++) {
		error = pci_request_irq(nic->pdev, i, simple_nic_interrupt, NULL, &nic->rings[i],
					"simple_nic-%s %s", pci_name(nic->pdev), names[i]);
		if (error)
			goto free;
	}
	return 0;

free:
	while (i-- > 0)
		pci_free_irq(nic->pdev, i, &nic->rings[i]);
	pci_free_irq_vectors(nic->pdev);
	return error;
}

static void free_interrupts(struct simple_nic *nic)
{
	unsigned int i;

	for (i = 0; i < SIMPLE_NIC_VECTORS; i++)
		pci_free_irq(nic->pdev, i, &nic->rings[i]);
	pci_free_irq_vectors(nic->pdev);
}

/* Enables the function, and maps its registers. */
static int enable(struct simple_nic *nic)
{
	struct pci_dev *pdev = nic->pdev;
	int error;

	error = pci_enable_device_mem(pdev);
	if (error)
		return error;
	error = pci_request_regions(pdev, "simple_nic");
	if (error)
		goto disable;
	error = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (error)
		goto release;
	error = -ENOMEM;
	nic->registers = pci_iomap(pdev, SIMPLE_NIC_BAR, SIMPLE_NIC_BAR_BYTES);
	if (!nic->registers)
		goto release;
	nic->heads = dma_alloc_coherent(&pdev->dev, sizeof(u64), &nic->heads_bus, GFP_KERNEL);
	if (!nic->heads)
		goto unmap;
	return 0;

unmap:
	pci_iounmap(pdev, nic->registers);
release:
	pci_release_regions(pdev);
disable:
	pci_disable_device(pdev);
	return error;
}

static void disable(struct simple_nic *nic)
{
	dma_free_coherent(&nic->pdev->dev, sizeof(u64), nic->heads, nic->heads_bus);
	pci_iounmap(nic->pdev, nic->registers);
	pci_release_regions(nic->pdev);
	pci_disable_device(nic->pdev);
}

static int simple_nic_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct net_device *netdev;
	struct simple_nic *nic;
	unsigned int i;
	int error;

	netdev = alloc_etherdev(sizeof(*nic));
	if (!netdev)
		return -ENOMEM;
	SET_NETDEV_DEV(netdev, &pdev->dev);
	nic = netdev_priv(netdev);
	nic->netdev = netdev;
	nic->pdev = pdev;
	error = enable(nic);
	if (error)
		goto free;
	identify(nic);
	simple_nic_init_work(nic);
	netdev->netdev_ops = &simple_nic_netdev_ops;
	netdev->ethtool_ops = &simple_nic_ethtool_ops;
	netdev->watchdog_timeo = 5 * HZ;
	for (i = 0; i < SIMPLE_NIC_VECTORS; i++)
		simple_nic_ring_init(nic, i);
	error = request_interrupts(nic);
	if (error)
		goto disable;
	pci_set_drvdata(pdev, nic);
	/* For a reset of the link. */
	pci_save_state(pdev);
	netif_carrier_off(netdev);
	error = register_netdev(netdev);
	if (error)
		goto free_interrupts;
	netdev_info(netdev, "%s, frames of at most %u bytes, %pM\n",
		    nic->published ? "one frame at a time" : "rings", nic->longest,
		    netdev->dev_addr);
	return 0;

free_interrupts:
	free_interrupts(nic);
disable:
	disable(nic);
free:
	free_netdev(netdev);
	return error;
}

static void simple_nic_remove(struct pci_dev *pdev)
{
	struct simple_nic *nic = pci_get_drvdata(pdev);

	unregister_netdev(nic->netdev);
	cancel_work_sync(&nic->restart);
	free_interrupts(nic);
	pci_clear_master(pdev);
	disable(nic);
	free_netdev(nic->netdev);
}

/* Puts the interface to rest while its card cannot be used. */
static void detach(struct simple_nic *nic)
{
	rtnl_lock();
	if (netif_device_present(nic->netdev)) {
		netif_device_detach(nic->netdev);
		simple_nic_stop(nic);
	}
	rtnl_unlock();
}

/* And takes it up again, with rings of its own. */
static int attach(struct simple_nic *nic)
{
	int error = 0;

	rtnl_lock();
	if (!netif_device_present(nic->netdev)) {
		if (netif_running(nic->netdev))
			error = simple_nic_start(nic);
		if (!error)
			netif_device_attach(nic->netdev);
	}
	rtnl_unlock();
	return error;
}

static int simple_nic_suspend(struct device *dev)
{
	detach(dev_get_drvdata(dev));
	return 0;
}

static int simple_nic_resume(struct device *dev)
{
	return attach(dev_get_drvdata(dev));
}

static pci_ers_result_t simple_nic_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	if (state == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	detach(pci_get_drvdata(pdev));
	return state == pci_channel_io_perm_failure ? PCI_ERS_RESULT_DISCONNECT :
						      PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t simple_nic_slot_reset(struct pci_dev *pdev)
{
	pci_restore_state(pdev);
	pci_save_state(pdev);
	return pci_device_is_present(pdev) ? PCI_ERS_RESULT_RECOVERED : PCI_ERS_RESULT_DISCONNECT;
}

static void simple_nic_error_resume(struct pci_dev *pdev)
{
	attach(pci_get_drvdata(pdev));
}

static void simple_nic_reset_prepare(struct pci_dev *pdev)
{
	detach(pci_get_drvdata(pdev));
}

static void simple_nic_reset_done(struct pci_dev *pdev)
{
	attach(pci_get_drvdata(pdev));
}

static const struct pci_error_handlers simple_nic_errors = {
	.error_detected = simple_nic_error_detected,
	.slot_reset = simple_nic_slot_reset,
	.resume = simple_nic_error_resume,
	.reset_prepare = simple_nic_reset_prepare,
	.reset_done = simple_nic_reset_done,
};

static DEFINE_SIMPLE_DEV_PM_OPS(simple_nic_pm, simple_nic_suspend, simple_nic_resume);

/* NetTLP's card, 3776:8022, may be any device: who has this one behind it writes to new_id. */
static const struct pci_device_id simple_nic_ids[] = {
	{ PCI_DEVICE(SIMPLE_NIC_VENDOR_ID, SIMPLE_NIC_DEVICE_ID) },
	{}
};
MODULE_DEVICE_TABLE(pci, simple_nic_ids);

static struct pci_driver simple_nic_driver = {
	.name = "simple_nic",
	.id_table = simple_nic_ids,
	.probe = simple_nic_probe,
	.remove = simple_nic_remove,
	.err_handler = &simple_nic_errors,
	.driver.pm = pm_sleep_ptr(&simple_nic_pm),
};
module_pci_driver(simple_nic_driver);
MODULE_DESCRIPTION("Driver of the simple NIC, the published one and the one with rings");
MODULE_AUTHOR("The tlplab authors");
MODULE_LICENSE("GPL");
