/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libtlp.h: PCI Express devices in software, over NetTLP.
 *
 * NetTLP carries TLPs in UDP between this library and an adapter, which is an
 * end point of a host's PCI Express. Two halves:
 *
 *   requester   dma_read() and dma_write() reach into the host's memory
 *   completer   nettlp_run_cb() calls back for what the host reads and writes
 *               in the adapter's BAR4
 *
 * Every function that fails returns -1 and sets errno, except where it says
 * otherwise; tlp_strerror() tells what that means, docs/libtlp.md has the
 * table. Nothing is ever a short success. A context may be used by several
 * threads at once, but not by a process and its fork()ed child: sockets are
 * shared then, and each takes the other's answers.
 */
#ifndef LIBTLP_H
#define LIBTLP_H

#include <stdint.h>
#include <sys/types.h>

#include <netinet/in.h>

#include <tlp.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NETTLP_MSG_PORT 0x2FFF /* of the message API, 12287 */

/*
 * The header before the TLP in a datagram. Programs that write datagrams
 * themselves may leave zeros here; this library counts datagrams, so that the
 * adapter recognises those that a network has doubled.
 */
struct nettlp_hdr {
	uint16_t seq;    /* the sender's count of what it sent */
	uint32_t tstamp; /* its clock, in ticks of 6.4 ns */
} __attribute__((packed));

/*
 * The issuer of a context's requests, which determines its UDP port:
 * 0x3000 + tag for those of this library and the completions that answer them,
 * 0x4000 + (tag & 15) for those of the host.
 */
enum dma_direction {
	DMA_ISSUED_BY_LIBTLP  = 0,
	DMA_ISSUED_BY_ADAPTER = 1,
};

/* A context: one tag, one UDP socket. */
struct nettlp {
	/* to be filled in before nettlp_init() */
	struct in_addr     remote_addr; /* the adapter */
	struct in_addr     local_addr;  /* of the interface that leads to it */
	uint16_t           requester;   /* our id: bus << 8 | device << 3 | function */
	uint8_t            tag;
	enum dma_direction dir;

	/* filled in by nettlp_init() */
	int      sockfd; /* may be polled, and completions written to it */
	uint16_t port;
};

/* Opens the socket. EADDRINUSE: another context has this tag and direction. */
int nettlp_init(struct nettlp *nt);

/* Closes it. (A program may as well close sockfd itself.) */
int nettlp_close(struct nettlp *nt);

/*
 * The time that a read waits for its answer, in milliseconds; 500 by default, an
 * hour at most.
 * After a read without an answer, the next one waits as long again for a late
 * completion, which is dropped.
 */
int nettlp_set_timeout(struct nettlp *nt, unsigned int milliseconds);

/* ------------------------------------------------------------------ */
/* DMA                                                                */

/*
 * Reads or writes `count` bytes of the host's memory, and returns `count`.
 * Requests never cross 4 KiB, and are else as long as was asked for, whatever the
 * host's limits are: a hardware adapter takes no write above its Max_Payload_Size.
 * The aligned variants limit each to `mrrs` or `mps` bytes. A read of 0 bytes is a flush: it returns when the writes
 * before it are in memory. A write is posted: no errors are known of it but
 * those of the network, and those perhaps at a later call.
 */
ssize_t dma_read(struct nettlp *nt, uintptr_t addr, void *buf, size_t count);
ssize_t dma_write(struct nettlp *nt, uintptr_t addr, void *buf, size_t count);
ssize_t dma_read_aligned(struct nettlp *nt, uintptr_t addr, void *buf, size_t count, size_t mrrs);
ssize_t dma_write_aligned(struct nettlp *nt, uintptr_t addr, void *buf, size_t count, size_t mps);

/* ------------------------------------------------------------------ */
/* Callbacks                                                          */

