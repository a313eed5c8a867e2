// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Transfers on a machine with faults: each is tried until it succeeds, and its data looked at. Prints every
 * failure, and how many there were.
 */
#include "../user/libtlpdma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 20000, ROUNDS = 40, TRIES = 5 };

static unsigned int failures;

static void try(struct tlpdma_card *card, int to_card, unsigned char *data)
{
	for (int i = 0; i < TRIES; i++) {
		if (!(to_card ? tlpdma_to_card(card, 100, data, BYTES)
			      : tlpdma_from_card(card, 100, data, BYTES)))
			return;
		failures++;
		printf("%s card: %s\n", to_card ? "to" : "from", tlpdma_error(card));
	}
	puts("given up");
	exit(1);
}

int main(int count, char **arguments)
{
	static unsigned char sent[BYTES], back[BYTES];
	char message[500];
	struct tlpdma_card *card;

	card = count == 2 ? tlpdma_open(arguments[1], NULL, message, sizeof(message)) : NULL;
	if (!card) {
		fprintf(stderr, "%s\n", count == 2 ? message : "usage: recovery CARD");
		return 2;
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < BYTES; i++)
			sent[i] = (unsigned char)(i * 31 + (i >> 8) + round);
		memset(back, 0x5a, BYTES);
		try(card, 1, sent);
		try(card, 0, back);
		if (memcmp(sent, back, BYTES)) {
			printf("round %d: wrong data\n", round);
			return 1;
		}
	}
	printf("%u failures, every byte right\n", failures);
	tlpdma_close(card);
	return 0;
}
