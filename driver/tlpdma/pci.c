// SPDX-License-Identifier: GPL-2.0
/* The card comes and goes, sleeps and interrupts. */
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/pm.h>
#include <linux/slab.h>

#include "tlpdma.h"

#ifndef PCI_IRQ_INTX	/* its name before Linux 6.8 */
#define PCI_IRQ_INTX PCI_IRQ_LEGACY
#endif

static unsigned int ring_log2 = TLPDMA_LOG2_TRANSFER;
module_param(ring_log2, uint, 0444);
MODULE_PARM_DESC(ring_log2, "descriptors of a ring, as a power of two: 12 to 16 (12)");

static bool msix = true;
module_param(msix, bool, 0444);
MODULE_PARM_DESC(msix, "use MSI-X if it is available (true)");

static DEFINE_IDA(tlpdma_numbers);

static void tlpdma_free(struct kref *references)
{
	struct tlpdma_card *card = container_of(references, struct tlpdma_card, references);

	unsigned int i;

	for (i = 0; i < 4; i++)
		kvfree(card->channels[i / 2].pieces[i % 2].table.sgl);
	if (card->workers)
		destroy_workqueue(card->workers);
	iput(card->window.inode);
	ida_free(&tlpdma_numbers, card->number);
	kvfree(card);
}

void tlpdma_put(struct tlpdma_card *card)
{
	kref_put(&card->references, tlpdma_free);
}

static irqreturn_t tlpdma_channel_interrupt(int irq, void *data)
{
	struct tlpdma_channel *channel = data;

	atomic64_inc(&channel->interrupts);
	wake_up(&channel->done);
	return IRQ_HANDLED;
}

static irqreturn_t tlpdma_error_interrupt(int irq, void *data)
{
	struct tlpdma_card *card = data;
	u32 errors = tlpdma_read(&card->io, TLPDMA_ERRORS);

	tlpdma_write(&card->io, TLPDMA_ERRORS, errors);
	if (errors && __ratelimit(&card->told))
		dev_info(&card->pdev->dev, "the card reports errors 0x%02x\n", errors);
	return IRQ_HANDLED;
}

/* A legacy interrupt is shared: the status register tells whether it is ours. */
static irqreturn_t tlpdma_shared_interrupt(int irq, void *data)
{
	struct tlpdma_card *card = data;
	u32 status = tlpdma_read(&card->io, TLPDMA_IRQ_STATUS);
	unsigned int i;

	/* All ones: the card is gone, and this is somebody else's. */
	if (status == ~0u || !(status & TLPDMA_IRQ_ALL))
		return IRQ_NONE;
	tlpdma_write(&card->io, TLPDMA_IRQ_STATUS, status & TLPDMA_IRQ_ALL);
	/*
	 * A woken program may begin a transfer, whose interrupt must not be cleared with this
	 * one.
	 */
	tlpdma_read(&card->io, TLPDMA_IRQ_STATUS);
	for (i = 0; i < 2; i++)
		if (status & (TLPDMA_IRQ_H2C << i))
			tlpdma_channel_interrupt(irq, &card->channels[i]);
	if (status & TLPDMA_IRQ_ERROR)
		tlpdma_error_interrupt(irq, card);
	return IRQ_HANDLED;
}

static int tlpdma_request_msix(struct tlpdma_card *card)
{
	struct pci_dev *pdev = card->pdev;
	static const char * const names[] = { "to card", "from card", "error" };
	void *data[] = { &card->channels[0], &card->channels[1], card };
	irq_handler_t handler = tlpdma_channel_interrupt;
	unsigned int i;
	int error;

	for (i = 0; i < TLPDMA_VECTORS; i++) {
		if (data[i] == card)
			handler = tlpdma_error_interrupt;
		error = pci_request_irq(pdev, i, handler, NULL, data[i], "tlpdma%d %s",
					card->number, names[i]);
		if (error)
			goto free;
	}
	return 0;

free:
	while (i-- > 0)
		pci_free_irq(pdev, i, data[i]);
	return error;
}

