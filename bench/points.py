"""Benchmarks on the simulator: bandwidth points in a CPU-second; prints one line of JSON."""

import json
import time

from tlplab import bench

SIZES = (64, 128, 200, 256, 512, 777, 1024, 2048)
CASES = [
    bench.Case(test, size, window=window, pattern="random", cache=cache)
    for test in ("bw_rd", "bw_wr", "bw_rdwr")
    for size in SIZES
    for window, cache in ((8192, "host-warm"), (16 << 20, "cold"))
]

start = time.process_time()
results = bench.run(CASES, host="server", device="nfp6000")
spent = time.process_time() - start
assert all(result.complete for result in results)
print(json.dumps({"points_per_second": len(results) / spent}))
