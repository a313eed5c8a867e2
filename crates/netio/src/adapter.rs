//! An adapter on its UDP ports, served a while at a time.

use super::drive::{Loop, Wait};
use super::error::Error;
use super::poller::Ready;
use super::transport::Transport;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use tlplab_nettlp::Adapter;
use tlplab_nettlp::adapter::Host;
use tlplab_wire::nettlp::{DEVICE_PORTS, HOST_PORTS, config_api, message_api, registers};

/// Sources that are no ports have numbers from here on.
const OTHERS: u64 = 1 << 32;

/// The UDP ports of an adapter: TLPs, configuration space, messages, its registers.
pub fn adapter_ports() -> impl Iterator<Item = u16> {
    DEVICE_PORTS.chain(HOST_PORTS).chain([config_api::PORT, message_api::PORT, registers::PORT])
}

/// An adapter on a transport.
pub struct AdapterServer<H> {
    driven: Loop<Adapter<H>, Box<dyn Transport>>,
    wait: Wait,
    ready: Ready,
}

impl<H: Host> AdapterServer<H> {
    /// `transport` has the [ports](adapter_ports) at the adapter's address open.
    pub fn new(adapter: Adapter<H>, transport: Box<dyn Transport>, wait: Wait) -> Self {
        Self { driven: Loop::new(adapter, transport), wait, ready: Ready::default() }
    }

    /// The adapter.
    pub fn adapter(&self) -> &Adapter<H> {
        &self.driven.engine
    }

    /// The adapter.
    pub fn adapter_mut(&mut self) -> &mut Adapter<H> {
        &mut self.driven.engine
    }

    /// See [`Transport::dropped`].
    pub fn dropped(&self) -> Option<u64> {
        self.driven.dropped()
    }

    /// Serves for as long as `wall`.
    ///
    /// # Errors
    /// The transport does not work any more.
    pub fn serve(&mut self, wall: Duration) -> Result<(), Error> {
        self.serve_until(wall, |_| Ok(false))
    }

    /// Waits for `source`, too. Numbers are those of the caller's sources.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn watch(&self, source: impl AsFd, number: u32) -> Result<(), Error> {
        self.driven.poller().watch(source, OTHERS + u64::from(number))
    }

    /// Serves for as long as `wall`, or until `each` says that it is over; that is called after every pass, for what else there is to do.
    ///
    /// # Errors
    /// The transport does not work any more; those of `each`.
    pub fn serve_until(
        &mut self,
        wall: Duration,
        mut each: impl FnMut(&mut Loop<Adapter<H>, Box<dyn Transport>>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let end = Instant::now() + wall;
        self.driven.transmit()?;
        while !each(&mut self.driven)? && Instant::now() < end {
            match self.wait {
                Wait::Spin => self.driven.turn(None)?,
                Wait::Sleep => {
                    let until = self.driven.deadline().map_or(end, |deadline| deadline.min(end));
                    self.driven.poller().wait(&mut self.ready, Some(until))?;
                    self.driven.turn(Some(&self.ready))?
                }
            };
        }
        Ok(())
    }
}
