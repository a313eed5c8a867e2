//! The place of a device in the host of its adapter: asked of the adapter, or given.

use super::Station;
use crate::{Apis, Error};
use tlplab_cfgspace::{BarKind, Capability, Header, Layout, MessageWrite};
use tlplab_nettlp::endpoint::Window;
use tlplab_nettlp::server::{BarMap, Vectors};
use tlplab_units::Bdf;

/// Bytes of the card's window, BAR4, where nothing tells: those of the published card.
const WINDOW: u64 = 256 << 20;
/// Bytes that the MSI-X table takes of it, if it is there.
const TABLE: u64 = 4096;
const MSI_X: u8 = 0x11;

/// A function of the adapter's host that a device stands behind.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its ID.
    pub id: Bdf,
    /// Vendor and device ID that its configuration space has; `None` if the adapter does not say.
    pub ids: Option<(u16, u16)>,
    /// The addresses of the device's BARs.
    pub bars: BarMap,
    /// The destinations of its interrupts.
    pub vectors: Vectors,
}

impl Place {
    /// Finds the place of a device. If the function at the adapter has its IDs, that is the device itself: each BAR is where its configuration
    /// space says. Otherwise it is the card, in whose BAR4 the device's BARs lie one after the other.
    ///
    /// # Errors
    /// Nobody answers; the device's BARs do not fit.
    pub fn find(station: &Station, layout: &Layout) -> Result<Self, Error> {
        let Station { apis, host, id, window, .. } = *station;
        let layout = &without_table(layout);
        if let (Some(id), Some(base)) = (id, window) {
            // All is said: the adapter need not know how to answer.
            let bars = packed(layout, Window { base, size: WINDOW })?;
            return Ok(Self { id, ids: None, bars, vectors: Vectors::Given(Vec::new()) });
        }
        let silent = |error: &Error| matches!(error, Error::Silent { refused: false, .. });
        let first = apis.config_read(0);
        let id = id.map_or_else(|| host.device_id(), Ok)?;
        // The published card answers no such question, and an adapter that stood still for a second did not answer this one.
        let ids = if first.as_ref().is_err_and(silent) { apis.config_read(0) } else { first };
        let ids = ids.ok().map(|ids| (ids as u16, (ids >> 16) as u16));
        let (own, vectors) = (own_ids(layout), given(host)?);
        if ids.is_some() && ids == own {
            let bars = BarMap::own(layout, bases(apis, layout)?);
            return Ok(Self { id, ids, bars, vectors });
        }
        let base = window.map_or_else(|| host.bar4_base(), Ok)?;
        if ids.is_some()
            && let Some((4, table)) = table_place(apis)?
        {
            // The table is at the window's end, wherever that is.
            let window = Window { base, size: u64::from(table) + TABLE };
            let bars = packed(layout, window)?.with_table(window);
            return Ok(Self { id, ids, bars, vectors: Vectors::in_window() });
        }
        Ok(Self { id, ids, bars: packed(layout, Window { base, size: WINDOW })?, vectors })
    }
}

/// The device as far as it is served: the table of its interrupts is the adapter's to keep.
fn without_table(layout: &Layout) -> Layout {
    let mut layout = layout.clone();
    let table = layout.capabilities.iter().find_map(|(_, capability)| match capability {
        Capability::MsiX(msix) => Some(msix.table.0),
        _ => None,
    });
    if let (Some(bar), Header::Type0(header)) = (table, &mut layout.header) {
        header.bars[usize::from(bar)] = None;
    }
    layout
}

/// The messages that the adapter's host tells of.
pub(super) fn given(host: Apis) -> Result<Vectors, Error> {
    let message = |message: tlplab_wire::nettlp::message_api::Message| MessageWrite {
        address: message.address,
        data: message.data,
    };
    Ok(Vectors::Given(host.msix_table()?.map(message).to_vec()))
}

fn packed(layout: &Layout, window: Window) -> Result<BarMap, Error> {
    BarMap::packed(layout, window).map_err(|error| Error::Setup(error.to_string()))
}

fn own_ids(layout: &Layout) -> Option<(u16, u16)> {
    match &layout.header {
        Header::Type0(header) => Some((header.identity.vendor, header.identity.device)),
        Header::Type1(_) => None,
    }
}

/// The addresses that software has given the BARs.
fn bases(apis: Apis, layout: &Layout) -> Result<[Option<u64>; 6], Error> {
    let mut bases = [None; 6];
    let Header::Type0(header) = &layout.header else { return Ok(bases) };
    for (number, bar) in header.bars.iter().enumerate() {
        let Some(bar) = bar else { continue };
        let at = 0x10 + 4 * number as u16;
        let mut base = u64::from(apis.config_read(at)? & !0xF);
        if matches!(bar.kind, BarKind::Memory { wide: true, .. }) {
            base |= u64::from(apis.config_read(at + 4)?) << 32;
        }
        bases[number] = (base != 0).then_some(base);
    }
    Ok(bases)
}

/// The BAR with the MSI-X table, and where in it, as the function's capability says.
fn table_place(apis: Apis) -> Result<Option<(u8, u32)>, Error> {
    let mut at = apis.config_read(0x34)? as u16 & 0xFC;
    // A chain of 48 capabilities would fill the space.
    for _ in 0..48 {
        if at == 0 {
            break;
        }
        let head = apis.config_read(at)?;
        if head as u8 == MSI_X {
            let place = apis.config_read(at + 4)?;
            return Ok(Some((place as u8 & 7, place & !7)));
        }
        at = (head >> 8) as u16 & 0xFC;
    }
    Ok(None)
}
