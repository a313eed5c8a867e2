"""Makes kernels.ptx of kernels.cu, with NVIDIA's run-time compiler: `pip install nvidia-cuda-nvrtc-cu12==12.1.105`.

For `compute_60`: the driver translates it for any GPU from Pascal on.
"""

import ctypes
import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OPTIONS = [b"--gpu-architecture=compute_60", b"--std=c++14"]


def library() -> ctypes.CDLL:
    """The compiler, from its package."""
    found = importlib.util.find_spec("nvidia.cuda_nvrtc")
    if found is None or found.submodule_search_locations is None:
        raise SystemExit("there is no nvidia.cuda_nvrtc: pip install nvidia-cuda-nvrtc-cu12==12.1.105")
    return ctypes.CDLL(str(next(Path(found.submodule_search_locations[0]).glob("lib/libnvrtc.so.*"))))


def ptx(source: bytes) -> bytes:
    """The PTX of a source, which the driver takes."""
    nvrtc, program, size = library(), ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    failed = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), (ctypes.c_char_p * len(OPTIONS))(*OPTIONS))
    if failed:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit(log.value.decode())
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, text)
    # The compiler's own header leaves tables of its targets, which nothing uses.
    return b"".join(line for line in text.value.splitlines(keepends=True) if b"nv6target" not in line)


if __name__ == "__main__":
    made = ptx((HERE / "kernels.cu").read_bytes())
    (HERE / "kernels.ptx").write_bytes(made)
    sys.stdout.write(f"{len(made)} bytes\n")
