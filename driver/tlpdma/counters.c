// SPDX-License-Identifier: GPL-2.0
/* Counters in sysfs, of each direction: Documentation/ABI/sysfs-driver-tlpdma */
#include <linux/sysfs.h>

#include "tlpdma.h"

static struct tlpdma_channel *channel_of(struct device *device, unsigned int number)
{
	struct tlpdma_card *card = dev_get_drvdata(device);

	return &card->channels[number];
}

#define COUNTER(direction, number, name, value) \
static ssize_t direction##_##name##_show(struct device *device, \
					 struct device_attribute *attribute, char *text) \
{ \
	const struct tlpdma_channel *channel = channel_of(device, number); \
\
	return sysfs_emit(text, "%llu\n", (unsigned long long)(value)); \
} \
static struct device_attribute direction##_##name = \
	__ATTR(name, 0444, direction##_##name##_show, NULL)

#define COUNTERS(direction, number) \
COUNTER(direction, number, transfers, atomic64_read(&channel->transfers)); \
COUNTER(direction, number, bytes, atomic64_read(&channel->bytes)); \
COUNTER(direction, number, errors, atomic64_read(&channel->errors)); \
COUNTER(direction, number, interrupts, atomic64_read(&channel->interrupts)); \
COUNTER(direction, number, missed_interrupts, READ_ONCE(channel->missed)); \
static struct attribute *direction##_attributes[] = { \
	&direction##_transfers.attr, \
	&direction##_bytes.attr, \
	&direction##_errors.attr, \
	&direction##_interrupts.attr, \
	&direction##_missed_interrupts.attr, \
	NULL, \
}; \
static const struct attribute_group direction##_group = { \
	.name = #direction, \
	.attrs = direction##_attributes, \
}

COUNTERS(to_card, 0);
COUNTERS(from_card, 1);

const struct attribute_group *tlpdma_counters[] = { &to_card_group, &from_card_group, NULL };
