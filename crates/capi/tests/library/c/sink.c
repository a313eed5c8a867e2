/*
 * A device that looks at every byte of all that it is sent, until its standard
 * input ends.
 *
 *   sink ADAPTER LOCAL
 */
#include <arpa/inet.h>

#include <libtlp.h>

#include "check.h"

#define WINDOW 0xB0000000UL
#define SIZE   0x100000UL

static unsigned long calls[5], sum;

static void look(const void *data, size_t count)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < count; i++)
		sum += bytes[i];
}

static int on_mrd(struct nettlp *nt, struct tlp_mr_hdr *mh, void *arg)
{
	static unsigned char zeros[4096];
	uintptr_t addr = tlp_mr_addr(mh);
	int bytes = tlp_mr_data_length(mh);

	(void)arg;
	calls[0]++;
	look(mh, tlp_is_4dw(mh->tlp.fmt_type) ? 16 : 12);
	CHECK(addr >= WINDOW && addr + (unsigned int)bytes <= WINDOW + SIZE && bytes <= 4096);
	nettlp_send_cpld(nt, mh, zeros, (size_t)bytes);
	return 0;
}

static int on_mwr(struct nettlp *nt, struct tlp_mr_hdr *mh, void *data, size_t count, void *arg)
{
	uintptr_t addr = tlp_mr_addr(mh);

	(void)nt, (void)arg;
	calls[1]++;
	look(mh, tlp_is_4dw(mh->tlp.fmt_type) ? 16 : 12);
	look(data, count);
	CHECK(addr >= WINDOW && addr + count <= WINDOW + SIZE);
	return 0;
}

static int on_cpl(struct nettlp *nt, struct tlp_cpl_hdr *ch, void *arg)
{
	(void)nt, (void)arg;
	calls[2]++;
	look(ch, sizeof(*ch));
	return 0;
}

static int on_cpld(struct nettlp *nt, struct tlp_cpl_hdr *ch, void *data, size_t count, void *arg)
{
	(void)nt, (void)arg;
	calls[3]++;
	look(ch, sizeof(*ch));
	look(data, count);
	return 0;
}

static int on_other(struct nettlp *nt, struct tlp_hdr *tlp, void *arg)
{
	(void)nt, (void)arg;
	calls[4]++;
	look(tlp, tlp_is_4dw(tlp->fmt_type) ? 16 : 12);
	return 0;
}

int main(int argc, char **argv)
{
	struct nettlp nt, *contexts[] = { &nt };
	struct nettlp_cb callbacks;

	memset(&nt, 0, sizeof(nt));
	memset(&callbacks, 0, sizeof(callbacks));
	CHECK(argc == 3 && inet_pton(AF_INET, argv[1], &nt.remote_addr) == 1);
	CHECK_IS(inet_pton(AF_INET, argv[2], &nt.local_addr), 1);
	nt.requester = 0x1b00;
	nt.dir = DMA_ISSUED_BY_ADAPTER;
	CHECK_IS(nettlp_init(&nt), 0);
	callbacks.start = WINDOW;
	callbacks.end = WINDOW + SIZE;
	callbacks.mrd = on_mrd;
	callbacks.mwr = on_mwr;
	callbacks.cpl = on_cpl;
	callbacks.cpld = on_cpld;
	callbacks.other = on_other;
	printf("ready\n");
	fflush(stdout);
	CHECK_IS(nettlp_run_cb_until(contexts, 1, &callbacks, NULL, 0), 0);
	for (int i = 0; i < 5; i++)
		CHECK(calls[i] > 0);
	printf("%lu reads, %lu writes, %lu and %lu completions, %lu others, %lx\n", calls[0], calls[1], calls[2],
	       calls[3], calls[4], sum);
	return 0;
}
