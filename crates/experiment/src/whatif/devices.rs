//! What could limit in switches, bridges, buses and devices: what they take for a TLP, tags, what models do at once.

use super::{By, Candidate, Figures, relax_count, relax_rate, relax_time};
use crate::device_models::ModelSpec;
use crate::experiment::Experiment;
use crate::result::LimitKind;
use tlplab_fabric::attribution::Cause;
use tlplab_fabric::config::{BusConfig, BusMode, BusWidth, DeviceConfig, SwitchConfig};
use tlplab_units::LinkMode;

type OfModel = fn(&mut ModelSpec, By) -> Option<String>;

pub(super) fn candidates(experiment: &Experiment, figures: Figures<'_>) -> Vec<Candidate> {
    let mut all = Vec::new();
    for switch in &experiment.fabric.switches {
        let busy = figures.share(&switch.name, &[Cause::Processing]);
        let latency = format!("latency of {}", switch.name);
        all.push(of_switch(&switch.name, latency, busy, |switch, by| relax_time(&mut switch.latency, by)));
        if switch.port_buffer.is_some() {
            let waits = figures.share_anywhere(&[Cause::CreditWait, Cause::Replay]);
            let buffer = format!("port buffers of {}", switch.name);
            all.push(of_switch(&switch.name, buffer, waits, |switch, by| {
                relax_u16(switch.port_buffer.as_mut()?, by, 2048)
            }));
        }
    }
    for bus in &experiment.fabric.buses {
        buses(&mut all, figures, &bus.name);
    }
    for device in &experiment.fabric.devices {
        let busy = figures.share(&device.name, &[Cause::Processing, Cause::Completer]);
        let latency = format!("latency of {}", device.name);
        all.push(of_device(&device.name, latency, LimitKind::Latency, busy, |device, by| {
            relax_time(&mut device.latency, by)
        }));
        let waits = figures.share(&device.name, &[Cause::TagWait]).max(tag_wait(figures, &device.name));
        let tags = format!("tags of {}", device.name);
        all.push(of_device(&device.name, tags, LimitKind::Tags, waits, |device, by| {
            // 14-bit tags exist in flit mode only.
            relax_u16(&mut device.tags, by, if device.link.mode == LinkMode::Flit { 15_360 } else { 768 })
        }));
        if !device.posted_writes {
            let answers = format!("answers to writes of {}", device.name);
            all.push(of_device(&device.name, answers, LimitKind::Latency, busy, |device, by| {
                device.posted_writes = true;
                (by != By::Tenth).then(|| "non-posted → posted".to_owned())
            }));
        }
    }
    for spec in &experiment.devices {
        models(&mut all, figures, &spec.name, &spec.model);
    }
    all
}

/// The part of its flows' latency that a device's transactions wait for tags, wherever it is charged.
fn tag_wait(figures: Figures<'_>, device: &str) -> f64 {
    let flows =
        || figures.document.flows.iter().filter(|flow| flow.device == device).flat_map(|f| &f.attribution);
    let total: f64 = flows().map(|a| a.total_ns).sum();
    let waits = flows().filter(|a| a.cause == Cause::TagWait as usize).map(|a| a.total_ns);
    waits.sum::<f64>() / total.max(f64::MIN_POSITIVE)
}

fn of_switch(
    name: &str,
    resource: String,
    suspicion: f64,
    change: impl Fn(&mut SwitchConfig, By) -> Option<String> + Send + Sync + 'static,
) -> Candidate {
    let name = name.to_owned();
    let kind = if resource.starts_with("port buffers") { LimitKind::Credits } else { LimitKind::Latency };
    Candidate::new(resource, kind, suspicion, move |experiment, by| {
        change(experiment.fabric.switches.iter_mut().find(|switch| switch.name == name)?, by)
    })
}

