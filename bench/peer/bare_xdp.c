/* The kernel's own limit, by XDP sockets: the datagrams of bare.c in the same pattern, with nothing done to them.
 *
 * bare_xdp serve|ask sleep|spin BYTES PORTS OUTSTANDING SECONDS LOCAL PEER INTERFACE
 *
 * The program on the interface takes all IPv4 frames with UDP, whoever they are for. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "frame.h"

enum { CHUNK = 4096, RING = 2048, BATCH = 64 };

struct ring {
  volatile unsigned *producer, *consumer;
  void *entries;
};

static int fd, serving, spinning, bytes, ports, outstanding, interface;
static struct ring rx, tx, fill, completion;
static unsigned char *chunks;
static unsigned long long unused[RING];
static int unused_count;

static void die(const char *what) { perror(what); exit(1); }
static void barrier(void) { __sync_synchronize(); }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static struct ring map_ring(int option, size_t entry, off_t page, const struct xdp_ring_offset *at) {
  int count = RING;
  if (setsockopt(fd, SOL_XDP, option, &count, sizeof count)) die("ring");
  char *p = mmap(0, at->desc + RING * entry, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, page);
  if (p == MAP_FAILED) die("mmap");
  return (struct ring){(void *)(p + at->producer), (void *)(p + at->consumer), p + at->desc};
}

static void open_socket(void) {
  if ((fd = socket(AF_XDP, SOCK_RAW, 0)) < 0) die("XDP socket");
  chunks = mmap(0, 2 * RING * CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  struct xdp_umem_reg region = {.addr = (unsigned long)chunks, .len = 2 * RING * CHUNK, .chunk_size = CHUNK};
  if (setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &region, sizeof region)) die("memory");
  struct xdp_mmap_offsets at;
  socklen_t size = sizeof at;
  if (getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &size)) die("offsets");
  rx = map_ring(XDP_RX_RING, sizeof(struct xdp_desc), XDP_PGOFF_RX_RING, &at.rx);
  tx = map_ring(XDP_TX_RING, sizeof(struct xdp_desc), XDP_PGOFF_TX_RING, &at.tx);
  fill = map_ring(XDP_UMEM_FILL_RING, 8, XDP_UMEM_PGOFF_FILL_RING, &at.fr);
  completion = map_ring(XDP_UMEM_COMPLETION_RING, 8, XDP_UMEM_PGOFF_COMPLETION_RING, &at.cr);
  for (int i = 0; i < RING; i++) {
    ((unsigned long long *)fill.entries)[i] = (unsigned long long)i * CHUNK;
    unused[unused_count++] = (unsigned long long)(RING + i) * CHUNK;
  }
  barrier();
  *fill.producer = RING;
  struct sockaddr_xdp address = {AF_XDP, XDP_USE_NEED_WAKEUP, interface, 0, 0};
  if (bind(fd, (void *)&address, sizeof address)) die("bind");
}

static int bpf(int command, union bpf_attr attr) { return syscall(SYS_bpf, command, &attr, sizeof attr); }

/* Frames with IPv4 and UDP go to the socket, all others on their way. */
static void attach(void) {
  int map = bpf(BPF_MAP_CREATE, (union bpf_attr){.map_type = BPF_MAP_TYPE_XSKMAP, .key_size = 4, .value_size = 4, .max_entries = 1});
  int key = 0;
  if (map < 0 || bpf(BPF_MAP_UPDATE_ELEM, (union bpf_attr){.map_fd = map, .key = (unsigned long)&key, .value = (unsigned long)&fd})) die("map");
  struct bpf_insn program[] = {
    {BPF_LDX | BPF_MEM | BPF_W, 2, 1, 0, 0}, {BPF_LDX | BPF_MEM | BPF_W, 3, 1, 4, 0},  /* the frame, its end */
    {BPF_ALU64 | BPF_MOV | BPF_X, 4, 2, 0, 0}, {BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, HEADERS}, {BPF_JMP | BPF_JGT | BPF_X, 4, 3, 10, 0},
    {BPF_LDX | BPF_MEM | BPF_H, 5, 2, 12, 0}, {BPF_JMP | BPF_JNE | BPF_K, 5, 0, 8, htons(0x0800)},
    {BPF_LDX | BPF_MEM | BPF_B, 5, 2, 23, 0}, {BPF_JMP | BPF_JNE | BPF_K, 5, 0, 6, IPPROTO_UDP},
    {BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, map}, {0, 0, 0, 0, 0},
    {BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 0}, {BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, XDP_PASS},
    {BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map}, {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
    {BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_PASS}, {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
  };
  int loaded = bpf(BPF_PROG_LOAD, (union bpf_attr){.prog_type = BPF_PROG_TYPE_XDP, .insns = (unsigned long)program,
                                                   .insn_cnt = sizeof program / sizeof *program, .license = (unsigned long)"MIT"});
  union bpf_attr link = {.link_create = {.prog_fd = loaded, .target_ifindex = interface, .attach_type = BPF_XDP}};
  if (loaded < 0 || bpf(BPF_LINK_CREATE, link) < 0) die("program");
}

/* Lays a datagram of `len` bytes into the ring of what goes. */
static void lay(int port, int len, const unsigned char *to) {
  unsigned long long chunk = unused[--unused_count];
  headers(chunks + chunk, to, port, len);
  ((struct xdp_desc *)tx.entries)[*tx.producer % RING] = (struct xdp_desc){chunk, HEADERS + len, 0};
  barrier();
  ++*tx.producer;
}

static void put(void) {
  while (*tx.consumer != *tx.producer)
    if (sendto(fd, 0, 0, MSG_DONTWAIT, 0, 0) < 0 && errno != EAGAIN && errno != EBUSY && errno != ENOBUFS) die("send");
  for (; *completion.consumer != *completion.producer; ++*completion.consumer)
    unused[unused_count++] = ((unsigned long long *)completion.entries)[*completion.consumer % RING];
}

/* Takes what came and answers it, or asks again; how many came. */
static int turn(int len) {
  int came = 0;
  for (; came < BATCH && *rx.consumer != *rx.producer; came++) {
    barrier();
    unsigned long long at = ((struct xdp_desc *)rx.entries)[*rx.consumer % RING].addr;
    ++*rx.consumer;
    lay(ntohs(*(unsigned short *)(chunks + at + 36)), len, chunks + at + 6);
    ((unsigned long long *)fill.entries)[*fill.producer % RING] = at - at % CHUNK;
    barrier();
    ++*fill.producer;
  }
  put();
  return came;
}

int main(int argc, char **argv) {
  if (argc != 10) return fprintf(stderr, "see the head of bare_xdp.c\n"), 2;
  serving = !strcmp(argv[1], "serve"), spinning = !strcmp(argv[2], "spin");
  bytes = atoi(argv[3]), ports = atoi(argv[4]), outstanding = atoi(argv[5]);
  double seconds = atof(argv[6]);
  if (!inet_aton(argv[7], &local) || !inet_aton(argv[8], &peer)) return 2;
  interface = if_nametoindex(argv[9]);
  struct ifreq request = {0};
  strncpy(request.ifr_name, argv[9], IFNAMSIZ - 1);
  if (ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCGIFHWADDR, &request)) die("interface");
  memcpy(mac, request.ifr_hwaddr.sa_data, 6);
  open_socket();
  attach();
  long done = 0;
  double begin = now(), heard = 0;
  const unsigned char everybody[6] = {255, 255, 255, 255, 255, 255};
  for (double t = begin; serving || t < begin + seconds; t = now()) {
    if (!serving && t - heard > 0.1) {  /* the beginning, or everything was lost */
      for (int k = 0; k < outstanding; k++) lay(FIRST + k % ports, REQUEST, everybody);
      put();
      heard = t;
    }
    struct pollfd waiting = {fd, POLLIN, 0};
    if (!spinning) poll(&waiting, 1, 20);
    int came = turn(serving ? bytes : REQUEST);
    done += came;
    if (came) heard = t;
  }
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
  printf("{\"rate\": %.0f, \"cpu_us\": %.3f, \"done\": %ld}\n", done / (now() - begin), cpu * 1e6 / (done ? done : 1), done);
  return 0;
}
