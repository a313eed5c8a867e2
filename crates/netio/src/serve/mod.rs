//! Devices served over NetTLP: a device of the contract, here, behind an adapter, there.
//!
//! * [`Station`]: the two addresses, and what is said beforehand; [`Place`]: where the device is in the host, found out
//! * [`Serving`]: a built-in device on threads of its own, one for each lane
//! * [`Builtin`]: which devices there are; [`Psmem`]: memory that lanes share
//!
//! A device that lives elsewhere (in Python) takes a [`DevicePort`](tlplab_nettlp::server::DevicePort) on a [`Loop`] itself.

mod builtin;
mod place;
mod psmem;

use super::{Apis, Error, Kind, Loop, Network, Stop, Tap, Transport, Wait};
pub use builtin::Builtin;
pub use place::Place;
pub use psmem::Psmem;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::{Duration, Instant};
use tlplab_device::simple_nic::FRAMES;
use tlplab_device::{Device, Event};
use tlplab_nettlp::endpoint::Counters;
use tlplab_nettlp::{DevicePort, DeviceServer, EndpointConfig, Engine, Vectors};
use tlplab_units::Bdf;

/// The interval at which an adapter without addresses for interrupts is asked for them again.
const AGAIN: Duration = Duration::from_secs(1);
/// The interval at which threads are looked after.
const GLANCE: Duration = Duration::from_millis(20);
/// The time for which the kernel's count of drops counts as unchanged.
const DROPS_AGAIN: Duration = Duration::from_millis(100);
/// The number under which a TAP interface is waited for; ports have 16 bits.
const TAP: u64 = 1 << 32;

/// The place where a device is served.
#[derive(Clone, Debug)]
pub struct Station {
    /// The network here.
    pub network: Network,
    /// The end point: limits, timeouts, tags. Its ID is that of the [`Place`].
    pub endpoint: EndpointConfig,
    /// Of whom configuration space is asked: the adapter.
    pub apis: Apis,
    /// Of whom BAR4, ID and interrupts are asked: the adapter's host.
    pub host: Apis,
    /// The ID of the function, if it is known.
    pub id: Option<Bdf>,
    /// The start of the window (BAR4), if it is known.
    pub window: Option<u64>,
    /// The way in which its threads wait.
    pub wait: Wait,
}

impl Station {
    /// Between these addresses, by UDP sockets; everything is asked of the adapter.
    pub fn between(local: Ipv4Addr, adapter: Ipv4Addr) -> Self {
        let apis = Apis { local, adapter };
        Self {
            network: Network { kind: Kind::Udp, local, interface: None },
            endpoint: EndpointConfig::new(adapter, Bdf(0)),
            apis,
            host: apis,
            id: None,
            window: None,
            wait: Wait::Sleep,
        }
    }

    /// Opens the ports of lane `lane` of `lanes`. Before the adapter is asked anything: what it says to a device that it hears of for the
    /// first time must find them open.
    ///
    /// # Errors
    /// The transport's.
    pub fn open(&self, lane: u8, lanes: u8) -> Result<Box<dyn Transport>, Error> {
        self.network.open(&self.endpoint.lane(lane, lanes))
    }

    /// A port of the contract for that lane.
    pub fn port(&self, place: &Place, lane: u8, lanes: u8) -> DevicePort {
        let config = EndpointConfig { requester: place.id, ..self.endpoint.lane(lane, lanes) };
        DevicePort::new(config, place.bars.clone(), place.vectors.clone())
    }

    /// Asks again for interrupts that were nowhere, if more were lost. It does not wait: a thread asks, and a later call has the answer.
    pub fn refresh(&self, port: &mut DevicePort, lost: &mut Lost) {
        if let Some(question) = lost.question.take_if(|question| question.is_finished())
            && let Ok(Ok(vectors)) = question.join()
        {
            port.set_vectors(vectors);
        }
        let dropped = port.dropped_interrupts();
        let due = lost.asked.is_none_or(|asked| asked.elapsed() >= AGAIN);
        if dropped > lost.interrupts && due && lost.question.is_none() && self.window.is_none() {
            let host = self.host;
            // An adapter that does not answer now is asked again when the next one is lost.
            let question = Builder::new().name("question".into()).spawn(move || place::given(host)).ok();
            *lost = Lost { interrupts: dropped, asked: Some(Instant::now()), question };
        }
    }
}

