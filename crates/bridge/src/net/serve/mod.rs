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
use tlplab_nettlp::{DevicePort, DeviceServer, EndpointConfig, Vectors};
use tlplab_units::Bdf;

/// How often an adapter whose interrupts are nowhere is asked for them again.
const AGAIN: Duration = Duration::from_secs(1);
/// How often threads are looked after.
const GLANCE: Duration = Duration::from_millis(20);
/// The number under which a TAP interface is waited for; ports have 16 bits.
const TAP: u64 = 1 << 32;

/// Where a device is served.
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
    /// Where the window (BAR4) begins, if it is known.
    pub window: Option<u64>,
    /// How its threads wait.
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

    /// The share of lane `lane` of `lanes`: a port of the contract and what carries it.
    ///
    /// # Errors
    /// The transport's.
    pub fn lane(
        &self,
        place: &Place,
        lane: u8,
        lanes: u8,
    ) -> Result<(DevicePort, Box<dyn Transport>), Error> {
        let config = EndpointConfig { requester: place.id, ..self.endpoint.lane(lane, lanes) };
        let transport = self.network.open(&config)?;
        Ok((DevicePort::new(config, place.bars.clone(), place.vectors.clone()), transport))
    }

    /// Asks again for interrupts that were nowhere, if some were lost since `lost`.
    pub fn refresh(&self, port: &mut DevicePort, lost: &mut Lost) {
        let dropped = port.dropped_interrupts();
        let due = lost.asked.is_none_or(|asked| asked.elapsed() >= AGAIN);
        if dropped > lost.interrupts && due && self.window.is_none() {
            *lost = Lost { interrupts: dropped, asked: Some(Instant::now()) };
            // An adapter that does not answer now is asked again when the next one is lost.
            if let Ok(vectors @ Vectors::Given(_)) = place::given(self.host) {
                port.set_vectors(vectors);
            }
        }
    }
}

/// Interrupts that went nowhere, and when the adapter was last asked where they should go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lost {
    interrupts: u64,
    asked: Option<Instant>,
}

/// What a lane has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Its end point.
    pub counters: Counters,
    /// Interrupts that were sent.
    pub interrupts: u64,
    /// Interrupts that had nowhere to go.
    pub dropped_interrupts: u64,
}

impl Done {
    /// Of a port.
    pub fn of(port: &DevicePort) -> Self {
        Self {
            counters: port.counters(),
            interrupts: port.interrupts(),
            dropped_interrupts: port.dropped_interrupts(),
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
        sum.counters.rows().into_iter().chain(own).collect()
    }
}

/// A device that is served by threads.
pub struct Serving {
    stop: Stop,
    threads: Vec<JoinHandle<Result<(), Error>>>,
    done: Arc<[Mutex<Done>]>,
}

impl Serving {
    /// Serves a device: each of `lanes`, which act as one, has a thread and its share of the ports. A TAP interface is plugged into
    /// the first; its [`Frames`](tlplab_device::Frames) are the device's.
    ///
    /// # Errors
    /// A transport cannot be opened.
    pub fn start<D: Device + 'static>(
        station: &Station,
        place: &Place,
        lanes: Vec<D>,
        tap: Option<Tap>,
    ) -> Result<Self, Error> {
        let count = lanes.len() as u8;
        let done: Arc<[Mutex<Done>]> = lanes.iter().map(|_| Mutex::default()).collect();
        let ports = (0..count).map(|lane| station.lane(place, lane, count)).collect::<Result<Vec<_>, _>>()?;
        let mut serving = Self { stop: Stop::default(), threads: Vec::new(), done: Arc::clone(&done) };
        let mut tap = tap;
        for (number, (device, (port, transport))) in lanes.into_iter().zip(ports).enumerate() {
            let lane = Lane {
                station: station.clone(),
                serve: Loop::new(DeviceServer::new(device, port), transport),
                tap: tap.take(),
            };
            let (stop, done) = (serving.stop.clone(), Arc::clone(&done));
            let thread = Builder::new().name(format!("lane {number}"));
            let started = thread.spawn(move || lane.run(&stop, &done[number]));
            serving.threads.push(started.map_err(|source| Error::io("start a thread", source))?);
        }
        Ok(serving)
    }

    /// What each lane has done.
    pub fn done(&self) -> Vec<Done> {
        self.done.iter().map(|done| *done.lock().unwrap_or_else(PoisonError::into_inner)).collect()
    }

    /// Waits until then, or until a lane ends by itself.
    ///
    /// # Errors
    /// Why a lane has ended.
    pub fn watch(&mut self, until: Instant) -> Result<(), Error> {
        loop {
            if self.threads.iter().any(JoinHandle::is_finished) {
                return self.end();
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            sleep(left.min(GLANCE));
        }
    }

    /// Ends all lanes.
    ///
    /// # Errors
    /// What a lane ended with before.
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
        let mut lost = Lost::default();
        serve.run(station.wait, stop, |serve, _| {
            if let Some(tap) = &mut tap {
                plug(tap, serve)?;
            }
            let port = serve.engine.port_mut();
            station.refresh(port, &mut lost);
            *done.lock().unwrap_or_else(PoisonError::into_inner) = Done::of(port);
            match port.fault() {
                Some(why) => Err(Error::Setup(why.to_owned())),
                None => Ok(()),
            }
        })
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
