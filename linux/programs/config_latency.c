// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The differential method as a program (docs/differential.md): reads the first doubleword of every function's configuration space through
 * sysfs, one read at a time, each between two readings of the clock; the shortest read of a function less the shortest of the bridge above it
 * is the latency of the link between them. Nothing is ever written.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define DEVICES		"/sys/bus/pci/devices"
#define BURST		200u	/* reads of a target in a row; what drifts meets all targets alike */
#define BEHIND_ALL	4096	/* an offset at which there is nothing to read: what the system call costs alone */

struct target {
	char name[16], parent[16];
	int file;
	uint64_t *ns;
	unsigned int ones;
};

static struct target targets[256];
static unsigned int count;
static unsigned int samples = 1000;
static uint64_t gap_ns;

static const char help[] =
	"usage: config-latency [-n SAMPLES] [-g NS] [-o FILE] [DOMAIN:BUS:DEVICE.FUNCTION...]\n"
	"\n"
	"Reads configuration registers, of all functions or of the named ones, and prints the time\n"
	"of a read and the latency that each link between them adds.\n"
	"\n"
	"  -n SAMPLES  reads of each function (1000)\n"
	"  -g NS       sleep for a random time up to this between two reads (0)\n"
	"  -o FILE     write every sample as well: a line for each function\n";

