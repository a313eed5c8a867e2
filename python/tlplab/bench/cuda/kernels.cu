// What a GPU does of a benchmark. A warp makes one transfer at a time, of `words` 4-byte words; its 32 threads move a word each, so that up
// to 128 bytes leave as one request. `operations` holds a transfer each: its first byte in the buffer, and in bit 0 whether it is a write.
// kernels.ptx is made of this file by make_ptx.py.

typedef unsigned int u32;
typedef unsigned long long u64;

// Loads of a thread that are on their way at once: 32 threads x 8 words make 1 KiB.
#define UNDER_WAY 8

static __device__ u64 nanoseconds() {
  u64 now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// Volatile accesses reach memory outside the GPU one by one, and are not kept in its first-level caches.
static __device__ u32 read(const char* at, u32 lane, u32 words) {
  u32 sum = 0;
  for (u32 word = lane; word < words; word += 32 * UNDER_WAY) {
    u32 got[UNDER_WAY];
#pragma unroll
    for (int i = 0; i < UNDER_WAY; i++) got[i] = word + 32 * i < words ? ((const volatile u32*)at)[word + 32 * i] : 0;
#pragma unroll
    for (int i = 0; i < UNDER_WAY; i++) sum |= got[i];
  }
  return sum;
}

static __device__ void write(char* at, u32 lane, u32 words) {
  for (u32 word = lane; word < words; word += 32) ((volatile u32*)at)[word] = 0;
}

// One transfer after the other by one warp, the buffer holding zeros. `cycles` gets the clock cycles of each, `clock` the cycles and the
// nanoseconds of all of them. With `behind_write`, a write of the same bytes goes before each read.
extern "C" __global__ void latencies(char* buffer, const u32* operations, u32* cycles, u32 count, u32 words, u32 behind_write, u64* clock) {
  u32 lane = threadIdx.x, zero = 0;
  u64 begun_ns = nanoseconds();
  long long begun = clock64();
  for (u32 i = 0; i < count; i++) {
    char* at = buffer + (operations[i] & ~1u) + zero;
    __syncwarp();
    long long before = clock64();
    if (behind_write) write(at, lane, words);
    zero = read(at, lane, words);
    // All threads have their data, and the next transfer's address depends on them.
    zero = __any_sync(0xffffffffu, zero != 0);
    long long after = clock64();
    if (lane == 0) cycles[i] = (u32)(after - before);
  }
  if (lane == 0) {
    clock[0] = clock64() - begun;
    clock[1] = nanoseconds() - begun_ns;
  }
}

// As many transfers at once as there are warps, a block each. `span` gets the nanoseconds at which the first began, as their complement, and
// at which the last ended: the greatest of both.
extern "C" __global__ void transfers(char* buffer, const u32* operations, u32 count, u32 words, u64* span, u32* sink) {
  u32 lane = threadIdx.x, warps = gridDim.x, seen = 0;
  u64 begun = nanoseconds();
  u32 next = blockIdx.x < count ? operations[blockIdx.x] : 0;
  for (u32 round = 0, i = blockIdx.x; i < count; i += warps, round++) {
    u32 operation = next;
    // The next one is fetched while this one is under way. Reads and writes that take turns do so in each warp.
    u32 follows = i + warps;
    if (!(warps & 1) && !(round & 1) && (follows ^ 1) < count) follows ^= 1;
    if (follows < count) next = operations[follows];
    char* at = buffer + (operation & ~1u);
    if (operation & 1) write(at, lane, words); else seen |= read(at, lane, words);
    // One transfer at a time: the next one waits for the data.
    if (__any_sync(0xffffffffu, seen == 0xdeadbeefu)) sink[0] = seen;
  }
  __threadfence_system();
  if (lane == 0) {
    atomicMax(&span[0], ~begun);
    atomicMax(&span[1], nanoseconds());
  }
}