/*
 * Called for each TLP that comes. Headers are as received, in network byte
 * order, and valid until the callback returns; `m` and `count` are the enabled
 * bytes of a write or the data of a completion. A write whose enabled bytes are
 * not contiguous comes as several calls. What a callback returns is ignored.
 *
 * With `end` above `start` they are the window that this device claims: reads
 * that are not all inside are answered with Unsupported Request at once, and
 * writes are dropped. Otherwise everything is passed on. A read that comes
 * where there is neither `mrd` nor `other` is answered so, too.
 */
struct nettlp_cb {
	uintptr_t start;
	uintptr_t end;

	int (*mrd)(struct nettlp *nt, struct tlp_mr_hdr *mh, void *arg);
	int (*mwr)(struct nettlp *nt, struct tlp_mr_hdr *mh, void *m, size_t count, void *arg);
	int (*cpl)(struct nettlp *nt, struct tlp_cpl_hdr *ch, void *arg);
	int (*cpld)(struct nettlp *nt, struct tlp_cpl_hdr *ch, void *m, size_t count, void *arg);
	int (*other)(struct nettlp *nt, struct tlp_hdr *tlp, void *arg); /* every other type, and what has no callback above */
};

#define NETTLP_CB_MAX_NTS 16

/*
 * Answer a read, from its callback or later: with `count` bytes, which are
 * tlp_mr_data_length(mh), cut at 128-byte boundaries into completions of at most
 * 256; or with a status, TLP_CPL_STATUS_UR or _CA. (Programs may as well build
 * completions themselves and write them to sockfd.)
 */
ssize_t nettlp_send_cpld(struct nettlp *nt, struct tlp_mr_hdr *mh, const void *data, size_t count);
int     nettlp_send_cpl(struct nettlp *nt, struct tlp_mr_hdr *mh, int status);

/*
 * Calls back for the `nnts` contexts until nettlp_stop_cb() stops every run of
 * the process that is under way; then returns 0.
 */
int  nettlp_run_cb(struct nettlp **nt, int nnts, struct nettlp_cb *cb, void *arg);
void nettlp_stop_cb(void); /* may be called by a signal handler */

/* The same until `stop_fd` is readable: an eventfd, a pipe, a timer, … */
int nettlp_run_cb_until(struct nettlp **nt, int nnts, struct nettlp_cb *cb, void *arg, int stop_fd);

/* ------------------------------------------------------------------ */
/* Questions to the adapter's driver                                  */

#define NETTLP_MSG_GET_BAR4_ADDR  1
#define NETTLP_MSG_GET_DEV_ID     2
#define NETTLP_MSG_GET_MSIX_TABLE 3

#define NETTLP_MAX_VEC 16 /* interrupts that an adapter has */

/* The host's address of BAR4, and the adapter's id; 0 on failure. */
uintptr_t nettlp_msg_get_bar4_start(struct in_addr addr);
uint16_t  nettlp_msg_get_dev_id(struct in_addr addr);

/* The address and the data of an interrupt's write. */
struct nettlp_msix {
	uint64_t addr;
	uint32_t data;
} __attribute__((packed));

/* The first `msix_count` (at most 16) vectors. */
int nettlp_msg_get_msix_table(struct in_addr addr, struct nettlp_msix *msix, int msix_count);

/* ------------------------------------------------------------------ */
/* The adapter's configuration space                                  */

#define NETTLP_PCIE_CFG_PORT 0x4001 /* of older adapters; newer ones are asked at 0x5001 first */

struct nettlp_pcie_cfg {
	struct in_addr remote_addr;
	struct in_addr local_addr;

	int sockfd; /* filled in by nettlp_pcie_cfg_init() */
};

int nettlp_pcie_cfg_init(struct nettlp_pcie_cfg *ntpc);

/* `count` bytes from `addr` on; all of them or an error. Nothing confirms a write. */
ssize_t nettlp_pcie_cfg_read(struct nettlp_pcie_cfg *ntpc, uint16_t addr, void *buf, size_t count);
ssize_t nettlp_pcie_cfg_write(struct nettlp_pcie_cfg *ntpc, uint16_t addr, void *buf, size_t count);

