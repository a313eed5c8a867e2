/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The device contract in C: three functions, which a shared library exports, make a
 * PCI Express function of it (`model = "lib:FILE.so"` in an experiment,
 * `tlplab device lib:FILE.so` behind a network), as `Device` does in Rust and
 * `tl.Device` in Python.
 *
 * A device is a state machine. It is told one event at a time, and says during the
 * call what it does; none of that has happened when the call returns. The fabric
 * keeps configuration space, the MSI-X table, link and credits, cuts transfers into
 * requests and puts completions together.
 *
 * Time is in femtoseconds since the start of the run.
 *
 * Threads. Devices are independent: a library may have several open at once, in
 * several threads. One device is used by one thread at a time. No function may throw
 * or exit.
 */
#ifndef TLPLAB_DEVICE_H
#define TLPLAB_DEVICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface. Any change to this file that a built library would
 * notice raises it. */
#define TLPLAB_DEVICE_ABI 2

/* Longest message of an error, with its final 0. */
#define TLPLAB_DEVICE_ERROR_MAX 512

/* Properties of a BAR. */
#define TLPLAB_DEVICE_BAR_64BIT 0x1u        /* takes the next BAR's number, too */
#define TLPLAB_DEVICE_BAR_PREFETCHABLE 0x2u /* reads have no side effects */
#define TLPLAB_DEVICE_BAR_IO 0x4u           /* I/O space; neither of the above */

struct tlplab_device_bar {
    uint64_t size;  /* bytes, a power of two, at least 16; 0: there is none */
    uint32_t flags; /* TLPLAB_DEVICE_BAR_... */
    uint32_t reserved;
};

/* The function's configuration space. All zero when open() gets it. */
struct tlplab_device_identity {
    uint32_t abi; /* TLPLAB_DEVICE_ABI of the header that the library was built with */
    uint16_t vendor, device;
    uint16_t subsystem_vendor, subsystem_device; /* both 0: as vendor and device */
    uint32_t class_code;                         /* base, sub, interface: 24 bits */
    uint8_t revision;
    uint8_t intx;         /* 1: it can raise a legacy interrupt */
    uint8_t msi_vectors;  /* 0, or a power of two up to 32 */
    uint8_t reserved;
    uint32_t msix_vectors; /* 0 to 2048 */
    struct tlplab_device_bar bars[6];
};

enum tlplab_device_event_kind {
    TLPLAB_DEVICE_START = 0,      /* it is configured and may act; again after a reset, or when DMA that was refused is allowed */
    TLPLAB_DEVICE_MMIO_READ = 1,  /* `bytes` at `offset` of `bar`; answer `id`, now or later */
    TLPLAB_DEVICE_MMIO_WRITE = 2, /* `bytes` of `data` at `offset` of `bar` */
    TLPLAB_DEVICE_DMA_READ_DONE = 3,      /* of `id`: `bytes` of `data`, or `error` */
    TLPLAB_DEVICE_DMA_WRITE_ACCEPTED = 4, /* of `id`: its last TLP will be sent; it is posted, nobody says when it arrives */
    TLPLAB_DEVICE_TIMER = 5,              /* `id`, as given to timer() */
    TLPLAB_DEVICE_RESET = 6, /* of the function or of all below a link that went down: operations and timers are gone */
    TLPLAB_DEVICE_REBASE = 7 /* served for hours: every instant that it keeps is now `bytes` earlier. It has no context (NULL) */
};

/* The reason why a read failed. `message` has it in words. */
enum tlplab_device_error {
    TLPLAB_DEVICE_OK = 0,
    TLPLAB_DEVICE_UNSUPPORTED_REQUEST = 1, /* no component claims address `offset` */
    TLPLAB_DEVICE_COMPLETER_ABORT = 2,     /* for the request at address `offset` */
    TLPLAB_DEVICE_RETRY_STATUS = 3,
    TLPLAB_DEVICE_POISONED = 4,            /* for the request at address `offset` */
    TLPLAB_DEVICE_TIMEOUT = 5,             /* the request at address `offset` with tag `bar`, after `bytes` femtoseconds */
    TLPLAB_DEVICE_BUS_MASTER_DISABLED = 6,
    TLPLAB_DEVICE_OTHER_ERROR = 7
};

