// SPDX-License-Identifier: (GPL-2.0 OR MIT)
#include "ring.h"

#define GONE 0xffffffffu /* the value of reads without a card */
#define PAUSES 1000 /* the completions that a reset waits for time out after some milliseconds */
#define LOST 3 /* reads in a row that give all ones: one alone may be a lost completion */

bool tlpdma_card_is_gone(struct tlpdma_io *io)
{
	return tlpdma_read(io, TLPDMA_ID) == GONE;
}

/* Waits until a bit that hardware clears is clear. */
static int wait_clear(struct tlpdma_io *io, u32 offset, u32 bit)
{
	unsigned int i, lost = 0;

	for (i = 0; i < PAUSES; i++) {
		u32 value = tlpdma_read(io, offset);

		lost = value == GONE ? lost + 1 : 0;
		if (lost == LOST)
			return -ENODEV;
		if (!(value & bit))
			return 0;
		tlpdma_pause(io);
	}
	return -ETIMEDOUT;
}

int tlpdma_card_start(struct tlpdma_io *io, struct tlpdma_features *features)
{
	u32 config;
	int error;

	if (tlpdma_read(io, TLPDMA_ID) != TLPDMA_ID_VALUE)
		return -ENODEV;
	features->version = tlpdma_read(io, TLPDMA_VERSION);
	if (features->version >> 16 != TLPDMA_VERSION_MAJOR)
		return -ENODEV;
	error = tlpdma_card_stop(io);
	if (error)
		return error;
	config = tlpdma_read(io, TLPDMA_CONFIG);
	features->memory_mib = tlpdma_read(io, TLPDMA_MEM_MIB);
	if (features->memory_mib > 4096) /* local addresses have 32 bits */
		features->memory_mib = 4096;
	features->tags = TLPDMA_CONFIG_TAGS(config);
	features->mps = TLPDMA_CONFIG_MPS(config);
	features->mrrs = TLPDMA_CONFIG_MRRS(config);
	features->vectors = TLPDMA_CONFIG_VECTORS(config);
	tlpdma_write(io, TLPDMA_CONTROL, TLPDMA_CONTROL_ENABLE);
	tlpdma_write(io, TLPDMA_IRQ_ENABLE, TLPDMA_IRQ_ALL);
	return 0;
}

int tlpdma_card_stop(struct tlpdma_io *io)
{
	tlpdma_write(io, TLPDMA_IRQ_ENABLE, 0);
	tlpdma_write(io, TLPDMA_CONTROL, TLPDMA_CONTROL_RESET);
	return wait_clear(io, TLPDMA_CONTROL, TLPDMA_CONTROL_RESET);
}

const char *tlpdma_error_name(u32 channel_status)
{
	switch ((enum tlpdma_error)(channel_status & TLPDMA_CH_ERROR)) {
	case TLPDMA_OK:
		return "no error";
	case TLPDMA_UNSUPPORTED_REQUEST:
		return "unsupported request";
	case TLPDMA_COMPLETER_ABORT:
		return "completer abort";
	case TLPDMA_POISONED:
		return "poisoned data";
	case TLPDMA_MISMATCH:
		return "completion contradicts its request";
	case TLPDMA_COMPLETION_TIMEOUT:
		return "completion timeout";
	case TLPDMA_NOT_MASTER:
		return "bus mastering is off";
	case TLPDMA_WAS_RESET:
		return "reset";
	}
	return "unknown error";
}

void tlpdma_ring_start(struct tlpdma_ring *ring)
{
	static const u64 nothing_done;
	const u64 descriptors = ring->descriptors.bus, record = ring->record.bus;

	ring->tail = 0;
	ring->head = 0;
	ring->status = 0;
	tlpdma_store(ring->io, &ring->record, 0, &nothing_done, sizeof(nothing_done));
	tlpdma_write(ring->io, ring->block + TLPDMA_BASE_LO, (u32)descriptors);
	tlpdma_write(ring->io, ring->block + TLPDMA_BASE_HI, (u32)(descriptors >> 32));
	tlpdma_write(ring->io, ring->block + TLPDMA_LOG2, ring->log2);
	tlpdma_write(ring->io, ring->block + TLPDMA_WB_LO, (u32)record);
	tlpdma_write(ring->io, ring->block + TLPDMA_WB_HI, (u32)(record >> 32));
	tlpdma_write(ring->io, ring->block + TLPDMA_CH_CONTROL, TLPDMA_CH_RUN);
}

u32 tlpdma_ring_room(const struct tlpdma_ring *ring)
{
	return (1u << ring->log2) - (ring->tail - ring->head);
}

int tlpdma_ring_add(struct tlpdma_ring *ring, u64 host, u32 local, u32 bytes, u32 flags)
{
	const u32 slot = ring->tail & ((1u << ring->log2) - 1);
	const __le32 descriptor[] = {
		cpu_to_le32((u32)host),
		cpu_to_le32((u32)(host >> 32)),
		cpu_to_le32(local),
		cpu_to_le32(bytes | flags),
	};

	if (bytes == 0 || bytes > TLPDMA_LENGTH_MAX)
		return -EINVAL;
	if (tlpdma_ring_room(ring) == 0)
		return -ENOSPC;
	tlpdma_store(ring->io, &ring->descriptors, (size_t)slot * TLPDMA_DESCRIPTOR, descriptor,
		     sizeof(descriptor));
	ring->tail++;
	return 0;
}

