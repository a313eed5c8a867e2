// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The card by VFIO: this program is the driver, with the kernel module's ring code, and no module of ours is
 * loaded. By the IOMMU the card reaches what is mapped for it and nothing else: the rings, and each piece of a
 * transfer as long as it lasts, or what was registered, as long as that.
 */
#define _GNU_SOURCE
#include "../ring.h"
#include "backend.h"

#include <fcntl.h>
#include <linux/vfio.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	MIB = 1 << 20,
	PATIENCE_MS = 5000,
	COMMAND = 4,
	MEMORY_AND_MASTER = 6,
};

/* A ring, and its record in the last page: twice the ring's size, to which the next one is aligned. */
#define RING_BYTES	(2ull * TLPDMA_DESCRIPTOR << TLPDMA_LOG2_TRANSFER)
/* The card's addresses of the rings, of the pieces of transfers, and of registered buffers. */
#define RINGS_AT	0x10000000ull
#define PIECES_AT	0x20000000ull
#define REGISTERED_AT	0x100000000ull
/* A piece and a page at each end. */
#define PIECE_ROOM	(2ull * TLPDMA_PIECE)

struct channel {
	struct vfio_card *owner;
	struct tlpdma_ring ring;
	bool to_card;
	char *data;
	u32 local;
	int event;
	u64 interrupts, missed;
	u32 halted;	/* the channel's status, if it halted */
	/* Pages that were mapped for a slot; none for registered memory. */
	u64 mapped[2];
};

struct registered {
	struct registered *next;
	char *begin;
	size_t bytes;
	u64 bus;
};

struct vfio_card {
	struct tlpdma_card card;
	int container, group, device;
	volatile unsigned char *registers;
	size_t register_bytes;
	unsigned char *rings;	/* a ring and a record of each channel */
	struct tlpdma_io io;
	struct tlpdma_features features;
	struct channel channels[2];
	struct registered *registered;
	u64 next_registered;
	u32 window;	/* the MiB that BAR 2 shows */
	unsigned int in_window;	/* mappings of it */
	bool cut;	/* it did not come to rest, and is not used any more */
};

static u32 read_register(void *host, u32 offset)
{
	const struct vfio_card *card = host;
	u32 value = le32toh(*(volatile __le32 *)(card->registers + offset));

	/* Data loaded after this were written before. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return value;
}

static void write_register(void *host, u32 offset, u32 value)
{
	struct vfio_card *card = host;

	/* Earlier stores are in memory when the card sees this. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile __le32 *)(card->registers + offset) = htole32(value);
}

static void *memory_at(struct vfio_card *card, u64 bus)
{
	return card->rings + (bus - RINGS_AT);
}

static void store(void *host, u64 bus, const void *data, size_t bytes)
{
	memcpy(memory_at(host, bus), data, bytes);
}

static u64 load(void *host, u64 bus)
{
	return le64toh(__atomic_load_n((u64 *)memory_at(host, bus), __ATOMIC_ACQUIRE));
}

static void pause_card(void *host)
{
	struct timespec time = { 0, 100000 };

	(void)host;
	nanosleep(&time, NULL);
}

enum { READ = VFIO_DMA_MAP_FLAG_READ, WRITE = VFIO_DMA_MAP_FLAG_WRITE };

/* Lets the card reach whole pages. */
static int map_pages(struct vfio_card *card, void *begin, u64 bytes, u64 bus, u32 access)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map), .flags = access, .vaddr = (uintptr_t)begin, .iova = bus, .size = bytes,
	};

	return ioctl(card->container, VFIO_IOMMU_MAP_DMA, &map) ? -errno : 0;
}

static void unmap_pages(struct vfio_card *card, u64 bytes, u64 bus)
{
	struct vfio_iommu_type1_dma_unmap unmap = { .argsz = sizeof(unmap), .iova = bus, .size = bytes };

	ioctl(card->container, VFIO_IOMMU_UNMAP_DMA, &unmap);
}

static const struct registered *registration_of(const struct vfio_card *card, const char *data, size_t bytes)
{
	for (const struct registered *one = card->registered; one; one = one->next)
		if (data >= one->begin && data + bytes <= one->begin + one->bytes)
			return one;
	return NULL;
}

static int add(struct channel *channel, u64 bus, u64 offset, u32 bytes, bool last)
{
	return tlpdma_ring_add(&channel->ring, bus, channel->local + (u32)offset, bytes, last ? TLPDMA_INTERRUPT : 0);
}

