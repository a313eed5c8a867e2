// SPDX-License-Identifier: GPL-2.0
/*
 * Measures what a register read takes, by the kernel's clock, as the paper on
 * the gem5 PCI Express model does.
 *
 *   insmod mmio_latency.ko device=0000:01:00.0 bar=0 offset=0x1c count=1000
 *
 * The log has the summary; debugfs has it, too, and each read's nanoseconds.
 */
#include <linux/debugfs.h>
#include <linux/io.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/pci.h>
#include <linux/seq_file.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>

#define COUNT_MAX	1000000

static char *device;
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "the function: domain:bus:device.function");

static unsigned int bar;
module_param(bar, uint, 0444);
MODULE_PARM_DESC(bar, "number of the BAR (0)");

static unsigned long offset;
module_param(offset, ulong, 0444);
MODULE_PARM_DESC(offset, "offset of the register in the BAR, in bytes (0)");

static bool config;
module_param(config, bool, 0444);
MODULE_PARM_DESC(config, "read 4 bytes of configuration space, at offset, instead of a BAR (false)");

static unsigned int width = 4;
module_param(width, uint, 0444);
MODULE_PARM_DESC(width, "width of the register in bytes: 1, 2, 4 or 8 (4)");

static unsigned int count = 1000;
module_param(count, uint, 0444);
MODULE_PARM_DESC(count, "number of reads (1000)");

static u64 *each;
static u64 sum, least, median, most, value;
static struct dentry *folder;

static int each_show(struct seq_file *file, void *unused)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		seq_printf(file, "%llu\n", each[i]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(each);

static u64 read_register(struct pci_dev *pdev, void __iomem *at)
{
	u32 dword = 0;

	if (config) {
		pci_read_config_dword(pdev, offset, &dword);
		return dword;
	}
	switch (width) {
	case 1:
		return readb(at);
	case 2:
		return readw(at);
	case 4:
		return readl(at);
	default:
		return readq(at);
	}
}

static void measure(struct pci_dev *pdev, void __iomem *at)
{
	unsigned long flags;
	unsigned int i;

	for (i = 0; i < count; i++) {
		u64 start;

		/* No interrupt is measured; nor is the clock, free then in virtual time. */
		local_irq_save(flags);
		start = ktime_get_ns();
		value = read_register(pdev, at);
		each[i] = ktime_get_ns() - start;
		local_irq_restore(flags);
		sum += each[i];
	}
}

static int ascending(const void *left, const void *right)
{
	u64 a = *(const u64 *)left, b = *(const u64 *)right;

	return a < b ? -1 : a > b;
}

static int summarise(void)
{
	u64 *sorted = vmalloc_array(count, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, each, array_size(count, sizeof(*sorted)));
	sort(sorted, count, sizeof(*sorted), ascending, NULL);
	least = sorted[0];
	median = sorted[count / 2];
	most = sorted[count - 1];
	vfree(sorted);
	return 0;
}

static struct pci_dev *find_function(void)
{
	unsigned int domain, bus, slot, function;

	if (!device || sscanf(device, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4)
		return NULL;
	return pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(slot, function));
}

static int measure_function(struct pci_dev *pdev)
{
	unsigned long page = offset & PAGE_MASK;
	void __iomem *mapped;
	int err;

	if (config) {
		if (offset % 4 || offset >= pdev->cfg_size) {
			pci_err(pdev, "mmio_latency: no register at 0x%lx\n", offset);
			return -EINVAL;
		}
		measure(pdev, NULL);
		return 0;
	}
	if (bar > 5 || !(pci_resource_flags(pdev, bar) & IORESOURCE_MEM) ||
	    offset % width || offset >= pci_resource_len(pdev, bar)) {
		pci_err(pdev, "mmio_latency: no register at 0x%lx of BAR %u\n", offset, bar);
		return -EINVAL;
	}
	err = pci_enable_device_mem(pdev);
	if (err)
		return err;
	/* The BAR may be larger than what can be mapped. */
	mapped = pci_iomap_range(pdev, bar, page, PAGE_SIZE);
	if (mapped) {
		measure(pdev, mapped + offset - page);
		pci_iounmap(pdev, mapped);
	} else {
		err = -ENOMEM;
	}
	pci_disable_device(pdev);
	return err;
}

static void publish(struct pci_dev *pdev)
{
	char what[16] = "configuration";

	if (!config)
		snprintf(what, sizeof(what), "BAR %u", bar);
	pci_info(pdev, "%u reads of %u bytes at 0x%lx of %s: %llu ns; min %llu, median %llu, max %llu\n",
		 count, config ? 4 : width, offset, what, sum, least, median, most);
	folder = debugfs_create_dir("mmio_latency", NULL);
	debugfs_create_file("each_ns", 0444, folder, NULL, &each_fops);
	debugfs_create_u64("sum_ns", 0444, folder, &sum);
	debugfs_create_u64("min_ns", 0444, folder, &least);
	debugfs_create_u64("median_ns", 0444, folder, &median);
	debugfs_create_u64("max_ns", 0444, folder, &most);
	debugfs_create_x64("value", 0444, folder, &value);
}

static int __init mmio_latency_init(void)
{
	struct pci_dev *pdev;
	int err;

	if (!count || count > COUNT_MAX || !is_power_of_2(width) || width > 8) {
		pr_err("mmio_latency: width is 1, 2, 4 or 8, count 1 to %u\n", COUNT_MAX);
		return -EINVAL;
	}
	pdev = find_function();
	if (!pdev) {
		pr_err("mmio_latency: device=%s is not a function of this machine\n", device ?: "");
		return -ENODEV;
	}
	each = vmalloc_array(count, sizeof(*each));
	err = each ? measure_function(pdev) : -ENOMEM;
	if (!err)
		err = summarise();
	if (err)
		vfree(each);
	else
		publish(pdev);
	pci_dev_put(pdev);
	return err;
}
module_init(mmio_latency_init);

static void __exit mmio_latency_exit(void)
{
	debugfs_remove(folder);
	vfree(each);
}
module_exit(mmio_latency_exit);

MODULE_DESCRIPTION("Measures the latency of register reads");
MODULE_LICENSE("GPL");
