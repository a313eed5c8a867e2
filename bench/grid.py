"""The closed forms over a million points: the median of five runs; prints one line of JSON."""

import json
import statistics
import time

import numpy as np

from tlplab import model

SIZES = np.arange(1, 1001)[:, None, None]
GENERATIONS = np.arange(1, 6)[:, None]
OFFSETS = np.arange(0, 800, 4)


def seconds() -> float:
    """Of one run, from numpy arrays to a column of results."""
    start = time.perf_counter()
    grid = model.bandwidth(SIZES, generation=GENERATIONS, offset=OFFSETS, op="rdwr")
    assert grid["bandwidth_bps"].size == 1_000_000
    return time.perf_counter() - start


print(json.dumps({"seconds": statistics.median(seconds() for _ in range(5))}))