static int map(void *context, unsigned int slot, u64 offset, u32 bytes)
{
	struct channel *channel = context;
	struct vfio_card *card = channel->owner;
	char *data = channel->data + offset;
	const u64 in_page = (uintptr_t)data % PAGE;
	const struct registered *registered = registration_of(card, data, bytes);
	/* Each channel and slot has a place of its own. */
	const u64 bus = PIECES_AT + (2 * (u64)!channel->to_card + slot) * PIECE_ROOM;
	int error;

	channel->mapped[slot] = 0;
	if (registered) {
		error = add(channel, registered->bus + (u64)(data - registered->begin), offset, bytes, true);
		return error ? error : (int)bytes;
	}
	channel->mapped[slot] = (in_page + bytes + PAGE - 1) / PAGE * PAGE;
	/* Memory that cannot be written can still be sent. */
	error = map_pages(card, data - in_page, channel->mapped[slot], bus, channel->to_card ? READ : WRITE);
	if (error)
		return error;
	error = add(channel, bus + in_page, offset, bytes, true);
	if (!error)
		return (int)bytes;
	unmap_pages(card, channel->mapped[slot], bus);
	return error;
}

static void unmap(void *context, unsigned int slot)
{
	struct channel *channel = context;

	if (channel->mapped[slot])
		unmap_pages(channel->owner, channel->mapped[slot],
			    PIECES_AT + (2 * (u64)!channel->to_card + slot) * PIECE_ROOM);
}

static int wait_done(void *context, u32 count)
{
	struct channel *channel = context;
	int done;

	for (;;) {
		struct pollfd event = { .fd = channel->event, .events = POLLIN };
		uint64_t times;

		done = tlpdma_ring_done(&channel->ring, count, false);
		if (done || poll(&event, 1, PATIENCE_MS) == 0)
			break;
		if (event.revents & POLLIN && read(channel->event, &times, sizeof(times)) == sizeof(times))
			channel->interrupts += times;
	}
	if (!done) {
		done = tlpdma_ring_done(&channel->ring, count, true);
		channel->missed += done > 0;
	}
	channel->halted = channel->ring.status;
	return done > 0 ? 0 : done < 0 ? done : -ETIMEDOUT;
}

/* Nothing of it reaches memory after this. */
static bool cut_off(void *context)
{
	struct vfio_card *card = ((struct channel *)context)->owner;

	card->cut = true;
	return ioctl(card->device, VFIO_DEVICE_RESET) == 0;
}

static const struct tlpdma_transfer_ops ops = { map, unmap, wait_done, cut_off };

static int move(struct tlpdma_card *base, bool to_card, uint64_t address, void *data, size_t bytes)
{
	struct vfio_card *card = (struct vfio_card *)base;
	struct channel *channel = &card->channels[!to_card];
	size_t done = 0;

	if (tlpdma_check_place(base, (uint64_t)card->features.memory_mib << 20, address, bytes))
		return -1;
	if (card->cut)
		return tlpdma_fail(base, ENODEV, "the card was lost before");
	while (done < bytes) {
		s64 moved;

		channel->data = (char *)data + done;
		channel->local = (u32)(address + done);
		moved = tlpdma_transfer(&channel->ring, &ops, channel, bytes - done);
		if (moved == -EIO)
			return tlpdma_fail(base, EIO, "the card halted: %s", tlpdma_error_name(channel->halted));
		if (moved < 0)
			return tlpdma_fail(base, (int)-moved, "%zu bytes %s address 0x%llx of the card: %s", bytes,
					   to_card ? "to" : "from", (unsigned long long)address, strerror((int)-moved));
		done += (size_t)moved;
	}
	return 0;
}

static int register_memory(struct tlpdma_card *base, void *data, size_t bytes)
{
	struct vfio_card *card = (struct vfio_card *)base;
	const u64 in_page = (uintptr_t)data % PAGE, whole = (in_page + bytes + PAGE - 1) / PAGE * PAGE;
	struct registered *one;
	int error;

	one = malloc(sizeof(*one));
	if (!one)
		return tlpdma_fail(base, ENOMEM, "there is no memory left");
	*one = (struct registered){ card->registered, (char *)data - in_page, whole, card->next_registered };
	error = map_pages(card, one->begin, whole, one->bus, READ | WRITE);
	if (error) {
		free(one);
		return tlpdma_fail(base, -error, "%zu bytes cannot be mapped for the card: %s%s", bytes, strerror(-error),
				   error == -ENOMEM ? "; check the limit of locked memory (ulimit -l)" : "");
	}
	card->next_registered += whole + PAGE;
	card->registered = one;
	return 0;
}

static void unregister_memory(struct tlpdma_card *base, void *data)
{
	struct vfio_card *card = (struct vfio_card *)base;

	for (struct registered **one = &card->registered; *one; one = &(*one)->next) {
		struct registered *found = *one;

		if ((char *)data < found->begin || (char *)data >= found->begin + found->bytes)
			continue;
		unmap_pages(card, found->bytes, found->bus);
		*one = found->next;
		free(found);
		return;
	}
}

