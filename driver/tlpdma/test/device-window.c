// SPDX-License-Identifier: MIT OR Apache-2.0
/* mmap(): the card's memory by loads and stores, and what becomes of a mapping when the function is reset or goes away. */
#define _GNU_SOURCE
#include "device.h"

#include <setjmp.h>

static sigjmp_buf back;

static void on_bus_error(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

/* Loads a word; false: SIGBUS. */
static bool load(const volatile uint32_t *word, uint32_t *value)
{
	struct sigaction action = { .sa_handler = on_bus_error }, before;
	volatile bool loaded = false;

	GIVES(sigaction(SIGBUS, &action, &before), 0);
	if (!sigsetjmp(back, 1)) {
		*value = *word;
		loaded = true;
	}
	GIVES(sigaction(SIGBUS, &before, NULL), 0);
	return loaded;
}

static volatile uint32_t *map(int file, size_t bytes, off_t at)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, at);

	return memory == MAP_FAILED ? NULL : memory;
}

static void must_refuse(int file, size_t bytes, int flags, off_t at, int error)
{
	void *memory;

	errno = 0;
	memory = mmap(NULL, bytes, PROT_READ, flags, file, at);
	CHECK(memory == MAP_FAILED && errno == error, "mmap() of %zu bytes at 0x%llx gives %s, not %s", bytes, (long long)at,
	      memory == MAP_FAILED ? strerror(errno) : "memory", strerror(error));
}

/* DMA reads stored words, and words that DMA has written are loaded. */
static void check_same(int file, volatile uint32_t *words, off_t at)
{
	static uint32_t value = 0x600d0000;
	uint32_t word;

	words[3] = ++value;
	/* The answer to a read is behind the write. */
	CHECK(words[3] == value, "a word was stored as 0x%x and loaded as 0x%x", value, words[3]);
	GIVES(pread(file, &word, 4, at + 12), 4);
	CHECK(word == value, "a word was stored as 0x%x, and DMA read 0x%x", value, word);
	word = ++value;
	GIVES(pwrite(file, &word, 4, at + PAGE - 4), 4);
	CHECK(words[PAGE / 4 - 1] == value, "DMA wrote 0x%x, and 0x%x was loaded", value, words[PAGE / 4 - 1]);
}

static void check_places(int file)
{
	volatile uint32_t *low = map(file, 2 * PAGE, 0), *high;

	CHECK(low, "mmap: %s", strerror(errno));
	check_same(file, low, 0);
	must_refuse(file, PAGE, MAP_PRIVATE, 0, EINVAL);
	must_refuse(file, 2 * PAGE, MAP_SHARED, MIB - PAGE, EINVAL);
	must_refuse(file, PAGE, MAP_SHARED, size_of(file), ENXIO);
	/* The window is elsewhere, until nothing of that is mapped any more. */
	must_refuse(file, PAGE, MAP_SHARED, 5 * MIB, EBUSY);
	GIVES(munmap((void *)low, PAGE), 0);
	must_refuse(file, PAGE, MAP_SHARED, 5 * MIB, EBUSY);
	GIVES(munmap((void *)((uintptr_t)low + PAGE), PAGE), 0);
	high = map(file, PAGE, 5 * MIB + 7 * PAGE);
	CHECK(high, "mmap: %s", strerror(errno));
	check_same(file, high, 5 * MIB + 7 * PAGE);
	GIVES(munmap((void *)high, PAGE), 0);
}

/* A mapping is what it was after a reset, and nothing when the function is gone. Closes the file. */
static void check_life(int file)
{
	volatile uint32_t *words = map(file, PAGE, 3 * MIB);
	uint32_t value;

	CHECK(words, "mmap: %s", strerror(errno));
	check_same(file, words, 3 * MIB);
	must_tell(in_function("reset"), "1");
	check_same(file, words, 3 * MIB);
	must_tell("/sys/bus/pci/drivers/tlpdma/unbind", address);
	CHECK(!load(words, &value), "the driver was unbound, and a word is loaded: 0x%x", value);
	CHECK(!map(file, PAGE, 0) && errno == ENODEV, "the driver was unbound, and mmap() gives %s", strerror(errno));
	GIVES(munmap((void *)words, PAGE), 0);
	close(file);
	/* Nobody has the old card any more: the new one gets its number. */
	must_tell("/sys/bus/pci/drivers/tlpdma/bind", address);
}

void test_window(void)
{
	int file = open_card(0);
	volatile uint32_t *words = map(file, PAGE, 0);

	if (!words && errno == ENODEV) {
		printf("    no program can reach a BAR on this machine: mmap() is refused\n");
		close(file);
		return;
	}
	/* The mapping has the file. */
	close(file);
	file = open_card(0);
	must_refuse(file, PAGE, MAP_SHARED, 5 * MIB, EBUSY);
	GIVES(munmap((void *)words, PAGE), 0);
	check_places(file);
	if (!access("/sys/bus/pci/drivers/tlpdma/unbind", W_OK))
		check_life(file);
	else
		close(file);
}
