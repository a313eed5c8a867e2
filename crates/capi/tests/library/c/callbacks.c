/*
 * Callbacks: this program is the device and, on sockets of its own, the host
 * behind the adapter.
 */
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

#include <libtlp.h>

#include "peer.h"

#define WINDOW 0x40000000UL
#define SIZE   8192

static struct in_addr device, adapter;
static unsigned char memory[SIZE];
static struct nettlp contexts[16], *pointers[16];
static int host[16];
static _Atomic int writes, others, cpls, cplds;
static unsigned char log_of_writes[64][3]; /* offset, bytes, first byte */

/* A completer as programs have it: it builds completions itself, from the request's header, and writes them to the socket. */
static int on_mrd(struct nettlp *nt, struct tlp_mr_hdr *mh, void *arg)
{
	uintptr_t addr = tlp_mr_addr(mh);
	int bytes = tlp_mr_data_length(mh);
	struct nettlp_hdr nh;
	struct tlp_cpl_hdr ch;
	struct iovec iov[3] = { { &nh, sizeof(nh) }, { &ch, sizeof(ch) }, { NULL, 0 } };

	CHECK(arg == memory);
	CHECK_IS(((struct nettlp_hdr *)mh)[-1].tstamp, htonl(0x55555555)); /* the header stands before it */
	if (addr & 0x800) { /* half of the memory is answered by the library's help */
		CHECK_IS(nettlp_send_cpld(nt, mh, memory + (addr - WINDOW), (size_t)bytes), bytes);
		CHECK_FAILS(nettlp_send_cpld(nt, mh, memory, (size_t)bytes + 1), EINVAL);
		return 0;
	}
	if (addr == WINDOW + 0x400) {
		CHECK_FAILS(nettlp_send_cpl(nt, mh, TLP_CPL_STATUS_SC), EINVAL);
		CHECK_IS(nettlp_send_cpl(nt, mh, TLP_CPL_STATUS_CA), 0);
		return -1; /* a value without a meaning */
	}
	memset(&nh, 0, sizeof(nh));
	memset(&ch, 0, sizeof(ch));
	tlp_set_type(ch.tlp.fmt_type, TLP_TYPE_Cpl);
	tlp_set_fmt(ch.tlp.fmt_type, TLP_FMT_3DW, TLP_FMT_W_DATA);
	tlp_set_length(ch.tlp.falen, tlp_length(mh->tlp.falen));
	tlp_set_cpl_bcnt(ch.stcnt, bytes);
	ch.completer = htons(nt->requester);
	ch.requester = mh->requester;
	ch.tag = mh->tag;
	ch.lowaddr = addr & 0x7F;
	iov[2].iov_base = memory + ((addr & ~3UL) - WINDOW);
	iov[2].iov_len = (size_t)tlp_length(mh->tlp.falen) * 4;
	CHECK(writev(nt->sockfd, iov, 3) > 0);
	return 0;
}

static int on_mwr(struct nettlp *nt, struct tlp_mr_hdr *mh, void *m, size_t count, void *arg)
{
	uintptr_t addr = tlp_mr_addr(mh);

	CHECK(nt >= contexts && nt < contexts + 16 && arg == memory);
	CHECK_IS(tlp_mr_data_length(mh), count);
	CHECK(count == 0 || m == tlp_mwr_data(mh));
	memcpy(memory + (addr - WINDOW), m, count);
	if (writes < 64) {
		log_of_writes[writes][0] = addr & 0xFF;
		log_of_writes[writes][1] = (unsigned char)count;
		log_of_writes[writes][2] = count ? *(unsigned char *)m : 0;
	}
	writes++;
	return 0;
}

static int on_cpl(struct nettlp *nt, struct tlp_cpl_hdr *ch, void *arg)
{
	(void)nt, (void)arg;
	CHECK_IS(tlp_cpl_status(ch->stcnt), TLP_CPL_STATUS_UR);
	cpls++;
	return 0;
}

static int on_cpld(struct nettlp *nt, struct tlp_cpl_hdr *ch, void *m, size_t count, void *arg)
{
	(void)nt, (void)ch, (void)arg;
	CHECK(count == 5 && !memcmp(m, "hello", 5));
	cplds++;
	return 0;
}

static int on_other(struct nettlp *nt, struct tlp_hdr *tlp, void *arg)
{
	(void)nt, (void)arg;
	CHECK_IS(tlp_type(tlp->fmt_type), 0x14); /* a message, routed locally */
	others++;
	return 0;
}

/* ---- the host's side ---- */

