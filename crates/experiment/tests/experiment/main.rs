//! The tests of tlplab-experiment, in one program.
//!
//! * [`buses`]: Parallel buses with what else a machine does: interrupts, and a link above that goes down and comes back.
//! * [`differential`]: The experiments of `studies/differential`: what a checksum of the header's own brings, and what posted writes do to a register read.
//! * [`document`]: The result document and the page's types say the same.
//! * [`failures`]: Transactions that do not end well say where their time went; a TLP that is nullified says so.
//! * [`guest`]: `[guest]`: what is read, what a run by a guest is, and what is said of it.
//! * [`keys`]: Every key of the tables has an effect: none is documented and then forgotten.
//! * [`mistakes`]: Every mistake has its message: file, line, key, what is wrong, what would be right.
//! * [`nettlp`]: The model `nettlp-card` in the experiments that come with tlplab.
//! * [`nic`]: The models `nic` and `simple-nic` in a run.
//! * [`nvme`]: The model `nvme`: its keys, its data, and what software finds of it.
//! * [`over_time`]: What a document tells over time: configuration spaces, transactions under way, and whose addresses samples have.
//! * [`peers`]: `experiments/p2p`: flows from device to device, against figures computed by hand.
//! * [`reading`]: What experiments mean once they are read.
//! * [`room`]: Numbers and addresses that do not suffice: what the file alone shows, and what a run says.
//! * [`runs`]: The experiments of the repository run, and give the figures that were computed by hand.
//! * [`stages`]: Stages of links: named delays that make TLPs later, are charged to their names, and change nothing else.
//! * [`storage`]: A storage device and dd on the fabric.
//! * [`translated`]: Devices behind an IOMMU: their own translations, what is counted of them, where their windows are.
//! * [`transfers`]: The DMA card and its driver on the fabric.
//! * [`limits`]: Runs whose limits are easily named wrongly.
//! * [`together`]: Resources that limit only together, among more than can be tried, and sentences that say no more than runs have shown.
//! * [`whatif`]: What limits a run is what it gains most from, shown by runs.

mod buses;
mod differential;
mod document;
mod failures;
mod guest;
mod keys;
mod limits;
mod machines;
mod mistakes;
mod nettlp;
mod nic;
mod nvme;
mod over_time;
mod peers;
mod reading;
mod room;
mod runs;
mod stages;
mod storage;
mod together;
mod transfers;
mod translated;
mod whatif;
