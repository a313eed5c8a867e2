/*
 * A device that is nothing but memory: 64 KiB behind the adapter's BAR4, which
 * the host reads and writes. Ctrl-C ends it.
 *
 *   memory ADAPTER LOCAL
 *   memory 127.0.0.2 127.0.0.1
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <libtlp.h>

#define SIZE 65536

static unsigned char memory[SIZE];
static uintptr_t base;

/* The library has checked that requests are inside the window. */
static int on_read(struct nettlp *nt, struct tlp_mr_hdr *mh, void *arg)
{
	(void)arg;
	if (nettlp_send_cpld(nt, mh, memory + (tlp_mr_addr(mh) - base), (size_t)tlp_mr_data_length(mh)) < 0)
		fprintf(stderr, "memory: %s\n", tlp_strerror(errno));
	return 0;
}

static int on_write(struct nettlp *nt, struct tlp_mr_hdr *mh, void *data, size_t count, void *arg)
{
	(void)nt, (void)arg;
	memcpy(memory + (tlp_mr_addr(mh) - base), data, count);
	return 0;
}

/* Can be read when the program is to end, even if a signal came before it ran. */
static int stop[2];

static void on_signal(int number)
{
	(void)number;
	if (write(stop[1], "", 1) < 0)
		_exit(1);
}

int main(int argc, char **argv)
{
	struct nettlp contexts[16], *pointers[16];
	struct nettlp_cb callbacks;
	uint16_t requester;

	memset(contexts, 0, sizeof(contexts));
	if (argc != 3 || inet_pton(AF_INET, argv[1], &contexts[0].remote_addr) != 1 ||
	    inet_pton(AF_INET, argv[2], &contexts[0].local_addr) != 1) {
		fprintf(stderr, "usage: memory ADAPTER LOCAL\n");
		return 2;
	}
	/* The host's requests come to sixteen ports, by the low bits of their tags. */
	for (int i = 0; i < 16; i++) {
		pointers[i] = &contexts[i];
		contexts[i] = contexts[0];
		contexts[i].tag = (uint8_t)i;
		contexts[i].dir = DMA_ISSUED_BY_ADAPTER;
		if (nettlp_init(&contexts[i]) < 0) {
			fprintf(stderr, "memory: port %#x: %s\n", 0x4000 + i, tlp_strerror(errno));
			return 1;
		}
	}
	base = nettlp_msg_get_bar4_start(contexts[0].remote_addr);
	if (!base) {
		fprintf(stderr, "memory: the adapter does not report the address of BAR4: %s\n", tlp_strerror(errno));
		return 1;
	}
	requester = nettlp_msg_get_dev_id(contexts[0].remote_addr);
	if (!requester) {
		fprintf(stderr, "memory: the adapter does not report its ID: %s\n", tlp_strerror(errno));
		return 1;
	}
	for (int i = 0; i < 16; i++)
		contexts[i].requester = requester;

	if (pipe(stop) < 0) {
		perror("memory");
		return 1;
	}
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	memset(&callbacks, 0, sizeof(callbacks));
	callbacks.start = base;
	callbacks.end = base + SIZE;
	callbacks.mrd = on_read;
	callbacks.mwr = on_write;
	printf("64 KiB at %#lx\n", (unsigned long)base);
	fflush(stdout);
	if (nettlp_run_cb_until(pointers, 16, &callbacks, NULL, stop[0]) < 0) {
		fprintf(stderr, "memory: %s\n", tlp_strerror(errno));
		return 1;
	}
	return 0;
}