fn of_device(
    name: &str,
    resource: String,
    kind: LimitKind,
    suspicion: f64,
    change: impl Fn(&mut DeviceConfig, By) -> Option<String> + Send + Sync + 'static,
) -> Candidate {
    let name = name.to_owned();
    Candidate::new(resource, kind, suspicion, move |experiment, by| {
        change(experiment.fabric.devices.iter_mut().find(|device| device.name == name)?, by)
    })
}

/// A parallel bus: its clock, its lines, and what its bridge takes and holds.
fn buses(all: &mut Vec<Candidate>, figures: Figures<'_>, name: &str) {
    let of_bus = |resource: String, kind, suspicion, change: fn(&mut BusConfig, By) -> Option<String>| {
        let name = name.to_owned();
        Candidate::new(resource, kind, suspicion, move |experiment: &mut Experiment, by| {
            change(experiment.fabric.buses.iter_mut().find(|bus| bus.name == name)?, by)
        })
    };
    let on_bus = [
        Cause::Arbitration,
        Cause::Address,
        Cause::DeviceSelect,
        Cause::WaitState,
        Cause::DataPhase,
        Cause::Turnaround,
        Cause::Retry,
    ];
    let busy = figures.share_anywhere(&on_bus);
    all.push(of_bus(format!("bus {name}"), LimitKind::Bus, busy, |bus, by| {
        let before = bus.mode;
        bus.mode = match (by, before) {
            (By::Twice, BusMode::Pci33) => BusMode::Pci66,
            (By::Twice, BusMode::PciX66) => BusMode::PciX133,
            (By::Gone, BusMode::PciX66 | BusMode::PciX100) => BusMode::PciX133,
            (By::Gone, BusMode::Pci33) => BusMode::Pci66,
            _ => return None,
        };
        Some(format!("{} → {}", before.name(), bus.mode.name()))
    }));
    all.push(of_bus(format!("bus {name}"), LimitKind::Bus, busy, |bus, by| {
        let wider = by != By::Tenth && bus.width == BusWidth::Bits32;
        bus.width = BusWidth::Bits64;
        wider.then(|| "32 → 64 bits".to_owned())
    }));
    let bridge = figures.share(name, &[Cause::Processing]);
    all.push(of_bus(format!("latency of {name}"), LimitKind::Latency, bridge, |bus, by| {
        relax_time(&mut bus.bridge.latency, by)
    }));
    all.push(of_bus(format!("synchronisation of {name}"), LimitKind::Latency, bridge, |bus, by| {
        relax_time(&mut bus.bridge.synchronisation, by)
    }));
    let retries = figures.share_anywhere(&[Cause::Retry]);
    all.push(of_bus(format!("posted requests of {name}"), LimitKind::Credits, retries, |bus, by| {
        relax_u16(&mut bus.bridge.posted, by, 1024)
    }));
    all.push(of_bus(format!("reads of {name}"), LimitKind::Credits, retries, |bus, by| {
        relax_u16(&mut bus.bridge.reads, by, 1024)
    }));
}

