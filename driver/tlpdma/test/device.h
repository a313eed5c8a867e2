/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations that the parts of the device test share; device-test.c describes the test. */
#ifndef DEVICE_H
#define DEVICE_H

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

extern char device[PATH], function[PATH], address[32];

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

/* The kernel's own calls, without a library for them. */
struct queue {
	aio_context_t context;
	struct iocb blocks[64];
	long long results[64];
	int count;
};

__attribute__((format(printf, 3, 4), noreturn)) void fail(const char *file, int line, const char *format, ...);
int open_card(int flags);
struct tlpdma_info info_of(int file);
off_t size_of(int file);
unsigned char *buffer_of(size_t bytes);
void fill(unsigned char *data, size_t bytes, unsigned int seed);
void pause_us(long us);
void check_works(int file);
void prepare(struct transfer *transfer, int file, bool to_card);
void start(struct transfer *transfer);
void begin(struct transfer *transfer, int file, bool to_card);
ssize_t end(struct transfer *transfer);
void submit(struct queue *queue, int file, bool to_card, void *data, size_t bytes, off_t at);
void collect(struct queue *queue);
short ready(int file, int timeout_ms);
bool tell(const char *path, const char *text);
void must_tell(const char *path, const char *text);
const char *in_function(const char *name);

#define CHECK(condition, ...) do { if (!(condition)) fail(__FILE__, __LINE__, __VA_ARGS__); } while (0)

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

void test_data(void);
void test_ends(void);
void test_buffers(void);
void test_info(void);
void test_vectors(void);
void test_queue(void);
void test_queue_halts(void);
void test_window(void);
void test_faults(void);
void test_nonblock(void);
void test_both(void);
void test_counters(void);
void test_signals(void);
void test_kills(void);
void test_unbind(void);
void test_queue_unbind(void);
void test_remove(void);
void test_reset(void);
void test_sleep(void);
void test_pm(void);
void test_pulled(void);

#endif
