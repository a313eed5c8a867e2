/* The frames of bare.c and bare_xdp.c. */
#ifndef TLPLAB_BENCH_FRAME_H
#define TLPLAB_BENCH_FRAME_H
#include <arpa/inet.h>
#include <string.h>

enum { FIRST = 0x3000, REQUEST = 26, HEADERS = 42 };

static struct in_addr local, peer;
static unsigned char mac[6];

/* Writes the Ethernet, IPv4 and UDP headers of `len` bytes from `port` to the same port of the peer, whose Ethernet address is `to`. */
static void headers(unsigned char *frame, const unsigned char *to, int port, int len) {
  unsigned sum = 0;
  memset(frame, 0, HEADERS);
  memcpy(frame, to, 6);
  memcpy(frame + 6, mac, 6);
  frame[12] = 8;
  frame[14] = 0x45;
  *(unsigned short *)(frame + 16) = htons(28 + len);
  frame[22] = 64;
  frame[23] = 17;
  memcpy(frame + 26, &local, 4);
  memcpy(frame + 30, &peer, 4);
  for (int i = 14; i < 34; i += 2) sum += *(unsigned short *)(frame + i);
  sum = (sum & 0xffff) + (sum >> 16);
  *(unsigned short *)(frame + 24) = ~(sum + (sum >> 16));
  *(unsigned short *)(frame + 34) = *(unsigned short *)(frame + 36) = htons(port);
  *(unsigned short *)(frame + 38) = htons(8 + len);
}

#endif