static int tlpdma_request_interrupts(struct tlpdma_card *card)
{
	struct pci_dev *pdev = card->pdev;
	int vectors = -ENOSPC, error;

	if (msix)
		vectors = pci_alloc_irq_vectors(pdev, TLPDMA_VECTORS, TLPDMA_VECTORS, PCI_IRQ_MSIX);
	card->vectors = vectors > 0 ? vectors : 0;
	if (vectors < 0)
		vectors = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_INTX);
	if (vectors < 0)
		return vectors;
	if (card->vectors)
		error = tlpdma_request_msix(card);
	else
		error = pci_request_irq(pdev, 0, tlpdma_shared_interrupt, NULL, card, "tlpdma%d",
					card->number);
	if (error)
		pci_free_irq_vectors(pdev);
	return error;
}

static void tlpdma_free_interrupts(struct tlpdma_card *card)
{
	unsigned int i;

	if (card->vectors)
		for (i = 0; i < TLPDMA_VECTORS; i++)
			pci_free_irq(card->pdev, i, i < 2 ? (void *)&card->channels[i] : card);
	else
		pci_free_irq(card->pdev, 0, card);
	pci_free_irq_vectors(card->pdev);
}

/* The descriptors, and behind them the record. */
static size_t tlpdma_ring_bytes(void)
{
	return ((size_t)TLPDMA_DESCRIPTOR << ring_log2) + TLPDMA_RECORD;
}

static void tlpdma_free_rings(struct tlpdma_card *card)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct tlpdma_memory *memory = &card->channels[i].ring.descriptors;

		if (memory->cpu)
			dma_free_coherent(&card->pdev->dev, tlpdma_ring_bytes(), memory->cpu,
					  memory->bus);
	}
}

static int tlpdma_alloc_rings(struct tlpdma_card *card)
{
	const size_t record = (size_t)TLPDMA_DESCRIPTOR << ring_log2;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct tlpdma_ring *ring = &card->channels[i].ring;
		struct tlpdma_memory *memory = &ring->descriptors;

		memory->cpu = dma_alloc_coherent(&card->pdev->dev, tlpdma_ring_bytes(),
						 &memory->bus, GFP_KERNEL);
		if (!memory->cpu) {
			tlpdma_free_rings(card);
			return -ENOMEM;
		}
		ring->record.cpu = memory->cpu + record;
		ring->record.bus = memory->bus + record;
		ring->io = &card->io;
		ring->block = TLPDMA_CHANNEL(i);
		ring->log2 = ring_log2;
	}
	return 0;
}

static struct tlpdma_card *tlpdma_new_card(struct pci_dev *pdev)
{
	struct tlpdma_card *card = kvzalloc(sizeof(*card), GFP_KERNEL);
	unsigned int i;

	if (!card)
		return NULL;
	card->number = ida_alloc(&tlpdma_numbers, GFP_KERNEL);
	if (card->number < 0) {
		kvfree(card);
		return NULL;
	}
	kref_init(&card->references);
	/* Tasks whose transfers they carry out are frozen before it. */
	card->workers = alloc_workqueue("tlpdma%d", WQ_UNBOUND | WQ_FREEZABLE, 2, card->number);
	init_waitqueue_head(&card->changed);
	/* That some are left out is no warning, as it would be without this flag. */
	ratelimit_default_init(&card->told);
	ratelimit_set_flags(&card->told, RATELIMIT_MSG_ON_RELEASE);
	card->pdev = pdev;
	for (i = 0; i < 2; i++) {
		struct tlpdma_channel *channel = &card->channels[i];

		channel->card = card;
		channel->direction = i == 0 ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
		mutex_init(&channel->lock);
		spin_lock_init(&channel->queue_lock);
		INIT_LIST_HEAD(&channel->queue);
		INIT_LIST_HEAD(&channel->again);
		INIT_WORK(&channel->work, tlpdma_work_off);
		init_waitqueue_head(&channel->done);
	}
	for (i = 0; i < 4; i++) {
		struct scatterlist **list = &card->channels[i / 2].pieces[i % 2].table.sgl;

		*list = kvmalloc_array(TLPDMA_PIECE_PAGES, sizeof(**list), GFP_KERNEL);
		if (!*list)
			goto put;
	}
	if (card->workers)
		return card;

put:
	tlpdma_put(card);
	return NULL;
}

