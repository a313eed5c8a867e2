// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What /dev/tlpdmaN promises (docs/tlpdma-driver.md), tried on a loaded driver: ends of the memory, bad buffers, O_NONBLOCK
 * and poll(), signals and kills in mid-transfer, and, as root, the function being unbound, removed, reset and put to sleep
 * under a transfer. What is in the card's memory is lost.
 */
#define _GNU_SOURCE
#include "../tlpdma_ioctl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1u << 20)
/* 24 MiB take Gen1 x8 some 13 ms; the driver has six pieces to make of them. */
#define LONG (24 * MIB)
#define PIECE (4 * MIB)
#define PAGE 4096u
#define PATH 600

static char device[PATH], function[PATH], address[32];

static void fail(int line, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "device-test: line %d: ", line);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

#define CHECK(condition, ...) do { if (!(condition)) fail(__LINE__, __VA_ARGS__); } while (0)

/* A call gives this, or -1 and this error. */
#define GIVES(call, wanted) do { \
	long long got_ = (call), wanted_ = (wanted); \
	CHECK(got_ == wanted_, #call " gives %lld (%s), not %lld", got_, got_ < 0 ? strerror(errno) : "", wanted_); \
} while (0)
#define FAILS(call, error) do { \
	long long got_; \
	errno = 0; \
	got_ = (call); \
	CHECK(got_ == -1 && errno == (error), #call " gives %lld (%s), not %s", got_, strerror(errno), strerror(error)); \
} while (0)

static int open_card(int flags)
{
	int file = open(device, O_RDWR | O_CLOEXEC | flags);

	CHECK(file >= 0, "%s: %s", device, strerror(errno));
	return file;
}

static struct tlpdma_info info_of(int file)
{
	struct tlpdma_info info = { .size = sizeof(info) };

	GIVES(ioctl(file, TLPDMA_IOC_INFO, &info), 0);
	return info;
}

static off_t size_of(int file)
{
	return (off_t)info_of(file).memory_mib << 20;
}

static unsigned char *buffer_of(size_t bytes)
{
	unsigned char *buffer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(buffer != MAP_FAILED, "%zu bytes: %s", bytes, strerror(errno));
	return buffer;
}

static void fill(unsigned char *data, size_t bytes, unsigned int seed)
{
	for (size_t i = 0; i < bytes; i++)
		data[i] = (unsigned char)((i * 2654435761u >> 13) + seed + i);
}

static void pause_us(long us)
{
	struct timespec time = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&time, NULL);
}

/* Data go to the card and come back. */
static void check_works(int file)
{
	static unsigned int seed;
	const size_t bytes = 5 * MIB + 3;
	unsigned char *sent = buffer_of(bytes + PAGE), *back = buffer_of(bytes + PAGE);

	fill(sent, bytes + PAGE, ++seed);
	GIVES(pwrite(file, sent + 5, bytes, 4099), bytes);
	GIVES(pread(file, back + 18, bytes, 4099), bytes);
	CHECK(!memcmp(sent + 5, back + 18, bytes), "what came back differs");
	munmap(sent, bytes + PAGE);
	munmap(back, bytes + PAGE);
}

/* A thread with one long transfer. */
struct transfer {
	pthread_t thread;
	int file;
	bool to_card;
	unsigned char *data;
	ssize_t moved;
	int error;
	bool over;
};

static void *move(void *given)
{
	struct transfer *transfer = given;

	transfer->moved = transfer->to_card ? pwrite(transfer->file, transfer->data, LONG, 0)
					    : pread(transfer->file, transfer->data, LONG, 0);
	transfer->error = errno;
	__atomic_store_n(&transfer->over, true, __ATOMIC_SEQ_CST);
	return NULL;
}

static void prepare(struct transfer *transfer, int file, bool to_card)
{
	*transfer = (struct transfer){ .file = file, .to_card = to_card, .data = buffer_of(LONG) };
	fill(transfer->data, LONG, 9);
}

static void start(struct transfer *transfer)
{
	GIVES(pthread_create(&transfer->thread, NULL, move, transfer), 0);
}

/* Begins a transfer, and returns when it is under way. */
static void begin(struct transfer *transfer, int file, bool to_card)
{
	prepare(transfer, file, to_card);
	start(transfer);
	pause_us(2000);
	CHECK(!__atomic_load_n(&transfer->over, __ATOMIC_SEQ_CST), "a long transfer gave %zd at once (%s)", transfer->moved,
	      transfer->moved < 0 ? strerror(transfer->error) : "short");
}

