// SPDX-License-Identifier: MIT OR Apache-2.0
/* Files, buffers, transfers and what the parts of the test tell sysfs. */
#define _GNU_SOURCE
#include "device.h"

char device[PATH], function[PATH], address[32];

void fail(const char *file, int line, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s:%d: ", file, line);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

int open_card(int flags)
{
	int file = open(device, O_RDWR | O_CLOEXEC | flags);

	CHECK(file >= 0, "%s: %s", device, strerror(errno));
	return file;
}

struct tlpdma_info info_of(int file)
{
	struct tlpdma_info info = { .size = sizeof(info) };

	GIVES(ioctl(file, TLPDMA_IOC_INFO, &info), 0);
	return info;
}

off_t size_of(int file)
{
	return (off_t)info_of(file).memory_mib << 20;
}

unsigned char *buffer_of(size_t bytes)
{
	unsigned char *buffer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(buffer != MAP_FAILED, "%zu bytes: %s", bytes, strerror(errno));
	return buffer;
}

void fill(unsigned char *data, size_t bytes, unsigned int seed)
{
	for (size_t i = 0; i < bytes; i++)
		data[i] = (unsigned char)((i * 2654435761u >> 13) + seed + i);
}

void pause_us(long us)
{
	struct timespec time = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&time, NULL);
}

/* Data go to the card and come back. */
void check_works(int file)
{
	static unsigned int seed;
	const size_t bytes = 5 * MIB + 3;
	unsigned char *sent = buffer_of(bytes + PAGE), *back = buffer_of(bytes + PAGE);

	fill(sent, bytes + PAGE, ++seed);
	GIVES(pwrite(file, sent + 5, bytes, 4099), bytes);
	GIVES(pread(file, back + 18, bytes, 4099), bytes);
	CHECK(!memcmp(sent + 5, back + 18, bytes), "the data that came back differ");
	munmap(sent, bytes + PAGE);
	munmap(back, bytes + PAGE);
}

static void *move(void *given)
{
	struct transfer *transfer = given;

	transfer->moved = transfer->to_card ? pwrite(transfer->file, transfer->data, LONG, 0)
					    : pread(transfer->file, transfer->data, LONG, 0);
	transfer->error = errno;
	__atomic_store_n(&transfer->over, true, __ATOMIC_SEQ_CST);
	return NULL;
}

void prepare(struct transfer *transfer, int file, bool to_card)
{
	*transfer = (struct transfer){ .file = file, .to_card = to_card, .data = buffer_of(LONG) };
	fill(transfer->data, LONG, 9);
}

void start(struct transfer *transfer)
{
	GIVES(pthread_create(&transfer->thread, NULL, move, transfer), 0);
}

/* Begins a transfer, and returns when it is under way. */
void begin(struct transfer *transfer, int file, bool to_card)
{
	prepare(transfer, file, to_card);
	start(transfer);
	pause_us(2000);
	CHECK(!__atomic_load_n(&transfer->over, __ATOMIC_SEQ_CST), "a long transfer gave %zd at once (%s)", transfer->moved,
	      transfer->moved < 0 ? strerror(transfer->error) : "short");
}

ssize_t end(struct transfer *transfer)
{
	GIVES(pthread_join(transfer->thread, NULL), 0);
	munmap(transfer->data, LONG);
	errno = transfer->error;
	return transfer->moved;
}

void submit(struct queue *queue, int file, bool to_card, void *data, size_t bytes, off_t at)
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
void collect(struct queue *queue)
{
	struct io_event events[64];

	GIVES(syscall(SYS_io_getevents, queue->context, queue->count, queue->count, events, NULL), queue->count);
	for (int i = 0; i < queue->count; i++)
		queue->results[events[i].data] = events[i].res;
	queue->count = 0;
}

short ready(int file, int timeout_ms)
{
	struct pollfd one = { .fd = file, .events = POLLIN | POLLOUT };

	CHECK(poll(&one, 1, timeout_ms) >= 0, "poll: %s", strerror(errno));
	return one.revents;
}

/* Writes to a file of sysfs; false, and errno, if that is refused. */
bool tell(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);
	const bool told = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
	const int error = errno;

	if (file >= 0)
		close(file);
	errno = error;
	return told;
}

void must_tell(const char *path, const char *text)
{
	CHECK(tell(path, text), "%s: %s", path, strerror(errno));
}

const char *in_function(const char *name)
{
	static char path[2 * PATH];

	snprintf(path, sizeof(path), "%s/%s", function, name);
	return path;
}
