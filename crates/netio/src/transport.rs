//! The carriers of datagrams.

use super::batch::Batch;
use super::error::Error;
use super::poller::{Poller, Ready};
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Instant;
use tlplab_nettlp::Undeliverable;

/// A way for datagrams, for one thread. It never waits: that is what its [`Poller`] is for.
pub trait Transport: Send {
    /// With which its datagrams are waited for.
    fn poller(&self) -> &Arc<Poller>;

    /// Appends to `batch` what has come, as far as there is room, from the sources that are `ready`; from all with `None`, without
    /// having asked the poller (busy-polling).
    ///
    /// # Errors
    /// The transport does not work any more. That a peer cannot be reached is no error: see [`Transport::undeliverable`].
    fn receive(&mut self, ready: Option<&Ready>, batch: &mut Batch) -> Result<(), Error>;

    /// Waits for a datagram in the system call that takes it, until then at most and not for long, if it can do that: it takes one call less than to ask
    /// the poller. False if it cannot, and the poller is to be asked. Whoever [wakes](Poller::wake) the poller is heard some milliseconds later.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    fn receive_one(&mut self, _until: Option<Instant>, _batch: &mut Batch) -> Result<bool, Error> {
        Ok(false)
    }

    /// Sends all of `batch` and empties it. Datagrams from one port to one peer stay in order.
    ///
    /// # Errors
    /// The transport does not work any more.
    fn send(&mut self, batch: &mut Batch) -> Result<(), Error>;

    /// The next datagram that the network said it could not deliver: where it was to go, and why.
    fn undeliverable(&mut self) -> Option<(SocketAddrV4, Undeliverable)>;

    /// Datagrams that came and that the kernel dropped before anybody saw them, for want of room as a rule, since it was opened. `None` where the
    /// system does not tell.
    fn dropped(&self) -> Option<u64>;
}

impl<T: Transport + ?Sized> Transport for Box<T> {
    fn poller(&self) -> &Arc<Poller> {
        (**self).poller()
    }
    fn receive(&mut self, ready: Option<&Ready>, batch: &mut Batch) -> Result<(), Error> {
        (**self).receive(ready, batch)
    }
    fn receive_one(&mut self, until: Option<Instant>, batch: &mut Batch) -> Result<bool, Error> {
        (**self).receive_one(until, batch)
    }
    fn send(&mut self, batch: &mut Batch) -> Result<(), Error> {
        (**self).send(batch)
    }
    fn undeliverable(&mut self) -> Option<(SocketAddrV4, Undeliverable)> {
        (**self).undeliverable()
    }
    fn dropped(&self) -> Option<u64> {
        (**self).dropped()
    }
}
