// Stands in for NVIDIA's libcuda.so.1: memory is the processor's, kernels are the functions below, and time is made up: a transfer of n
// bytes takes 1000 ns, and n at once end every 10 ns. FAKE_CUDA names a function that fails. counts[address] is what touched each word.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fails(const char *name) {
  const char *named = getenv("FAKE_CUDA");
  return named != NULL && strcmp(named, name) == 0 ? 2 : 0;
}
#define CALL(name) \
  if (fails(name)) return 2

int cuInit(unsigned flags) { CALL("cuInit"); return (void)flags, 0; }
int cuGetErrorString(int status, const char **text) { return *text = status == 2 ? "out of memory" : "?", 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGet(int *device, int number) { return *device = number, 0; }
int cuDeviceGetName(char *name, int length, int device) { return (void)device, snprintf(name, length, "Stand-in"), 0; }
int cuDeviceGetPCIBusId(char *name, int length, int device) { return (void)device, snprintf(name, length, "0000:7F:1F.7"), 0; }
int cuDeviceGetAttribute(int *value, int which, int device) {
  (void)device;
  *value = which == 16 ? 4 : which == 106 ? 9 : which == 13 ? 1000000 : 1;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { return (void)device, *context = (void *)1, 0; }
int cuCtxSetCurrent(void *context) { return (void)context, 0; }
int cuCtxSynchronize(void) { return 0; }
int cuModuleLoadData(void **module, const char *ptx) { return *module = (void *)2, strstr(ptx, ".entry transfers(") ? 0 : 2; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
  return (void)module, *function = (void *)(uintptr_t)(strcmp(name, "latencies") == 0 ? 1 : 2), 0;
}
int cuMemHostAlloc(void **at, size_t size, unsigned flags) { CALL("cuMemHostAlloc"); return (void)flags, *at = malloc(size), 0; }
int cuMemFreeHost(void *at) { return free(at), 0; }
int cuMemHostGetDevicePointer_v2(uint64_t *mapped, void *at, unsigned flags) { return (void)flags, *mapped = (uintptr_t)at, 0; }
int cuMemAlloc_v2(uint64_t *at, size_t size) { return *at = (uintptr_t)calloc(1, size), 0; }
int cuMemFree_v2(uint64_t at) { return free((void *)(uintptr_t)at), 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) { return memcpy((void *)(uintptr_t)to, from, size), 0; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) { return memcpy(to, (void *)(uintptr_t)from, size), 0; }

// Each operation adds one to its first word if it writes, two if it reads.
static void touch(uint8_t *buffer, uint32_t operation) { *(uint32_t *)(buffer + (operation & ~1u)) += operation & 1 ? 1 : 2; }

int cuLaunchKernel(void *function, unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz, unsigned shared,
                   void *stream, void **given, void **extra) {
  (void)y, (void)z, (void)ty, (void)tz, (void)shared, (void)stream, (void)extra;
  CALL("cuLaunchKernel");
  if (threads != 32) return 1;
  uint8_t *buffer = *(uint8_t **)given[0];
  uint32_t *operations = *(uint32_t **)given[1];
  if ((uintptr_t)function == 1) {
    uint32_t *cycles = *(uint32_t **)given[2], count = *(uint32_t *)given[3], behind_write = *(uint32_t *)given[5];
    uint64_t *clock = *(uint64_t **)given[6], sum = 0;
    for (uint32_t i = 0; i < count; i++) {
      touch(buffer, operations[i]);
      cycles[i] = 1000 + i % 10 + 500 * behind_write;
      sum += cycles[i];
    }
    clock[0] = sum;  // the clock runs at half of what the driver says
    clock[1] = 2 * sum;
  } else {
    uint32_t count = *(uint32_t *)given[2];
    uint64_t *span = *(uint64_t **)given[4], rounds = (count + blocks - 1) / blocks;
    for (uint32_t i = 0; i < count; i++) touch(buffer, operations[i]);
    uint64_t took = rounds * (blocks * 10 > 1000 ? blocks * 10 : 1000);
    span[0] = ~(uint64_t)5000;
    span[1] = 5000 + took;
  }
  if (getenv("FAKE_CUDA_TOUCHED") != NULL) {
    FILE *file = fopen(getenv("FAKE_CUDA_TOUCHED"), "wb");
    fwrite(buffer, 1, 4096, file);
    fclose(file);
  }
  return 0;
}
