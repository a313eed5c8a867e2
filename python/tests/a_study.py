"""A study of a few quick points, two of whose links there are and one there is not."""

from __future__ import annotations

EXPERIMENT = """\
title = "SSD and NIC share one uplink"
stop = "10us"
[switch.sw0]
under = "host.rp0"
link = "gen4 x4"
[device.ssd]
under = "sw0"
link = "gen4 x4"
[device.nic]
under = "sw0"
link = "gen4 x8"
[load]
ssd = { op = "write", size = "4KiB", outstanding = 32 }
nic = { op = "write", size = "1500B", rate = "25Gb/s" }
"""

STUDY = """\
title = "Uplinks"
experiment = "one.toml"
metrics = ["throughput", "share = nic.throughput / throughput"]
[[axis]]
key = "switch.sw0.link"
name = "uplink"
values = ["gen4 x4", "gen9 x8", "gen4 x8"]
[[axis]]
key = "load.nic.rate"
name = "nic_rate"
from = "10Gb/s"
to = "40Gb/s"
by = "10Gb/s"
[[filter]]
name = "no more than 30"
keep = "nic_rate <= 30 Gb/s"
"""
