/*
 * Times accesses of registers from a guest: reads and posted writes of several functions, in turns.
 *
 *   mmio TURNS ACCESSES FUNCTION...      such as 0000:01:00.0; prints "FUNCTION read|write NANOSECONDS" for each turn
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int argc, char **argv)
{
	int turns = argc > 3 ? atoi(argv[1]) : 0, accesses = argc > 3 ? atoi(argv[2]) : 0;
	volatile uint32_t *registers[16];
	char path[64];

	if (turns < 1 || accesses < 1 || argc > 19)
		return 2;
	for (int n = 3; n < argc; n++) {
		int file;

		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/resource0", argv[n]);
		file = open(path, O_RDWR);
		registers[n - 3] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		if (registers[n - 3] == MAP_FAILED) {
			perror(path);
			return 1;
		}
	}
	for (int turn = 0; turn < turns; turn++)
		for (int n = 3; n < argc; n++) {
			volatile uint32_t *at = registers[n - 3];
			double begun = now();

			for (int i = 0; i < accesses; i++)
				(void)*at;
			printf("%s read %.1f\n", argv[n], (now() - begun) / accesses);
			begun = now();
			for (int i = 0; i < accesses; i++)
				*at = i;
			printf("%s write %.1f\n", argv[n], (now() - begun) / accesses);
			(void)*at; /* all have arrived */
		}
	return 0;
}