/* Enables the function, and maps its registers. */
static int tlpdma_enable(struct tlpdma_card *card)
{
	struct pci_dev *pdev = card->pdev;
	int error;

	error = pci_enable_device_mem(pdev);
	if (error)
		return error;
	error = pci_request_regions(pdev, "tlpdma");
	if (error)
		goto disable;
	error = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (error)
		goto release;
	dma_set_max_seg_size(&pdev->dev, TLPDMA_PIECE);
	card->io.registers = pci_iomap(pdev, 0, 0);
	if (!card->io.registers) {
		error = -ENOMEM;
		goto release;
	}
	tlpdma_window_init(card);
	return 0;

release:
	pci_release_regions(pdev);
disable:
	pci_disable_device(pdev);
	return error;
}

static void tlpdma_disable(struct tlpdma_card *card)
{
	pci_clear_master(card->pdev);
	pci_iounmap(card->pdev, card->io.registers);
	pci_release_regions(card->pdev);
	pci_disable_device(card->pdev);
}

static int tlpdma_start(struct tlpdma_card *card)
{
	int error = tlpdma_card_start(&card->io, &card->features);

	if (error)
		return error;
	/* Only now: it has forgotten what it was told before. */
	pci_set_master(card->pdev);
	tlpdma_ring_start(&card->channels[0].ring);
	tlpdma_ring_start(&card->channels[1].ring);
	tlpdma_write(&card->io, TLPDMA_WINDOW, card->window.mib);
	return 0;
}

static int tlpdma_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct tlpdma_card *card;
	int error;

	card = tlpdma_new_card(pdev);
	if (!card)
		return -ENOMEM;
	error = tlpdma_enable(card);
	if (error)
		goto put;
	error = tlpdma_alloc_rings(card);
	if (error)
		goto disable;
	error = tlpdma_request_interrupts(card);
	if (error)
		goto free_rings;
	error = tlpdma_start(card);
	if (error) {
		dev_err(&pdev->dev, "no tlpdma card of version %u, or it does not come to rest (error %d)\n",
			TLPDMA_VERSION_MAJOR, error);
		goto free_interrupts;
	}
	/* For a reset of the link. */
	pci_save_state(pdev);
	pci_set_drvdata(pdev, card);
	error = tlpdma_device_register(card);
	if (error)
		goto stop;
	dev_info(&pdev->dev, "/dev/%s: %u MiB, %u tags, payload %u, read request %u bytes, %s\n",
		 card->misc.name, card->features.memory_mib, card->features.tags,
		 card->features.mps, card->features.mrrs,
		 card->vectors ? "MSI-X" : "shared interrupt");
	return 0;

stop:
	tlpdma_card_stop(&card->io);
free_interrupts:
	tlpdma_free_interrupts(card);
free_rings:
	pci_clear_master(pdev);
	tlpdma_free_rings(card);
disable:
	tlpdma_disable(card);
put:
	tlpdma_put(card);
	return error;
}

static void tlpdma_remove(struct pci_dev *pdev)
{
	struct tlpdma_card *card = pci_get_drvdata(pdev);
	bool silent;

	tlpdma_device_unregister(card);
	silent = tlpdma_card_stop(&card->io) == 0;
	tlpdma_free_interrupts(card);
	if (silent || tlpdma_silence(card))
		tlpdma_free_rings(card);
	tlpdma_disable(card);
	tlpdma_put(card);
}

/* Nothing is under way by then: tasks are frozen, or the channels locked. */
static int tlpdma_rest(struct tlpdma_card *card)
{
	int error = card->gone ? 0 : tlpdma_card_stop(&card->io);

	if (error)
		tlpdma_lose(card);
	return error;
}

static int tlpdma_wake(struct tlpdma_card *card)
{
	int error = card->gone ? 0 : tlpdma_start(card);

	if (error)
		tlpdma_lose(card);
	return error;
}

static int tlpdma_suspend(struct device *dev)
{
	return tlpdma_rest(dev_get_drvdata(dev));
}

static int tlpdma_resume(struct device *dev)
{
	return tlpdma_wake(dev_get_drvdata(dev));
}

