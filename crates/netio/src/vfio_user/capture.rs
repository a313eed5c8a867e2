//! A capture of the TLPs that pass between a virtual machine and its device.

use crate::error::Error;
use std::path::Path;
use std::time::Instant;
use tlplab_trace::output::Output;
use tlplab_trace::pcapng::{Settings, Writer};
use tlplab_trace::record::{Content, Flags, Link, Tlp, Unit};
use tlplab_units::{Duration, Time};
use tlplab_vfio::SeenTlp;

/// The end of the link that is the virtual machine's.
const HOST: &str = "host";
const FS_PER_NS: u64 = 1_000_000;

/// A pcapng file of TLPs, as a simulated link's.
pub(super) struct Capture {
    writer: Writer<Output>,
    sequences: [u16; 2],
    begun: Instant,
    /// There was a TLP later than times reach.
    is_too_long: bool,
}

impl Capture {
    /// Begins the capture of the link above a device of this name.
    pub(super) fn create(path: &Path, device: &str) -> Result<Self, Error> {
        let output = Output::create(path).map_err(|error| Error::Setup(error.to_string()))?;
        let link = Link { lower: device.into(), upper: HOST.into() };
        let settings = Settings { link_layer: false, ..Settings::default() };
        Ok(Self {
            writer: Writer::new(output, &[link], settings),
            sequences: [0; 2],
            begun: Instant::now(),
            is_too_long: false,
        })
    }

    /// Writes a TLP down.
    pub(super) fn write(&mut self, seen: &SeenTlp) {
        let elapsed =
            u64::try_from(self.begun.elapsed().as_nanos()).ok().and_then(|ns| ns.checked_mul(FS_PER_NS));
        let Some(now) = elapsed.map(|fs| Time::ZERO + Duration::from_fs(fs)).filter(|_| !self.is_too_long)
        else {
            self.is_too_long = true;
            return;
        };
        let direction = u8::from(!seen.up);
        let sequence = &mut self.sequences[usize::from(direction)];
        let tlp = Tlp {
            repr: &seen.repr,
            sequence: *sequence,
            payload: (seen.repr.payload_dw() > 0).then_some(&seen.data),
            transaction: None,
            flow: None,
        };
        *sequence = (*sequence + 1) & 0xFFF;
        let content = Content::Tlp(tlp);
        self.writer.unit(&Unit {
            link: 0,
            direction,
            start: now,
            end: now,
            arrive: now,
            content,
            flags: Flags::default(),
        });
    }

    /// Gives the file its name.
    pub(super) fn finish(self, path: &Path) -> Result<(), Error> {
        let failed = |why: String| Error::Setup(format!("{}: {why}", path.display()));
        let output = self.writer.finish().map_err(|error| failed(error.to_string()))?;
        output.commit().map_err(|error| failed(error.to_string()))?;
        match self.is_too_long {
            true => Err(failed("it ends after 5.1 hours, the limit of its time stamps".into())),
            false => Ok(()),
        }
    }
}
