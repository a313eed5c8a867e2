/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Makes a clocked model of hardware (RTL made into C++ by Verilator, or another model
 * that has clocks) a PCI Express function in a tlplab experiment: six
 * functions, which a shared library exports, at the granularity of whole TLPs.
 *
 * Responsibilities. The fabric keeps configuration space (identity, BARs, MSI-X
 * capability, error reporting), the link and its credits, and routing. The model
 * gets every other TLP for the function as it is on the wire and gives TLPs, too:
 * it is the part behind the hard IP of a device, and its C++ is that hard IP.
 *
 * Time is in femtoseconds since the start of the run: 0 is where the simulator's
 * time is 0, so that TLPs, captures and waveforms share one time axis. Clock edges
 * are set by the model's parameters (rising edge k of a clock of f Hz at
 * ceil(k * 10^15 / f), k from 0); they are not part of this interface.
 *
 * Threads. Handles are independent: a library may have several open at once, in
 * several threads. One handle is used by one thread at a time. No function may
 * throw, exit, or call back.
 */
#ifndef TLPLAB_RTL_H
#define TLPLAB_RTL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface. Any change to this file that a built library would
 * notice raises it. */
#define TLPLAB_RTL_ABI 2

/* Longest TLP: four prefixes, 16 bytes of header, 4096 of payload, a digest. */
#define TLPLAB_RTL_TLP_MAX 4132

/* Longest message of an error, with its final 0. */
#define TLPLAB_RTL_ERROR_MAX 512

/* Properties of a BAR. */
#define TLPLAB_RTL_BAR_64BIT 0x1u        /* takes the next BAR's number, too */
#define TLPLAB_RTL_BAR_PREFETCHABLE 0x2u /* reads have no side effects */
#define TLPLAB_RTL_BAR_IO 0x4u           /* I/O space; neither of the above */

/* `bar` of a TLP that is no request to a BAR: a completion or a message. */
#define TLPLAB_RTL_NO_BAR 0xFFu

/* Classes of TLPs: the index of `taken`, and bits of `room`. */
enum tlplab_rtl_class {
    TLPLAB_RTL_POSTED = 0,     /* memory writes and messages */
    TLPLAB_RTL_NON_POSTED = 1, /* reads, I/O, atomic operations */
    TLPLAB_RTL_COMPLETION = 2
};

struct tlplab_rtl_bar {
    uint64_t size;  /* bytes, a power of two, at least 16; 0: there is none */
    uint32_t flags; /* TLPLAB_RTL_BAR_... */
    uint32_t reserved;
};

/* The function's configuration space. All zero when open() gets it. */
struct tlplab_rtl_identity {
    uint32_t abi; /* TLPLAB_RTL_ABI of the header that the library was built with */
    uint16_t vendor, device;
    uint16_t subsystem_vendor, subsystem_device; /* both 0: as vendor and device */
    uint32_t class_code;                         /* base, sub, interface: 24 bits */
    uint8_t revision;
    uint8_t intx_pin;      /* legacy interrupt: 1 = INTA ... 4 = INTD, 0 = none */
    uint8_t mps_supported; /* largest payload, as the code 128 << n: 0 to 5 */
    uint8_t extended_tags; /* 1: can have tags of 8 bits */
    /* MSI-X: its table and pending bits lie in the model's own BARs, and the model
     * sends the interrupts itself, as memory writes. 0 vectors: none. */
    uint16_t msix_vectors;
    uint8_t msix_table_bar, msix_pba_bar;
    uint32_t msix_table_offset, msix_pba_offset; /* bytes, multiples of 8 */
    /* MSI, whose messages the model sends itself, too: 1, 2, 4, 8, 16 or 32 vectors, each
     * of which can be masked. 0: none. */
    uint8_t msi_vectors;
    uint8_t flr; /* 1: has a Function Level Reset, which is a `reset` as any other */
    uint16_t reserved;
    struct tlplab_rtl_bar bars[6];
};

/* The values that software has written to configuration space: the hard IP's outputs. */
struct tlplab_rtl_registers {
    uint16_t id;         /* bus << 8 | device << 3 | function; captured from requests */
    uint8_t mps, mrrs;   /* Max_Payload_Size, Max_Read_Request_Size: 128 << n */
    uint8_t bus_master;  /* the rest: 0 or 1 */
    uint8_t extended_tag;
    uint8_t msix_enable;
    uint8_t msix_mask;   /* Function Mask */
    uint8_t intx_disable;
    uint8_t reset;       /* 1: reset the core, see tlplab_rtl_configure() */
    uint8_t read_boundary_128; /* Read Completion Boundary: 0: 64 bytes, 1: 128 */
    uint8_t msi_enable;  /* 0 while MSI-X is enabled */
    uint8_t msi_vectors; /* granted: a power of two; vector v is the low bits of data */
    uint16_t msi_data;
    uint32_t msi_mask;   /* bit v: vector v must not be sent */
    uint64_t msi_address;
};

