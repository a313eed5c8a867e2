/*
 * Times a copier (examples/c/copier.c) from a guest by VFIO: from the store that rings its bell to the moment when a program in user space has been woken by
 * the interrupt behind its data.
 *
 *   doorbell FUNCTION GROUP COUNT [peer]        such as 0000:01:00.0 3 1000; prints "doorbell NANOSECONDS" for each; a peer copies nothing
 */
#include <fcntl.h>
#include <linux/vfio.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define IOVA 0x10000000ull
#define CHECK(x) do { if ((long)(x) < 0) { perror(#x); exit(1); } } while (0)

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int argc, char **argv)
{
	struct vfio_iommu_type1_dma_map map = { .argsz = sizeof(map), .flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE };
	struct vfio_region_info region = { .argsz = sizeof(region), .index = VFIO_PCI_BAR0_REGION_INDEX };
	struct vfio_region_info config = { .argsz = sizeof(config), .index = VFIO_PCI_CONFIG_REGION_INDEX };
	union { struct vfio_irq_set set; char bytes[sizeof(struct vfio_irq_set) + sizeof(int)]; } irq = { { 0 } };
	int container, group, device, event = eventfd(0, 0), count = argc > 3 ? atoi(argv[3]) : 0, peer = argc > 4;
	char path[64];
	volatile uint8_t *bar;
	uint64_t *memory, times;
	uint16_t command;

	if (count < 1)
		return 2;
	snprintf(path, sizeof(path), "/dev/vfio/%s", argv[2]);
	CHECK(container = open("/dev/vfio/vfio", O_RDWR));
	CHECK(group = open(path, O_RDWR));
	CHECK(ioctl(group, VFIO_GROUP_SET_CONTAINER, &container));
	CHECK(ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1_IOMMU));
	memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	map.vaddr = (uintptr_t)memory;
	map.iova = IOVA;
	map.size = 8192;
	CHECK(ioctl(container, VFIO_IOMMU_MAP_DMA, &map));
	CHECK(device = ioctl(group, VFIO_GROUP_GET_DEVICE_FD, argv[1]));
	CHECK(ioctl(device, VFIO_DEVICE_GET_REGION_INFO, &region));
	CHECK(ioctl(device, VFIO_DEVICE_GET_REGION_INFO, &config));
	CHECK(pread(device, &command, 2, config.offset + 4));
	command |= 6;
	CHECK(pwrite(device, &command, 2, config.offset + 4));
	bar = mmap(NULL, region.size, PROT_READ | PROT_WRITE, MAP_SHARED, device, region.offset);
	if (bar == MAP_FAILED)
		return 1;
	irq.set.argsz = sizeof(irq);
	irq.set.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
	irq.set.index = VFIO_PCI_MSIX_IRQ_INDEX;
	irq.set.count = 1;
	memcpy(irq.set.data, &event, sizeof(int));
	CHECK(ioctl(device, VFIO_DEVICE_SET_IRQS, &irq));
	*(volatile uint64_t *)bar = IOVA;
	*(volatile uint64_t *)(bar + 8) = IOVA + 4096;
	for (int i = 0; i < count; i++) {
		double begun;

		memory[0] = i + 1;
		begun = now();
		*(volatile uint32_t *)(bar + 16) = 64;
		CHECK(read(event, &times, 8));
		printf("doorbell %.0f\n", now() - begun);
		/* A peer copies nothing. */
		if (!peer && memory[512] != (uint64_t)i + 1) {
			printf("the data are not there\n");
			return 1;
		}
	}
	return 0;
}