static int describe(struct tlpdma_card *base, struct tlpdma_description *description)
{
	struct vfio_card *card = (struct vfio_card *)base;

	*description = (struct tlpdma_description){
		.vfio = true,
		.memory = (uint64_t)card->features.memory_mib << 20,
		.tags = card->features.tags,
		.mps = card->features.mps,
		.mrrs = card->features.mrrs,
		.vectors = 2,
		.interrupts = { card->channels[0].interrupts, card->channels[1].interrupts },
		.missed = { card->channels[0].missed, card->channels[1].missed },
	};
	return 0;
}

static void close_card(struct tlpdma_card *base)
{
	struct vfio_card *card = (struct vfio_card *)base;

	if (card->registers) {
		tlpdma_card_stop(&card->io);
		munmap((void *)card->registers, card->register_bytes);
	}
	/* The kernel resets the function, and unmaps what it reaches. */
	for (const int *file = (const int[]){ card->channels[0].event, card->channels[1].event, card->device, card->group,
					      card->container, -2 };
	     *file != -2; file++)
		if (*file >= 0)
			close(*file);
	if (card->rings)
		munmap(card->rings, 2 * RING_BYTES);
	while (card->registered) {
		struct registered *one = card->registered;

		card->registered = one->next;
		free(one);
	}
	free(card);
}

static void *map_memory(struct tlpdma_card *base, uint64_t address, size_t bytes)
{
	struct vfio_card *card = (struct vfio_card *)base;
	struct vfio_region_info bar = { .argsz = sizeof(bar), .index = VFIO_PCI_BAR2_REGION_INDEX };
	const u32 mib = (u32)(address / MIB);
	void *memory;

	if (card->in_window && card->window != mib) {
		tlpdma_fail(base, EBUSY, "%zu bytes at 0x%llx cannot be mapped: another MiB is", bytes, (unsigned long long)address);
		return NULL;
	}
	if (ioctl(card->device, VFIO_DEVICE_GET_REGION_INFO, &bar)) {
		tlpdma_fail(base, errno, "VFIO does not describe BAR 2: %s", strerror(errno));
		return NULL;
	}
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, card->device, (off_t)(bar.offset + address % MIB));
	if (memory == MAP_FAILED) {
		tlpdma_fail(base, errno, "VFIO does not map BAR 2: %s", strerror(errno));
		return NULL;
	}
	card->window = mib;
	card->in_window++;
	tlpdma_write(&card->io, TLPDMA_WINDOW, mib);
	return memory;
}

static void unmap_memory(struct tlpdma_card *base, void *memory, size_t bytes)
{
	((struct vfio_card *)base)->in_window--;
	munmap(memory, bytes);
}

static const struct tlpdma_backend backend = {
	.close = close_card,
	.describe = describe,
	.move = move,
	.clock = tlpdma_system_clock,
	.register_memory = register_memory,
	.unregister_memory = unregister_memory,
	.map = map_memory,
	.unmap = unmap_memory,
};

/* The group of a function, from sysfs; -1: it has none, or another driver. */
static int group_of(const char *address, char *message, size_t size)
{
	char path[160], target[256];
	ssize_t length;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver", address);
	length = readlink(path, target, sizeof(target) - 1);
	target[length > 0 ? length : 0] = '\0';
	if (length < 0 || strcmp(strrchr(target, '/') + 1, "vfio-pci")) {
		snprintf(message, size,
			 "%s: its driver is %s, and not vfio-pci; as root: modprobe vfio-pci; echo vfio-pci >/sys/bus/pci/devices/%s/"
			 "driver_override; echo %s >/sys/bus/pci/drivers_probe",
			 address, length < 0 ? "none" : strrchr(target, '/') + 1, address, address);
		return -1;
	}
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/iommu_group", address);
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0) {
		snprintf(message, size, "%s is behind no IOMMU, without which VFIO lets no program use it", address);
		return -1;
	}
	target[length] = '\0';
	return atoi(strrchr(target, '/') + 1);
}

/* Opens container, group and function. */
static int open_files(struct vfio_card *card, const char *address, char *message, size_t size)
{
	struct vfio_group_status status = { .argsz = sizeof(status) };
	const int number = group_of(address, message, size);
	char path[64];

	if (number < 0)
		return -1;
	card->container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
	snprintf(path, sizeof(path), "/dev/vfio/%d", number);
	card->group = open(path, O_RDWR | O_CLOEXEC);
	if (card->container < 0 || card->group < 0) {
		snprintf(message, size, "%s: %s", card->container < 0 ? "/dev/vfio/vfio" : path, strerror(errno));
		return -1;
	}
	if (ioctl(card->group, VFIO_GROUP_GET_STATUS, &status) || !(status.flags & VFIO_GROUP_FLAGS_VIABLE)) {
		snprintf(message, size, "%s: another function of its IOMMU group %d has a driver that is not VFIO's", address, number);
		return -1;
	}
	if (ioctl(card->group, VFIO_GROUP_SET_CONTAINER, &card->container) ||
	    ioctl(card->container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU)) {
		snprintf(message, size, "%s: VFIO refuses its IOMMU group: %s", address, strerror(errno));
		return -1;
	}
	card->device = ioctl(card->group, VFIO_GROUP_GET_DEVICE_FD, address);
	if (card->device < 0)
		snprintf(message, size, "%s: VFIO refuses it: %s", address, strerror(errno));
	return card->device < 0 ? -1 : 0;
}

