// SPDX-License-Identifier: MIT OR Apache-2.0
/* The card behind the character device of the Linux driver. */
#include "../tlpdma_ioctl.h"
#include "backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

struct device {
	struct tlpdma_card card;
	int file;
};

static void close_device(struct tlpdma_card *card)
{
	close(((struct device *)card)->file);
	free(card);
}

static int describe(struct tlpdma_card *card, struct tlpdma_description *description)
{
	struct tlpdma_info info = { .size = sizeof(info) };

	if (ioctl(((struct device *)card)->file, TLPDMA_IOC_INFO, &info))
		return tlpdma_fail(card, errno, "the driver does not describe the card: %s", strerror(errno));
	*description = (struct tlpdma_description){
		.memory = (uint64_t)info.memory_mib << 20,
		.tags = info.tags,
		.mps = info.mps,
		.mrrs = info.mrrs,
		.vectors = info.vectors,
		.interrupts = { info.interrupts[0], info.interrupts[1] },
		.missed = { info.missed[0], info.missed[1] },
	};
	return 0;
}

static int move(struct tlpdma_card *card, bool to_card, uint64_t address, void *data, size_t bytes)
{
	const int file = ((struct device *)card)->file;
	char *at = data;

	while (bytes > 0) {
		const ssize_t moved = to_card ? pwrite(file, at, bytes, (off_t)address)
					      : pread(file, at, bytes, (off_t)address);

		if (moved < 0 && errno == EINTR)
			continue;
		if (moved < 0)
			return tlpdma_fail(card, errno, "%zu bytes %s address 0x%llx of the card: %s", bytes,
					   to_card ? "to" : "from", (unsigned long long)address, strerror(errno));
		if (moved == 0)
			return tlpdma_fail(card, ENOSPC, "the card has no address 0x%llx", (unsigned long long)address);
		at += moved;
		address += (uint64_t)moved;
		bytes -= (size_t)moved;
	}
	return 0;
}

static void *map(struct tlpdma_card *card, uint64_t address, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ((struct device *)card)->file, (off_t)address);

	if (memory != MAP_FAILED)
		return memory;
	tlpdma_fail(card, errno, "the driver does not map %zu bytes at 0x%llx: %s%s", bytes, (unsigned long long)address,
		    strerror(errno), errno == EBUSY ? "; another MiB is mapped" : "");
	return NULL;
}

static void unmap(struct tlpdma_card *card, void *memory, size_t bytes)
{
	(void)card;
	munmap(memory, bytes);
}

static const struct tlpdma_backend backend = {
	.close = close_device, .describe = describe, .move = move, .clock = tlpdma_system_clock, .map = map, .unmap = unmap,
};

struct tlpdma_card *tlpdma_open_device(const char *path, char *message, size_t size)
{
	struct device *device = calloc(1, sizeof(*device));
	struct tlpdma_description description;

	if (!device) {
		snprintf(message, size, "there is no memory left");
		return NULL;
	}
	device->card.backend = &backend;
	device->file = open(path, O_RDWR | O_CLOEXEC);
	if (device->file < 0) {
		snprintf(message, size, "%s: %s%s", path, strerror(errno),
			 errno == ENOENT ? "; check that the card is present and the driver is loaded (insmod tlpdma.ko)" : "");
	} else if (describe(&device->card, &description)) {
		snprintf(message, size, "%s is not a tlpdma card: %s", path, tlpdma_error(&device->card));
		close(device->file);
	} else {
		return &device->card;
	}
	free(device);
	return NULL;
}
