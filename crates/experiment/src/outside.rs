//! Devices and programs that are driven from outside: what devices say of themselves, and who tells both what happens.

use std::error::Error;
use tlplab_cfgspace::{Capability, ConfigSpace, ExtendedCapability, Layout};
use tlplab_device::{Context, Device, Event, HostEvent, Identity};
use tlplab_fabric::{Fabric, NodeId};
use tlplab_units::Time;

/// Stands in the fabric for a device that somebody outside drives.
#[derive(Clone, Debug)]
pub struct OutsideDevice {
    /// Its identity.
    pub identity: Identity,
    /// Its capabilities besides those that follow from its identity, each with its place if that matters.
    pub capabilities: Vec<(Option<u16>, Capability)>,
    /// Its further extended capabilities.
    pub extended: Vec<(Option<u16>, ExtendedCapability)>,
}

impl OutsideDevice {
    /// A device with nothing but what follows from its identity.
    pub fn new(identity: Identity) -> Self {
        Self { identity, capabilities: Vec::new(), extended: Vec::new() }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// The first mistake, in a sentence.
    pub fn check(&self) -> Result<(), String> {
        self.identity.check().map_err(|error| error.to_string())?;
        ConfigSpace::new(&self.layout()).map(drop).map_err(|error| error.to_string())
    }
}

impl Device for OutsideDevice {
    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn layout(&self) -> Layout {
        let mut layout = self.identity.layout();
        layout.capabilities.extend(self.capabilities.iter().cloned());
        layout.extended.extend(self.extended.iter().cloned());
        // The chain begins with whatever is at its beginning.
        if let Some(first) = layout.extended.iter().position(|(at, _)| *at == Some(0x100)) {
            layout.extended[..=first].rotate_right(1);
        }
        layout
    }

    fn handle(&mut self, _: &mut Context<'_>, _: Event) {}
}

/// Devices and programs of the simulated machine that are neither built in nor served: in Python, say.
pub trait Residents: Send {
    /// A device is told something; it acts with [`Driven::device_acts`](tlplab_fabric::Driven::device_acts).
    ///
    /// # Errors
    /// The failure.
    fn tell_device(
        &mut self,
        fabric: &mut Fabric,
        now: Time,
        node: NodeId,
        event: Event,
    ) -> Result<(), ResidentFailure>;

    /// A program of the host, by its number in [`Run::drivers`](crate::run::Run::drivers), is told something; it acts with
    /// [`Driven::host_acts`](tlplab_fabric::Driven::host_acts).
    ///
    /// # Errors
    /// The failure.
    fn tell_program(
        &mut self,
        fabric: &mut Fabric,
        now: Time,
        program: usize,
        event: HostEvent,
    ) -> Result<(), ResidentFailure>;
}

/// The failure of a resident.
pub type ResidentFailure = Box<dyn Error + Send + Sync>;

/// A machine all of whose residents are built in or served.
impl Residents for () {
    fn tell_device(&mut self, _: &mut Fabric, _: Time, _: NodeId, _: Event) -> Result<(), ResidentFailure> {
        Ok(())
    }
    fn tell_program(
        &mut self,
        _: &mut Fabric,
        _: Time,
        _: usize,
        _: HostEvent,
    ) -> Result<(), ResidentFailure> {
        Ok(())
    }
}
