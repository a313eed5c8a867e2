/*
 * Reads TLPs, one a line in hexadecimal, and prints what the structs and
 * functions of tlp.h say of each.
 */
#include <tlp.h>

#include "check.h"

static void print_request(struct tlp_mr_hdr *mh, unsigned char *tlp)
{
	printf("%s len %d requester %02x:%02x tag %02x last %x first %x addr %lx bytes %d",
	       tlp_is_mrd(mh->tlp.fmt_type) ? "MRd" : "MWr", tlp_length(mh->tlp.falen),
	       tlp_id_to_bus(mh->requester), tlp_id_to_device(mh->requester), mh->tag, mh->lstdw,
	       mh->fstdw, (unsigned long)tlp_mr_addr(mh), tlp_mr_data_length(mh));
	if (tlp_is_mwr(mh->tlp.fmt_type))
		printf(" data at %d", (int)((unsigned char *)tlp_mwr_data(mh) - tlp));
}

static void print_completion(struct tlp_cpl_hdr *ch, unsigned char *tlp)
{
	printf("%s completer %02x:%02x status %x count %d requester %02x:%02x tag %02x low %02x",
	       tlp_is_w_data(ch->tlp.fmt_type) ? "CplD" : "Cpl", tlp_id_to_bus(ch->completer),
	       tlp_id_to_device(ch->completer), tlp_cpl_status(ch->stcnt) >> 13,
	       tlp_cpl_bcnt(ch->stcnt), tlp_id_to_bus(ch->requester),
	       tlp_id_to_device(ch->requester), ch->tag, ch->lowaddr);
	if (tlp_is_w_data(ch->tlp.fmt_type))
		printf(" len %d bytes %d data at %d", tlp_length(ch->tlp.falen), tlp_cpld_data_length(ch),
		       (int)((unsigned char *)tlp_cpld_data(ch) - tlp));
}

int main(void)
{
	static char line[2 * 4096 + 256];

	while (fgets(line, sizeof(line), stdin)) {
		size_t size = strcspn(line, "\n") / 2;
		/* just as large as the TLP, so that the sanitizer sees a step too far */
		unsigned char *tlp = (unsigned char *)malloc(size);
		struct tlp_hdr *th = (struct tlp_hdr *)tlp;

		for (size_t i = 0; i < size; i++) {
			unsigned int byte;

			CHECK_IS(sscanf(line + 2 * i, "%2x", &byte), 1);
			tlp[i] = (unsigned char)byte;
		}
		if (tlp_is_cpl(th->fmt_type))
			print_completion((struct tlp_cpl_hdr *)th, tlp);
		else
			print_request((struct tlp_mr_hdr *)th, tlp);
		printf(" td %d ep %d attr %x tc %d\n", tlp_flag_digest(th->falen) != 0, tlp_flag_ep(th->falen) != 0,
		       tlp_attr(th->falen) >> 12, tlp_tclass(th->tclass));
		free(tlp);
	}
	return 0;
}