static ssize_t end(struct transfer *transfer)
{
	GIVES(pthread_join(transfer->thread, NULL), 0);
	munmap(transfer->data, LONG);
	errno = transfer->error;
	return transfer->moved;
}

static void test_data(void)
{
	int file = open_card(0);

	check_works(file);
	close(file);
}

static void test_ends(void)
{
	int file = open_card(0);
	const off_t size = size_of(file);
	char data[8] = "abcdefg", back[8] = "";

	GIVES(pread(file, back, 8, size), 0);
	GIVES(pread(file, back, 8, size + 12345), 0);
	FAILS(pwrite(file, data, 8, size), ENOSPC);
	FAILS(pwrite(file, data, 8, (off_t)1 << 40), ENOSPC);
	GIVES(pwrite(file, data, 0, size), 0);
	GIVES(pread(file, back, 0, 0), 0);
	GIVES(pwrite(file, data, 8, size - 4), 4);
	GIVES(pread(file, back, 8, size - 4), 4);
	CHECK(!memcmp(back, "abcd\0\0\0", 8), "the last bytes of the memory differ");
	GIVES(lseek(file, 0, SEEK_END), size);
	FAILS(write(file, data, 1), ENOSPC);
	GIVES(lseek(file, -1, SEEK_CUR), size - 1);
	GIVES(write(file, data, 8), 1);
	GIVES(lseek(file, 0, SEEK_CUR), size);
	GIVES(read(file, back, 8), 0);
	FAILS(lseek(file, 1, SEEK_END), EINVAL);
	FAILS(lseek(file, -1, SEEK_SET), EINVAL);
	FAILS(pread(file, back, 8, -1), EINVAL);
	close(file);
}

static void test_buffers(void)
{
	int file = open_card(0);
	unsigned char *buffer = buffer_of(4 * PAGE);

	memset(buffer, 'x', 4 * PAGE);
	GIVES(munmap(buffer + 2 * PAGE, PAGE), 0);
	GIVES(pwrite(file, buffer + 100, 4 * PAGE - 100, 0), 2 * PAGE - 100);
	FAILS(pwrite(file, buffer + 2 * PAGE, 8, 0), EFAULT);
	FAILS(pread(file, buffer + 2 * PAGE, 8, 0), EFAULT);
	GIVES(mprotect(buffer + 3 * PAGE, PAGE, PROT_READ), 0);
	FAILS(pread(file, buffer + 3 * PAGE, 8, 0), EFAULT);
	GIVES(pwrite(file, buffer + 3 * PAGE, 8, 0), 8);
	FAILS(ioctl(file, TLPDMA_IOC_INFO, NULL), EFAULT);
	FAILS(ioctl(file, _IO(0xda, 77)), ENOTTY);
	munmap(buffer, 4 * PAGE);
	check_works(file);
	close(file);
}

/* Programs that know less of the driver than there is, and more. */
static void test_info(void)
{
	struct {
		struct tlpdma_info known;
		unsigned char more[100];
	} info;
	int file = open_card(0);

	for (unsigned int size = TLPDMA_INFO_SIZE_0; size <= sizeof(info); size += 4) {
		memset(&info, 0xaa, sizeof(info));
		info.known.size = size;
		GIVES(ioctl(file, TLPDMA_IOC_INFO, &info), 0);
		GIVES(info.known.size, sizeof(info.known));
		CHECK(info.known.memory_mib > 0 && info.known.tags > 0, "the card is not described");
		for (size_t i = size < sizeof(info.known) ? size : sizeof(info.known); i < sizeof(info); i++)
			GIVES(((unsigned char *)&info)[i], 0xaa);
	}
	info.known.size = TLPDMA_INFO_SIZE_0 - 1;
	FAILS(ioctl(file, TLPDMA_IOC_INFO, &info), EINVAL);
	close(file);
}

