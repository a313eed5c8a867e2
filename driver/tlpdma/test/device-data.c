// SPDX-License-Identifier: MIT OR Apache-2.0
/* Tests of transfers: data, buffers of any kind, queues, both directions, and counters. */
#define _GNU_SOURCE
#include "device.h"

void test_data(void)
{
	int file = open_card(0);

	check_works(file);
	close(file);
}

void test_ends(void)
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

void test_buffers(void)
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
void test_info(void)
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
void test_vectors(void)
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

/* Many requests at once, which nobody waits for one by one. */
void test_queue(void)
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

/* Something makes the card halt: the request at which it did fails, and no other. */
void test_nonblock(void)
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

void test_both(void)
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

static long long counter(const char *name)
{
	char text[32] = "";
	FILE *file = fopen(in_function(name), "re");

	CHECK(file && fgets(text, sizeof(text), file), "%s: %s", name, strerror(errno));
	fclose(file);
	return atoll(text);
}

void test_counters(void)
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
