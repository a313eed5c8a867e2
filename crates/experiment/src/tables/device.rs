//! The keys of a device.

use super::{ATS, LINK_KEY, MPS_KEY, UNDER, bus};
use crate::bus::of;
use crate::choices::choice;
use crate::device_models;
use crate::keys::Kind;
use crate::section::{Section, Set, row};
use crate::translation;
use tlplab_fabric::config::{DeviceConfig, RequestPolicy};
use tlplab_units::Mrrs;

const MRRS: Kind = Kind::SizeOf { what: "MRRS", bytes: &[128, 256, 512, 1024, 2048, 4096] };

/// A device.
pub(crate) static DEVICE: Section<DeviceConfig> = Section {
    title: "a device",
    extra: Some(device_models::keys_of),
    rows: &[
        UNDER.row(Set::Context),
        LINK_KEY.row(Set::Context),
        MPS_KEY.row(Set::Context),
        row(
            ("model", Kind::Word(&device_models::MODEL), r#""dma""#, r#""memory""#),
            "The model: a built-in one, file.py:Class, lib:FILE.so, or rtl:FILE.so, whose further keys are its parameters and `waveform`, a file for an FST.",
            Set::Context,
        ),
        row(
            ("driver", Kind::Word(&device_models::DRIVER), "", r#""copier.py:driver""#),
            "The host's side: a program of the host that uses the device, file.py:function. Takes the place of the model's own driver.",
            Set::Context,
        ),
        row(
            ("mrrs", MRRS, r#""512B""#, r#""256B""#),
            "Largest read request that software allows it (Max_Read_Request_Size).",
            Set::Read(|device, v| v.bytes_of(Mrrs::new).map(|it| device.mrrs = it)),
        ),
        row(
            ("tags", Kind::Integer { min: 1, max: 15_360 }, "32", "256"),
            "Reads it may have outstanding: 32 (5-bit tags), 256 (8-bit), 768 (10-bit), 15360 (14-bit, flit mode) or fewer.",
            Set::U16(|device, it| device.tags = it),
        ),
        row(
            ("latency", Kind::Time, r#""0s""#, r#""100ns""#),
            "From a request's arrival to the device's logic, and from it to the egress.",
            Set::Time(|device, it| device.latency = it),
        ),
        row(
            ("completion_timeout", Kind::Time, r#""10ms""#, r#""50ms""#),
            "A request that is unanswered for this long fails.",
            Set::Time(|device, it| device.completion_timeout = it),
        ),
        row(
            ("ready", Kind::Time, r#""0s""#, r#""100ms""#),
            "Until this long after a reset it answers configuration requests with Retry Status (CRS). Without effect on enumeration before time 0.",
            Set::Time(|device, it| device.ready = it),
        ),
        bus::DEVSEL.row(Set::Read(|device, v| v.chosen().map(|it| of(device, |bus| bus.device_select = it)))),
        bus::WAIT_STATES.row(Set::U16(|device, it| of(device, |bus| bus.wait_states = it))),
        bus::COMPLETION
            .row(Set::Read(|device, v| v.chosen().map(|it| of(device, |bus| bus.completion = it)))),
        bus::OVERHEAD_OF_DEVICE.row(Set::U16(|device, it| of(device, |bus| bus.overhead = it))),
        row(
            ("cut", choice::<RequestPolicy>(), "", r#""packed""#),
            "Where its transfers are cut into requests: at multiples of MPS and MRRS, as DMA engines do (aligned), or after that many bytes from their start, and at 4 KiB (packed), as NetTLP cards and captured requests are. Absent: as its model does, mostly aligned.",
            Set::Read(|device, v| v.chosen().map(|it| device.cut = Some(it))),
        ),
        row(
            ("relaxed_ordering", Kind::Boolean, "false", "true"),
            "Sets RO on its memory requests except interrupts, also on writes that report the end of others, which a real device of this kind should not do.",
            Set::Boolean(|device, it| device.relaxed_ordering = it),
        ),
        row(
            ("id_based_ordering", Kind::Boolean, "false", "true"),
            "Sets IDO on its memory requests.",
            Set::Boolean(|device, it| device.id_based_ordering = it),
        ),
        row(
            ("posted_writes", Kind::Boolean, "true", "false"),
            "false: its writes are deferrable memory writes of 128 B at most, each of which takes a tag and is completed; a write is over with the last completion.",
            Set::Boolean(|device, it| device.posted_writes = it),
        ),
        row(
            ("ats", Kind::Table(&ATS), "", "{ entries = 64, outstanding = 8 }"),
            "Address translation services (ATS): it asks the host's IOMMU for translations, keeps them, and sends its requests with translated addresses. Absent: it does not.",
            Set::Read(|device, v| translation::ats(v).map(|it| device.ats = Some(it))),
        ),
    ],
};
