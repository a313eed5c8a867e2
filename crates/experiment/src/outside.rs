//! Devices that are driven from outside: what they say of themselves.

use tlplab_cfgspace::{Capability, ConfigSpace, ExtendedCapability, Layout};
use tlplab_device::{Context, Device, Event, Identity};

/// Stands in the fabric for a device that somebody outside drives.
#[derive(Clone, Debug)]
pub struct OutsideDevice {
    /// What it is.
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

    /// Can it be?
    ///
    /// # Errors
    /// What is wrong, in a sentence.
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
