"""`tlplab measure`: the latency of each link by the differential method, on this machine or a simulated one.

The reads and what follows from them are Rust (`crates/hostprobe/src`, `crates/bench/src/differential`); here are the command, what it
prints and what it draws.
"""