/* Buffers in several pieces, of any length and place. */
static void test_vectors(void)
{
	static const size_t lengths[] = { 1, 0, 4096, 3, 70000, 4, 123457 };
	enum { PARTS = sizeof(lengths) / sizeof(lengths[0]) };
	struct iovec to[PARTS], from[PARTS];
	const size_t bytes = 1 << 20;
	unsigned char *sent = buffer_of(bytes), *back = buffer_of(bytes), *whole = buffer_of(bytes);
	int file = open_card(0);
	ssize_t sum = 0;

	fill(sent, bytes, 77);
	for (int i = 0; i < PARTS; i++) {
		/* Not in the order of their addresses. */
		to[i] = (struct iovec){ sent + (PARTS - i) * 131072 + 5 * i, lengths[i] };
		from[i] = (struct iovec){ back + (i + 1) * 131072 + 3 * i, lengths[PARTS - 1 - i] };
		sum += (ssize_t)lengths[i];
	}
	GIVES(pwritev(file, to, PARTS, 4097), sum);
	GIVES(preadv(file, from, PARTS, 4097), sum);
	GIVES(pread(file, whole, (size_t)sum, 4097), sum);
	for (int i = 0, at = 0; i < PARTS; at += (int)lengths[i++])
		CHECK(!memcmp(whole + at, to[i].iov_base, lengths[i]), "part %d of a vector went to the card as another", i);
	for (int i = 0, at = 0; i < PARTS; at += (int)from[i++].iov_len)
		CHECK(!memcmp(whole + at, from[i].iov_base, from[i].iov_len), "part %d of a vector came back as another", i);
	/* More of them than a piece has pages. */
	{
		static struct iovec many[1024];

		for (int i = 0; i < 1024; i++)
			many[i] = (struct iovec){ sent + i * 1000, 999 };
		for (int round = 0; round < 3; round++)
			GIVES(pwritev(file, many, 1024, round * 2 * MIB), 1024 * 999);
		GIVES(pread(file, back, 999, 4 * MIB + 500 * 999), 999);
		CHECK(!memcmp(back, sent + 500 * 1000, 999), "a small part of a vector is another");
	}
	munmap(sent, bytes);
	munmap(back, bytes);
	munmap(whole, bytes);
	close(file);
}

/* The kernel's own calls, without a library for them. */
struct queue {
	aio_context_t context;
	struct iocb blocks[64];
	long long results[64];
	int count;
};

static void submit(struct queue *queue, int file, bool to_card, void *data, size_t bytes, off_t at)
{
	struct iocb *block = &queue->blocks[queue->count];

	*block = (struct iocb){
		.aio_data = (uint64_t)queue->count,
		.aio_lio_opcode = to_card ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD,
		.aio_fildes = (uint32_t)file,
		.aio_buf = (uintptr_t)data,
		.aio_nbytes = bytes,
		.aio_offset = at,
	};
	queue->count++;
	GIVES(syscall(SYS_io_submit, queue->context, 1, &block), 1);
}

/* Waits for all of them. */
static void collect(struct queue *queue)
{
	struct io_event events[64];

	GIVES(syscall(SYS_io_getevents, queue->context, queue->count, queue->count, events, NULL), queue->count);
	for (int i = 0; i < queue->count; i++)
		queue->results[events[i].data] = events[i].res;
	queue->count = 0;
}

/* Many requests at once, which nobody waits for one by one. */
static void test_queue(void)
{
	const size_t part = 50000, bytes = 64 * part;
	unsigned char *sent = buffer_of(bytes), *back = buffer_of(bytes);
	struct queue queue = { 0 };
	int file = open_card(0);
	const off_t size = size_of(file);

	GIVES(syscall(SYS_io_setup, 64, &queue.context), 0);
	for (unsigned int round = 0; round < 4; round++) {
		fill(sent, bytes, round);
		for (int to_card = 1; to_card >= 0; to_card--) {
			/* Each at its own place and length, not in order. */
			for (size_t i = 0; i < 64; i++) {
				size_t at = (i * 37 % 64) * part;

				submit(&queue, file, to_card, (to_card ? sent : back) + at, part - i, (off_t)(at + 3));
			}
			collect(&queue);
			for (size_t i = 0; i < 64; i++)
				GIVES(queue.results[i], (long long)(part - i));
		}
		for (size_t i = 0; i < 64; i++) {
			size_t at = (i * 37 % 64) * part;

			CHECK(!memcmp(sent + at, back + at, part - i), "request %zu came back as another", i);
		}
	}
	/* Its ends and bad memory are as those of calls that wait. */
	submit(&queue, file, true, sent, 8, size - 4);
	submit(&queue, file, false, back, 8, size - 4);
	collect(&queue);
	GIVES(queue.results[0], 4);
	GIVES(queue.results[1], 4);
	GIVES(munmap(back, PAGE), 0);
	{
		struct iocb bad = { .aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = (uint32_t)file, .aio_buf = (uintptr_t)back,
				    .aio_nbytes = 8 }, *block = &bad;
		struct io_event event;

		/* It is the call that fails, or the request. */
		if (syscall(SYS_io_submit, queue.context, 1, &block) == 1) {
			GIVES(syscall(SYS_io_getevents, queue.context, 1, 1, &event, NULL), 1);
			GIVES(event.res, -EFAULT);
		} else {
			CHECK(errno == EFAULT, "memory that is not there: %s", strerror(errno));
		}
	}
	GIVES(syscall(SYS_io_destroy, queue.context), 0);
	munmap(sent, bytes);
	munmap(back + PAGE, bytes - PAGE);
	check_works(file);
	close(file);
}