void tlpdma_ring_submit(struct tlpdma_ring *ring)
{
	tlpdma_write(ring->io, ring->block + TLPDMA_TAIL, ring->tail);
}

void tlpdma_ring_take_back(struct tlpdma_ring *ring, u32 tail)
{
	ring->tail = tail;
}

/* Takes note of how far the card is; what lies outside the descriptors under way is no news. */
static void note(struct tlpdma_ring *ring, u32 head, u32 status)
{
	if (head - ring->head > ring->tail - ring->head)
		return;
	ring->head = head;
	ring->status = status;
}

int tlpdma_ring_done(struct tlpdma_ring *ring, u32 count, bool ask)
{
	if (ask) {
		u32 head = tlpdma_read(ring->io, ring->block + TLPDMA_HEAD);
		u32 status = tlpdma_read(ring->io, ring->block + TLPDMA_CH_STATUS);

		if (status != GONE)
			note(ring, head, status);
		else if (tlpdma_card_is_gone(ring->io))
			return -ENODEV;
	} else {
		u64 record = tlpdma_load(ring->io, &ring->record);

		note(ring, (u32)record, (u32)(record >> 32));
	}
	if ((s32)(ring->head - count) >= 0)
		return 1;
	return ring->status & TLPDMA_CH_HALTED ? -EIO : 0;
}

int tlpdma_ring_reset(struct tlpdma_ring *ring)
{
	int error;

	tlpdma_write(ring->io, ring->block + TLPDMA_CH_CONTROL, TLPDMA_CH_RESET);
	error = wait_clear(ring->io, ring->block + TLPDMA_CH_CONTROL, TLPDMA_CH_RESET);
	if (error)
		return error;
	/* A last record, which would be taken for one of the new ring, was before this answer. */
	tlpdma_ring_start(ring);
	return 0;
}

int tlpdma_stream(struct tlpdma_ring *ring, const struct tlpdma_stream_ops *ops, void *context,
		  unsigned int slots)
{
	u32 ends[TLPDMA_SLOTS_MAX]; /* a piece is done when the descriptors before this are */
	unsigned int first = 0, next = 0; /* of the pieces in flight */
	int error = 0, failed = 0;

	for (;;) {
		while (!error && next - first < slots) {
			int got = ops->map(context, next % slots);

			if (got < 0)
				error = got; /* completions in flight still arrive */
			if (got <= 0)
				break;
			tlpdma_ring_submit(ring);
			ends[next % slots] = ring->tail;
			next++;
		}
		if (first == next)
			break;
		failed = ops->wait(context, ends[first % slots]);
		if (failed)
			error = failed;
		if ((s32)(ring->head - ends[first % slots]) < 0)
			break;
		ops->unmap(context, first % slots, 0);
		first++;
	}
	if (first != next) {
		/* A card that does not answer may still work. */
		bool safe = tlpdma_ring_reset(ring) == 0 || ops->cut_off(context);

		if (!failed)
			failed = -EIO;
		for (; !safe && first != next; first++)
			ops->abandon(context, first % slots, failed);
		for (; first != next; first++) {
			ops->unmap(context, first % slots, failed);
			if (failed == -EIO)
				failed = -ECANCELED;
		}
	}
	return error;
}

/* A transfer is a stream of two slots. */
struct transfer {
	const struct tlpdma_transfer_ops *ops;
	void *context;
	u64 bytes, mapped, done;
	u32 pieces[2];
};

static int map_piece(void *context, unsigned int slot)
{
	struct transfer *transfer = context;
	u64 left = transfer->bytes - transfer->mapped;
	u32 most = left < TLPDMA_PIECE ? (u32)left : TLPDMA_PIECE;
	int got;

	if (!left)
		return 0;
	got = transfer->ops->map(transfer->context, slot, transfer->mapped, most);
	if (got < 0)
		return got;
	transfer->pieces[slot] = (u32)got;
	transfer->mapped += (u32)got;
	return 1;
}

static void unmap_piece(void *context, unsigned int slot, int error)
{
	struct transfer *transfer = context;

	transfer->ops->unmap(transfer->context, slot);
	if (!error)
		transfer->done += transfer->pieces[slot];
}

/* Whoever waits for the transfer hears of it by its result. */
static void abandon_piece(void *context, unsigned int slot, int error)
{
	(void)context;
	(void)slot;
	(void)error;
}

static int wait_for_piece(void *context, u32 count)
{
	struct transfer *transfer = context;

	return transfer->ops->wait(transfer->context, count);
}

static bool cut_off_transfer(void *context)
{
	struct transfer *transfer = context;

	return transfer->ops->cut_off(transfer->context);
}

s64 tlpdma_transfer(struct tlpdma_ring *ring, const struct tlpdma_transfer_ops *ops, void *context,
		    u64 bytes)
{
	static const struct tlpdma_stream_ops of_pieces = {
		.map = map_piece,
		.unmap = unmap_piece,
		.abandon = abandon_piece,
		.wait = wait_for_piece,
		.cut_off = cut_off_transfer,
	};
	struct transfer transfer = { .ops = ops, .context = context, .bytes = bytes };
	int error = tlpdma_stream(ring, &of_pieces, &transfer, 2);

	return transfer.done ? (s64)transfer.done : error;
}
