/*
 * A device that copies host memory: four registers and an interrupt, as in
 * examples/python/copier.py.
 *
 *   cc -shared -fPIC -o copier.so -I crates/device-library/include examples/c/copier.c
 */
#include <tlplab_device.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SRC = 0x00, DST = 0x08, GO = 0x10, DONE = 0x14, COPIES = 64 };

struct copy {
	uint64_t read, dst;
	int used;
};

struct tlplab_device {
	uint64_t src, dst, done;
	struct copy copies[COPIES];
};

struct tlplab_device *tlplab_device_open(uint32_t abi, const char *parameters,
					 struct tlplab_device_identity *identity, char *error)
{
	if (abi != TLPLAB_DEVICE_ABI || *parameters) {
		snprintf(error, TLPLAB_DEVICE_ERROR_MAX, *parameters ? "the copier has no parameters" : "built for another tlplab");
		return NULL;
	}
	identity->abi = TLPLAB_DEVICE_ABI;
	identity->vendor = 0x71ab;
	identity->device = 1;
	identity->class_code = 0xff0000;
	identity->msix_vectors = 1;
	identity->bars[0].size = 4096;
	return calloc(1, sizeof(struct tlplab_device));
}

void tlplab_device_close(struct tlplab_device *copier)
{
	free(copier);
}

static void write_register(struct tlplab_device *copier, struct tlplab_device_context *cx,
			   const struct tlplab_device_event *event)
{
	uint64_t value = 0;

	memcpy(&value, event->data, event->bytes < 8 ? event->bytes : 8); /* on a little-endian host */
	if (event->offset == SRC)
		copier->src = value;
	if (event->offset == DST)
		copier->dst = value;
	if (event->offset != GO)
		return;
	for (struct copy *copy = copier->copies; copy < copier->copies + COPIES; copy++) {
		if (copy->used)
			continue;
		copy->used = 1;
		copy->dst = copier->dst;
		copy->read = cx->dma_read(cx, 0, copier->src, value, 0);
		return;
	}
	cx->fail(cx, "64 copies are under way; wait for an interrupt first");
}

static void write_copy(struct tlplab_device *copier, struct tlplab_device_context *cx,
		       const struct tlplab_device_event *event)
{
	struct copy *copy = copier->copies;

	if (event->error)
		return cx->fail(cx, event->message);
	while (!copy->used || copy->read != event->id)
		copy++;
	copy->used = 0;
	cx->dma_write(cx, 0, copy->dst, event->data, event->bytes);
	cx->msix(cx, 0, 0); /* ordered behind the write */
}

void tlplab_device_handle(struct tlplab_device *copier, struct tlplab_device_context *cx,
			  const struct tlplab_device_event *event)
{
	uint8_t answer[4096] = { 0 };

	switch (event->kind) {
	case TLPLAB_DEVICE_MMIO_READ:
		if (event->offset == DONE)
			memcpy(answer, &copier->done, event->bytes < 8 ? event->bytes : 8);
		cx->reply(cx, event->id, answer, event->bytes);
		break;
	case TLPLAB_DEVICE_MMIO_WRITE:
		write_register(copier, cx, event);
		break;
	case TLPLAB_DEVICE_DMA_READ_DONE:
		write_copy(copier, cx, event);
		break;
	case TLPLAB_DEVICE_DMA_WRITE_ACCEPTED:
		copier->done++;
		break;
	case TLPLAB_DEVICE_RESET:
		memset(copier, 0, sizeof(*copier));
		break;
	}
}