/* ------------------------------------------------------------------ */
/* Many operations at once                                            */

/*
 * An asynchronous context has many tags, and as many reads in flight. It has no
 * thread of its own: tlp_async_poll() and tlp_async_wait() receive and send.
 * Several threads may use it.
 */
struct tlp_async;

/* Zero stands for the defaults that are named. */
struct tlp_async_config {
	struct in_addr remote_addr;
	struct in_addr local_addr;
	uint16_t requester;
	uint8_t  first_tag;  /* each tag is a UDP port, 0x3000 + tag */
	uint8_t  retries;    /* of a read that was not answered: only if reading has no side effect */
	uint16_t tags;       /* 16 */
	uint16_t mps;        /* Max_Payload_Size, 256 bytes */
	uint16_t mrrs;       /* Max_Read_Request_Size, 512 bytes */
	uint32_t timeout_ms; /* 500; an hour at most */
};

/* An operation that is over: its pointer, and `count` bytes moved or what went wrong. */
struct tlp_async_done {
	void  *user;
	size_t count;
	int    error; /* 0, or an errno */
};

/* NULL on failure. */
struct tlp_async *tlp_async_open(const struct tlp_async_config *config);

/* Ends all that is under way without a word. NULL is fine. */
void tlp_async_close(struct tlp_async *context);

/*
 * Begin an operation of any length. `buf` of a read is the library's until its
 * end is told; of a write it is free at once. A read of 0 bytes is a flush. A
 * write is over when it was sent. EAGAIN: too many are under way (65536).
 */
int tlp_async_read(struct tlp_async *context, uintptr_t addr, void *buf, size_t count, void *user);
int tlp_async_write(struct tlp_async *context, uintptr_t addr, const void *buf, size_t count, void *user);

/*
 * Up to `most` operations that are over, in the order of their ends; how many.
 * poll does not wait; wait does, for as many milliseconds (-1: any time), or until a
 * signal (EINTR), but not if nothing is under way.
 */
int tlp_async_poll(struct tlp_async *context, struct tlp_async_done *done, int most);
int tlp_async_wait(struct tlp_async *context, struct tlp_async_done *done, int most, int milliseconds);

/* Ends the operations that were submitted with `user`, with ECANCELED; how many. Their buffers are free at once. */
int tlp_async_cancel(struct tlp_async *context, void *user);

/* Operations whose end is still to be told. */
int tlp_async_pending(struct tlp_async *context);

/* Can be read (POLLIN) when tlp_async_poll() should be called: for event loops. It is the context's, and only to be waited for. */
int tlp_async_fd(struct tlp_async *context);

/* ------------------------------------------------------------------ */
/* Counters                                                           */

struct nettlp_counters {
	uint64_t datagrams_in, datagrams_out;
	uint64_t completions; /* that answered a read of ours */
	uint64_t host_reads, host_writes;
	uint64_t other;      /* TLPs of every other type */
	uint64_t refused;    /* requests outside the window, or without a callback */
	uint64_t malformed;  /* datagrams whose length is wrong, or that break a rule */
	uint64_t mismatched; /* completions that contradict their read */
	uint64_t unexpected; /* completions of no read, or at a port that is not their tag's */
	uint64_t late;       /* completions of reads that were given up */
	uint64_t lost;       /* missing in the adapter's sequence numbers */
	uint64_t duplicates, reordered; /* by the same */
	uint64_t timeouts;
	uint64_t undelivered; /* requests that the network refused */
};

/*
 * Sums up what the `nnts` contexts have seen. The adapter numbers what it sends
 * to all contexts together, so `lost` is exact if they are all it sends to.
 */
int nettlp_get_counters(struct nettlp **nt, int nnts, struct nettlp_counters *counters);
int tlp_async_get_counters(struct tlp_async *context, struct nettlp_counters *counters);

/* The meaning of an errno of this library, in words. */
const char *tlp_strerror(int errnum);

#ifdef __cplusplus
}
#endif

#endif /* LIBTLP_H */
