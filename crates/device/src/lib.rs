//! The device contract, and the devices and host programs that are built in.
//!
//! A [`Device`] is told of [`Event`]s and answers by recording [`Action`]s in its [`Context`]; it never sees a TLP, a link or a
//! socket, so the same device runs in the simulator and behind any other driver. A [`HostProgram`] is the same for the host's side.
//!
//! A device that answers every read with its offset, and the driver that a test is:
//!
//! ```
//! use tlplab_device::*;
//! use tlplab_units::Time;
//!
//! struct Echo;
//! impl Device for Echo {
//!     fn identity(&self) -> Identity {
//!         let bars = vec![BarSpec::registers(0, 4096)];
//!         Identity { bars, ..Identity::new(0x71AB, 0x99, 0x12_00_00) }
//!     }
//!     fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
//!         if let Event::MmioRead { offset, bytes, reply, .. } = event {
//!             cx.reply(reply, offset.to_le_bytes()[..bytes as usize].into());
//!         }
//!     }
//! }
//!
//! let (mut next_op, mut actions) = (0, Vec::new());
//! let mut cx = Context::new(Time::ZERO, &[], &mut next_op, &mut actions);
//! Echo.handle(&mut cx, Event::MmioRead { bar: 0, offset: 0x14, bytes: 4, reply: ReplyToken(7) });
//! assert_eq!(actions, [Action::Reply { token: ReplyToken(7), data: [0x14, 0, 0, 0].into() }]);
//! ```
//!
//! * [`contract`]: devices; [`tlp_device`]: devices that speak TLPs themselves; [`identity`]: what they are; [`host`]: host programs
//! * [`network`]: what a device counts of the network behind it
//! * [`kit`]: what devices have in common: registers, rings, operations under way, streams
//! * [`memory`]: a BAR of memory; [`pages`]: the sparse memory behind it, and behind the host's
//! * [`random`]: random numbers keyed by a component's name
//!
//! Built in, each with its driver:
//! * [`bench_engine`]: a device that measures its host
//! * [`copier`]: copies memory of the host; [`ring`]: a descriptor ring
//! * [`nic`]: an Ethernet controller like the 82574
//! * [`nettlp_card`]: a card that carries TLPs over Ethernet to software on another machine
//! * [`simple_nic`]: the Ethernet controller of NetTLP; frames come from the simulation or from outside
//! * [`tlpdma`]: the DMA card of `rtl/`, without its clocks, and the program that drives and measures either
//! * [`nvme`]: a controller of NVM Express, as the drivers of operating systems know it
//! * [`storage`]: a block device, and the program that reads and writes it
//! * [`load`]: the load generator, and a captured trace again. Both run as devices and on the host.

pub mod bench_engine;
pub mod contract;
pub mod copier;
pub mod host;
pub mod identity;
pub mod kit;
pub mod load;
pub mod memory;
pub mod nettlp_card;
pub mod network;
pub mod nic;
pub mod nvme;
pub mod pages;
pub mod random;
pub mod ring;
pub mod simple_nic;
pub mod storage;
mod timers;
pub mod tlp_device;
pub mod tlpdma;

pub use bench_engine::{BenchEngine, EngineProfile};
pub use contract::{Action, Context, Device, DmaError, Event, OpId, Refusal, ReplyToken};
pub use copier::{Dma, DmaDriver};
pub use host::{
    Calls, DeviceInfo, ECAM, HostAction, HostContext, HostEvent, HostMemory, HostProgram, IO_SPACE, Measured,
    OutOfMemory, ecam_address, io_address,
};
pub use identity::{BarSpec, Identity, IdentityError};
pub use load::issue::Target;
pub use load::replay::{Record, Relocation, Replay, ReplayError, ReplayPace};
pub use load::{Load, LoadConfig, LoadError, LoadOp, Pattern};
pub use memory::Memory;
pub use nettlp_card::{CardConfig, NettlpCard};
pub use network::{FrameCounts, NetworkStatistics};
pub use nic::driver::{NicDriver, NicLoad};
pub use nic::{Cable, Nic, NicConfig, Traffic};
pub use nvme::{Medium, MediumError, NamespaceConfig, Nvme, NvmeConfig, SparseMedium};
pub use pages::{HostRam, Pages};
pub use random::Random;
pub use ring::driver::{RingDriver, RingLoad};
pub use ring::{Descriptor, Ring, RingConfig};
pub use simple_nic::driver::{FrameLoad, SimpleNicDriver, SimpleNicRings};
pub use simple_nic::{CablePort, Frames, SimpleNic, SimpleNicConfig};
pub use storage::dd::{Dd, DdLoad};
pub use storage::{Command, Storage, StorageConfig};
pub use timers::Timers;
pub use tlp_device::{Room, TlpDevice, TlpIdentity, TlpOutput, TlpRegisters};
pub use tlpdma::Tlpdma;
pub use tlpdma::driver::{TlpdmaDriver, TransferLoad};
pub use tlplab_cfgspace::{InterruptMode, VENDOR_ID};
pub use tlplab_transaction::{Bytes, Payload};
