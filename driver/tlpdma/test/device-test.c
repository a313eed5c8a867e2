// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Tests of /dev/tlpdmaN (docs/tlpdma-driver.md) with a loaded driver: ends of the memory, bad buffers, O_NONBLOCK
 * and poll(), signals and kills in mid-transfer, and, as root, the function being unbound, removed, reset and put to sleep
 * under a transfer. The content of the card's memory is lost.
 */
#define _GNU_SOURCE
#include "device.h"

static const struct test {
	const char *name, *what;
	void (*run)(void);
	const char *needs; /* a file */
	bool only_named;
} tests[] = {
	{ "data", "data come back as they were sent", test_data, NULL, false },
	{ "ends", "the end of the memory, file positions", test_ends, NULL, false },
	{ "buffers", "memory that is not there, or not to be written", test_buffers, NULL, false },
	{ "info", "the description of the card", test_info, NULL, false },
	{ "vectors", "buffers in several parts", test_vectors, NULL, false },
	{ "queue", "many requests at once", test_queue, NULL, false },
	{ "queue_unbind", "the driver is unbound with many requests under way", test_queue_unbind, "/sys/bus/pci/drivers/tlpdma/unbind", false },
	{ "counters", "counters in sysfs", test_counters, NULL, false },
	{ "window", "the card's memory by loads and stores", test_window, NULL, false },
	{ "nonblock", "O_NONBLOCK and poll()", test_nonblock, NULL, false },
	{ "both", "both directions at once", test_both, NULL, false },
	{ "signals", "a signal in mid-transfer", test_signals, NULL, false },
	{ "kills", "the program is killed in mid-transfer", test_kills, NULL, false },
	{ "unbind", "the driver is unbound in mid-transfer", test_unbind, "/sys/bus/pci/drivers/tlpdma/unbind", false },
	{ "remove", "the function is removed in mid-transfer", test_remove, "/sys/bus/pci/rescan", false },
	{ "reset", "the function is reset in mid-transfer", test_reset, "/sys/bus/pci/rescan", false },
	{ "pm_test", "devices are suspended in mid-transfer", test_pm, "/sys/power/pm_test", false },
	{ "sleep", "the machine sleeps in mid-transfer, and its clock wakes it", test_sleep, "/sys/class/rtc/rtc0/wakealarm", true },
	{ "queue_halts", "the card halts with many requests under way", test_queue_halts, NULL, true },
	{ "faults", "10^5 transfers, of which the card fails some", test_faults, NULL, true },
	{ "pulled", "the card is pulled out in mid-transfer and put back", test_pulled, NULL, true },
};

/* The function's folder in sysfs, and its address. */
static void find_function(void)
{
	char path[PATH], *end;

	snprintf(path, sizeof(path), "/sys/class/misc/%s/device", strrchr(device, '/') + 1);
	if (!realpath(path, function))
		return;
	end = strrchr(function, '/');
	snprintf(address, sizeof(address), "%s", end ? end + 1 : "");
}

static bool wanted(const struct test *test, int count, char **names)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(test->name, names[i]))
			return true;
	return count == 0 && !test->only_named;
}

static bool is_test(const char *name)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (!strcmp(name, tests[i].name))
			return true;
	return false;
}

int main(int count, char **arguments)
{
	if (count < 2 || arguments[1][0] != '/') {
		fprintf(stderr, "usage: device-test /dev/tlpdmaN [TEST...]\nTests, all but the last four unless named:\n");
		for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
			fprintf(stderr, "  %-10s%s\n", tests[i].name, tests[i].what);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 2; i < count; i++)
		if (!is_test(arguments[i])) {
			fprintf(stderr, "device-test: there is no test %s\n", arguments[i]);
			return 2;
		}
	snprintf(device, sizeof(device), "%s", arguments[1]);
	find_function();
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		const struct test *test = &tests[i];

		if (!wanted(test, count - 2, arguments + 2))
			continue;
		if (test->needs && access(test->needs, W_OK)) {
			printf("  skipped: %s: %s: %s\n", test->what, test->needs, strerror(errno));
			continue;
		}
		printf("  %s\n", test->what);
		test->run();
	}
	return 0;
}