/// What the models of devices do at once, and what they take for it.
fn models(all: &mut Vec<Candidate>, figures: Figures<'_>, name: &str, model: &ModelSpec) {
    let of_model = |what: &str, kind, change: OfModel| {
        let device = name.to_owned();
        let suspicion = figures.share(name, &[Cause::Processing, Cause::Completer]);
        Candidate::new(
            format!("{what} of {name}"),
            kind,
            suspicion,
            move |experiment: &mut Experiment, by| {
                change(&mut experiment.devices.iter_mut().find(|spec| spec.name == device)?.model, by)
            },
        )
    };
    let more: &[(&str, LimitKind, OfModel)] = match model {
        ModelSpec::Ring(_) => &[
            ("descriptors under way", LimitKind::Outstanding, |model, by| match model {
                ModelSpec::Ring(ring) => relax_u32(&mut ring.depth, by, 65_536),
                _ => None,
            }),
            ("descriptors fetched at once", LimitKind::Outstanding, |model, by| match model {
                ModelSpec::Ring(ring) => relax_u32(&mut ring.batch, by, 256),
                _ => None,
            }),
            ("ring", LimitKind::Outstanding, |model, by| match model {
                ModelSpec::Ring(ring) => relax_u32(&mut ring.entries, by, 65_536),
                _ => None,
            }),
        ],
        ModelSpec::Storage(_) => &[
            ("access time", LimitKind::Latency, |model, by| match model {
                ModelSpec::Storage(storage) => relax_time(&mut storage.access, by),
                _ => None,
            }),
            ("sectors in flight", LimitKind::Outstanding, |model, by| match model {
                ModelSpec::Storage(storage) => relax_u32(&mut storage.sectors_in_flight, by, 256),
                _ => None,
            }),
        ],
        ModelSpec::Nic(_) => &[("ring", LimitKind::Outstanding, |model, by| match model {
            ModelSpec::Nic(nic) => relax_u32(&mut nic.entries, by, 4096),
            _ => None,
        })],
        ModelSpec::SimpleNic(_) => &[
            ("ring", LimitKind::Outstanding, |model, by| match model {
                ModelSpec::SimpleNic(nic) => relax_u32(&mut nic.rings.entries, by, 32_768),
                _ => None,
            }),
            ("interrupt moderation", LimitKind::Latency, |model, by| match model {
                ModelSpec::SimpleNic(nic) => relax_time(&mut nic.rings.moderation, by),
                _ => None,
            }),
        ],
        ModelSpec::Card(_) => &[
            ("Ethernet", LimitKind::Rate, |model, by| match model {
                ModelSpec::Card(card) => relax_rate(&mut card.rate, by),
                _ => None,
            }),
            ("processors behind", LimitKind::Rate, |model, by| match model {
                ModelSpec::Card(card) => relax_u16(&mut card.cores, by, 1024),
                _ => None,
            }),
            ("software's time to send, behind", LimitKind::Latency, |model, by| match model {
                ModelSpec::Card(card) => relax_time(&mut card.send, by),
                _ => None,
            }),
            ("software's time to receive, behind", LimitKind::Latency, |model, by| match model {
                ModelSpec::Card(card) => relax_time(&mut card.receive, by),
                _ => None,
            }),
            ("software's time to wake, behind", LimitKind::Latency, |model, by| match model {
                ModelSpec::Card(card) => relax_time(&mut card.wake, by),
                _ => None,
            }),
            ("buffer", LimitKind::Credits, |model, by| match model {
                ModelSpec::Card(card) => relax_count(&mut card.buffer, by, 1 << 40),
                _ => None,
            }),
        ],
        ModelSpec::Nvme(_) => &[
            ("commands' time", LimitKind::Latency, |model, by| match model {
                ModelSpec::Nvme(nvme) => relax_time(&mut nvme.config.command, by),
                _ => None,
            }),
            ("time to read a page", LimitKind::Latency, |model, by| match model {
                ModelSpec::Nvme(nvme) => relax_time(&mut nvme.config.read, by),
                _ => None,
            }),
        ],
        ModelSpec::Dma { .. }
        | ModelSpec::Memory { .. }
        | ModelSpec::Copier { .. }
        | ModelSpec::Tlpdma { .. }
        | ModelSpec::Library(_)
        | ModelSpec::Rtl(_)
        | ModelSpec::Python { .. } => &[],
    };
    all.extend(more.iter().map(|(what, kind, change)| of_model(what, *kind, *change)));
}

fn relax_u16(count: &mut u16, by: By, most: u16) -> Option<String> {
    let mut wide = u64::from(*count);
    let words = relax_count(&mut wide, by, most.into())?;
    *count = u16::try_from(wide).unwrap_or(u16::MAX);
    Some(words)
}

fn relax_u32(count: &mut u32, by: By, most: u32) -> Option<String> {
    let mut wide = u64::from(*count);
    let words = relax_count(&mut wide, by, most.into())?;
    *count = u32::try_from(wide).unwrap_or(u32::MAX);
    Some(words)
}
