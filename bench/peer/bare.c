/* The kernel's own limit: datagrams there and back, as large as NetTLP's reads and their data, with nothing done to them.
 *
 * bare serve|ask udp|packet sleep|spin BYTES PORTS OUTSTANDING SECONDS LOCAL PEER INTERFACE
 *
 * The asker keeps OUTSTANDING requests of 26 bytes under way and gets BYTES bytes for each (for a read of N bytes that is N + 18).
 * UDP: a socket per port and requests spread over them; packet: one socket. Both sides take and send up to 64 at once.
 * The asker prints its rate and its processor time per round trip as JSON; the server goes on until it is killed. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "frame.h"

enum { BATCH = 64, ROOM = 2048 };

static int serving, raw, spinning, bytes, ports, outstanding, sockets[256], epoll;
static unsigned char buffers[2][BATCH][ROOM];
static struct mmsghdr messages[2][BATCH];
static struct iovec pieces[2][BATCH];

static void die(const char *what) { perror(what); exit(1); }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static int open_udp(int port) {
  int fd = socket(AF_INET, SOCK_DGRAM, 0), size = 1 << 20;
  struct sockaddr_in here = {AF_INET, htons(port), local, {0}}, there = {AF_INET, htons(port), peer, {0}};
  setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
  if (bind(fd, (void *)&here, sizeof here) || connect(fd, (void *)&there, sizeof there)) die("bind");
  return fd;
}

/* A packet socket; plain sockets hold the ports, or the kernel would answer that nobody listens. Their buffers overflow quietly. */
static int open_packet(const char *interface) {
  int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_IP)), one = 1, size = 8 << 20, small = 1;
  if (fd < 0) die("packet socket");
  for (int i = 0; i < ports; i++) {
    int held = open_udp(FIRST + i);
    setsockopt(held, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  }
  struct ifreq request = {0};
  strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
  if (ioctl(fd, SIOCGIFHWADDR, &request)) die("interface");
  memcpy(mac, request.ifr_hwaddr.sa_data, 6);
  struct sockaddr_ll address = {AF_PACKET, htons(ETH_P_IP), if_nametoindex(interface), 0, 0, 0, {0}};
  if (bind(fd, (void *)&address, sizeof address)) die("bind");
  setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one);
  setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
  return fd;
}

/* Sends `count` datagrams that stand in buffers[1]. */
static void put(int fd, int count) {
  for (int sent = 0; sent < count;) {
    int n = sendmmsg(fd, messages[1] + sent, count - sent, 0);
    if (n > 0) sent += n;
  }
}

static int take(int fd) {
  int n = recvmmsg(fd, messages[0], BATCH, MSG_DONTWAIT, NULL);
  return n < 0 ? 0 : n;
}

static void wait_for_something(void) {
  struct epoll_event event;
  if (!spinning) epoll_wait(epoll, &event, 1, 20);
}

/* Lays `len` bytes for `port` into buffers[1][at]. */
static void lay(int at, int port, int len, const unsigned char *to) {
  if (raw) headers(buffers[1][at], to, port, len);
  pieces[1][at].iov_len = len + (raw ? HEADERS : 0);
}

/* Takes what came at socket i and answers it, or asks again; how many came. */
static int turn(int i, int len) {
  int came = take(sockets[i]), count = 0;
  for (int k = 0; k < came; k++) {
    unsigned char *frame = buffers[0][k];
    int port = FIRST + i;
    if (raw) {
      port = ntohs(*(unsigned short *)(frame + 36));
      if (messages[0][k].msg_len < HEADERS || frame[23] != 17 || port < FIRST || port >= FIRST + ports) continue;
    }
    lay(count++, port, len, frame + 6);
  }
  put(sockets[i], count);
  return count;
}

int main(int argc, char **argv) {
  if (argc != 11) return fprintf(stderr, "see the head of bare.c\n"), 2;
  serving = !strcmp(argv[1], "serve"), raw = !strcmp(argv[2], "packet"), spinning = !strcmp(argv[3], "spin");
  bytes = atoi(argv[4]), ports = atoi(argv[5]), outstanding = atoi(argv[6]);
  double seconds = atof(argv[7]);
  if (!inet_aton(argv[8], &local) || !inet_aton(argv[9], &peer)) return 2;
  for (int d = 0; d < 2; d++)
    for (int k = 0; k < BATCH; k++) {
      pieces[d][k] = (struct iovec){buffers[d][k], ROOM};
      messages[d][k].msg_hdr.msg_iov = &pieces[d][k];
      messages[d][k].msg_hdr.msg_iovlen = 1;
    }
  int count = raw ? 1 : ports, len = serving ? bytes : REQUEST;
  epoll = epoll_create1(0);
  for (int i = 0; i < count; i++) {
    sockets[i] = raw ? open_packet(argv[10]) : open_udp(FIRST + i);
    struct epoll_event event = {.events = EPOLLIN, .data = {.u32 = i}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, sockets[i], &event);
  }
  long done = 0, before = 0;
  double begin = now(), end = begin + seconds, heard = 0;
  const unsigned char everybody[6] = {255, 255, 255, 255, 255, 255};
  while (serving || now() < end) {
    if (!serving && done == before && now() - heard > 0.1) {  /* the beginning, or everything was lost */
      for (int k = 0; k < outstanding; k++) {
        lay(0, FIRST + k % ports, REQUEST, everybody);
        put(sockets[raw ? 0 : k % ports], 1);
      }
      heard = now();
    }
    before = done;
    wait_for_something();
    for (int i = 0; i < count; i++) done += turn(i, len);
    if (done != before) heard = now();
  }
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
  printf("{\"rate\": %.0f, \"cpu_us\": %.3f, \"done\": %ld}\n", done / (now() - begin), cpu * 1e6 / (done ? done : 1), done);
  return 0;
}
