"""A GPU as the device that measures its host: `tlplab bench … --on cuda`.

`kernels.cu` is what the GPU does, `kernels.ptx` what its driver takes of it, `driver` calls the driver, `caches` brings the
processor's caches into the state that a case begins in, `target` measures cases.
"""
