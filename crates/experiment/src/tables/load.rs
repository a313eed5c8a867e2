//! The keys of a load.

use super::COUNT;
use crate::choices::choice;
use crate::keys::Kind;
use crate::load::{self, Pattern};
use crate::section::{Section, Set, row};
use crate::transfer;
use tlplab_device::tlpdma::driver::{PageSize, Verify};
use tlplab_fabric::Writer;

/// A load.
pub(crate) static LOAD: Section<load::Said> = Section {
    title: "a load",
    extra: None,
    rows: &[
        row(
            ("device", Kind::Text, "", r#""ssd""#),
            "The requester: a device, or host. Default: the load's own name.",
            Set::Text(|load, it| load.device = Some(it)),
        ),
        row(
            ("target", Kind::Text, "", r#""nic""#),
            "Whose memory: host (the default for a device), or the device whose BAR is meant.",
            Set::Text(|load, it| load.target = Some(it)),
        ),
        row(
            ("op", choice::<load::Operation>(), "", r#""write""#),
            "The operation: of a device by DMA, of the host by MMIO, on a storage device like dd with direct IO, or by the driver of a DMA card. Required without replay.",
            Set::Read(|load, v| v.chosen().map(|it| load.op = Some(it))),
        ),
        row(
            ("size", Kind::Size, "", r#""4KiB""#),
            "Bytes of a transaction; of dd: of a block (bs=); of to-card, from-card: of a transfer. Required without replay.",
            Set::Bytes(|load, it| load.size = it),
        ),
        row(
            ("outstanding", Kind::Integer { min: 1, max: 65_536 }, "", "8"),
            "Transactions under way at most (always this many, without rate). A posted write counts until its last TLP is accepted for sending, so more of them may be on their way. Default 32 for DMA, 1 for MMIO and for transfers of a card, each of which is a call.",
            Set::U32(|load, it| load.outstanding = Some(it)),
        ),
        row(
            ("rate", Kind::Rate, "", r#""25Gb/s""#),
            "Payload offered per second; absent: as fast as outstanding allows.",
            Set::Rate(|load, it| load.rate = Some(it)),
        ),
        row(
            ("count", COUNT, "", "1000"),
            "Total number of transactions; absent: until the run stops. Of dd: blocks, of to-card and from-card: transfers, 1 if absent.",
            Set::U64(|load, it| load.count = Some(it)),
        ),
        row(
            ("start", Kind::Time, r#""0s""#, r#""10us""#),
            "When it begins.",
            Set::Instant(|load, it| load.start = it),
        ),
        row(
            ("pattern", choice::<Pattern>(), r#""sequential""#, r#""random""#),
            "How addresses follow each other.",
            Set::Read(|load, v| v.chosen().map(|it| load.pattern = it)),
        ),
        row(
            ("align", Kind::Size, r#""64B""#, r#""4KiB""#),
            "The distance between addresses is the size, rounded up to a multiple of this.",
            Set::Bytes(|load, it| load.align = it),
        ),
        row(
            ("offset", Kind::Size, r#""0B""#, r#""4B""#),
            "Added to every address.",
            Set::Bytes(|load, it| load.offset = it),
        ),
        row(
            ("window", Kind::Size, "", r#""1MiB""#),
            "Addresses stay in a window of this size. Default 64MiB of host memory, or the target's BAR.",
            Set::Bytes(|load, it| load.window = Some(it)),
        ),
        row(
            ("address", Kind::Address, "", r#""0x2_0000_0000""#),
            "Where the window begins. Default: a window of its own from 4 GiB on, or the start of the BAR.",
            Set::Address(|load, it| load.address = Some(it)),
        ),
        row(
            ("cache", choice::<Option<Writer>>(), "", r#""host-warm""#),
            "Of a host with a cache: the writer of the window before the run, in the order of addresses; cold (the default): none.",
            Set::Read(|load, v| v.chosen().map(|it| load.warm = it)),
        ),
        row(
            ("node", choice::<load::Node>(), "", r#""remote""#),
            "Of a host with another node: where the window is. Default local.",
            Set::Read(|load, v| v.chosen().map(|it| load.node = it)),
        ),
        row(
            ("replay", Kind::Text, "", r#""traces/x520.pcapng""#),
            "A captured trace whose requests are issued instead, relative to this file: pcap, pcapng or a trace table.",
            Set::File(|load, it| load.replay = Some(it)),
        ),
        row(
            ("timing", choice::<load::Timing>(), "", r#""fast""#),
            "Replay at the captured times (the default), or as fast as the fabric takes them.",
            Set::Read(|load, v| v.chosen().map(|it| load.timing = it)),
        ),
        row(
            ("request", Kind::Size, "", r#""64KiB""#),
            "Of dd: bytes that the host asks a storage device for at a time, a multiple of 4KiB. Default 128KiB.",
            Set::Bytes(|load, it| load.dd.request = it),
        ),
        row(
            ("host_cost", Kind::Time, "", r#""1us""#),
            "Of dd: time of the operating system for each 4 KiB of a request, before the device receives it. Default 0s.",
            Set::Time(|load, it| load.dd.cost = it),
        ),
        row(
            ("host_ahead", Kind::Time, "", r#""1us""#),
            "Of dd: time of the operating system to pin pages for each 4 KiB of the next request while the device works on this one. Default 0s.",
            Set::Time(|load, it| load.dd.ahead = it),
        ),
        row(
            ("page_list", Kind::Boolean, "", "true"),
            "Of dd: the pages of the buffer are scattered, and the device reads the address of each from a list in host memory, one before each sector, as IDE disks do. Default false.",
            Set::Boolean(|load, it| load.dd.page_list = it),
        ),
        row(
            ("card_offset", Kind::Size, "", r#""5B""#),
            "Of to-card and from-card: added to addresses in the card's memory. Default 0B.",
            Set::Bytes(|load, it| load.transfer.card_offset = it),
        ),
        row(
            ("pages", choice::<PageSize>(), "", r#""2MiB""#),
            "Of to-card and from-card: the pages of a buffer; no two pages are contiguous, and each has a descriptor. Default 4KiB.",
            Set::Read(|load, v| v.chosen().map(|it| load.transfer.pages = it)),
        ),
        row(
            ("descriptors", choice::<transfer::Fetched>(), "", r#""pio""#),
            "Of to-card and from-card: the card fetches descriptors from a ring in host memory (the default), or the processor stores each into registers, 4 bytes at a time.",
            Set::Read(|load, v| v.chosen().map(|it| load.descriptors = it)),
        ),
        row(
            ("entries", Kind::Integer { min: 16, max: 65_536 }, "", "256"),
            "Of to-card and from-card: descriptors in the ring, a power of two. Default 65536, which is 1 MiB.",
            Set::U32(|load, it| load.entries = it),
        ),
        row(
            ("store_interval", Kind::Time, "", r#""1us""#),
            "Of to-card and from-card with descriptors = \"pio\": from one store of the processor to the next. Default 0s: as fast as the link takes them.",
            Set::Time(|load, it| load.store_interval = it),
        ),
        row(
            ("wait", choice::<transfer::Heard>(), "", r#""poll""#),
            "Of to-card and from-card: software learns of the end of a transfer by an interrupt (the default), or polls the record in host memory every 20 ns.",
            Set::Read(|load, v| v.chosen().map(|it| load.wait = it)),
        ),
        row(
            ("interrupt_delay", Kind::Time, "", r#""1ms""#),
            "Of to-card and from-card: from an interrupt to its handler. Default 0s.",
            Set::Time(|load, it| load.interrupt_delay = it),
        ),
        row(
            ("call_cost", Kind::Time, "", r#""20us""#),
            "Of to-card and from-card: time of software for each transfer before the card receives it. Default 0s.",
            Set::Time(|load, it| load.transfer.call_cost = it),
        ),
        row(
            ("verify", choice::<Verify>(), "", r#""ends""#),
            "Of to-card and from-card, unless fidelity is length-only: which data are checked, all (the default), or the first and last 32 KiB of each transfer. Data from the card are placed there first, data to the card are read back afterwards; neither is measured.",
            Set::Read(|load, v| v.chosen().map(|it| load.transfer.verify = it)),
        ),
    ],
};