static void send_tlp(int port, const void *tlp, size_t size)
{
	static uint16_t sequence;
	unsigned char out[6 + 5000] = { 0, 0, 0x55, 0x55, 0x55, 0x55 };
	struct sockaddr_in to;

	sequence++;
	out[0] = (unsigned char)(sequence >> 8);
	out[1] = (unsigned char)sequence;
	memcpy(out + 6, tlp, size);
	memset(&to, 0, sizeof(to));
	to.sin_family = AF_INET;
	to.sin_addr = device;
	to.sin_port = htons((uint16_t)(0x4000 + port));
	peer_send(host[port], &to, out, 6 + size);
}

/* A request of `dwords` DWs with these byte enables. */
static size_t request(unsigned char *out, int is_write, uintptr_t address, unsigned int dwords, unsigned int enables, unsigned int tag)
{
	unsigned char header[12] = { (unsigned char)(is_write ? 0x40 : 0), 0, (unsigned char)(dwords >> 8 & 3), (unsigned char)dwords,
				     0, 0x08, (unsigned char)tag, (unsigned char)enables, (unsigned char)(address >> 24),
				     (unsigned char)(address >> 16), (unsigned char)(address >> 8), (unsigned char)(address & 0xFC) };

	memcpy(out, header, 12);
	return 12;
}

/* The data that the host gets: all completions of one read, put together. Returns their number, or minus the status. */
static int completions(int port, unsigned int tag, uintptr_t address, unsigned char *data, unsigned int bytes)
{
	static unsigned char last[6];
	unsigned int got = 0;

	for (int count = 1;; count++) {
		unsigned char in[8192];
		struct pollfd polled = { host[port], POLLIN, 0 };
		unsigned int part, low, dwords;
		ssize_t size;

		CHECK_IS(poll(&polled, 1, 2000), 1);
		size = recv(host[port], in, sizeof(in), 0);
		CHECK(size >= 18);
		CHECK_IS(in[6 + 10], tag);
		if (address & 0x800) { /* the library numbers its completions */
			CHECK(memcmp(in, "\0\0\0\0\0\0", 6) && memcmp(in, last, 6));
			memcpy(last, in, 6);
		}
		CHECK_IS(in[6 + 8] << 8 | in[6 + 9], 0x0008);
		if (in[6] == 0x0A)
			return -(in[6 + 6] >> 5);
		CHECK_IS(in[6], 0x4A);
		low = in[6 + 11];
		CHECK_IS(low, (got ? address + got : address) & 0x7F);
		dwords = (in[8] & 3u) << 8 | in[9];
		dwords = dwords ? dwords : 1024;
		CHECK_IS(size, 18 + dwords * 4);
		CHECK_IS((in[12] & 15) << 8 | in[13], (bytes - got) & 0xFFF);
		part = dwords * 4 - low % 4;
		part = part > bytes - got ? bytes - got : part;
		memcpy(data + got, in + 18 + low % 4, part);
		got += part;
		if (got == bytes)
			return count;
		CHECK_IS((address + got) % 128, 0); /* cut at the boundary, the first one too */
	}
}

static void settled(_Atomic int *counter, int wanted)
{
	for (int i = 0; i < 2000 && *counter < wanted; i++)
		usleep(1000);
	CHECK_IS(*counter, wanted);
}

/* ---- runs ---- */

struct run {
	pthread_t thread;
	struct nettlp_cb cb;
	int first, count, stop;
	_Atomic int result;
};

static void *run(void *arg)
{
	struct run *run = (struct run *)arg;

	run->result = run->stop < 0 ? nettlp_run_cb(pointers + run->first, run->count, &run->cb, memory) :
				      nettlp_run_cb_until(pointers + run->first, run->count, &run->cb, memory, run->stop);
	return NULL;
}

/* nettlp_stop_cb() is for runs that have begun: who calls it has had an answer of the run before. */
static void start(struct run *r)
{
	r->result = 77;
	CHECK_IS(pthread_create(&r->thread, NULL, run, r), 0);
}

static void joined(struct run *r)
{
	CHECK_IS(pthread_join(r->thread, NULL), 0);
	CHECK_IS(r->result, 0);
}

