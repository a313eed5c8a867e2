/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tlp.h: transaction layer packets as they stand in memory.
 *
 * The structs lie over received bytes: nothing is swapped, fields of more than
 * one byte are in network byte order, and the macros that take such a field
 * (named fl, sc or id below) swap it. Header bytes are those of the PCI Express
 * Base Specification, section 2.2; the numbers are in <tlp_layout.h>.
 */
#ifndef TLP_H
#define TLP_H

#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h> /* htons, ntohs */

#include <tlp_layout.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ */
/* The beginning of every TLP: the first DW of its header             */

struct tlp_hdr {
	uint8_t  fmt_type; /* Fmt and Type */
	uint8_t  tclass;   /* traffic class, and bits of the attributes */
	uint16_t falen;    /* TD, EP, attributes, Length */
} __attribute__((packed));

/* Fmt: three or four DWs of header; with or without data. */
#define tlp_fmt_dw(ft)     ((ft) & TLP_FMT_DW_MASK)
#define tlp_is_3dw(ft)     (tlp_fmt_dw(ft) == TLP_FMT_3DW)
#define tlp_is_4dw(ft)     (tlp_fmt_dw(ft) == TLP_FMT_4DW)
#define tlp_fmt_data(ft)   ((ft) & TLP_FMT_DATA_MASK)
#define tlp_is_wo_data(ft) (tlp_fmt_data(ft) == TLP_FMT_WO_DATA)
#define tlp_is_w_data(ft)  (tlp_fmt_data(ft) == TLP_FMT_W_DATA)
#define tlp_set_fmt(ft, dw, wd)                                                \
	((ft) = (uint8_t)(((ft) & ~(TLP_FMT_DW_MASK | TLP_FMT_DATA_MASK)) |    \
			  ((dw) & TLP_FMT_DW_MASK) | ((wd) & TLP_FMT_DATA_MASK)))

/* Type. Memory reads and writes differ by their format only. */
#define tlp_type(ft)        ((ft) & TLP_TYPE_MASK)
#define tlp_is_mrd(ft)      (tlp_type(ft) == TLP_TYPE_MRd && tlp_is_wo_data(ft))
#define tlp_is_mwr(ft)      (tlp_type(ft) == TLP_TYPE_MWr && tlp_is_w_data(ft))
#define tlp_is_cpl(ft)      (tlp_type(ft) == TLP_TYPE_Cpl) /* with data or without */
#define tlp_set_type(ft, v) ((ft) = (uint8_t)(((ft) & ~TLP_TYPE_MASK) | ((v) & TLP_TYPE_MASK)))

/* Traffic class, 0 to 7. */
#define tlp_tclass(tc) (((tc) & TLP_TCLASS_MASK) >> TLP_TCLASS_SHIFT)
#define tlp_set_tclass(tc, v)                                                  \
	((tc) = (uint8_t)(((tc) & ~TLP_TCLASS_MASK) |                          \
			  (((v) << TLP_TCLASS_SHIFT) & TLP_TCLASS_MASK)))

/* TD (a digest, the ECRC, follows) and EP (the data are poisoned). */
#define tlp_flag(fl)              (ntohs(fl) & TLP_FLAG_MASK)
#define tlp_flag_digest(fl)       (tlp_flag(fl) & TLP_FLAG_DIGEST_MASK)
#define tlp_flag_set_digest(fl)   ((fl) = (uint16_t)((fl) | htons(TLP_FLAG_DIGEST_MASK)))
#define tlp_flag_unset_digest(fl) ((fl) = (uint16_t)((fl) & ~htons(TLP_FLAG_DIGEST_MASK)))
#define tlp_flag_ep(fl)           (tlp_flag(fl) & TLP_FLAG_EP_MASK)
#define tlp_flag_set_ep(fl)       ((fl) = (uint16_t)((fl) | htons(TLP_FLAG_EP_MASK)))
#define tlp_flag_unset_ep(fl)     ((fl) = (uint16_t)((fl) & ~htons(TLP_FLAG_EP_MASK)))

