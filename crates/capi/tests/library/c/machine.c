/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A driver of the copier in C, on a simulated machine. Arguments: the experiment,
 * the same with a device of which there is no model, and one with nothing but
 * memory, in which nothing happens unless somebody drives it.
 */
#include "check.h"

#include <tlplab_machine.h>

enum { SRC = 0x00, DST = 0x08, GO = 0x10, DONE = 0x14, FAILED = 0x18, BYTES = 3 * 4096 };

static struct tlplab_machine *open_or_say(const char *file, const char *device, const char *const *set)
{
	char message[300];
	struct tlplab_machine *machine =
		tlplab_machine_open(file, device, set, message, sizeof(message));

	if (!machine)
		fprintf(stderr, "%s\n", message);
	CHECK(machine);
	return machine;
}

static uint32_t counter(struct tlplab_machine *machine, uint64_t offset)
{
	uint32_t value;

	CHECK_IS(tlplab_machine_read(machine, 0, offset, &value, sizeof(value)), 0);
	return value;
}

static void start_copy(struct tlplab_machine *machine, uint64_t from, uint64_t to, uint32_t bytes)
{
	CHECK_IS(tlplab_machine_write(machine, 0, SRC, &from, sizeof(from)), 0);
	CHECK_IS(tlplab_machine_write(machine, 0, DST, &to, sizeof(to)), 0);
	CHECK_IS(tlplab_machine_write(machine, 0, GO, &bytes, sizeof(bytes)), 0);
}

/* Copies contiguous memory and returns how long it took, in femtoseconds. */
static uint64_t copies(const char *file, const char *const *set)
{
	struct tlplab_machine *machine = open_or_say(file, "copier", set);
	struct tlplab_machine_info info;
	static unsigned char data[BYTES], back[BYTES];
	uint64_t from, to, begin, took;
	unsigned vector = 99;

	CHECK_IS(tlplab_machine_info(machine, &info), 0);
	CHECK_IS(info.vendor, 0x71ab);
	CHECK_IS(info.interrupts, 3);
	CHECK(info.bar_size[0] >= 0x1c && info.bar_base[0] != 0 && info.bar_size[3] == 0);
	CHECK_IS(tlplab_machine_alloc(machine, BYTES, 4096, &from), 0);
	CHECK_IS(tlplab_machine_alloc(machine, BYTES, 64, &to), 0);
	CHECK(from % 4096 == 0 && (to >= from + BYTES || from >= to + BYTES));
	for (size_t i = 0; i < BYTES; i++)
		data[i] = (unsigned char)(i * 7 + (i >> 8));
	CHECK_IS(tlplab_machine_store(machine, from, data, BYTES), 0);

	CHECK_IS(counter(machine, DONE), 0);
	begin = tlplab_machine_now(machine);
	CHECK(begin > 0); /* the read took its time */
	CHECK_IS(tlplab_machine_wait(machine, TLPLAB_NS(5000), &vector), 0);
	CHECK_IS(tlplab_machine_now(machine) - begin, TLPLAB_NS(5000));

	start_copy(machine, from, to, BYTES);
	begin = tlplab_machine_now(machine);
	CHECK_IS(tlplab_machine_wait(machine, TLPLAB_NS(1000000), &vector), 1);
	took = tlplab_machine_now(machine) - begin;
	CHECK_IS(vector, 0);
	CHECK_IS(tlplab_machine_load(machine, to, back, BYTES), 0);
	CHECK(!memcmp(back, data, BYTES)); /* the interrupt comes behind the data */
	CHECK_IS(counter(machine, DONE), 1);
	CHECK_IS(tlplab_machine_wait(machine, TLPLAB_NS(5000), &vector), 0);
	tlplab_machine_close(machine);
	return took;
}