static void reads(void)
{
	static const struct { uintptr_t offset; unsigned int dwords, enables, bytes; int parts; } cases[] = {
		{ 0, 1, 0x0F, 4, 1 },       { 5, 1, 0x02, 1, 1 },    { 6, 2, 0x1C, 3, 1 },
		{ 0, 1, 0x00, 1, 1 }, /* a flush */
		{ 0x800, 1, 0x0F, 4, 1 },   { 0x87D, 64, 0xFE, 255, 1 }, { 0x880, 128, 0xFF, 512, 2 },
		{ 0x8C0, 128, 0xFF, 512, 3 }, { 0x1800, 512, 0xFF, 2048, 8 },
		{ 0x0000, 1024, 0xFF, 4096, 1 }, /* in one: 0 in both fields */
		{ 0x800, 1, 0x00, 1, 1 },
	};
	unsigned char tlp[16], data[4096];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uintptr_t address = WINDOW + cases[i].offset;
		int port = (int)i % 16;

		send_tlp(port, tlp, request(tlp, 0, address, cases[i].dwords, cases[i].enables, 0xA0 + (unsigned)port));
		CHECK_IS(completions(port, 0xA0 + (unsigned)port, address, data, cases[i].bytes), cases[i].parts);
		CHECK(cases[i].enables == 0 || !memcmp(data, memory + cases[i].offset, cases[i].bytes));
	}
	send_tlp(3, tlp, request(tlp, 0, WINDOW + 0x400, 1, 0x0F, 3));
	CHECK_IS(completions(3, 3, WINDOW + 0x400, data, 4), -4); /* CA, as the program said */
}

/* Enabled bytes with holes are no range: each run of them is a write of its own. */
static void writes_with_holes(void)
{
	static const struct { unsigned int dwords, enables; unsigned char log[3][3]; int parts; } cases[] = {
		{ 1, 0x0F, { { 0x10, 4, 'a' } }, 1 },
		{ 1, 0x0B, { { 0x10, 2, 'a' }, { 0x13, 1, 'd' } }, 2 },
		{ 1, 0x06, { { 0x11, 2, 'b' } }, 1 },
		{ 2, 0x81, { { 0x10, 1, 'a' }, { 0x17, 1, 'h' } }, 2 },
		{ 2, 0x5A, { { 0x11, 1, 'b' }, { 0x13, 2, 'd' }, { 0x16, 1, 'g' } }, 3 },
		{ 1, 0x00, { { 0x10, 0, 0 } }, 1 },
	};
	unsigned char tlp[16 + 8], before[8], want[8];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		memcpy(before, memory + 0x110, 8);
		writes = 0;
		memcpy(tlp + request(tlp, 1, WINDOW + 0x110, cases[i].dwords, cases[i].enables, 0), "abcdefgh", 8);
		send_tlp(5, tlp, 12 + cases[i].dwords * 4);
		settled(&writes, cases[i].parts);
		CHECK(!memcmp(log_of_writes, cases[i].log, 3 * (size_t)cases[i].parts));
		for (int j = 0; j < 8; j++)
			want[j] = cases[i].enables >> j & 1 ? (unsigned char)("abcdefgh"[j]) : before[j];
		CHECK(!memcmp(memory + 0x110, want, 8));
	}
}

static void others_too(void)
{
	static const unsigned char message[16] = { 0x34, 0, 0, 0, 0, 8, 0, 0x20 };
	unsigned char cpl[12] = { 0x0A, 0, 0, 0, 0, 0, 0x20, 4, 0x1b, 0, 9, 0 };
	unsigned char cpld[20] = { 0x4A, 0, 0, 2, 0, 0, 0, 5, 0x1b, 0, 9, 2, 0, 0, 'h', 'e', 'l', 'l', 'o' };
	unsigned char cut[16] = { 0x40, 0, 0, 9, 0, 8, 0, 0xFF, 0x40, 0, 0, 0 }; /* says 36 bytes, has 4 */
	struct nettlp_counters counters;

	send_tlp(1, message, sizeof(message));
	settled(&others, 1);
	send_tlp(1, cpl, sizeof(cpl));
	send_tlp(1, cpld, sizeof(cpld));
	settled(&cplds, 1);
	settled(&cpls, 1);
	/* A TLP that is shorter than its header states would make programs read behind it. */
	writes = 0;
	send_tlp(1, cut, sizeof(cut));
	send_tlp(1, cut, 7);
	send_tlp(1, message, sizeof(message));
	settled(&others, 2);
	CHECK_IS(writes, 0);
	CHECK_IS(nettlp_get_counters(pointers, 16, &counters), 0);
	CHECK_IS(counters.malformed, 2);
	CHECK_IS(counters.lost, 2); /* the same: of what is malformed not even the number is believed */
	CHECK_IS(counters.refused, 0);
}