static short ready(int file, int timeout_ms)
{
	struct pollfd one = { .fd = file, .events = POLLIN | POLLOUT };

	CHECK(poll(&one, 1, timeout_ms) >= 0, "poll: %s", strerror(errno));
	return one.revents;
}

static void test_nonblock(void)
{
	int file = open_card(0), eager = open_card(O_NONBLOCK);
	struct pollfd out = { .fd = eager, .events = POLLOUT };
	struct transfer transfer;
	char word[4] = "";

	GIVES(ready(eager, 0), POLLIN | POLLOUT);
	begin(&transfer, file, true);
	FAILS(pwrite(eager, word, 4, 0), EAGAIN);
	GIVES(pread(eager, word, 4, 100 * MIB), 4);
	GIVES(ready(eager, 0), POLLIN);
	GIVES(poll(&out, 1, 0), 0);
	GIVES(poll(&out, 1, 1000), 1);
	GIVES(out.revents, POLLOUT);
	GIVES(pwrite(eager, word, 4, 0), 4);
	GIVES(end(&transfer), LONG);
	begin(&transfer, file, false);
	FAILS(pread(eager, word, 4, 0), EAGAIN);
	GIVES(ready(eager, 0), POLLOUT);
	/* Without O_NONBLOCK it is the next. */
	GIVES(pread(file, word, 4, 0), 4);
	GIVES(end(&transfer), LONG);
	close(file);
	close(eager);
}

static void test_both(void)
{
	struct transfer to, from;
	int file = open_card(0);

	prepare(&to, file, true);
	prepare(&from, file, false);
	start(&to);
	start(&from);
	/* Each is 24 MiB in 13 ms, and none is over before the other has begun. */
	pause_us(2000);
	CHECK(!__atomic_load_n(&to.over, __ATOMIC_SEQ_CST) && !__atomic_load_n(&from.over, __ATOMIC_SEQ_CST),
	      "a long transfer is over at once");
	GIVES(end(&to), LONG);
	GIVES(end(&from), LONG);
	check_works(file);
	close(file);
}

static void nothing(int number)
{
	(void)number;
}

static void test_signals(void)
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

static void test_kills(void)
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

/* Writes to a file of sysfs; false, and errno, if that is refused. */
static bool tell(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);
	const bool told = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
	const int error = errno;

	if (file >= 0)
		close(file);
	errno = error;
	return told;
}

static void must_tell(const char *path, const char *text)
{
	CHECK(tell(path, text), "%s: %s", path, strerror(errno));
}

static const char *in_function(const char *name)
{
	static char path[2 * PATH];

	snprintf(path, sizeof(path), "%s/%s", function, name);
	return path;
}

static void check_gone(int file)
{
	char word[4] = "";
	struct tlpdma_info info = { .size = sizeof(info) };

	FAILS(pwrite(file, word, 4, 0), ENODEV);
	FAILS(pread(file, word, 4, 0), ENODEV);
	FAILS(ioctl(file, TLPDMA_IOC_INFO, &info), ENODEV);
	CHECK(ready(file, 1000) & POLLHUP, "poll() does not tell that the card is gone");
	FAILS(open(device, O_RDWR), ENOENT);
}

