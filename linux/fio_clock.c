// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Loaded before fio. When it starts, fio measures the processor's cycle counter: it reads the clock until 1.28 ms are over, 51 times.
 * In virtual time a loop that reads the clock moves it by little, and takes minutes. So the first reads of the clock sleep.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ITERATIONS 51

int clock_gettime(clockid_t clock, struct timespec *now)
{
	static const struct timespec iteration = { .tv_nsec = 1300000 };
	static int reads;

	/* Each iteration reads it twice, at least. */
	if (reads < 2 * ITERATIONS && reads++ % 2)
		nanosleep(&iteration, NULL);
	return (int)syscall(SYS_clock_gettime, clock, now);
}