/* Relaxed ordering and no snoop. */
#define tlp_attr(fl)             (ntohs(fl) & TLP_ATTR_MASK)
#define tlp_attr_relax(fl)       (tlp_attr(fl) & TLP_ATTR_RELAX_MASK)
#define tlp_attr_set_relax(fl)   ((fl) = (uint16_t)((fl) | htons(TLP_ATTR_RELAX_MASK)))
#define tlp_attr_unset_relax(fl) ((fl) = (uint16_t)((fl) & ~htons(TLP_ATTR_RELAX_MASK)))
#define tlp_attr_nosnp(fl)       (tlp_attr(fl) & TLP_ATTR_NOSNP_MASK)
#define tlp_attr_set_nosnp(fl)   ((fl) = (uint16_t)((fl) | htons(TLP_ATTR_NOSNP_MASK)))
#define tlp_attr_unset_nosnp(fl) ((fl) = (uint16_t)((fl) & ~htons(TLP_ATTR_NOSNP_MASK)))

/* Data in DWs, 1 to 1024; the field holds 1024 as 0. */
#define tlp_length(fl) ((((ntohs(fl) & TLP_LENGTH_MASK) - 1) & TLP_LENGTH_MASK) + 1)
#define tlp_set_length(fl, v)                                                  \
	((fl) = htons((uint16_t)((ntohs(fl) & ~TLP_LENGTH_MASK) | ((v) & TLP_LENGTH_MASK))))

/* Requester and completer ids: bus, and device and function in one byte. */
#define tlp_id_to_bus(id)    (ntohs(id) >> 8)
#define tlp_id_to_device(id) (ntohs(id) & 0x00FF)

/* ------------------------------------------------------------------ */
/* Memory requests. A 32- or 64-bit address follows, then the data.   */

struct tlp_mr_hdr {
	struct tlp_hdr tlp;

	uint16_t requester;
	uint8_t  tag;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	uint8_t fstdw : 4; /* enabled bytes of the first DW */
	uint8_t lstdw : 4; /* and of the last; 0 if there is one only */
#elif __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	uint8_t lstdw : 4;
	uint8_t fstdw : 4;
#else
#error "unknown byte order"
#endif
} __attribute__((packed));

/*
 * The fields of a request for `count` bytes at `addr`: byte enables of its last
 * and first DW, and the Length, 1 to 1024 DWs. A request for 0 bytes is a
 * flush: one DW of which no byte is enabled.
 */
int tlp_calculate_lstdw(uintptr_t addr, size_t count);
int tlp_calculate_fstdw(uintptr_t addr, size_t count);
int tlp_calculate_length(uintptr_t addr, size_t count);

/* The address of the first enabled byte; for a flush, of its DW. */
uintptr_t tlp_mr_addr(struct tlp_mr_hdr *mh);

/*
 * Bytes from the first enabled one to the last. Of a flush 1 if it is a read,
 * for that is the byte count of its answer, and 0 if it is a write.
 */
int tlp_mr_data_length(struct tlp_mr_hdr *mh);

/* The first enabled byte of a write's data. */
void *tlp_mwr_data(struct tlp_mr_hdr *mh);

/* ------------------------------------------------------------------ */
/* Completions. The data follow at once.                              */

struct tlp_cpl_hdr {
	struct tlp_hdr tlp;

	uint16_t completer;
	uint16_t stcnt; /* status, and bytes that remain, these included */

	uint16_t requester;
	uint8_t  tag;
	uint8_t  lowaddr; /* of the first byte that was asked for */
} __attribute__((packed));

#define tlp_cpl_status(sc) (ntohs(sc) & TLP_CPL_STATUS_MASK)
#define tlp_set_cpl_status(sc, v)                                              \
	((sc) = htons((uint16_t)((ntohs(sc) & ~TLP_CPL_STATUS_MASK) | ((v) & TLP_CPL_STATUS_MASK))))

/* 1 to 4096 bytes; the field holds 4096 as 0. */
#define tlp_cpl_bcnt(sc) ((((ntohs(sc) & TLP_CPL_BCNT_MASK) - 1) & TLP_CPL_BCNT_MASK) + 1)
#define tlp_set_cpl_bcnt(sc, v)                                                \
	((sc) = htons((uint16_t)((ntohs(sc) & ~TLP_CPL_BCNT_MASK) | ((v) & TLP_CPL_BCNT_MASK))))

/* Bytes of this completion that were asked for, and the first of them. */
int   tlp_cpld_data_length(struct tlp_cpl_hdr *ch);
void *tlp_cpld_data(struct tlp_cpl_hdr *ch);

#ifdef __cplusplus
}
#endif

#endif /* TLP_H */