/* A transfer that the card's going away ended. */
static void check_ended(ssize_t moved)
{
	CHECK((moved > 0 && moved < LONG) || (moved < 0 && errno == ENODEV), "a transfer without a card gave %zd (%s)", moved,
	      moved < 0 ? strerror(errno) : "");
}

static void test_unbind(void)
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

static void test_queue_unbind(void)
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

static long long counter(const char *name)
{
	char text[32] = "";
	FILE *file = fopen(in_function(name), "re");

	CHECK(file && fgets(text, sizeof(text), file), "%s: %s", name, strerror(errno));
	fclose(file);
	return atoll(text);
}

static void test_counters(void)
{
	static const char *const ways[] = { "to_card", "from_card" };
	unsigned char *nowhere = buffer_of(PAGE);
	int file = open_card(0);

	GIVES(munmap(nowhere, PAGE), 0);
	for (int i = 0; i < 2; i++) {
		char names[4][64];
		long long before[4];
		unsigned char word[5] = "";

		for (int j = 0; j < 4; j++) {
			snprintf(names[j], sizeof(names[j]), "%s/%s", ways[i],
				 (const char *[]){ "transfers", "bytes", "errors", "interrupts" }[j]);
			before[j] = counter(names[j]);
		}
		GIVES(i ? pread(file, word, 5, 0) : pwrite(file, word, 5, 0), 5);
		FAILS(i ? pread(file, nowhere, 5, 0) : pwrite(file, nowhere, 5, 0), EFAULT);
		GIVES(counter(names[0]) - before[0], 2);
		GIVES(counter(names[1]) - before[1], 5);
		GIVES(counter(names[2]) - before[2], 1);
		GIVES(counter(names[3]) - before[3], 1);
	}
	close(file);
}

static void test_remove(void)
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

static void test_reset(void)
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

static void test_sleep(void)
{
	sleep_in_transfers(true);
}

/* The kernel's own test: devices are suspended and resumed, and the rest of the machine stays awake. */
static void test_pm(void)
{
	must_tell("/sys/power/pm_test", "devices");
	sleep_in_transfers(false);
	must_tell("/sys/power/pm_test", "none");
}

/* Somebody takes the card out while it moves data both ways, and puts one back. */
static void test_pulled(void)
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

static const struct test {
	const char *name, *what;
	void (*run)(void);
	const char *needs; /* a file */
	bool only_named;
} tests[] = {
	{ "data", "what is sent comes back", test_data, NULL, false },
	{ "ends", "the end of the memory, file positions", test_ends, NULL, false },
	{ "buffers", "memory that is not there, or not to be written", test_buffers, NULL, false },
	{ "info", "what the card says of itself", test_info, NULL, false },
	{ "vectors", "buffers in several parts", test_vectors, NULL, false },
	{ "queue", "many requests at once", test_queue, NULL, false },
	{ "queue_unbind", "the driver is unbound with many requests under way", test_queue_unbind, "/sys/bus/pci/drivers/tlpdma/unbind", false },
	{ "counters", "counters in sysfs", test_counters, NULL, false },
	{ "nonblock", "O_NONBLOCK and poll()", test_nonblock, NULL, false },
	{ "both", "both directions at once", test_both, NULL, false },
	{ "signals", "a signal in mid-transfer", test_signals, NULL, false },
	{ "kills", "the program is killed in mid-transfer", test_kills, NULL, false },
	{ "unbind", "the driver is unbound in mid-transfer", test_unbind, "/sys/bus/pci/drivers/tlpdma/unbind", false },
	{ "remove", "the function is removed in mid-transfer", test_remove, "/sys/bus/pci/rescan", false },
	{ "reset", "the function is reset in mid-transfer", test_reset, "/sys/bus/pci/rescan", false },
	{ "pm_test", "devices are suspended in mid-transfer", test_pm, "/sys/power/pm_test", false },
	{ "sleep", "the machine sleeps in mid-transfer, and its clock wakes it", test_sleep, "/sys/class/rtc/rtc0/wakealarm", true },
	{ "pulled", "the card is pulled out in mid-transfer and put back", test_pulled, NULL, true },
};

/* Where the function is in sysfs, and its address. */
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
		fprintf(stderr, "usage: device-test /dev/tlpdmaN [TEST...]\nTests, all but the last two unless named:\n");
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
