//! The dumps, judged by the real `lspci` (pciutils) where it is installed.

use proptest::prelude::*;
use std::io::Write;
use std::process::{Command, Stdio};
use tlplab_cfgspace::lspci::{class_name, dump, parse};
use tlplab_cfgspace::*;
use tlplab_units::{Bdf, Generation, Mps, Width};

fn link(generation: Generation, lanes: u8) -> LinkPart {
    LinkPart::new(generation, Width::new(lanes).unwrap())
}

/// A root port with everything a bridge can have.
fn root_port() -> ConfigSpace {
    let slot = Slot { number: 42, hot_plug: true, surprise: true, power_limit: 25 };
    let header = Type1::new(Identity::new(0x71AB, 0x0010, 0x06_04_00));
    let layout = Layout::new(header)
        .capability(Pcie { slot: Some(slot), ..Pcie::new(PortType::RootPort, link(Generation::Gen4, 16)) })
        .capability(PowerManagement { wakes_from: 0b11001, ..PowerManagement::default() })
        .capability(Msi { vectors: 2, wide: true, masking: true })
        .capability(Capability::SubsystemId { vendor: 0x71AB, subsystem: 0x77 })
        .extended(Aer { root: true, ecrc: true })
        .extended(Acs::new(AcsControls::from_bits(0x5F)))
        .extended(ExtendedCapability::SecondaryPcie { lanes: 16 });
    let mut space = ConfigSpace::new(&layout).unwrap();
    space.write(0x18, 0xF, 0x0001_0100);
    space.write(0x20, 0xF, 0xC010_C000);
    space.write(0x24, 0xF, 0x0010_0000);
    space.write(0x28, 0xF, 0x100);
    space.write(0x2C, 0xF, 0x100);
    space.write(0x04, 0x3, 0x6);
    space.write(0x14C, 0xC, 0x1D << 16); // of ACS: all but translation blocking, and direct translated
    let width = Width::new(4).unwrap();
    space.set_link(LinkState { speed: Generation::Gen3, width, active: true, training: false });
    space.set_presence(true);
    space
}

/// An end point with everything an end point can have.
fn end_point() -> ConfigSpace {
    let mut header = Type0 {
        subsystem: (0x71AB, 0x55),
        interrupt_pin: 1,
        ..Type0::new(Identity::new(0x71AB, 1, 0x02_00_00))
    };
    header.bars[0] = Some(Bar::memory32(1 << 16));
    header.bars[2] = Some(Bar::memory64(1 << 20).prefetchable());
    header.bars[4] = Some(Bar::io(32));
    let resizable = Resizable { bar: 2, sizes: 0b1111, size: 0 };
    let mut vf_bars = [None; 6];
    vf_bars[0] = Some(Bar::memory64(1 << 14));
    let layout = Layout::new(header)
        .capability_at(0xC8, PowerManagement::default())
        .capability_at(0xD0, Msi { vectors: 1, wide: true, masking: false })
        .capability_at(
            0x60,
            Pcie { mps: Mps::ALL[1], ..Pcie::new(PortType::EndPoint, link(Generation::Gen3, 4)) },
        )
        .capability_at(0xA0, MsiX { vectors: 5, table: (0, 0x2000), pending: (0, 0x3000) })
        .capability(Capability::Vendor(vec![1, 2, 3]))
        .extended(Aer::default())
        .extended(ExtendedCapability::SerialNumber(0x0011_2233_4455_6677))
        .extended(ExtendedCapability::Ari { next_function: 3 })
        .extended(SrIov { total: 8, first_offset: 16, stride: 2, device: 2, bars: vf_bars })
        .extended(ExtendedCapability::Ats { queue_depth: 8 })
        .extended(ExtendedCapability::Pasid { width: 20 })
        .extended(ExtendedCapability::Ltr)
        .extended(ResizableBar { bars: vec![resizable] })
        .extended(ExtendedCapability::VendorSpecific { id: 7, revision: 1, bytes: vec![0; 8] });
    let mut space = ConfigSpace::new(&layout).unwrap();
    space.write(0x10, 0xF, 0xC000_0000);
    space.write(0x18, 0xF, 0x0040_0000);
    space.write(0x1C, 0xF, 0x100);
    space.write(0x04, 0x3, 0x6);
    // MSI, MSI-X masked; ATS and PASID on; latencies of 3 × 1024 ns and 5 × 32768 ns; virtual functions' memory; a larger BAR.
    space.write(0xD4, 0xF, 0xFEE0_1230);
    space.write(0xDC, 0x3, 0x45);
    space.write(0xA0, 0xC, 1 << 30);
    let mut enable = |id: u32, register: u16, value: u32| {
        let at = (0x100..0x400).step_by(4).find(|at| space.read(*at) & 0xF_FFFF == id | 1 << 16);
        space.write(at.unwrap() + register, 0xF, value);
    };
    enable(0x0F, 4, 1 << 31 | 2 << 16);
    enable(0x1B, 4, 0b011 << 16);
    enable(0x18, 4, 3 << 16 | 5 | 2 << 26 | 3 << 10);
    enable(0x10, 0x24, 0xC800_0000);
    enable(0x10, 0x08, 1 << 3);
    enable(0x15, 8, 2 << 8);
    error::report(&mut space, ErrorKind::Malformed, Some([0x12; 16]));
    space
}

