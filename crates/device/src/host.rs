//! The host's side of the contract: drivers and benchmarks that run on the simulated processor.

use crate::contract::{DmaError, OpId};
use tlplab_cfgspace::InterruptMode;
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Duration, Time};

/// The processor's address of configuration space: 4 KiB per function, 256 MiB in all (ECAM, PCIe 5.0 §7.2.2).
pub const ECAM: u64 = 0xE000_0000;
/// The processor's address of I/O space: 64 KiB, mapped to memory as on machines without port instructions.
pub const IO_SPACE: u64 = 0xF000_0000;

/// The address of a byte of configuration space; `offset` is below 4096.
pub const fn ecam_address(function: Bdf, offset: u16) -> u64 {
    ECAM + ((function.0 as u64) << 12) + (offset as u64 & 0xFFF)
}

/// The address of an I/O port.
pub const fn io_address(port: u16) -> u64 {
    IO_SPACE + port as u64
}

/// A program on the host: a driver, a test, a load.
pub trait HostProgram: Send {
    /// Something happened. As for a device: one event at a time, actions are recorded.
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent);

    /// A copy that goes on from here as this program does; none, if part of its state is elsewhere.
    fn snapshot(&self) -> Option<Box<dyn HostProgram>> {
        None
    }

    /// Its own measurement so far, as a benchmark prints it.
    fn measured(&self) -> Vec<Measured> {
        Vec::new()
    }
}

/// The measurement of a host program: bytes, and a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The stream of its accesses to devices that this is about.
    pub stream: u16,
    /// Bytes it moved.
    pub bytes: u64,
    /// Its start.
    pub from: Time,
    /// The arrival of the last of them.
    pub to: Time,
    /// The durations of its calls, if it makes calls.
    pub calls: Option<Calls>,
}

/// Calls that a host program made of what is below it, each from its beginning until software heard of its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Calls that are over.
    pub count: u64,
    /// The shortest.
    pub shortest: Duration,
    /// The longest.
    pub longest: Duration,
    /// All of them together.
    pub sum: Duration,
    /// Interrupts that software took meanwhile.
    pub interrupts: u64,
}

impl Calls {
    /// One more is over.
    pub fn add(&mut self, took: Duration) {
        self.shortest = if self.count == 0 { took } else { self.shortest.min(took) };
        self.longest = self.longest.max(took);
        self.sum += took;
        self.count += 1;
    }
}

/// A device as the host sees it after enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its name in the experiment.
    pub name: String,
    /// Its ID.
    pub id: Bdf,
    /// Vendor and device ID.
    pub ids: (u16, u16),
    /// The vendor ID of built-in devices in this machine.
    pub own_vendor: u16,
    /// Base address and size of each BAR.
    pub bars: [Option<(u64, u64)>; 6],
    /// The kind of interrupt that software lets it use.
    pub interrupts: InterruptMode,
}

impl DeviceInfo {
    /// The kind of its interrupts, for a driver that needs them.
    ///
    /// # Errors
    /// A sentence, if it does not.
    pub fn interrupting(&self) -> Result<InterruptMode, String> {
        match self.interrupts {
            InterruptMode::Disabled => Err(format!(
                "{} has no kind of interrupt that the host allows, but its driver waits for interrupts",
                self.name
            )),
            mode => Ok(mode),
        }
    }

    /// The address of its BAR with that number.
    ///
    /// # Errors
    /// A sentence, if it has none.
    pub fn base(&self, bar: u8) -> Result<u64, String> {
        let found = self.bars.get(usize::from(bar)).copied().flatten();
        found.map(|(base, _)| base).ok_or_else(|| format!("{} has no BAR {bar}", self.name))
    }
}

/// An event of a host program.
#[derive(Clone, Debug)]
pub enum HostEvent {
    /// Devices are enumerated and the program may act.
    Start,
    /// An MMIO read is over.
    MmioReadDone {
        /// The operation.
        op: OpId,
        /// Its data, or why there are none.
        result: Result<Payload, DmaError>,
    },
    /// An MMIO write has left the processor.
    MmioWriteAccepted {
        /// The operation.
        op: OpId,
    },
    /// A device raised an interrupt. What it wrote before, in the same stream, is in memory. A legacy interrupt is a level that
    /// devices share: every one of them is named, and again every two microseconds until all have lowered it.
    Interrupt {
        /// Index in [`HostContext::devices`].
        device: usize,
        /// Its vector; 0 for a legacy interrupt.
        vector: u16,
    },
    /// A root port, or a downstream port of a switch, raised its interrupt: its registers say what it has heard of, such as an error below it
    /// or a card that is gone.
    PortInterrupt {
        /// Its ID.
        port: Bdf,
        /// Its vector.
        vector: u16,
    },
    /// A message signalled interrupt as it was written, where software is outside and has itself told functions what to write.
    Message {
        /// The address of the write.
        address: u64,
        /// Its data.
        data: u32,
    },
    /// A legacy interrupt, where software is outside: a level that devices share, told of again every two microseconds until all have
    /// lowered it.
    Wire {
        /// 0 to 3 for INTA to INTD, as it arrives at the interrupt controller.
        wire: u8,
    },
    /// A time that was asked for has come.
    Timer {
        /// As given to [`HostContext::timer`].
        id: u64,
    },
}

