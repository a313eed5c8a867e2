"""NVIDIA's driver interface, as far as a benchmark needs it, from `libcuda.so.1`, which comes with the driver.

Called directly, because the driver's functions do not change: a library made for them (cuda-bindings) would have to fit the driver's
version, and the toolkit is needed for neither.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

# CU_MEMHOSTALLOC_PORTABLE and CU_MEMHOSTALLOC_DEVICEMAP: one address space for all contexts, mapped for the GPU.
HOST_FLAGS = 0x01 | 0x02
MULTIPROCESSORS, BLOCKS_PER_MULTIPROCESSOR, CLOCK_KHZ, CAN_MAP_HOST = 16, 106, 13, 19
KERNELS = Path(__file__).with_name("kernels.ptx")
LIBRARY = "libcuda.so.1"

Words = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]


class CudaError(ValueError):
    """There is no GPU, or its driver refuses something."""


class HostBuffer:
    """Pinned memory of the processor: `bytes` for it, `address` for the GPU. Zeros at first."""

    def __init__(self, gpu: Gpu, size: int) -> None:
        """Raises CudaError."""
        self._gpu, self._pointer, mapped = gpu, ctypes.c_void_p(), ctypes.c_uint64()
        gpu.call("cuMemHostAlloc", ctypes.byref(self._pointer), ctypes.c_size_t(size), HOST_FLAGS)
        gpu.call("cuMemHostGetDevicePointer_v2", ctypes.byref(mapped), self._pointer, 0)
        self.address = mapped.value
        self.bytes: Bytes = np.ctypeslib.as_array(ctypes.cast(self._pointer, ctypes.POINTER(ctypes.c_uint8)), (size,))
        self.bytes.fill(0)

    def free(self) -> None:
        """It and its bytes are not used any more."""
        self._gpu.call("cuMemFreeHost", self._pointer)


class Gpu:
    """A GPU whose kernels are loaded. Each thread that uses it calls `use` first."""

    def __init__(self, number: int) -> None:
        """Raises CudaError."""
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError:
            raise CudaError(f"{LIBRARY} is missing: install NVIDIA's driver") from None
        count, self._device, self._context, module = (
            ctypes.c_int(),
            ctypes.c_int(),
            ctypes.c_void_p(),
            ctypes.c_void_p(),
        )
        self.call("cuInit", 0)
        self.call("cuDeviceGetCount", ctypes.byref(count))
        if number >= count.value:
            raise CudaError(f"there is no GPU {number}: the driver has {count.value}, numbered from 0")
        self.call("cuDeviceGet", ctypes.byref(self._device), number)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)
        self.use()
        self.call("cuModuleLoadData", ctypes.byref(module), KERNELS.read_bytes() + b"\0")
        self._kernels = {name: ctypes.c_void_p() for name in ("latencies", "transfers")}
        for name, kernel in self._kernels.items():
            self.call("cuModuleGetFunction", ctypes.byref(kernel), module, name.encode())
        self.name = self.text("cuDeviceGetName")
        self.bdf = self.text("cuDeviceGetPCIBusId").lower()
        self.clock_hz = self.attribute(CLOCK_KHZ) * 1000
        self.warps = self.attribute(MULTIPROCESSORS) * self.attribute(BLOCKS_PER_MULTIPROCESSOR)
        """Blocks of one warp that are under way at once."""
        if not self.attribute(CAN_MAP_HOST):
            raise CudaError(f"{self.name} cannot reach the processor's memory")

    def call(self, function: str, *arguments: Any) -> None:
        """Calls the driver. Raises CudaError."""
        status = getattr(self._library, function)(*arguments)
        if status:
            said = ctypes.c_char_p()
            self._library.cuGetErrorString(status, ctypes.byref(said))
            why = said.value.decode() if said.value else "no reason given"
            raise CudaError(f"the GPU's driver refused {function}: {why} (status {status})")

    def use(self) -> None:
        """Make this the current GPU of this thread's calls."""
        self.call("cuCtxSetCurrent", self._context)

    def text(self, function: str) -> str:
        """A name of the GPU."""
        found = ctypes.create_string_buffer(256)
        self.call(function, found, len(found), self._device)
        return found.value.decode()

    def attribute(self, number: int) -> int:
        """A `CUdevice_attribute`."""
        found = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(found), number, self._device)
        return found.value

    def memory(self, size: int) -> int:
        """Memory of the GPU: its address."""
        found = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(found), ctypes.c_size_t(size))
        return found.value

    def free(self, address: int) -> None:
        """Gives memory of the GPU back."""
        self.call("cuMemFree_v2", ctypes.c_uint64(address))

    def upload(self, address: int, data: npt.NDArray[Any]) -> None:
        """Copies an array into the GPU's memory."""
        self.call(
            "cuMemcpyHtoD_v2", ctypes.c_uint64(address), ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes)
        )

    def download(self, address: int, data: npt.NDArray[Any]) -> None:
        """Copies the GPU's memory into an array."""
        self.call(
            "cuMemcpyDtoH_v2", ctypes.c_void_p(data.ctypes.data), ctypes.c_uint64(address), ctypes.c_size_t(data.nbytes)
        )

    def run(self, kernel: str, blocks: int, *arguments: ctypes.c_uint64 | ctypes.c_uint32) -> None:
        """Runs a kernel by blocks of one warp, to its end."""
        pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))
        self.call("cuLaunchKernel", self._kernels[kernel], blocks, 1, 1, 32, 1, 1, 0, None, pointers, None)
        self.call("cuCtxSynchronize")


def open_gpu(number: int) -> Gpu:
    """The GPU of that number. Raises CudaError."""
    if not sys.platform.startswith("linux"):
        raise CudaError("a GPU is measured under Linux only")
    return Gpu(number)


Open = Callable[[int], Gpu]