/* Somebody resets the function: /sys/bus/pci/devices/.../reset. */
static void tlpdma_reset_prepare(struct pci_dev *pdev)
{
	struct tlpdma_card *card = pci_get_drvdata(pdev);
	unsigned int i;

	for (i = 0; i < 2; i++)
		mutex_lock_nested(&card->channels[i].lock, i);
	tlpdma_window_close(card);
	tlpdma_rest(card);
}

static void tlpdma_reset_done(struct pci_dev *pdev)
{
	struct tlpdma_card *card = pci_get_drvdata(pdev);
	unsigned int i;

	tlpdma_wake(card);
	tlpdma_window_reopen(card);
	for (i = 0; i < 2; i++)
		mutex_unlock(&card->channels[i].lock);
}

/*
 * Error recovery: an error that is not fatal leaves the card as it is, and its channels halt if
 * it is theirs. After a fatal one the link is reset, and the card with it.
 */
static pci_ers_result_t tlpdma_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct tlpdma_card *card = pci_get_drvdata(pdev);

	if (state == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	if (state == pci_channel_io_perm_failure) {
		tlpdma_lose(card);
		return PCI_ERS_RESULT_DISCONNECT;
	}
	tlpdma_freeze(card);
	return PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t tlpdma_slot_reset(struct pci_dev *pdev)
{
	struct tlpdma_card *card = pci_get_drvdata(pdev);

	pci_restore_state(pdev);
	pci_save_state(pdev);
	if (!tlpdma_card_is_gone(&card->io))
		return PCI_ERS_RESULT_RECOVERED;
	tlpdma_lose(card);
	return PCI_ERS_RESULT_DISCONNECT;
}

static void tlpdma_error_resume(struct pci_dev *pdev)
{
	struct tlpdma_card *card = pci_get_drvdata(pdev);
	unsigned int i;

	if (card->recovery == TLPDMA_RUNS)
		return;
	WRITE_ONCE(card->recovery, TLPDMA_RESTARTS);
	wake_up(&card->changed);
	for (i = 0; i < 2; i++)
		mutex_lock_nested(&card->channels[i].lock, i);
	tlpdma_wake(card);
	WRITE_ONCE(card->recovery, TLPDMA_RUNS);
	for (i = 0; i < 2; i++)
		mutex_unlock(&card->channels[i].lock);
	wake_up(&card->changed);
}

static const struct pci_error_handlers tlpdma_errors = {
	.error_detected = tlpdma_error_detected,
	.slot_reset = tlpdma_slot_reset,
	.resume = tlpdma_error_resume,
	.reset_prepare = tlpdma_reset_prepare,
	.reset_done = tlpdma_reset_done,
};

static DEFINE_SIMPLE_DEV_PM_OPS(tlpdma_pm, tlpdma_suspend, tlpdma_resume);

static const struct pci_device_id tlpdma_ids[] = {
	{ PCI_DEVICE(TLPDMA_VENDOR_ID, TLPDMA_DEVICE_ID) },
	{}
};
MODULE_DEVICE_TABLE(pci, tlpdma_ids);

static struct pci_driver tlpdma_driver = {
	.name = "tlpdma",
	.id_table = tlpdma_ids,
	.probe = tlpdma_probe,
	.remove = tlpdma_remove,
	.err_handler = &tlpdma_errors,
	.dev_groups = tlpdma_counters,
	.driver.pm = pm_sleep_ptr(&tlpdma_pm),
};

static int __init tlpdma_init(void)
{
	if (ring_log2 < TLPDMA_LOG2_TRANSFER || ring_log2 > TLPDMA_LOG2_MAX) {
		pr_err("tlpdma: ring_log2 = %u; it can be %u to %u\n", ring_log2,
		       TLPDMA_LOG2_TRANSFER, TLPDMA_LOG2_MAX);
		return -EINVAL;
	}
	return pci_register_driver(&tlpdma_driver);
}

static void __exit tlpdma_exit(void)
{
	pci_unregister_driver(&tlpdma_driver);
}

module_init(tlpdma_init);
module_exit(tlpdma_exit);
MODULE_DESCRIPTION("Driver of the tlpdma card: bus-mastering DMA between programs and the card's memory");
MODULE_AUTHOR("The tlplab authors");
MODULE_LICENSE("GPL");