/// Host memory. The program's own accesses take no simulated time; those of devices do.
pub trait HostMemory {
    /// Copies memory at `address` into `out`. Memory never written reads as zero.
    fn read(&self, address: u64, out: &mut [u8]);
    /// Copies `data` to `address`.
    fn write(&mut self, address: u64, data: &[u8]);
    /// Takes `bytes` of unused memory at a multiple of `align` (a power of two).
    ///
    /// # Errors
    /// [`OutOfMemory`].
    fn alloc(&mut self, bytes: u64, align: u64) -> Result<u64, OutOfMemory>;
    /// True if a function may read or write `bytes` at `address`, where each has a view of memory of its own, as behind an IOMMU; `None`:
    /// all have the same, and how large memory is says what there is.
    fn grants(&self, _requester: Bdf, _address: u64, _bytes: u64, _writes: bool) -> Option<bool> {
        None
    }
    /// [`read`](Self::read), as the function sees memory.
    fn read_for(&self, _requester: Bdf, address: u64, out: &mut [u8]) {
        self.read(address, out);
    }
    /// [`write`](Self::write), as the function sees memory.
    fn write_for(&mut self, _requester: Bdf, address: u64, data: &[u8]) {
        self.write(address, data);
    }
    /// A copy; none, if others share this memory.
    fn snapshot(&self) -> Option<Box<dyn HostMemory + Send>> {
        None
    }
}

/// No such piece of host memory is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("host memory has no {bytes} B left")]
pub struct OutOfMemory {
    /// The requested size.
    pub bytes: u64,
}

/// An action of a host program, for its driver to carry out in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAction {
    /// Read device memory.
    MmioRead {
        /// Comes back in [`HostEvent::MmioReadDone`].
        op: OpId,
        /// Operations of a stream (a processor core) keep their order.
        stream: u16,
        /// First byte.
        address: u64,
        /// Length.
        bytes: u64,
        /// The data are needed even in a length-only run.
        carry: bool,
    },
    /// Write device memory.
    MmioWrite {
        /// Comes back in [`HostEvent::MmioWriteAccepted`].
        op: OpId,
        /// Operations of a stream keep their order.
        stream: u16,
        /// First byte.
        address: u64,
        /// The data to write.
        data: Payload,
    },
    /// Call back.
    Timer {
        /// The time; not before now.
        at: Time,
        /// Comes back in [`HostEvent::Timer`].
        id: u64,
    },
    /// The program has done all it was asked to do.
    Finished,
    /// The program cannot go on: the run fails with this message.
    Fault(String),
}

/// The actions open to a host program while it handles an event.
pub struct HostContext<'a> {
    now: Time,
    length_only: bool,
    devices: &'a [DeviceInfo],
    memory: &'a mut dyn HostMemory,
    next_op: &'a mut u64,
    actions: &'a mut Vec<HostAction>,
}

impl<'a> HostContext<'a> {
    /// For drivers; see [`Context::new`](crate::Context::new).
    pub fn new(
        now: Time,
        devices: &'a [DeviceInfo],
        memory: &'a mut dyn HostMemory,
        next_op: &'a mut u64,
        actions: &'a mut Vec<HostAction>,
    ) -> Self {
        Self { now, length_only: false, devices, memory, next_op, actions }
    }

    /// For drivers: whether this run carries lengths instead of bulk data.
    #[must_use]
    pub fn with_length_only(mut self, length_only: bool) -> Self {
        self.length_only = length_only;
        self
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }
    /// True if this run carries lengths instead of bulk data.
    pub fn length_only(&self) -> bool {
        self.length_only
    }
    /// The devices, in the order of their names.
    pub fn devices(&self) -> &'a [DeviceInfo] {
        self.devices
    }
    /// The index and description of the device called `name`.
    pub fn device(&self, name: &str) -> Option<(usize, &'a DeviceInfo)> {
        self.devices.iter().enumerate().find(|(_, device)| device.name == name)
    }
    /// The same of the device that a driver is for.
    ///
    /// # Errors
    /// A sentence, if there is none.
    pub fn driven(&self, name: &str) -> Result<(usize, &'a DeviceInfo), String> {
        self.device(name).ok_or_else(|| format!("the driver's device {name:?} does not exist"))
    }
    /// Host memory.
    pub fn memory(&mut self) -> &mut dyn HostMemory {
        self.memory
    }

    /// Reads `bytes` at `address`, which may be any address that a device claims, or one of [`ECAM`] or [`IO_SPACE`] (up to 4 bytes within
    /// a doubleword; configuration registers that nobody has read as all ones). In a length-only run the result is a length, except
    /// there.
    pub fn mmio_read(&mut self, stream: u16, address: u64, bytes: u64) -> OpId {
        self.start(|op| HostAction::MmioRead { op, stream, address, bytes, carry: false })
    }
    /// Reads registers: bytes even in a length-only run.
    pub fn mmio_read_register(&mut self, stream: u16, address: u64, bytes: u64) -> OpId {
        self.start(|op| HostAction::MmioRead { op, stream, address, bytes, carry: true })
    }
    /// Writes `data` at `address`. Bytes are carried even in a length-only run. A write to [`ECAM`] or [`IO_SPACE`] is accepted when its
    /// completion is there.
    pub fn mmio_write(&mut self, stream: u16, address: u64, data: Payload) -> OpId {
        self.start(|op| HostAction::MmioWrite { op, stream, address, data })
    }
    /// Asks for [`HostEvent::Timer`] at `at` (now, if that has passed).
    pub fn timer(&mut self, at: Time, id: u64) {
        let at = at.max(self.now);
        self.actions.push(HostAction::Timer { at, id });
    }
    /// Tells that all work is done.
    pub fn finished(&mut self) {
        self.actions.push(HostAction::Finished);
    }

    /// Ends the run with a message: what went wrong, where, and what would be right.
    pub fn fault(&mut self, message: String) {
        self.actions.push(HostAction::Fault(message));
    }

    fn start(&mut self, action: impl FnOnce(OpId) -> HostAction) -> OpId {
        let op = OpId(*self.next_op);
        *self.next_op += 1;
        self.actions.push(action(op));
        op
    }
}
