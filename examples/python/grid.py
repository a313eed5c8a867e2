"""Reads on links of three generations, calculated."""

import numpy as np

from tlplab import model

grid = model.bandwidth(np.array([64, 256, 1500]), generation=[[3], [4], [5]], width=16, op="read")
print((grid["bandwidth_bps"] / 1e9).round(1))
