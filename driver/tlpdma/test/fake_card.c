// SPDX-License-Identifier: MIT OR Apache-2.0
#include "fake_card.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static u32 read_channel(const struct fake_channel *channel, u32 offset)
{
	switch (offset) {
	case TLPDMA_HEAD:
		return channel->head;
	case TLPDMA_CH_CONTROL:
		return channel->control;
	case TLPDMA_CH_STATUS:
		return channel->status;
	}
	return 0;
}

static u32 fake_read(void *host, u32 offset)
{
	struct fake_card *card = host;

	if (card->gone || ++card->reads == card->lost_at)
		return ~0u;
	if (offset >= TLPDMA_CHANNEL(0) && offset < TLPDMA_CHANNEL(FAKE_CHANNELS))
		return read_channel(&card->channel[(offset - TLPDMA_CHANNEL(0)) / 0x80], offset % 0x80);
	switch (offset) {
	case TLPDMA_ID:
		return card->id;
	case TLPDMA_VERSION:
		return card->version;
	case TLPDMA_CONTROL:
		return card->control;
	case TLPDMA_CONFIG:
		return 5 | 1 << 8 | 2 << 12 | 4 << 16; /* 32 tags, MPS 256, MRRS 512, 4 vectors */
	case TLPDMA_IRQ_STATUS:
		return card->irq_status;
	case TLPDMA_MEM_MIB:
		return FAKE_LOCAL >> 20;
	}
	return 0;
}

static void set_half(u64 *whole, unsigned int half, u32 value)
{
	*whole &= ~(0xffffffffull << 32 * half);
	*whole |= (u64)value << 32 * half;
}

static void write_channel(struct fake_card *card, struct fake_channel *channel, u32 offset, u32 value)
{
	switch (offset) {
	case TLPDMA_BASE_LO:
	case TLPDMA_BASE_HI:
		assert(!(channel->control & TLPDMA_CH_RUN)); /* the contract: a ring is set up before it runs */
		set_half(&channel->base, offset == TLPDMA_BASE_HI, value);
		break;
	case TLPDMA_WB_LO:
	case TLPDMA_WB_HI:
		set_half(&channel->record, offset == TLPDMA_WB_HI, value);
		break;
	case TLPDMA_LOG2:
		assert(value >= TLPDMA_LOG2_MIN && value <= TLPDMA_LOG2_MAX);
		channel->log2 = value;
		break;
	case TLPDMA_TAIL:
		assert(value - channel->head <= 1u << channel->log2);
		channel->tail = value;
		card->doorbells++;
		break;
	case TLPDMA_CH_CONTROL:
		channel->control = value;
		if (value & TLPDMA_CH_RESET && !card->stuck)
			memset(channel, 0, sizeof(*channel));
		break;
	default:
		assert(!"a register that software does not write");
	}
}

static void fake_write(void *host, u32 offset, u32 value)
{
	struct fake_card *card = host;

	if (card->gone)
		return;
	if (offset >= TLPDMA_CHANNEL(0)) {
		write_channel(card, &card->channel[(offset - TLPDMA_CHANNEL(0)) / 0x80], offset % 0x80, value);
		return;
	}
	switch (offset) {
	case TLPDMA_CONTROL:
		card->control = value;
		if (value & TLPDMA_CONTROL_RESET && !card->stuck) {
			memset(card->channel, 0, sizeof(card->channel));
			card->control = 0;
		}
		break;
	case TLPDMA_IRQ_ENABLE:
		card->irq_enable = value;
		break;
	case TLPDMA_IRQ_STATUS:
		card->irq_status &= ~value;
		break;
	}
}

static void fake_store(void *host, u64 bus, const void *data, size_t bytes)
{
	struct fake_card *card = host;

	assert(bus + bytes <= FAKE_HOST);
	memcpy(card->host + bus, data, bytes);
}

static u64 fake_load(void *host, u64 bus)
{
	struct fake_card *card = host;
	u64 value;

	memcpy(&value, card->host + bus, sizeof(value));
	return le64toh(value);
}

static void fake_pause(void *host)
{
	((struct fake_card *)host)->pauses++;
}

static void write_back(struct fake_card *card, const struct fake_channel *channel)
{
	const u64 record = htole64(channel->head | (u64)channel->status << 32);

	if (channel->record)
		memcpy(card->host + channel->record, &record, sizeof(record));
}

static void work_off(struct fake_card *card, unsigned int number)
{
	struct fake_channel *channel = &card->channel[number];
	const u64 slot = channel->head & ((1u << channel->log2) - 1);
	u32 words[4], bytes;
	u64 address;

	memcpy(words, card->host + channel->base + slot * TLPDMA_DESCRIPTOR, sizeof(words));
	address = le32toh(words[0]) | (u64)le32toh(words[1]) << 32;
	bytes = le32toh(words[3]) & TLPDMA_LENGTH_MAX;
	assert(bytes > 0 && address + bytes <= FAKE_HOST && (u64)le32toh(words[2]) + bytes <= FAKE_LOCAL);
	if (++card->worked == card->fail_at) {
		channel->status = TLPDMA_CH_HALTED | card->fail_with;
		write_back(card, channel);
		return;
	}
	if (number == 0)
		memcpy(card->local + le32toh(words[2]), card->host + address, bytes);
	else
		memcpy(card->host + address, card->local + le32toh(words[2]), bytes);
	channel->head++;
	if (le32toh(words[3]) & (TLPDMA_INTERRUPT | TLPDMA_WRITE_BACK))
		write_back(card, channel);
	if (le32toh(words[3]) & TLPDMA_INTERRUPT)
		card->interrupts++;
}

void fake_card_work(struct fake_card *card, u32 descriptors)
{
	for (; descriptors > 0 && !card->gone && !card->silent; descriptors--)
		for (unsigned int i = 0; i < FAKE_CHANNELS; i++) {
			struct fake_channel *channel = &card->channel[i];
			bool runs = card->control & TLPDMA_CONTROL_ENABLE && channel->control & TLPDMA_CH_RUN;

			if (runs && channel->head != channel->tail && !(channel->status & TLPDMA_CH_HALTED))
				work_off(card, i);
		}
}

void fake_card_open(struct fake_card *card)
{
	*card = (struct fake_card){
		.io = { card, fake_read, fake_write, fake_store, fake_load, fake_pause },
		.host = calloc(1, FAKE_HOST),
		.local = calloc(1, FAKE_LOCAL),
		.id = TLPDMA_ID_VALUE,
		.version = 0x00010000,
	};
	assert(card->host && card->local);
}

void fake_card_close(struct fake_card *card)
{
	free(card->host);
	free(card->local);
}
