// SPDX-License-Identifier: MIT OR Apache-2.0
/* Tests of events that end or interrupt a transfer: signals, and the function that goes away, is reset or sleeps. */
#define _GNU_SOURCE
#include "device.h"

static void nothing(int number)
{
	(void)number;
}

void test_signals(void)
{
	struct sigaction action = { .sa_handler = nothing };
	int file = open_card(0);

	for (int again = 0; again < 2; again++) {
		for (int to_card = 0; to_card < 2; to_card++) {
			struct transfer transfer;
			ssize_t moved;

			action.sa_flags = again ? SA_RESTART : 0;
			GIVES(sigaction(SIGUSR1, &action, NULL), 0);
			begin(&transfer, file, to_card);
			GIVES(pthread_kill(transfer.thread, SIGUSR1), 0);
			moved = end(&transfer);
			CHECK(moved > 0 && moved < LONG && moved % PIECE == 0, "a signal left %zd bytes of %u moved (%s)",
			      moved, LONG, strerror(errno));
		}
	}
	check_works(file);
	close(file);
}

void test_kills(void)
{
	static const int numbers[] = { SIGKILL, SIGINT, SIGTERM };

	for (int i = 0; i < 6; i++) {
		const int number = numbers[i / 2];
		int file = open_card(0), status;
		pid_t child = fork();

		CHECK(child >= 0, "fork: %s", strerror(errno));
		if (!child) {
			struct transfer transfer;

			begin(&transfer, file, i % 2);
			end(&transfer);
			_exit(0);
		}
		pause_us(4000);
		GIVES(kill(child, number), 0);
		GIVES(waitpid(child, &status, 0), child);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == number, "the child ended with 0x%x", status);
		check_works(file);
		close(file);
	}
}

static void check_gone(int file)
{
	char word[4] = "";
	struct tlpdma_info info = { .size = sizeof(info) };

	FAILS(pwrite(file, word, 4, 0), ENODEV);
	FAILS(pread(file, word, 4, 0), ENODEV);
	FAILS(ioctl(file, TLPDMA_IOC_INFO, &info), ENODEV);
	CHECK(ready(file, 1000) & POLLHUP, "poll() does not report that the card is gone");
	FAILS(open(device, O_RDWR), ENOENT);
}

/* A transfer that the card's going away ended. */
static void check_ended(ssize_t moved)
{
	CHECK((moved > 0 && moved < LONG) || (moved < 0 && errno == ENODEV), "a transfer without a card gave %zd (%s)", moved,
	      moved < 0 ? strerror(errno) : "");
}

void test_unbind(void)
{
	for (int to_card = 0; to_card < 2; to_card++) {
		int file = open_card(0);
		struct transfer transfer;

		begin(&transfer, file, to_card);
		must_tell("/sys/bus/pci/drivers/tlpdma/unbind", address);
		check_ended(end(&transfer));
		check_gone(file);
		close(file);
		must_tell("/sys/bus/pci/drivers/tlpdma/bind", address);
		file = open_card(0);
		check_works(file);
		close(file);
	}
}

void test_queue_unbind(void)
{
	unsigned char *data = buffer_of(8 * PIECE);

	for (int to_card = 0; to_card < 2; to_card++) {
		struct queue queue = { 0 };
		int file = open_card(0);

		GIVES(syscall(SYS_io_setup, 64, &queue.context), 0);
		for (int i = 0; i < 8; i++)
			submit(&queue, file, to_card, data + i * PIECE, PIECE, 0);
		pause_us(1000);
		must_tell("/sys/bus/pci/drivers/tlpdma/unbind", address);
		collect(&queue);
		for (int i = 0; i < 8; i++)
			CHECK(queue.results[i] == PIECE || queue.results[i] == -ENODEV, "a request without a card gave %lld",
			      queue.results[i]);
		check_gone(file);
		GIVES(syscall(SYS_io_destroy, queue.context), 0);
		close(file);
		must_tell("/sys/bus/pci/drivers/tlpdma/bind", address);
		file = open_card(0);
		check_works(file);
		close(file);
	}
	munmap(data, 8 * PIECE);
}

