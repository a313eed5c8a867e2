"""`tlplab measure`: the latency of each link by the differential method, on this machine or a simulated one.

The reads and their evaluation are Rust (`crates/hostprobe/src`, `crates/bench/src/differential`); here are the command, its
output and its drawings.
"""