/// Interrupts that went nowhere, when the adapter was last asked where they should go, and the question under way.
#[derive(Debug, Default)]
pub struct Lost {
    interrupts: u64,
    asked: Option<Instant>,
    question: Option<JoinHandle<Result<Vectors, Error>>>,
}

/// The work of a lane so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Its end point.
    pub counters: Counters,
    /// Interrupts that were sent.
    pub interrupts: u64,
    /// Interrupts that had nowhere to go.
    pub dropped_interrupts: u64,
    /// Datagrams that the kernel dropped: see [`Transport::dropped`].
    pub kernel_drops: Option<u64>,
    /// Frames lost at the TAP interface behind a NIC: see [`Tap::lost_frames`].
    pub lost_frames: Option<u64>,
}

impl Done {
    /// Of a port.
    pub fn of(port: &DevicePort, kernel_drops: Option<u64>) -> Self {
        Self {
            lost_frames: None,
            counters: port.counters(),
            interrupts: port.interrupts(),
            dropped_interrupts: port.dropped_interrupts(),
            kernel_drops,
        }
    }

    /// Every counter of some lanes together, with its name.
    pub fn rows(lanes: &[Self]) -> Vec<(&'static str, u64)> {
        let mut sum = Self::default();
        for lane in lanes {
            sum.counters.add(&lane.counters);
            sum.interrupts += lane.interrupts;
            sum.dropped_interrupts += lane.dropped_interrupts;
        }
        let own = [("interrupts", sum.interrupts), ("dropped_interrupts", sum.dropped_interrupts)];
        let drops = lanes.iter().map(|lane| lane.kernel_drops).sum::<Option<u64>>();
        let frames = lanes.iter().find_map(|lane| lane.lost_frames);
        let rows = sum.counters.rows().into_iter().chain(own);
        rows.chain(drops.map(|drops| ("kernel_drops", drops)))
            .chain(frames.map(|frames| ("lost_frames", frames)))
            .collect()
    }
}

/// The kernel's drops. They are read for each socket, so not at every pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drops {
    asked: Option<Instant>,
    known: Option<u64>,
}

impl Drops {
    /// The present number, or that of a moment ago.
    pub fn recent<E: Engine, T: Transport>(&mut self, serve: &Loop<E, T>) -> Option<u64> {
        if self.asked.is_none_or(|asked| asked.elapsed() >= DROPS_AGAIN) {
            *self = Self { asked: Some(Instant::now()), known: serve.dropped() };
        }
        self.known
    }
}

/// A device that is served by threads.
pub struct Serving {
    stop: Stop,
    threads: Vec<JoinHandle<Result<(), Error>>>,
    done: Arc<[Mutex<Done>]>,
}

