"""The measurements that github.com/voipmonitor/rtx6kpro (folder hardware, May 2026) reports: figures only, cited as facts. GB/s is 10^9 bytes a second.

The harness of the flows is a script with PyTorch (collapse-report.md, "Method 1"); that of rings and latencies is p2pmark, version 3c39f36
(github.com/lukealonso/p2pmark), whose rings pull: each GPU reads.
"""

from __future__ import annotations

FLAT = "two switches"
ROOTS = "four switches, older state"
NEWER = "four switches, newer state"
TREE = "three switches, one above"

# wrx90-cpayne-2switch-flat.md. Ranges are given by their middle.
FLAT_PAIR = {"in a switch": 53.4, "across": 53.1}
FLAT_BOTH = 101.0
FLAT_LATENCY = {"in a switch": 720.0, "across": 1425.0}
FLAT_LOADED = 7480.0
FLAT_RING = {1: 50.59, 2: 37.89, 3: 25.64, 4: 12.62, 5: 25.70, 6: 37.96, 7: 50.35}
FLAT_GEN2 = {"in a switch": 54.2, "across": 7.0}
FLAT_SEVERAL = {
    "two pairs in one switch": 107.5,
    "two pairs across, one source switch": 53.8,
    "four pairs across, 1:1": 53.3,
    "16 flows across": 51.6,
}
FLAT_IN_ONE, FLAT_ALL = 148.9, 168.4
FLAT_TWO = {"(0,4) + (1,6)": 53.1, "(0,4) + (1,5)": 55.1}

# wrx90-cpayne-16gpu-4switch.md, in the older state of firmware, kernel and driver; the four independent pairs are collapse-report.md's.
ROOTS_PAIR = {"in a switch": 53.0, "across": 53.0}
ROOTS_LATENCY = {"in a switch": 760.0, "across": 1515.0}
ROOTS_LOADED = 7430.0
ROOTS_GEN2 = 7.0
ROOTS_INDEPENDENT = 197.8
# The newer state: the same page, and for pairs, both ways and all to all wrx90-cpayne-8gpu-root-topology-comparison.md, of the same machine.
NEWER_PAIR = {"in a switch": 56.26, "across": 56.26}
# Within a switch; hardware/wrx90-cpayne-8gpu-2vs-per-chip.md.
NEWER_BOTH = 109.4
NEWER_SEVERAL = {
    "both ways, two pairs": 109.3,
    "two pairs to one switch": 56.4,
    "two pairs in one switch": 112.0,
    "four pairs to one switch": 56.4,
    "SW1 → SW2 + SW3": 52.2,
    "SW1 → SW2 + SW4": 51.9,
    "SW1 → SW3 + SW4": 51.8,
    "SW1 → SW2 + SW3 + SW4": 56.3,
    "SW1 → 2×SW2 + SW3 + SW4": 56.4,
    "56 flows, each to each in two switches": 179.0,
}
# Reads of the same patterns: "READ" of the harness.
READS = {"SW1 → SW2 + SW3": 56.4, "SW1 → SW2 + SW3 + SW4": 81.1, "SW1 → 2×SW2 + SW3 + SW4": 108.1}
# The same pattern of three destinations again, with 50 to 2000 iterations.
READS_AGAIN = 56.4
# The cabling with three roots: SW3 and SW4 on one. In the other order of switches: 84.5.
SIBLING_READS = 84.4

# wrx90-cpayne-microchip-switches.md.
TREE_PAIR = {"in a leaf": 53.9, "across the upper switch": 54.2}
TREE_BOTH = 104.0
TREE_LATENCY = {"in a leaf": 710.0, "leaves of one chip": 720.0, "across the upper switch": 1160.0}
TREE_LOADED = 6560.0
TREE_RING = {1: 51.55, 2: 39.17, 3: 32.84, 4: 25.63, 5: 32.82, 6: 39.21, 7: 51.53}
TREE_SEVERAL = {
    "two flows, two leaves": 108.7,
    "four flows across, 1:1": 108.6,
    "16 flows across": 99.6,
    "(0,4) + (1,6), one leaf": 53.9,
    "(0,4) + (0,2), one GPU": 53.9,
}
TREE_BESIDE = 107.0
TREE_ALL = 232.8

# The uplink, where several flows have it (16 GPUs, newer firmware and driver).
UPLINK = 56.4
# Published as writes of one switch with one uplink of 63 GB/s.
IMPOSSIBLE_WRITES = (87.5, 97.4)

# The collapse (collapse-report.md, asus-esc8000a-e13p-broadcom-switches.md): writes of flows together.
COLLAPSE_TWO, COLLAPSE_THREE, COLLAPSE_BROADCOM = 13.5, 12.6, 2.7

# asus-esc8000a-e13p-broadcom-switches.md: PEX890xx chips of two partitions each, access control as it was found and switched off.
SERVER = "two chips of two partitions"
SERVER_BOTH = {
    "in one partition, redirected": 50.0,
    "in one partition, straight": 103.0,
    "in two partitions of a chip, redirected": 103.0,
    "in two partitions of a chip, straight": 103.0,
}
