//! The tests of tlplab-fabric, in one program.
//!
//! * [`access`]: Access control between peers (PCIe 5.0 §6.12): which TLPs go straight, which go up first, which go nowhere, and what the registers say of it.
//! * [`address_space`]: Whatever the tree and whatever BARs its functions have: each has a place of its own, and what is written there is read there.
//! * [`ari`]: Devices with more than eight functions: what would be the device number is part of the function's (ARI).
//! * [`bounds`]: What limits a flow: memory, tags, credits, arbitration; and what goes over the wire while it does. Computed by hand first.
//! * [`bus_traffic`]: Parallel buses under load: everything arrives once, nobody starves, and the same run is the same again.
//! * [`buses`]: Parallel buses below a bridge: how long reads take, by mode, device select, wait states and kind of completion.
//! * [`config_requests`]: What a host can do to functions through configuration space, once they are enumerated: read and write registers of any width, and
//! * [`custom_links`]: Custom channels and data link layers: their decisions hold, nothing is lost or miscounted around them, and a snapshot copies or names them.
//! * [`custom_nodes`]: Custom nodes: their decisions hold, nothing is lost or miscounted around them, and a snapshot copies or names them.
//! * [`determinism`]: The same experiment and seed give the same trace: whatever the order of declaration, the thread, the profile, the fidelity.
//! * [`domains`]: Domains of the host: what traffic between root ports costs that leaves one and enters another, computed by hand first; and nothing is lost or
//! * [`drop_and_replay`]: Links without credits, after the gem5 model of Alian et al. (2018): what a full port drops, the replay timer sends again.
//! * [`enumeration`]: Enumeration over the links: the same software and the same outcome as before time 0, by requests that are seen, in time, and whatever
//! * [`error_reporting`]: What software learns of each error (PCIe 5.0 §6.2): a program on the host reads the registers over the links, and the messages are
//! * [`errors`]: Every error that a fault can provoke is detected where the specification says, once, and nothing is left in limbo.
//! * [`exactly_once`]: Random fabrics under random loads: whatever is asked for arrives exactly once, every credit comes back, and the causes of every
//! * [`histories`]: What is kept of a run over time when that is asked for: configuration spaces and transactions under way.
//! * [`host_memory`]: What a measured host has before its memory: figures that arithmetic says.
//! * [`host_path`]: The stages between the root complex, memory and the processor: times that arithmetic says, and nothing lost or out of order.
//! * [`hotplug`]: Links that go down and come up again under traffic, with whatever is below them: every transaction is accounted for once, software
//! * [`idle`]: Idle stretches are left out: what comes after is as if every refresh of credits had been sent.
//! * [`intx`]: Legacy interrupts: messages that raise and lower wires, turned and joined on their way, levels at the host.
//! * [`known_answers`]: Figures computed by hand first.
//! * [`links_down`]: Links that retrain, and links that go down for good. Those that come up again are in `hotplug`.
//! * [`models`]: Devices and their drivers, end to end: data, doorbells, interrupts.
//! * [`monotone`]: More buffer never carries less, and a longer way never more: one flow, whatever its TLPs, buffers, policy and link.
//! * [`nvme`]: The NVMe controller on the fabric, with a driver that writes a drive and reads it back, by each way to interrupt.
//! * [`ordering`]: The ordering rules across a fabric (PCIe 5.0 §2.4).
//! * [`partitions`]: Switches that are partitions of one chip: what goes between them stays inside, and takes no longer than within one of them.
//! * [`payloads`]: Payloads and read requests as ports can and software sets: how transfers are cut, and what is larger than a port takes.
//! * [`refusals`]: Requests that nobody claims, answers that come too late, and what a root complex does between its ports.
//! * [`saturation`]: Saturated writes, reads and both, over every generation, width and MPS, against the closed forms of `tlplab-analytic`, which share no
//! * [`switch_cores`]: The core of a switch: what its rate, its egress buffers and its shared buffer cost, computed by hand first; and nothing is lost or overtaken.
//! * [`switching`]: What switches add to the latency of one TLP, computed by hand first. Gen1 carries a byte in 4 ns per lane. A write of 64 B below
//! * [`translation`]: Addresses that are translated, by the root complex and by devices that asked for it: where data go, what it costs, what is refused.
//! * [`turns`]: A root complex that keeps writes in order across its root ports by waiting: what each change of destination costs.

mod access;
mod address_space;
mod ari;
mod bench;
mod bounds;
mod bus_traffic;
mod buses;
mod config_requests;
mod custom_links;
mod custom_nodes;
mod determinism;
mod domains;
mod drop_and_replay;
mod enumeration;
mod error_reporting;
mod errors;
mod exactly_once;
mod flooded;
mod histories;
mod host_memory;
mod host_path;
mod hotplug;
mod idle;
mod idle_removal;
mod intx;
mod known_answers;
mod links_down;
mod long_wires;
mod models;
mod monotone;
mod nvme;
mod ordering;
mod partitions;
mod payloads;
mod refusals;
mod saturation;
mod snapshot;
mod switch_cores;
mod switching;
mod translation;
mod turns;
