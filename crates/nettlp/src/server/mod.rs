//! A device on an end point: the contract of [`tlplab_device`] over NetTLP.
//!
//! * [`BarMap`]: where the device's BARs are in the host's address space
//! * [`DevicePort`]: events of the contract out, actions in; for a device that lives elsewhere
//! * [`DeviceServer`]: a port with its device in it
//!
//! DMA of the device becomes requests of the end point, accesses of the host to a BAR become events; outside every BAR the end point
//! answers by itself. Interrupts are the memory writes that an MSI-X table says ([`Vectors`]). Resets are nothing that NetTLP tells:
//! whoever knows of one calls [`DevicePort::reset`].

mod bars;
mod port;

use crate::engine::{Datagram, Engine, Outgoing, Undeliverable};
pub use bars::{BarMap, BarMapError};
pub use port::{DevicePort, Vectors};
use std::net::SocketAddrV4;
use tlplab_device::{Action, Context, Device};
use tlplab_units::{Duration, Time};

/// A device and its port. Its handlers run while the engine handles what concerns them.
#[derive(Debug)]
pub struct DeviceServer<D: ?Sized> {
    port: DevicePort,
    actions: Vec<Action>,
    device: D,
}

impl<D: Device> DeviceServer<D> {
    /// The device behind a port, which cuts its transfers as [it says](Device::request_policy). Nothing happens before [`start`](Self::start).
    pub fn new(device: D, mut port: DevicePort) -> Self {
        port.set_request_policy(device.request_policy());
        Self { device, port, actions: Vec::new() }
    }
    /// Gives the device back.
    pub fn into_device(self) -> D {
        self.device
    }
}

impl<D: Device + ?Sized> DeviceServer<D> {
    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }
    /// The port.
    pub fn port(&self) -> &DevicePort {
        &self.port
    }
    /// The port, for what its owner may do beside the device: other vectors.
    pub fn port_mut(&mut self) -> &mut DevicePort {
        &mut self.port
    }

    /// The device is told that it may act.
    pub fn start(&mut self, now: Time) {
        self.port.start();
        self.settle(now);
    }

    /// The function is reset, and the device told.
    pub fn reset(&mut self, now: Time) {
        self.port.reset(now);
        self.settle(now);
    }

    /// Calls `act` with the device, for news that are no events of the contract: a frame came, a file changed.
    pub fn with_device<R>(&mut self, now: Time, act: impl FnOnce(&mut D, &mut Context<'_>) -> R) -> R {
        let result = self.run(now, act);
        self.settle(now);
        result
    }

    fn run<R>(&mut self, now: Time, act: impl FnOnce(&mut D, &mut Context<'_>) -> R) -> R {
        let mode = self.port.interrupt_mode();
        let mut actions = std::mem::take(&mut self.actions);
        let mut cx = Context::new(now, &[], self.port.op_counter(), &mut actions).with_interrupts(mode);
        let result = act(&mut self.device, &mut cx);
        for action in actions.drain(..) {
            self.port.act(now, action);
        }
        self.actions = actions;
        result
    }

    /// Tells the device all that it has not heard of.
    fn settle(&mut self, now: Time) {
        while let Some(event) = self.port.take_event() {
            self.run(now, |device, cx| device.handle(cx, event));
        }
    }
}

impl<D: Device + ?Sized> Engine for DeviceServer<D> {
    fn handle_datagram(&mut self, now: Time, datagram: Datagram<'_>) {
        self.port.handle_datagram(now, datagram);
        self.settle(now);
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Outgoing> {
        let outgoing = self.port.poll_transmit(now, buffer);
        self.settle(now);
        outgoing
    }

    fn deadline(&self) -> Option<Time> {
        self.port.deadline()
    }

    fn handle_timeout(&mut self, now: Time) {
        self.port.handle_timeout(now);
        self.settle(now);
    }

    fn handle_undeliverable(&mut self, now: Time, to: SocketAddrV4, why: Undeliverable) {
        self.port.handle_undeliverable(now, to, why);
        self.settle(now);
    }

    fn rebase(&mut self, by: Duration) {
        self.port.rebase(by);
        self.device.rebase(by);
    }
}
