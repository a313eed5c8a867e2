"""A GPU as the device that measures its host: `tlplab bench … --on cuda`.

`kernels.cu` is the GPU's program, `kernels.ptx` its translation for the driver, `driver` calls the driver, `caches` brings the
processor's caches into the state that a case begins in, `target` measures cases.
"""
