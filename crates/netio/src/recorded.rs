//! A transport whose datagrams are recorded: a capture for Wireshark and `tlplab dump`.

use super::batch::{Batch, Envelope};
use super::error::Error;
use super::frame::{HEADERS, Way, write};
use super::poller::{Poller, Ready};
use super::transport::Transport;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tlplab_nettlp::{MAX_DATAGRAM, Undeliverable};
use tlplab_trace::output::Output;
use tlplab_trace::pcapng::{FrameWriter, RawFrame};

const ETHERNET: u16 = 1;

/// Times are in nanoseconds.
const DIGITS: u8 = 9;
const FS_PER_NS: i128 = 1_000_000;

/// A pcapng file of datagrams as Ethernet frames. Cloning gives another hand on the same file.
#[derive(Clone)]
pub struct Capture {
    path: PathBuf,
    file: Arc<Mutex<File>>,
}

struct File {
    /// `None` once it is finished.
    writer: Option<FrameWriter<Output>>,
    frame: Vec<u8>,
}

impl Capture {
    /// Begins a capture.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path) -> Result<Self, tlplab_trace::Error> {
        let writer = Some(FrameWriter::new(Output::create(path)?));
        let frame = Vec::with_capacity(HEADERS + MAX_DATAGRAM);
        Ok(Self { path: path.into(), file: Arc::new(Mutex::new(File { writer, frame })) })
    }

    /// Ends it and gives the file its name. What passes later is not written.
    ///
    /// # Errors
    /// It could not be written.
    pub fn finish(&self) -> Result<(), tlplab_trace::Error> {
        let Some(writer) = self.lock().writer.take() else { return Ok(()) };
        writer.finish().map_err(|error| tlplab_trace::Error::io(&self.path, "write", error))?.commit()
    }

    fn lock(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down datagrams that came to `local`, or were sent from there.
    fn write<'a>(&self, local: Ipv4Addr, sent: bool, datagrams: impl Iterator<Item = (Envelope, &'a [u8])>) {
        let mut file = self.lock();
        let File { writer: Some(writer), frame } = &mut *file else { return };
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let fs = since.as_nanos() as i128 * FS_PER_NS;
        for (Envelope { peer, port, .. }, payload) in datagrams {
            let way = match sent {
                true => way((local, port), (*peer.ip(), peer.port())),
                false => way((*peer.ip(), peer.port()), (local, port)),
            };
            let mut headers = [0; HEADERS];
            write(&mut headers, &way, payload.len());
            frame.clear();
            frame.extend_from_slice(&headers);
            frame.extend_from_slice(payload);
            writer.frame(&RawFrame {
                link_type: ETHERNET,
                interface: None,
                fs,
                digits: DIGITS,
                data: frame,
                length: frame.len(),
                comment: None,
            });
        }
    }
}

/// Ethernet addresses are locally administered ones, made of the IPv4 addresses.
fn way((from, from_port): (Ipv4Addr, u16), (to, to_port): (Ipv4Addr, u16)) -> Way {
    let mac = |address: Ipv4Addr| {
        let [a, b, c, d] = address.octets();
        [2, 0, a, b, c, d]
    };
    Way { from_mac: mac(from), to_mac: mac(to), from, to, from_port, to_port }
}

/// A transport whose datagrams are written down, with the time at which it took or gave them.
pub struct Recorded<T> {
    inner: T,
    local: Ipv4Addr,
    capture: Capture,
}

impl<T: Transport> Recorded<T> {
    /// Datagrams that pass `inner`, whose address is `local`, go to `capture`, too.
    pub fn new(inner: T, local: Ipv4Addr, capture: Capture) -> Self {
        Self { inner, local, capture }
    }
}

impl<T: Transport> Transport for Recorded<T> {
    fn poller(&self) -> &Arc<Poller> {
        self.inner.poller()
    }

    fn receive(&mut self, ready: Option<&Ready>, batch: &mut Batch) -> Result<(), Error> {
        let before = batch.len();
        self.inner.receive(ready, batch)?;
        if batch.len() > before {
            self.capture.write(self.local, false, batch.iter().skip(before));
        }
        Ok(())
    }

    fn receive_one(&mut self, until: Option<Instant>, batch: &mut Batch) -> Result<bool, Error> {
        let before = batch.len();
        let waited = self.inner.receive_one(until, batch)?;
        if batch.len() > before {
            self.capture.write(self.local, false, batch.iter().skip(before));
        }
        Ok(waited)
    }

    fn send(&mut self, batch: &mut Batch) -> Result<(), Error> {
        self.capture.write(self.local, true, batch.iter());
        self.inner.send(batch)
    }

    fn undeliverable(&mut self) -> Option<(SocketAddrV4, Undeliverable)> {
        self.inner.undeliverable()
    }

    fn dropped(&self) -> Option<u64> {
        self.inner.dropped()
    }
}
