/*
 * The published layouts, numbers and macros, each written down from the
 * protocol's description, not from our headers. Compiled as C and as C++.
 */
#include <assert.h>
#include <stddef.h>

#include <libtlp.h>

#include "check.h"

#define LIES_AT(type, field, offset, size)                                                         \
	static_assert(offsetof(type, field) == (offset), #type "." #field " lies elsewhere");      \
	static_assert(sizeof(((type *)0)->field) == (size), #type "." #field " has another size")

static_assert(sizeof(struct tlp_hdr) == 4, "");
LIES_AT(struct tlp_hdr, fmt_type, 0, 1);
LIES_AT(struct tlp_hdr, tclass, 1, 1);
LIES_AT(struct tlp_hdr, falen, 2, 2);

static_assert(sizeof(struct tlp_mr_hdr) == 8, "");
LIES_AT(struct tlp_mr_hdr, tlp, 0, 4);
LIES_AT(struct tlp_mr_hdr, requester, 4, 2);
LIES_AT(struct tlp_mr_hdr, tag, 6, 1); /* fstdw and lstdw are bits of byte 7 */

static_assert(sizeof(struct tlp_cpl_hdr) == 12, "");
LIES_AT(struct tlp_cpl_hdr, tlp, 0, 4);
LIES_AT(struct tlp_cpl_hdr, completer, 4, 2);
LIES_AT(struct tlp_cpl_hdr, stcnt, 6, 2);
LIES_AT(struct tlp_cpl_hdr, requester, 8, 2);
LIES_AT(struct tlp_cpl_hdr, tag, 10, 1);
LIES_AT(struct tlp_cpl_hdr, lowaddr, 11, 1);

static_assert(sizeof(struct nettlp_hdr) == 6, "");
LIES_AT(struct nettlp_hdr, seq, 0, 2);
LIES_AT(struct nettlp_hdr, tstamp, 2, 4);

static_assert(sizeof(struct nettlp) == 24, "");
LIES_AT(struct nettlp, remote_addr, 0, 4);
LIES_AT(struct nettlp, local_addr, 4, 4);
LIES_AT(struct nettlp, requester, 8, 2);
LIES_AT(struct nettlp, tag, 10, 1);
LIES_AT(struct nettlp, dir, 12, 4);
LIES_AT(struct nettlp, sockfd, 16, 4);
LIES_AT(struct nettlp, port, 20, 2);

static_assert(sizeof(struct nettlp_cb) == 7 * sizeof(void *), "");
LIES_AT(struct nettlp_cb, start, 0, sizeof(uintptr_t));
LIES_AT(struct nettlp_cb, end, 1 * sizeof(void *), sizeof(uintptr_t));
LIES_AT(struct nettlp_cb, mrd, 2 * sizeof(void *), sizeof(void *));
LIES_AT(struct nettlp_cb, mwr, 3 * sizeof(void *), sizeof(void *));
LIES_AT(struct nettlp_cb, cpl, 4 * sizeof(void *), sizeof(void *));
LIES_AT(struct nettlp_cb, cpld, 5 * sizeof(void *), sizeof(void *));
LIES_AT(struct nettlp_cb, other, 6 * sizeof(void *), sizeof(void *));

static_assert(sizeof(struct nettlp_msix) == 12, "");
LIES_AT(struct nettlp_msix, addr, 0, 8);
LIES_AT(struct nettlp_msix, data, 8, 4);

static_assert(sizeof(struct nettlp_pcie_cfg) == 12, "");
LIES_AT(struct nettlp_pcie_cfg, remote_addr, 0, 4);
LIES_AT(struct nettlp_pcie_cfg, local_addr, 4, 4);
LIES_AT(struct nettlp_pcie_cfg, sockfd, 8, 4);

static_assert(DMA_ISSUED_BY_LIBTLP == 0 && DMA_ISSUED_BY_ADAPTER == 1, "");
static_assert(NETTLP_MSG_PORT == 12287 && NETTLP_PCIE_CFG_PORT == 0x4001, "");
static_assert(NETTLP_LIBTLP_PORT_BASE == 0x3000 && NETTLP_ADAPTER_PORT_BASE == 0x4000, "");
static_assert(NETTLP_CB_MAX_NTS == 16 && NETTLP_MAX_VEC == 16, "");
static_assert(NETTLP_MSG_GET_BAR4_ADDR == 1 && NETTLP_MSG_GET_DEV_ID == 2, "");
static_assert(NETTLP_MSG_GET_MSIX_TABLE == 3, "");

static_assert(TLP_FMT_DW_MASK == 0x20 && TLP_FMT_3DW == 0 && TLP_FMT_4DW == 0x20, "");
static_assert(TLP_FMT_DATA_MASK == 0x40 && TLP_FMT_WO_DATA == 0 && TLP_FMT_W_DATA == 0x40, "");
static_assert(TLP_TYPE_MASK == 0x1F && TLP_TYPE_MRd == 0 && TLP_TYPE_MRdLk == 1, "");
static_assert(TLP_TYPE_MWr == 0 && TLP_TYPE_Cpl == 0x0A && TLP_TCLASS_MASK == 0x70, "");
static_assert(TLP_FLAG_MASK == 0xC000 && TLP_FLAG_DIGEST_MASK == 0x8000, "");
static_assert(TLP_FLAG_EP_MASK == 0x4000 && TLP_ATTR_MASK == 0x3000, "");
static_assert(TLP_ATTR_RELAX_MASK == 0x2000 && TLP_ATTR_NOSNP_MASK == 0x1000, "");
static_assert(TLP_LENGTH_MASK == 0x03FF, "");
static_assert(TLP_CPL_STATUS_MASK == 0xE000 && TLP_CPL_BCNT_MASK == 0x0FFF, "");
static_assert(TLP_CPL_STATUS_SC == 0 && TLP_CPL_STATUS_UR == 0x2000, "");
static_assert(TLP_CPL_STATUS_CRS == 0x4000 && TLP_CPL_STATUS_CA == 0x8000, "");

/* Every macro that sets, against the bytes that the specification draws. */
static void setters(void)
{
	struct tlp_mr_hdr mh;
	struct tlp_cpl_hdr ch;
	const unsigned char *bytes = (const unsigned char *)&mh;

	memset(&mh, 0, sizeof(mh));
	tlp_set_fmt(mh.tlp.fmt_type, TLP_FMT_4DW, TLP_FMT_W_DATA);
	CHECK_IS(bytes[0], 0x60);
	tlp_set_type(mh.tlp.fmt_type, TLP_TYPE_Cpl);
	CHECK_IS(bytes[0], 0x6A);
	tlp_set_fmt(mh.tlp.fmt_type, TLP_FMT_3DW, TLP_FMT_WO_DATA);
	tlp_set_type(mh.tlp.fmt_type, TLP_TYPE_MRdLk);
	CHECK_IS(bytes[0], 0x01);
	tlp_set_tclass(mh.tlp.tclass, 5);
	CHECK_IS(bytes[1], 0x50);
	CHECK_IS(tlp_tclass(mh.tlp.tclass), 5);

	tlp_set_length(mh.tlp.falen, 3);
	tlp_flag_set_digest(mh.tlp.falen);
	tlp_attr_set_nosnp(mh.tlp.falen);
	CHECK_IS(bytes[2], 0x90);
	CHECK_IS(bytes[3], 3);
	tlp_flag_set_ep(mh.tlp.falen);
	tlp_attr_set_relax(mh.tlp.falen);
	CHECK_IS(bytes[2], 0xF0);
	CHECK_IS(tlp_flag(mh.tlp.falen), 0xC000);
	CHECK_IS(tlp_attr(mh.tlp.falen), 0x3000);
	CHECK(tlp_flag_digest(mh.tlp.falen) && tlp_flag_ep(mh.tlp.falen));
	CHECK(tlp_attr_relax(mh.tlp.falen) && tlp_attr_nosnp(mh.tlp.falen));
	tlp_flag_unset_digest(mh.tlp.falen);
	tlp_attr_unset_relax(mh.tlp.falen);
	CHECK_IS(bytes[2], 0x50);
	CHECK(!tlp_flag_digest(mh.tlp.falen) && !tlp_attr_relax(mh.tlp.falen));
	tlp_flag_unset_ep(mh.tlp.falen);
	tlp_attr_unset_nosnp(mh.tlp.falen);
	CHECK_IS(bytes[2], 0);

	/* 1024 DWs are 0 in the field, and touch no bit beside it: a plain "or" would set AT. */
	tlp_set_length(mh.tlp.falen, 1024);
	CHECK_IS(bytes[2], 0);
	CHECK_IS(bytes[3], 0);
	CHECK_IS(tlp_length(mh.tlp.falen), 1024);
	tlp_set_length(mh.tlp.falen, 1023);
	CHECK_IS(tlp_length(mh.tlp.falen), 1023);

	mh.fstdw = 0x8;
	mh.lstdw = 0x1;
	CHECK_IS(bytes[7], 0x18); /* last before first */

	bytes = (const unsigned char *)&ch;
	memset(&ch, 0, sizeof(ch));
	tlp_set_cpl_status(ch.stcnt, TLP_CPL_STATUS_CA);
	tlp_set_cpl_bcnt(ch.stcnt, 0x123);
	CHECK_IS(bytes[6], 0x81);
	CHECK_IS(bytes[7], 0x23);
	CHECK_IS(tlp_cpl_status(ch.stcnt), TLP_CPL_STATUS_CA);
	CHECK_IS(tlp_cpl_bcnt(ch.stcnt), 0x123);
	tlp_set_cpl_bcnt(ch.stcnt, 4096); /* 0 in the field, and BCM stays clear */
	CHECK_IS(bytes[6], 0x80);
	CHECK_IS(tlp_cpl_bcnt(ch.stcnt), 4096);
	tlp_set_cpl_status(ch.stcnt, TLP_CPL_STATUS_SC);
	CHECK_IS(bytes[6], 0);

	mh.requester = htons(0x1b << 8 | 0x03);
	CHECK_IS(tlp_id_to_bus(mh.requester), 0x1b);
	CHECK_IS(tlp_id_to_device(mh.requester), 0x03);
}

/* Types by their first byte. */
static void types(void)
{
	for (int ft = 0; ft < 0x80; ft++) {
		CHECK_IS(tlp_is_mrd(ft), ft == 0x00 || ft == 0x20);
		CHECK_IS(tlp_is_mwr(ft), ft == 0x40 || ft == 0x60);
		CHECK_IS(tlp_is_cpl(ft), (ft & 0x1F) == 0x0A);
		CHECK_IS(tlp_is_4dw(ft), (ft & 0x20) != 0);
		CHECK_IS(tlp_is_3dw(ft), (ft & 0x20) == 0);
		CHECK_IS(tlp_is_w_data(ft), (ft & 0x40) != 0);
		CHECK_IS(tlp_is_wo_data(ft), (ft & 0x40) == 0);
		CHECK_IS(tlp_type(ft), ft & 0x1F);
		CHECK_IS(tlp_fmt_dw(ft), ft & 0x20);
		CHECK_IS(tlp_fmt_data(ft), ft & 0x40);
	}
}

/* Byte enables, by looking at each byte of each DW. */
static void enables(void)
{
	for (uintptr_t addr = 0x1000; addr < 0x1008; addr++)
		for (size_t count = 0; count <= 4096; count++) {
			uintptr_t first = addr & ~(uintptr_t)3, last = (addr + count - (count > 0)) & ~(uintptr_t)3;
			int fst = 0, lst = 0;

			for (int byte = 0; byte < 4; byte++) {
				fst |= (first + byte >= addr && first + byte < addr + count) << byte;
				lst |= (last + byte >= addr && last + byte < addr + count) << byte;
			}
			CHECK_IS(tlp_calculate_fstdw(addr, count), fst);
			CHECK_IS(tlp_calculate_lstdw(addr, count), first == last ? 0 : lst);
			CHECK_IS(tlp_calculate_length(addr, count), (last - first) / 4 + 1);
		}
}

/* The write of the protocol's description: "hello" and its end at 0xa0000003. */
static void example(void)
{
	unsigned char mwr[] = { 0x40, 0, 0, 3, 0x1b, 0, 5, 0x18, 0xa0, 0, 0, 0,
				0, 0, 0, 'h', 'e', 'l', 'l', 'o', 0, 0, 0, 0 };
	struct tlp_mr_hdr *mh = (struct tlp_mr_hdr *)mwr;

	CHECK_IS(tlp_mr_addr(mh), 0xa0000003);
	CHECK_IS(tlp_mr_data_length(mh), 6);
	CHECK(tlp_mwr_data(mh) == mwr + 15);
	CHECK_IS(mh->fstdw, tlp_calculate_fstdw(0xa0000003, 6));
	CHECK_IS(mh->lstdw, tlp_calculate_lstdw(0xa0000003, 6));
	CHECK_IS(tlp_length(mh->tlp.falen), tlp_calculate_length(0xa0000003, 6));

	unsigned char far[] = { 0x20, 0, 0, 1, 0x1b, 0, 5, 0x0c, 0, 0, 0, 1, 0, 0, 0, 4 };
	mh = (struct tlp_mr_hdr *)far;
	CHECK_IS(tlp_mr_addr(mh), 0x100000006);
	CHECK_IS(tlp_mr_data_length(mh), 2);

	/* A flush is answered with a byte count of 1; a write of nothing has no bytes. */
	unsigned char flush[] = { 0x00, 0, 0, 1, 0x1b, 0, 5, 0, 0, 0, 0x10, 0, 0, 0, 0, 0 };
	mh = (struct tlp_mr_hdr *)flush;
	CHECK_IS(tlp_mr_data_length(mh), 1);
	CHECK_IS(tlp_mr_addr(mh), 0x1000);
	flush[0] = 0x40;
	CHECK_IS(tlp_mr_data_length(mh), 0);

	/* 300 bytes from 0x1003 on, in two completions; the second is the last. */
	unsigned char cpl[12 + 304] = { 0x4a, 0, 0, 64, 0, 0, 0x01, 0x2c, 0x1b, 0, 5, 0x03 };
	struct tlp_cpl_hdr *ch = (struct tlp_cpl_hdr *)cpl;
	CHECK_IS(tlp_cpld_data_length(ch), 253);
	CHECK(tlp_cpld_data(ch) == cpl + 15);
	cpl[3] = 12;
	cpl[7] = 47;
	cpl[6] = 0;
	cpl[11] = 0;
	CHECK_IS(tlp_cpld_data_length(ch), 47);
	CHECK(tlp_cpld_data(ch) == cpl + 12);
	/* 4096 bytes at once: both fields hold 0. */
	cpl[3] = cpl[7] = 0;
	CHECK_IS(tlp_cpld_data_length(ch), 4096);
}

int main(void)
{
	setters();
	types();
	enables();
	example();
	return 0;
}
