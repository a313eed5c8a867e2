//! Layouts that cannot be are refused, with the fault and its place.

use tlplab_cfgspace::{Bar, Capability, ConfigSpace, Identity, Layout, MsiX, Type0};

fn board(bars: [Option<Bar>; 6]) -> Layout {
    Layout::new(Type0 { bars, ..Type0::new(Identity::new(0x71AB, 1, 0xFF_00_00)) })
}

fn complaint(layout: &Layout) -> String {
    ConfigSpace::new(layout).map_or_else(|error| error.to_string(), |_| String::new())
}

#[test]
fn msix_needs_memory_for_its_table_and_pending_bits() {
    let bars = [Some(Bar::memory32(4096)), Some(Bar::io(16)), None, None, None, None];
    let with = |table, pending| board(bars).capability(MsiX { vectors: 256, table, pending });
    let table = "MSI-X: the bytes 0x0 to 0x1000 of BAR";
    for (layout, expected) in [
        (with((2, 0), (0, 0)), format!("{table} 2, for the table, do not exist: the function has no such BAR")),
        (with((1, 0), (0, 0)), format!("{table} 1, for the table, are in I/O space; they must be in memory")),
        (with((0, 0), (0, 0)), format!("{table} 0, for the table, overlap the other part; give each part its own bytes")),
        (
            with((0, 0), (0, 0x1000)),
            "MSI-X: the bytes 0x1000 to 0x1020 of BAR 0, for the pending bits, are not all inside it; make the BAR larger".into(),
        ),
    ] {
        assert_eq!(complaint(&layout), expected);
    }
    let larger = [Some(Bar::memory32(8192)), None, None, None, None, None];
    let fits = board(larger).capability(MsiX { vectors: 256, table: (0, 0), pending: (0, 0x1000) });
    assert_eq!(complaint(&fits), "");
}

#[test]
fn capabilities_do_not_overlap() {
    let vendor = |bytes: usize| Capability::Vendor(vec![0; bytes]);
    let layout = board([None; 6]).capability_at(0x80, vendor(20)).capability_at(0x90, vendor(1));
    let expected = "vendor specific at 0x90 overlaps vendor specific from 0x80 to 0x98; give each its own bytes, or leave the offset of one out";
    assert_eq!(complaint(&layout), expected);
    let layout = board([None; 6]).capability_at(0x80, vendor(20)).capability_at(0x98, vendor(1));
    assert_eq!(complaint(&layout), "");
}
