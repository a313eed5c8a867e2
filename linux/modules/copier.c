// SPDX-License-Identifier: GPL-2.0
/*
 * A driver for the device of examples/python/copier.py: what a program writes
 * to /dev/copier, a page at most, is put into host memory, the device copies
 * it, and what it copied is read from /dev/copier.
 *
 * An example: there is one device at most, and it is not pulled out while a
 * program has its file open.
 */
#include <linux/completion.h>
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/interrupt.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/uaccess.h>

#define COPIER_SRC	0x00	/* 64 bits */
#define COPIER_DST	0x08	/* 64 bits */
#define COPIER_GO	0x10	/* bytes; starts a copy */
#define COPIER_DONE	0x14	/* copies so far */
#define COPIER_TIMEOUT	msecs_to_jiffies(1000)

struct copier {
	struct miscdevice misc;
	struct mutex lock; /* one copy at a time */
	struct completion done;
	void __iomem *registers;
	void *src, *dst;
	dma_addr_t src_bus, dst_bus;
	size_t copied;
};

static struct copier *copier_of(struct file *file)
{
	return container_of(file->private_data, struct copier, misc);
}

static irqreturn_t copier_interrupt(int irq, void *data)
{
	struct copier *copier = data;

	complete(&copier->done);
	return IRQ_HANDLED;
}

static ssize_t copier_write(struct file *file, const char __user *data,
			    size_t bytes, loff_t *position)
{
	struct copier *copier = copier_of(file);
	ssize_t result;

	bytes = min(bytes, PAGE_SIZE);
	if (!bytes)
		return 0;
	mutex_lock(&copier->lock);
	result = -EFAULT;
	if (copy_from_user(copier->src, data, bytes))
		goto unlock;
	memset(copier->dst, 0, PAGE_SIZE);
	copier->copied = 0;
	reinit_completion(&copier->done);
	writeq(copier->src_bus, copier->registers + COPIER_SRC);
	writeq(copier->dst_bus, copier->registers + COPIER_DST);
	writel(bytes, copier->registers + COPIER_GO);
	result = -ETIMEDOUT;
	if (!wait_for_completion_timeout(&copier->done, COPIER_TIMEOUT))
		goto unlock;
	copier->copied = bytes;
	result = bytes;
unlock:
	mutex_unlock(&copier->lock);
	return result;
}

static ssize_t copier_read(struct file *file, char __user *data, size_t bytes,
			   loff_t *position)
{
	struct copier *copier = copier_of(file);
	ssize_t result;

	mutex_lock(&copier->lock);
	result = simple_read_from_buffer(data, bytes, position, copier->dst,
					 copier->copied);
	mutex_unlock(&copier->lock);
	return result;
}

static const struct file_operations copier_operations = {
	.owner = THIS_MODULE,
	.read = copier_read,
	.write = copier_write,
	.llseek = noop_llseek,
};

static int copier_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct device *dev = &pdev->dev;
	struct copier *copier;
	int err;

	copier = devm_kzalloc(dev, sizeof(*copier), GFP_KERNEL);
	if (!copier)
		return -ENOMEM;
	mutex_init(&copier->lock);
	init_completion(&copier->done);
	err = pcim_enable_device(pdev);
	if (err)
		return err;
	err = dma_set_mask_and_coherent(dev, DMA_BIT_MASK(64));
	if (err)
		return err;
	copier->registers = pcim_iomap_region(pdev, 0, "copier");
	if (IS_ERR(copier->registers))
		return PTR_ERR(copier->registers);
	copier->src = dmam_alloc_coherent(dev, PAGE_SIZE, &copier->src_bus, GFP_KERNEL);
	copier->dst = dmam_alloc_coherent(dev, PAGE_SIZE, &copier->dst_bus, GFP_KERNEL);
	if (!copier->src || !copier->dst)
		return -ENOMEM;
	err = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_MSIX);
	if (err < 0)
		return err;
	err = devm_request_irq(dev, pci_irq_vector(pdev, 0), copier_interrupt, 0,
			       "copier", copier);
	if (err)
		return err;
	pci_set_master(pdev);
	pci_set_drvdata(pdev, copier);
	copier->misc.minor = MISC_DYNAMIC_MINOR;
	copier->misc.name = "copier";
	copier->misc.fops = &copier_operations;
	copier->misc.parent = dev;
	err = misc_register(&copier->misc);
	if (err)
		return err;
	dev_info(dev, "/dev/copier: %u copies so far\n",
		 readl(copier->registers + COPIER_DONE));
	return 0;
}

static void copier_remove(struct pci_dev *pdev)
{
	struct copier *copier = pci_get_drvdata(pdev);

	misc_deregister(&copier->misc);
	pci_clear_master(pdev);
}

static const struct pci_device_id copier_ids[] = {
	{ PCI_DEVICE(0x71ab, 0x0001) },
	{}
};
MODULE_DEVICE_TABLE(pci, copier_ids);

static struct pci_driver copier_driver = {
	.name = "copier",
	.id_table = copier_ids,
	.probe = copier_probe,
	.remove = copier_remove,
	.driver.suppress_bind_attrs = true,
};
module_pci_driver(copier_driver);

MODULE_DESCRIPTION("Driver of an example device that copies host memory");
MODULE_LICENSE("GPL");
