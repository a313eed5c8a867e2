// SPDX-License-Identifier: GPL-2.0
/*
 * Makes a mistake on purpose, to check that the kernel of
 * `make linux DEBUG=1` reports it: insmod judges.ko wrong=use-after-free, beyond,
 * locks, leak or mapping (of device=0000:01:00.0). Do not load it for
 * any other reason.
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/slab.h>

static char *wrong = "";
module_param(wrong, charp, 0444);
MODULE_PARM_DESC(wrong, "the mistake to make");

static char *device = "";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "the function whose mapping is left behind, as 0000:01:00.0");

static DEFINE_MUTEX(one);
static DEFINE_MUTEX(other);

static noinline void read_freed_memory(void)
{
	char *memory = kmalloc(64, GFP_KERNEL);

	kfree(memory);
	pr_info("judges: read %d\n", READ_ONCE(memory[8]));
}

static noinline void read_beyond_memory(void)
{
	char *memory = kzalloc(60, GFP_KERNEL);
	int at = 60;

	OPTIMIZER_HIDE_VAR(at);
	pr_info("judges: read %d\n", READ_ONCE(memory[at]));
	kfree(memory);
}

static void take_locks_in_both_orders(void)
{
	mutex_lock(&one);
	mutex_lock(&other);
	mutex_unlock(&other);
	mutex_unlock(&one);
	mutex_lock(&other);
	mutex_lock(&one);
	mutex_unlock(&one);
	mutex_unlock(&other);
}

/* Of one the address may still be on some stack. */
static noinline void forget_memory(void)
{
	int i;

	for (i = 0; i < 16; i++) {
		void *memory = kmalloc(123, GFP_KERNEL);

		OPTIMIZER_HIDE_VAR(memory);
	}
}

/* It is told when the driver of the device lets it go. */
static int leave_a_mapping(void)
{
	unsigned int domain, bus, slot, function;
	struct pci_dev *pci;
	dma_addr_t bus_address;

	if (sscanf(device, "%x:%x:%x.%u", &domain, &bus, &slot, &function) != 4)
		return -EINVAL;
	pci = pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(slot, function));
	if (!pci)
		return -ENODEV;
	if (!dma_alloc_coherent(&pci->dev, 4096, &bus_address, GFP_KERNEL))
		pr_info("judges: no memory\n");
	pci_dev_put(pci);
	return 0;
}

static int __init judges_init(void)
{
	if (!strcmp(wrong, "use-after-free"))
		read_freed_memory();
	else if (!strcmp(wrong, "beyond"))
		read_beyond_memory();
	else if (!strcmp(wrong, "locks"))
		take_locks_in_both_orders();
	else if (!strcmp(wrong, "leak"))
		forget_memory();
	else if (!strcmp(wrong, "mapping"))
		return leave_a_mapping();
	else
		return -EINVAL;
	return 0;
}
module_init(judges_init);

static void __exit judges_exit(void)
{
}
module_exit(judges_exit);

MODULE_DESCRIPTION("Seeded mistakes for the kernel's judges");
MODULE_LICENSE("GPL");