static void quit(const char *what)
{
	fprintf(stderr, "config-latency: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The function or bridge above another, as the path in sysfs has it; empty below the root complex. */
static void find_parent(struct target *target)
{
	char path[PATH_MAX], real[PATH_MAX], *end;
	unsigned int domain, bus, device, function;

	snprintf(path, sizeof(path), DEVICES "/%s", target->name);
	if (!realpath(path, real))
		quit(path);
	end = strrchr(real, '/');
	*end = '\0';
	end = strrchr(real, '/') + 1;
	if (sscanf(end, "%x:%x:%x.%x", &domain, &bus, &device, &function) == 4)
		snprintf(target->parent, sizeof(target->parent), "%.15s", end);
}

static void add(const char *name)
{
	struct target *target = &targets[count];
	char path[PATH_MAX];

	if (count == sizeof(targets) / sizeof(targets[0]))
		return;
	snprintf(target->name, sizeof(target->name), "%.15s", name);
	snprintf(path, sizeof(path), DEVICES "/%s/config", target->name);
	target->file = open(path, O_RDONLY | O_CLOEXEC);
	target->ns = calloc(samples, sizeof(*target->ns));
	if (target->file < 0 || !target->ns)
		quit(path);
	find_parent(target);
	count++;
}

static int by_name(const struct dirent **left, const struct dirent **right)
{
	return strcmp((*left)->d_name, (*right)->d_name);
}

static void add_all(void)
{
	struct dirent **found;
	const int all = scandir(DEVICES, &found, NULL, by_name);

	if (all < 0)
		quit(DEVICES);
	for (int i = 0; i < all; i++)
		if (found[i]->d_name[0] != '.')
			add(found[i]->d_name);
}

/* A generator of its own (xorshift64), so that a run can be repeated. */
static uint64_t random_below(uint64_t end)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % end;
}

static void wait_at_random(void)
{
	struct timespec time;
	uint64_t ns;

	if (!gap_ns)
		return;
	ns = random_below(gap_ns);
	time = (struct timespec){ (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
	nanosleep(&time, NULL);
}

/* One timed read; one at BEHIND_ALL is a system call alone. */
static uint64_t read_once(struct target *target, off_t offset)
{
	uint32_t value = 0;
	uint64_t begin = now(), end;
	ssize_t got = pread(target->file, &value, sizeof(value), offset);

	end = now();
	if (got < 0)
		quit(target->name);
	target->ones += value == UINT32_MAX;
	return end - begin;
}

static int ascending(const void *left, const void *right)
{
	const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static uint64_t system_call(void)
{
	uint64_t least = UINT64_MAX;

	for (unsigned int i = 0; i < BURST; i++) {
		const uint64_t took = read_once(&targets[0], BEHIND_ALL);

		if (took < least)
			least = took;
	}
	return least;
}

static void sample(void)
{
	for (unsigned int done = 0; done < samples; done += BURST)
		for (unsigned int i = 0; i < count; i++)
			for (unsigned int n = done; n < samples && n < done + BURST; n++) {
				targets[i].ns[n] = read_once(&targets[i], 0);
				wait_at_random();
			}
}

static void write_samples(const char *path)
{
	FILE *file = fopen(path, "we");

	if (!file)
		quit(path);
	for (unsigned int i = 0; i < count; i++) {
		fputs(targets[i].name, file);
		for (unsigned int n = 0; n < samples; n++)
			fprintf(file, " %" PRIu64, targets[i].ns[n]);
		fputc('\n', file);
	}
	if (fclose(file))
		quit(path);
}

/* Each read contains the time of a system call; the shortest is given without it, too. */
static void print_reads(uint64_t call)
{
	printf("%-14s%-14s%9s%9s%9s%9s%9s%9s%9s\n", "function", "below", "samples", "bus, ns", "min", "median", "mean", "99 %", "std");
	for (unsigned int i = 0; i < count; i++) {
		struct target *target = &targets[i];
		double sum = 0, squares = 0, mean;

		qsort(target->ns, samples, sizeof(*target->ns), ascending);
		for (unsigned int n = 0; n < samples; n++)
			sum += (double)target->ns[n];
		mean = sum / samples;
		for (unsigned int n = 0; n < samples; n++)
			squares += ((double)target->ns[n] - mean) * ((double)target->ns[n] - mean);
		printf("%-14s%-14s%9u%9" PRId64 "%9" PRIu64 "%9" PRIu64 "%9.1f%9" PRIu64 "%9.1f\n", target->name,
		       target->parent[0] ? target->parent : "-", samples, (int64_t)(target->ns[0] - call), target->ns[0],
		       target->ns[samples / 2], mean, target->ns[(samples - 1) * 99ul / 100], sqrt(squares / samples));
		if (target->ones == samples)
			printf("  no answer\n");
	}
}

static void print_links(void)
{
	printf("\n%-28s%9s\n", "link, there and back", "adds, ns");
	for (unsigned int i = 0; i < count; i++)
		for (unsigned int n = 0; n < count; n++)
			if (!strcmp(targets[i].parent, targets[n].name))
				printf("%-12s -> %-12s%9" PRId64 "\n", targets[n].name, targets[i].name,
				       (int64_t)(targets[i].ns[0] - targets[n].ns[0]));
}

static uint64_t number(const char *text, uint64_t least, uint64_t most)
{
	char *end;
	const uint64_t value = strtoull(text, &end, 0);

	if (!*text || *end || value < least || value > most) {
		fprintf(stderr, "config-latency: %s is not a number from %" PRIu64 " to %" PRIu64 "\n", text, least, most);
		exit(2);
	}
	return value;
}

int main(int arguments, char **argument)
{
	const char *all = NULL;
	uint64_t call;
	int option;

	while ((option = getopt(arguments, argument, "hn:g:o:")) != -1) {
		switch (option) {
		case 'n':
			samples = (unsigned int)number(optarg, 1, 10000000);
			break;
		case 'g':
			gap_ns = number(optarg, 0, 1000000000);
			break;
		case 'o':
			all = optarg;
			break;
		default:
			fputs(help, option == 'h' ? stdout : stderr);
			return option == 'h' ? 0 : 2;
		}
	}
	for (int i = optind; i < arguments; i++)
		add(argument[i]);
	if (!count)
		add_all();
	if (!count) {
		fputs("config-latency: there is no PCI function\n", stderr);
		return 1;
	}
	/* Otherwise every sleep may last 50 us longer. */
	prctl(PR_SET_TIMERSLACK, 1);
	call = system_call();
	sample();
	if (all)
		write_samples(all);
	printf("a system call that reads nothing takes %" PRIu64 " ns; that is in each read, not in the bus's part of the shortest\n", call);
	print_reads(call);
	print_links();
	return 0;
}