struct tlplab_device_event {
    uint32_t kind; /* enum tlplab_device_event_kind */
    uint32_t bar;
    uint64_t offset;
    uint64_t id;
    uint64_t bytes;
    const uint8_t *data; /* until the call returns; NULL where a run carries lengths only */
    uint32_t error;      /* enum tlplab_device_error */
    uint32_t reserved;
    const char *message; /* of an error, until the call returns; else NULL */
};

/* The kind of interrupt that software has enabled for the function. */
enum tlplab_device_interrupts {
    TLPLAB_DEVICE_NO_INTERRUPTS = 0,
    TLPLAB_DEVICE_INTX = 1,
    TLPLAB_DEVICE_MSI = 2,
    TLPLAB_DEVICE_MSIX = 3
};

/* The functions that a device may call while it handles an event; valid until handle() returns. */
struct tlplab_device_context {
    void *simulator; /* the caller's own */
    uint64_t now;
    uint32_t interrupts;  /* enum tlplab_device_interrupts */
    uint32_t length_only; /* 1: this run carries lengths instead of bulk data */
    uint32_t mps, mrrs;   /* Max_Payload_Size and Max_Read_Request_Size in bytes, as software has set them */

    /* Reads memory; 0 bytes flush the earlier writes of the stream. The number of the
     * operation, for DMA_READ_DONE. Operations of a stream keep their order. With `control`
     * the data come even in a run that carries lengths: descriptors and the like. */
    uint64_t (*dma_read)(struct tlplab_device_context *cx, uint16_t stream, uint64_t address, uint64_t bytes, int control);
    /* Writes memory. `data` are the device's again on return; NULL in a run that carries lengths.
     * The number of the operation, for DMA_WRITE_ACCEPTED. */
    uint64_t (*dma_write)(struct tlplab_device_context *cx, uint16_t stream, uint64_t address, const uint8_t *data,
                          uint64_t bytes);
    /* A message signalled interrupt, behind the earlier writes of the stream. With MSI the
     * vector is taken modulo those that software granted. */
    void (*msix)(struct tlplab_device_context *cx, uint16_t stream, uint16_t vector);
    /* The level of the legacy interrupt, behind the earlier writes of the stream. */
    void (*intx)(struct tlplab_device_context *cx, uint16_t stream, int asserted);
    /* Answers a read of a BAR with as many bytes as it asked for; the run fails if not. */
    void (*reply)(struct tlplab_device_context *cx, uint64_t read, const uint8_t *data, uint64_t bytes);
    /* Refuses it: Unsupported Request, or Completer Abort. */
    void (*refuse)(struct tlplab_device_context *cx, uint64_t read, int completer_abort);
    /* Asks for TIMER at an instant; now, if that has passed. */
    void (*timer)(struct tlplab_device_context *cx, uint64_t at, uint64_t id);
    /* All work is done: a run that waits for it may end. */
    void (*finished)(struct tlplab_device_context *cx);
    /* It cannot go on: the run fails with this message. */
    void (*fail)(struct tlplab_device_context *cx, const char *message);
    /* From now on software reads `data` at `offset` of configuration space. Bits that software
     * writes or clears stay as they are; the run fails where a byte is all of such bits, and
     * behind NetTLP, whose card keeps its own. The function obeys its registers as before. */
    void (*set_config)(struct tlplab_device_context *cx, uint16_t offset, const uint8_t *data, uint16_t bytes);
};

struct tlplab_device;

/*
 * Makes a device. `abi` is the caller's TLPLAB_DEVICE_ABI: another than the library's
 * is an error. `parameters` are lines "key=value\n" in the order of their keys: the
 * further keys of the device in the experiment, booleans as 0 and 1. The library refuses
 * keys that it does not know, and values that it cannot have, and says what would be right.
 *
 * Fills in `*identity`. NULL on failure, with a message of at most
 * TLPLAB_DEVICE_ERROR_MAX bytes in `error`.
 */
struct tlplab_device *tlplab_device_open(uint32_t abi, const char *parameters,
                                         struct tlplab_device_identity *identity, char *error);

/* Something happened. */
void tlplab_device_handle(struct tlplab_device *device, struct tlplab_device_context *cx,
                          const struct tlplab_device_event *event);

/* Frees the device. */
void tlplab_device_close(struct tlplab_device *device);

#ifdef __cplusplus
}
#endif

#endif /* TLPLAB_DEVICE_H */