/// The output of the real tool for a dump; `None` if it is not installed.
fn lspci(text: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("lspci");
    command.args(["-F", "/dev/stdin"]).args(arguments);
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut tool) = started else {
        eprintln!("skipped: lspci is not installed (pciutils)");
        return None;
    };
    tool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let out = tool.wait_with_output().unwrap();
    // Containers have no list of kernel modules, which is not the dump's fault.
    let errors = String::from_utf8_lossy(&out.stderr);
    let complaints: Vec<&str> = errors.lines().filter(|line| !line.contains("libkmod")).collect();
    assert!(out.status.success() && complaints.is_empty(), "{complaints:?}");
    Some(String::from_utf8(out.stdout).unwrap())
}

#[test]
fn the_real_lspci_reads_it() {
    let (root, card) = (root_port(), end_point());
    let text = dump([(Bdf(0x0008), root.bytes()), (Bdf(0x0100), card.bytes())]);
    let Some(seen) = lspci(&text, &["-vvv", "-nn"]) else { return };
    for expected in [
        "Bus: primary=00, secondary=01, subordinate=01",
        "Memory behind bridge: c0000000-c01fffff",
        "Prefetchable memory behind bridge: 0000010000000000-00000100001fffff",
        "Express (v2) Root Port (Slot+)",
        "Speed 16GT/s, Width x16",
        "LnkSta:\tSpeed 8GT/s, Width x4",
        "HotPlug+ Surprise+",
        "Slot #42",
        "Express (v2) Endpoint",
        "Memory at c0000000 (32-bit, non-prefetchable)",
        "Memory at 10000400000 (64-bit, prefetchable)",
        "Capabilities: [c8] Power Management version 3",
        "Capabilities: [d0] MSI: Enable- Count=1/1 Maskable- 64bit+",
        "Vector table: BAR=0 offset=00002000",
        "[71ab:0077]",
        "Vendor Specific Information",
        "Advanced Error Reporting",
        "Device Serial Number 00-11-22-33-44-55-66-77",
        "UESta:\tDLP- SDES- TLP- FCP- CmpltTO- CmpltAbrt- UnxCmplt- RxOF- MalfTLP+ ECRC- UnsupReq- ACSViol-",
        "First Error Pointer: 12,",
        "HeaderLog: 12121212 12121212 12121212 12121212",
        "Address: 00000000fee01230  Data: 0045",
        "Capabilities: [a0] MSI-X: Enable- Count=5 Masked+",
        "PBA: BAR=0 offset=00003000",
        "Capabilities: [40] Vendor Specific Information: Len=06",
        "Alternative Routing-ID Interpretation (ARI)\n\t\tARICap:\tMFVC- ACS-, Next Function: 3",
        "Single Root I/O Virtualization (SR-IOV)",
        "IOVCtl:\tEnable- Migration- Interrupt- MSE+ ARIHierarchy-",
        "Initial VFs: 8, Total VFs: 8, Number of VFs: 0,",
        "VF offset: 16, stride: 2, Device ID: 0002",
        "Supported Page Size: 00000553, System Page Size: 00000001",
        "Region 0: Memory at 00000000c8000000 (64-bit, non-prefetchable)",
        "ATSCap:\tInvalidate Queue Depth: 08",
        "ATSCtl:\tEnable+, Smallest Translation Unit: 02",
        "PASIDCap: Exec+ Priv+, Max PASID Width: 14",
        "PASIDCtl: Enable+ Exec+ Priv-",
        "Max snoop latency: 163840ns",
        "Max no snoop latency: 3072ns",
        "BAR 2: current size: 4MB, supported: 1MB 2MB 4MB 8MB",
        "Vendor Specific Information: ID=0007 Rev=1 Len=010",
        "ACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+",
        "ACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-",
        "Secondary PCI Express",
    ] {
        assert!(seen.contains(expected), "{expected:?} is not in\n{seen}");
    }
    for wrong in ["chain broken", "chain looped", "nknown", "invalid", "ignored"] {
        assert!(!seen.contains(wrong), "{wrong:?} is in\n{seen}");
    }
    let tree = lspci(&text, &["-t"]).expect("it was there");
    assert!(tree.contains("01.0-[01]----00.0"), "{tree}");
}