/* Mistakes are reported, and the machine goes on. */
static void refuses(const char *file, const char *unknown)
{
	const char *const nonsense[] = { "device.copier.lnik=gen2 x1", NULL };
	char message[300], cut[8];
	struct tlplab_machine *machine;
	uint64_t pages[64], address;
	uint32_t word;

	CHECK(!tlplab_machine_open(file, "copy", NULL, message, sizeof(message)));
	CHECK_IS(errno, ENODEV);
	CHECK(strstr(message, "unknown device \"copy\"; the devices are copier"));
	CHECK(!tlplab_machine_open(file, "copier", nonsense, message, sizeof(message)));
	CHECK_IS(errno, EINVAL);
	CHECK(strstr(message, "link"));
	CHECK(!tlplab_machine_open("nowhere.toml", "copier", NULL, cut, sizeof(cut)));
	CHECK_IS(strlen(cut), sizeof(cut) - 1);
	CHECK(!tlplab_machine_open("nowhere.toml", "copier", NULL, NULL, 0));
	CHECK(!tlplab_machine_open(NULL, "copier", NULL, NULL, 0));
	CHECK(!tlplab_machine_open(unknown, "copier", NULL, message, sizeof(message)));

	machine = open_or_say(file, "copier", NULL);
	CHECK_FAILS(tlplab_machine_read(machine, 0, UINT64_MAX, &word, sizeof(word)), EINVAL);
	CHECK(strstr(tlplab_machine_error(machine), "BAR 0"));
	CHECK_FAILS(tlplab_machine_write(machine, 7, 0, &word, sizeof(word)), EINVAL);
	CHECK_FAILS(tlplab_machine_read(machine, 0, 0, NULL, 4), EFAULT);
	CHECK_FAILS(tlplab_machine_alloc(machine, 16, 3, &address), EINVAL);
	CHECK_FAILS(tlplab_machine_alloc(machine, UINT64_MAX, 1, &address), ENOMEM);
	CHECK_FAILS(tlplab_machine_read(NULL, 0, 0, &word, sizeof(word)), EFAULT);
	CHECK_IS(tlplab_machine_alloc_pages(machine, 64, pages), 0);
	for (int i = 0; i < 63; i++)
		CHECK(pages[i] % 4096 == 0 && pages[i + 1] != pages[i] + 4096);

	/* Memory that is nowhere: the read is refused, and the copier says so. */
	start_copy(machine, 0x7fffffff0000, pages[0], 64);
	CHECK_IS(tlplab_machine_wait(machine, TLPLAB_NS(1000000), NULL), 1);
	CHECK_IS(counter(machine, FAILED), 1);
	tlplab_machine_close(machine);
	tlplab_machine_close(NULL);
}

/* The processor's accesses to a BAR, at any offset and of any length. */
static void reaches_a_bar(const char *file)
{
	struct tlplab_machine *machine = open_or_say(file, "ram", NULL);
	unsigned char data[300], back[300] = { 0 };

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 3 + 1);
	CHECK_IS(tlplab_machine_write(machine, 0, 4093, data, sizeof(data)), 0);
	CHECK_IS(tlplab_machine_read(machine, 0, 4093, back, sizeof(back)), 0);
	CHECK(!memcmp(data, back, sizeof(data)));
	CHECK_IS(tlplab_machine_read(machine, 0, 4094, back, 1), 0);
	CHECK_IS(back[0], data[1]);
	CHECK_IS(tlplab_machine_wait(machine, TLPLAB_NS(100), NULL), 0);
	tlplab_machine_close(machine);
}

int main(int argc, char **argv)
{
	const char *const slow[] = { "device.copier.link=gen1 x1", NULL };
	uint64_t fast;

	CHECK_IS(argc, 4);
	fast = copies(argv[1], NULL);
	CHECK_IS(copies(argv[1], NULL), fast); /* the same calls give the same times */
	CHECK(copies(argv[1], slow) > 3 * fast);
	refuses(argv[1], argv[2]);
	reaches_a_bar(argv[3]);
	return 0;
}