/* Maps the registers, and makes the function a bus master. */
static int map_registers(struct vfio_card *card)
{
	struct vfio_region_info bar = { .argsz = sizeof(bar), .index = VFIO_PCI_BAR0_REGION_INDEX };
	struct vfio_region_info config = { .argsz = sizeof(config), .index = VFIO_PCI_CONFIG_REGION_INDEX };
	void *registers;
	uint16_t command;

	if (ioctl(card->device, VFIO_DEVICE_GET_REGION_INFO, &bar) || ioctl(card->device, VFIO_DEVICE_GET_REGION_INFO, &config))
		return -1;
	if (pread(card->device, &command, 2, (off_t)config.offset + COMMAND) != 2)
		return -1;
	command = htole16(le16toh(command) | MEMORY_AND_MASTER);
	if (pwrite(card->device, &command, 2, (off_t)config.offset + COMMAND) != 2)
		return -1;
	/* The MSI-X table is in this BAR, and the kernel's. */
	registers = mmap(NULL, bar.size, PROT_READ | PROT_WRITE, MAP_SHARED, card->device, (off_t)bar.offset);
	if (registers == MAP_FAILED)
		return -1;
	card->registers = registers;
	card->register_bytes = bar.size;
	return 0;
}

static int request_interrupts(struct vfio_card *card)
{
	struct {
		struct vfio_irq_set set;
		int events[2];
	} irq = { .set = { .argsz = sizeof(irq), .flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
			   .index = VFIO_PCI_MSIX_IRQ_INDEX, .count = 2 } };

	for (int i = 0; i < 2; i++) {
		card->channels[i].event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (card->channels[i].event < 0)
			return -1;
		memcpy(irq.set.data + i * sizeof(int), &card->channels[i].event, sizeof(int));
	}
	return ioctl(card->device, VFIO_DEVICE_SET_IRQS, &irq.set);
}

/* Memory for both rings and their records. */
static int provide_rings(struct vfio_card *card)
{
	card->rings = mmap(NULL, 2 * RING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (card->rings == MAP_FAILED) {
		card->rings = NULL;
		return -1;
	}
	if (map_pages(card, card->rings, 2 * RING_BYTES, RINGS_AT, READ | WRITE))
		return -1;
	for (unsigned int i = 0; i < 2; i++) {
		const u64 at = RINGS_AT + i * RING_BYTES;

		card->channels[i].owner = card;
		card->channels[i].to_card = i == 0;
		card->channels[i].ring = (struct tlpdma_ring){
			.io = &card->io,
			.descriptors = { at },
			.record = { at + RING_BYTES - PAGE },
			.block = TLPDMA_CHANNEL(i),
			.log2 = TLPDMA_LOG2_TRANSFER,
		};
	}
	return 0;
}

struct tlpdma_card *tlpdma_open_vfio(const char *address, char *message, size_t size)
{
	struct vfio_card *card = calloc(1, sizeof(*card));
	int error;

	if (!card) {
		snprintf(message, size, "there is no memory left");
		return NULL;
	}
	card->card.backend = &backend;
	card->container = card->group = card->device = -1;
	card->channels[0].event = card->channels[1].event = -1;
	card->next_registered = REGISTERED_AT;
	card->io = (struct tlpdma_io){ card, read_register, write_register, store, load, pause_card };
	if (open_files(card, address, message, size))
		goto close;
	if (map_registers(card) || provide_rings(card) || request_interrupts(card)) {
		snprintf(message, size, "%s: VFIO does not give its registers, memory or interrupts: %s", address, strerror(errno));
		goto close;
	}
	error = tlpdma_card_start(&card->io, &card->features);
	if (error) {
		snprintf(message, size, "%s is not a tlpdma card, or does not come to rest (%s)", address, strerror(-error));
		goto close;
	}
	tlpdma_ring_start(&card->channels[0].ring);
	tlpdma_ring_start(&card->channels[1].ring);
	return &card->card;

close:
	error = errno;
	close_card(&card->card);
	errno = error;
	return NULL;
}