void test_remove(void)
{
	char rescan[PATH];

	/* Its bus alone: looking for functions on other buses can be reported as errors of theirs. */
	snprintf(rescan, sizeof(rescan), "/sys/class/pci_bus/%.7s/rescan", address);
	for (int to_card = 0; to_card < 2; to_card++) {
		int file = open_card(0);
		struct transfer transfer;

		begin(&transfer, file, to_card);
		must_tell(in_function("remove"), "1");
		check_ended(end(&transfer));
		check_gone(file);
		close(file);
		must_tell(rescan, "1");
		file = open_card(0);
		check_works(file);
		close(file);
	}
}

void test_reset(void)
{
	char methods[128] = "";
	FILE *file_of_methods = fopen(in_function("reset_method"), "re");
	bool worked = false;

	CHECK(file_of_methods && fgets(methods, sizeof(methods), file_of_methods), "the function has no way to be reset");
	fclose(file_of_methods);
	for (char *method = strtok(methods, " \n"); method; method = strtok(NULL, " \n")) {
		int file = open_card(0);
		struct transfer transfer;

		printf("    by %s\n", method);
		must_tell(in_function("reset_method"), method);
		begin(&transfer, file, true);
		/* Some a machine lists, and has not for this function. */
		if (tell(in_function("reset"), "1"))
			worked = true;
		else
			CHECK(errno == ENOTTY, "a reset by %s: %s", method, strerror(errno));
		/* It waits for a transfer, or the transfer goes on after it. */
		GIVES(end(&transfer), LONG);
		check_works(file);
		close(file);
	}
	CHECK(worked, "no way to reset the function works");
	must_tell(in_function("reset_method"), "default");
}

/* Puts the machine to sleep in mid-transfer, from which it wakes by itself. */
static void sleep_in_transfers(bool by_clock)
{
	int file = open_card(0);

	for (int to_card = 0; to_card < 2; to_card++) {
		struct transfer transfer;
		ssize_t moved;

		begin(&transfer, file, to_card);
		if (by_clock)
			must_tell("/sys/class/rtc/rtc0/wakealarm", "+2");
		must_tell("/sys/power/state", "mem");
		moved = end(&transfer);
		CHECK(moved > 0 && moved % PIECE == 0, "going to sleep ended a transfer with %zd (%s)", moved, strerror(errno));
		check_works(file);
	}
	close(file);
}

void test_sleep(void)
{
	sleep_in_transfers(true);
}

/* The kernel's own test: devices are suspended and resumed, and the rest of the machine stays awake. */
void test_pm(void)
{
	must_tell("/sys/power/pm_test", "devices");
	sleep_in_transfers(false);
	must_tell("/sys/power/pm_test", "none");
}

/* Somebody takes the card out while it moves data both ways, and puts one back. */
void test_pulled(void)
{
	int file = open_card(0), errors[2];
	struct transfer to, from;
	ssize_t moved[2];
	char word[4];

	do {
		prepare(&to, file, true);
		prepare(&from, file, false);
		start(&to);
		start(&from);
		moved[0] = end(&to);
		errors[0] = errno;
		moved[1] = end(&from);
		errors[1] = errno;
	} while (moved[0] == LONG && moved[1] == LONG);
	for (int i = 0; i < 2; i++)
		CHECK(moved[i] > 0 || errors[i] == ENODEV || errors[i] == EIO, "without a card a transfer gave %zd (%s)",
		      moved[i], strerror(errors[i]));
	/* The card in the slot is another, or error recovery has made this one work again. */
	for (int ms = 0; ms < 60000; ms++) {
		if (pread(file, word, 4, 0) == 4)
			break;
		CHECK(errno == EIO || errno == ENODEV, "without a card a read gives %s", strerror(errno));
		if (errno == ENODEV && access(device, F_OK) == 0) {
			close(file);
			file = open_card(0);
		}
		pause_us(1000);
	}
	check_works(file);
	close(file);
}