/* A read that nobody claims is refused at once, not by silence. */
static void windows(void)
{
	struct run r = { .first = 0, .count = 2, .stop = -1 };
	struct nettlp_counters counters;
	unsigned char tlp[16], data[64];

	r.cb.mwr = on_mwr;
	r.cb.mrd = on_mrd;
	r.cb.start = WINDOW + 0x100;
	r.cb.end = WINDOW + 0x1000;
	start(&r);
	send_tlp(0, tlp, request(tlp, 0, WINDOW + 0xFFC, 1, 0x0F, 0));
	CHECK_IS(completions(0, 0, WINDOW + 0xFFC, data, 4), 1);
	send_tlp(0, tlp, request(tlp, 0, WINDOW + 0x1000, 1, 0x0F, 0));
	CHECK_IS(completions(0, 0, WINDOW + 0x1000, data, 4), -1);
	send_tlp(0, tlp, request(tlp, 0, WINDOW + 0xFC, 2, 0xFF, 0)); /* half of it */
	CHECK_IS(completions(0, 0, WINDOW + 0xFC, data, 8), -1);
	nettlp_stop_cb();
	joined(&r);

	r.cb.start = r.cb.end = 0;
	r.cb.mrd = NULL; /* only writes are heard of, as by the published NIC */
	start(&r);
	send_tlp(1, tlp, request(tlp, 0, WINDOW, 1, 0x0F, 1));
	CHECK_IS(completions(1, 1, WINDOW, data, 4), -1);
	nettlp_stop_cb();
	joined(&r);
	CHECK_IS(nettlp_get_counters(pointers, 2, &counters), 0);
	CHECK_IS(counters.refused, 3);
}

/* Each run ends by its own means, and the others go on; a stop is over when it was obeyed. */
static void stops(void)
{
	struct run a = { .first = 0, .count = 8 }, b = { .first = 8, .count = 8 };
	unsigned char tlp[16], data[4];
	uint64_t one = 1;

	a.cb.mrd = b.cb.mrd = on_mrd;
	a.stop = eventfd(0, 0);
	b.stop = -1;
	start(&a);
	start(&b);
	CHECK_IS(write(a.stop, &one, 8), 8);
	joined(&a);
	send_tlp(9, tlp, request(tlp, 0, WINDOW, 1, 0x0F, 9));
	CHECK_IS(completions(9, 9, WINDOW, data, 4), 1);
	nettlp_stop_cb();
	joined(&b);
	/* Nothing of that stops this run, which has found what came meanwhile. */
	send_tlp(10, tlp, request(tlp, 0, WINDOW, 1, 0x0F, 10));
	start(&b);
	CHECK_IS(completions(10, 10, WINDOW, data, 4), 1);
	CHECK_IS(b.result, 77);
	nettlp_stop_cb();
	joined(&b);
	close(a.stop);

	CHECK_FAILS(nettlp_run_cb(pointers, 17, &b.cb, NULL), EINVAL);
	CHECK_FAILS(nettlp_run_cb(pointers, 0, &b.cb, NULL), EINVAL);
	CHECK_FAILS(nettlp_run_cb(NULL, 1, &b.cb, NULL), EFAULT);
	CHECK_FAILS(nettlp_run_cb(pointers, 1, NULL, NULL), EFAULT);
}

/* A signal handler of the thread that runs may stop it. */
static void on_signal(int number)
{
	(void)number;
	nettlp_stop_cb();
}

static void by_signal(void)
{
	struct nettlp_cb cb;

	memset(&cb, 0, sizeof(cb));
	CHECK(signal(SIGALRM, on_signal) != SIG_ERR);
	ualarm(50 * 1000, 50 * 1000); /* again and again, for the first one may come before the run */
	CHECK_IS(nettlp_run_cb(pointers, 16, &cb, NULL), 0);
	ualarm(0, 0);
}

int main(void)
{
	struct run r = { .first = 0, .count = 16, .stop = -1 };

	device = peer_address(1);
	adapter = peer_address(2);
	for (size_t i = 0; i < SIZE; i++)
		memory[i] = (unsigned char)(i * 11 + i / 256);
	for (int i = 0; i < 16; i++) {
		host[i] = peer_socket(adapter, (uint16_t)(0x4000 + i));
		contexts[i].remote_addr = adapter;
		contexts[i].local_addr = device;
		contexts[i].requester = 0x1b00;
		contexts[i].tag = (uint8_t)i;
		contexts[i].dir = DMA_ISSUED_BY_ADAPTER;
		CHECK_IS(nettlp_init(&contexts[i]), 0);
		CHECK_IS(contexts[i].port, 0x4000 + i);
		pointers[i] = &contexts[i];
	}
	r.cb = (struct nettlp_cb){ 0, 0, on_mrd, on_mwr, on_cpl, on_cpld, on_other };
	start(&r);
	reads();
	writes_with_holes();
	others_too();
	nettlp_stop_cb();
	joined(&r);
	windows();
	stops();
	by_signal();
	for (int i = 0; i < 16; i++) {
		CHECK_IS(nettlp_close(&contexts[i]), 0);
		close(host[i]);
	}
	return 0;
}