/* The result of a run. All of it is written by every call of tlplab_rtl_run(). */
struct tlplab_rtl_output {
    uint64_t time;     /* up to here all clock edges are done, see below */
    uint32_t taken[3]; /* TLPs per class that the core took since the last call */
    uint8_t intx;      /* level of the legacy interrupt, now */
    uint8_t idle;      /* 1: nothing happens any more until something comes in */
    uint16_t tlp_bytes; /* of `tlp`; 0: none was transmitted */
    uint8_t tlp[TLPLAB_RTL_TLP_MAX];
    char error[TLPLAB_RTL_ERROR_MAX]; /* when run() returned -1: why; ends with 0 */
};

struct tlplab_rtl;

/*
 * Makes a model. `abi` is the caller's TLPLAB_RTL_ABI: another than the library's is
 * an error. `parameters` are lines "key=value\n" in the order of their keys:
 * clocks (pcie_clock, user_clock) as whole hertz, booleans as 0 and 1, other values
 * as they are written there. The model refuses keys that it does not know, and
 * values that it cannot have, and says what would be right.
 *
 * Fills in `*identity`. NULL on failure, with a message of at most
 * TLPLAB_RTL_ERROR_MAX bytes in `error`. The core is in reset at first (for as long
 * as it needs), its registers as after a reset (all 0 but mrrs = 2, msi_vectors = 1).
 */
struct tlplab_rtl *tlplab_rtl_open(uint32_t abi, const char *parameters,
                                   struct tlplab_rtl_identity *identity, char *error);

/* Frees the model; a waveform is closed and complete. */
void tlplab_rtl_close(struct tlplab_rtl *model);

/*
 * Tells the registers: after open(), and whenever one has changed. The next clock
 * edge sees them. With `reset` the core is put into reset from the next edge on, for
 * as long as it needs; what the model had received and not given to the core, and
 * what it had begun to transmit, is dropped, `taken` counts none of it, and `reset`
 * need not be taken back: each call with it is one reset.
 */
void tlplab_rtl_configure(struct tlplab_rtl *model, const struct tlplab_rtl_registers *registers);

/*
 * A TLP has arrived: `bytes` bytes as on the wire (byte 0 of the header first, no
 * sequence number, no LCRC), which are the caller's again on return. `bar` is the
 * BAR that a request hit (a 64-bit one: its lower number) or TLPLAB_RTL_NO_BAR. The
 * model queues it (the hard IP's receive buffer: the link's credits bound it) and the
 * core is shown it from the next clock edge on. Classes pass each other as the rules
 * of ordering say; within a class order is kept.
 *
 * 0; or 1 for a completion that the model drops since its buffer has no room for it:
 * an end point gives no finite credits for completions, and who reads more than it has
 * room for loses data. The fabric counts it as an overflow of the receiver, and the read
 * has not ended. What was dropped is never `taken`.
 *
 * Software that has enumerated before time 0 (that is the default) has written the
 * MSI-X table then: those writes are here before the first run(), more at once than
 * the link's credits let through later.
 */
int tlplab_rtl_receive(struct tlplab_rtl *model, const uint8_t *tlp, size_t bytes, uint8_t bar);

/*
 * Runs all clock edges from where the last call ended (`time`) up to, but not
 * including, `until`. It ends earlier, after the edges at one instant, when
 *  - the last data of a TLP left the core: it is in `tlp`, never more than one;
 *  - the core took a TLP (its last data): that is counted in `taken`;
 *  - the level of the legacy interrupt changed, or the core became idle.
 * `time` is then the instant of that edge, which is done; else it is `until`. So what
 * comes in at an instant T (after run(T)) is seen by an edge at T.
 * `time` never goes back; run() with an `until` that is not later does nothing.
 *
 * Bit n of `room` is set while there is room for one more TLP of class n, of the
 * largest size, in the transmit buffer. The core must not begin a TLP of a class
 * whose bit is clear; one that has begun is finished.
 *
 * `idle` may be 1 only if no TLP is queued, nothing is under way, and no timer of
 * the core (moderation, time-outs) will do anything. The fabric does not call again
 * until something comes in, and the model may then skip the edges in between (clocks
 * keep their phase). A model that cannot tell says 0; a run that waits until nothing
 * happens any more does not end then.
 *
 * 0, or -1 with a message in `error`: the model cannot go on, the run fails with it.
 */
int tlplab_rtl_run(struct tlplab_rtl *model, uint64_t until, uint8_t room,
                   struct tlplab_rtl_output *output);

/*
 * Writes a waveform (FST, time unit 1 fs: its times are the times of run()) to
 * `path` from now on. At most once, before the first run(). 0, or -1 with a message
 * of at most TLPLAB_RTL_ERROR_MAX bytes in `error`, for instance that the model was
 * built without.
 */
int tlplab_rtl_trace(struct tlplab_rtl *model, const char *path, char *error);

#ifdef __cplusplus
}
#endif

#endif /* TLPLAB_RTL_H */
