/* A driver in user space (VFIO) for bold.py: copies memory that is mapped for the device, then asks for memory that is not.
 * vfio-copy 0000:01:00.0 GROUP */
#include <fcntl.h>
#include <linux/vfio.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define IOVA 0x10000000ull
#define SIZE 0x2000
#define CHECK(x) do { if ((long)(x) < 0) { perror(#x); exit(1); } } while (0)

static volatile uint8_t *bar;
static int event;

static void put64(unsigned at, uint64_t value) { *(volatile uint64_t *)(bar + at) = value; }
static uint32_t get32(unsigned at) { return *(volatile uint32_t *)(bar + at); }

/* Copies n bytes and waits for the interrupt. */
static void copy(uint64_t from, uint64_t to, uint32_t n)
{
	struct pollfd wait = { .fd = event, .events = POLLIN };
	uint64_t times = 0;

	put64(0, from);
	put64(8, to);
	*(volatile uint32_t *)(bar + 0x10) = n;
	if (poll(&wait, 1, 10000) != 1 || read(event, &times, 8) != 8) {
		printf("no interrupt\n");
		exit(1);
	}
	printf("interrupts=%llu done=%u refused=%u\n", (unsigned long long)times, get32(0x14), get32(0x18));
}

int main(int argc, char **argv)
{
	char path[64];
	uint8_t *memory;
	int container, group, device;
	struct vfio_iommu_type1_dma_map map = { .argsz = sizeof(map), .flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE };
	struct vfio_region_info region = { .argsz = sizeof(region), .index = VFIO_PCI_BAR0_REGION_INDEX };
	struct vfio_region_info config = { .argsz = sizeof(config), .index = VFIO_PCI_CONFIG_REGION_INDEX };
	union { struct vfio_irq_set set; char bytes[sizeof(struct vfio_irq_set) + sizeof(int)]; } irq = { { 0 } };
	uint16_t command;

	if (argc != 3)
		return 2;
	snprintf(path, sizeof(path), "/dev/vfio/%s", argv[2]);
	CHECK(container = open("/dev/vfio/vfio", O_RDWR));
	CHECK(group = open(path, O_RDWR));
	CHECK(ioctl(group, VFIO_GROUP_SET_CONTAINER, &container));
	CHECK(ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1_IOMMU));
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	map.vaddr = (uintptr_t)memory;
	map.iova = IOVA;
	map.size = SIZE;
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
	event = eventfd(0, 0);
	irq.set.argsz = sizeof(irq);
	irq.set.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
	irq.set.index = VFIO_PCI_MSIX_IRQ_INDEX;
	irq.set.count = 1;
	memcpy(irq.set.data, &event, sizeof(int));
	CHECK(ioctl(device, VFIO_DEVICE_SET_IRQS, &irq));

	for (unsigned i = 0; i < 4096; i++)
		memory[i] = i * 7 + 1;
	copy(IOVA, IOVA + 4096, 4096);
	printf("%s\n", memcmp(memory, memory + 4096, 4096) ? "wrong" : "equal");
	copy(IOVA, 0x40000000, 64); /* a write to what is not mapped is lost */
	copy(0x40000000, IOVA, 64);
	printf("%s\n", memcmp(memory, memory + 4096, 4096) ? "wrong" : "untouched");
	return 0;
}