impl Serving {
    /// Finds the place of a device and serves it there: each of `lanes`, which act as one, has a thread and its share of the ports. A TAP
    /// interface is plugged into the first; its [`Frames`](tlplab_device::Frames) are the device's.
    ///
    /// # Errors
    /// A transport cannot be opened, or there is no place.
    ///
    /// # Panics
    /// Without lanes, or with more than 16.
    pub fn start<D: Device + 'static>(
        station: &Station,
        lanes: Vec<D>,
        mut tap: Option<Tap>,
    ) -> Result<(Place, Self), Error> {
        let count = lanes.len() as u8;
        let transports = (0..count).map(|lane| station.open(lane, count)).collect::<Result<Vec<_>, _>>()?;
        let place = Place::find(station, &lanes[0].layout())?;
        let done: Arc<[Mutex<Done>]> = lanes.iter().map(|_| Mutex::default()).collect();
        let mut serving = Self { stop: Stop::default(), threads: Vec::new(), done: Arc::clone(&done) };
        let mut ports: Vec<DevicePort> = (0..count).map(|lane| station.port(&place, lane, count)).collect();
        if let [first, others @ ..] = &mut ports[..] {
            others.iter_mut().for_each(|other| other.count_with(first));
        }
        let parts = lanes.into_iter().zip(transports).zip(ports);
        for (number, ((device, transport), port)) in (0..count).zip(parts) {
            let server = DeviceServer::new(device, port);
            let lane =
                Lane { station: station.clone(), serve: Loop::new(server, transport), tap: tap.take() };
            let (stop, done) = (serving.stop.clone(), Arc::clone(&done));
            let thread = Builder::new().name(format!("lane {number}"));
            let started = thread.spawn(move || lane.run(&stop, &done[usize::from(number)]));
            serving.threads.push(started.map_err(|source| Error::io("start a thread", source))?);
        }
        Ok((place, serving))
    }

    /// The work of each lane.
    pub fn done(&self) -> Vec<Done> {
        self.done.iter().map(|done| *done.lock().unwrap_or_else(PoisonError::into_inner)).collect()
    }

    /// True if a lane has ended by itself. Then [`end`](Self::end) says why.
    pub fn has_ended(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Waits until then, or until a lane ends by itself.
    ///
    /// # Errors
    /// The reason that a lane has ended.
    pub fn watch(&mut self, until: Instant) -> Result<(), Error> {
        while !self.has_ended() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            sleep(left.min(GLANCE));
        }
        self.end()
    }

    /// Ends all lanes.
    ///
    /// # Errors
    /// The error with which a lane ended before.
    pub fn end(&mut self) -> Result<(), Error> {
        self.stop.stop();
        let ends = self.threads.drain(..).map(|thread| match thread.join() {
            Ok(end) => end,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        // All are waited for, whatever the first says.
        ends.collect::<Vec<_>>().into_iter().collect()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

struct Lane<D> {
    station: Station,
    serve: Loop<DeviceServer<D>, Box<dyn Transport>>,
    tap: Option<Tap>,
}

impl<D: Device> Lane<D> {
    fn run(self, stop: &Stop, done: &Mutex<Done>) -> Result<(), Error> {
        let Self { station, mut serve, mut tap } = self;
        if let Some(tap) = &tap {
            serve.poller().watch(tap, TAP)?;
        }
        let now = serve.now();
        serve.engine.start(now);
        let (mut lost, mut drops) = (Lost::default(), Drops::default());
        let tell = |port: &DevicePort, drops, tap: Option<&Tap>| {
            let now = Done { lost_frames: tap.map(Tap::lost_frames), ..Done::of(port, drops) };
            *done.lock().unwrap_or_else(PoisonError::into_inner) = now;
        };
        let ended = serve.run(station.wait, stop, |serve, _| {
            if let Some(tap) = &mut tap {
                plug(tap, serve)?;
            }
            let dropped = drops.recent(serve);
            let port = serve.engine.port_mut();
            station.refresh(port, &mut lost);
            tell(port, dropped, tap.as_ref());
            match port.fault() {
                Some(why) => Err(Error::Setup(why.to_owned())),
                None => Ok(()),
            }
        });
        let dropped = serve.dropped();
        tell(serve.engine.port_mut(), dropped, tap.as_ref());
        ended
    }
}

/// Carries frames between a TAP interface and the NIC, as long as there are any.
fn plug<D: Device, T: Transport>(tap: &mut Tap, serve: &mut Loop<DeviceServer<D>, T>) -> Result<(), Error> {
    if tap.pump()? {
        let now = serve.now();
        serve.engine.with_device(now, |nic, cx| nic.handle(cx, Event::Timer { id: FRAMES }));
        serve.transmit()?;
    }
    Ok(())
}