#[test]
fn a_dump_is_read_back() {
    let (root, card) = (root_port(), end_point());
    let text = dump([(Bdf(0x0008), root.bytes()), (Bdf(0x0100), card.bytes())]);
    let back = parse(&text).unwrap();
    assert_eq!(back.len(), 2);
    assert_eq!((back[1].domain, back[1].bdf, &back[1].bytes[..]), (0, Bdf(0x0100), &card.bytes()[..]));
    let other = parse("0001:02:03.4 Bridge: x\n\tControl: I/O+\n00: 86 80\n").unwrap();
    assert_eq!((other[0].domain, other[0].bdf.to_string()), (1, "02:03.4".to_owned()));
    for (text, line) in [("00: 01\n", 1), ("00:01.0 x\n10: 01\n", 2), ("00:01.0 x\n00: 01 zz\n", 2)] {
        assert_eq!(parse(text).map_err(|error| error.line), Err(line), "{text:?}");
    }
}

/// The names of the PCI ID repository; of a sub-class that has none here, that of its base class.
#[test]
fn classes_have_the_names_that_lspci_gives_them() {
    for (class, name) in [
        (0x01_06_01, "SATA controller"),
        (0x01_08_02, "Non-Volatile memory controller"),
        (0x01_80_00, "Mass storage controller"),
        (0x01_07_00, "Mass storage controller"),
        (0x02_00_00, "Ethernet controller"),
        (0x02_80_00, "Network controller"),
        (0x03_00_00, "Display controller"),
        (0x05_00_00, "RAM memory"),
        (0x05_80_00, "Memory controller"),
        (0x05_01_00, "Memory controller"),
        (0x06_00_00, "Host bridge"),
        (0x06_04_00, "PCI bridge"),
        (0x06_80_00, "Bridge"),
        (0x08_80_00, "System peripheral"),
        (0x0B_40_00, "Processor"),
        (0x0C_03_30, "Serial bus controller"),
        (0x12_00_00, "Processing accelerators"),
        (0xFF_00_00, "Unassigned class"),
    ] {
        assert_eq!(class_name(class), name, "{class:06x}");
    }
    let card = Type0::new(Identity::new(0x71AB, 0x1234, 0x02_00_00));
    let card = ConfigSpace::new(&Layout::new(card)).unwrap();
    let text = dump([(Bdf(0x0100), card.bytes())]);
    assert_eq!(text.lines().next(), Some("01:00.0 Ethernet controller: Device 71ab:1234"));
}

#[test]
fn numbers_of_a_dump_have_their_digits() {
    for byte in ["1", "001", "+1", "", "0x"] {
        let expected = if byte.is_empty() { Ok(1) } else { Err(2) };
        let read = parse(&format!("00:01.0 x\n00: {byte}\n"));
        assert_eq!(read.map(|found| found.len()).map_err(|error| error.line), expected, "{byte:?}");
    }
    // What is no address begins no function.
    for address in ["0:01.0", "000:01.0", "+0:01.0", "00:1.0", "00:+1.0", "00:01.00", "00:01.+", "1:00:01.0"]
    {
        assert_eq!(parse(&format!("{address} x\n")), Ok(vec![]), "{address:?}");
    }
}

proptest! {
    /// Writes change what may be changed, and nothing else.
    #[test]
    fn writes_obey_the_bits(
        writes in proptest::collection::vec((0u16..1024, 0u8..16, any::<u32>()), 1..60),
        bridge: bool,
    ) {
        let mut space = if bridge { root_port() } else { end_point() };
        let fixed = [0x00, 0x08, 0x34];
        let before = fixed.map(|at| space.read(at));
        let chain = space.read(0x100);
        for (dword, enables, value) in writes {
            let (offset, old) = (4 * dword, space.read(4 * dword));
            let written = space.write(offset, enables, value);
            let new = space.read(offset);
            for lane in (0..4).filter(|lane| enables >> lane & 1 == 0) {
                prop_assert_eq!((old ^ new) >> (8 * lane) & 0xFF, 0, "byte {} of {:#x} was not enabled", lane, offset);
            }
            if offset == 0x04 {
                prop_assert_eq!((new & !old) >> 16, 0, "a status bit was set by software");
                prop_assert_eq!(written.command, (old ^ new) & 0xFFFF != 0);
            }
        }
        prop_assert_eq!(fixed.map(|at| space.read(at)), before);
        prop_assert_eq!(space.read(0x100), chain);
        let back = parse(&dump([(Bdf(8), space.bytes())])).unwrap();
        prop_assert_eq!(&back[0].bytes[..], &space.bytes()[..]);
    }

    /// Any text is read or refused.
    #[test]
    fn any_text_is_read_or_refused(text in "([0-9a-f:. \n]{0,12}|00:0[0-9].0 x\n|00: ff ff\n){0,20}") {
        let _ = parse(&text);
    }
}
