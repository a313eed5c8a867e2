//! Candidates for limits in switches, bridges, buses and devices: their time for a TLP, tags, and the concurrency of models.

use super::{By, Candidate, Figures, relax_any, relax_count, relax_fewer, relax_rate, relax_time};
use crate::device_models::ModelSpec;
use crate::experiment::Experiment;
use crate::result::LimitKind;
use crate::topology::DeviceSpec;
use tlplab_fabric::attribution::Cause;
use tlplab_fabric::config::{
    BusConfig, BusDevice, BusMode, BusWidth, DeviceConfig, DeviceSelect, Forwarding, SwitchConfig,
};
use tlplab_units::{LinkMode, Mrrs};

type OfModel = fn(&mut ModelSpec, By) -> Option<String>;
type OfDevice = fn(&mut DeviceConfig, By) -> Option<String>;
type OfSwitch = fn(&mut SwitchConfig, By) -> Option<String>;
type OfBusDevice = fn(&mut BusDevice, By) -> Option<String>;

pub(super) fn candidates(experiment: &Experiment, figures: &Figures<'_>) -> Vec<Candidate> {
    let mut all = Vec::new();
    for switch in &experiment.fabric.switches {
        let busy = figures.share(&switch.name, &[Cause::Processing]);
        all.extend(of_switch(switch, "latency", LimitKind::Latency, busy, |switch, by| {
            relax_time(&mut switch.latency, by)
        }));
        all.extend(of_switch(switch, "forwarding", LimitKind::Latency, busy, |switch, by| {
            let before = std::mem::replace(&mut switch.forwarding, Forwarding::CutThrough);
            let word = match before {
                Forwarding::StoreAndForward => "store-and-forward",
                Forwarding::CutThroughUnlessFaster => "cut-through-unless-faster",
                Forwarding::CutThrough | Forwarding::HeaderChecked => return None,
            };
            (by != By::Tenth).then(|| format!("{word} → cut-through"))
        }));
        let waits = figures.share_anywhere(&[Cause::CreditWait, Cause::Replay]);
        all.extend(of_switch(switch, "port buffers", LimitKind::Credits, waits, |switch, by| {
            relax_count(switch.port_buffer.as_mut()?, by, 2048)
        }));
        let core: [(&str, LimitKind, OfSwitch); 3] = [
            ("core rate", LimitKind::Routing, |switch, by| {
                relax_rate(switch.core.as_mut()?.rate.as_mut()?, by)
            }),
            ("egress buffers", LimitKind::Credits, |switch, by| {
                relax_any(switch.core.as_mut()?.egress.as_mut()?, by, u16::MAX.into())
            }),
            ("shared buffer", LimitKind::Credits, |switch, by| {
                relax_any(switch.core.as_mut()?.shared.as_mut()?, by, u16::MAX.into())
            }),
        ];
        let busy = figures.share(&switch.name, &[Cause::Processing, Cause::Queueing]);
        for (what, kind, change) in core {
            all.extend(of_switch(switch, what, kind, busy.max(waits), change));
        }
    }
    for bus in &experiment.fabric.buses {
        buses(&mut all, figures, bus);
    }
    for device in &experiment.fabric.devices {
        let busy = figures.share(&device.name, &[Cause::Processing, Cause::Completer]);
        all.extend(of_device(device, "latency", LimitKind::Latency, busy, |device, by| {
            relax_time(&mut device.latency, by)
        }));
        all.extend(of_device(
            device,
            "tags",
            LimitKind::Tags,
            figures.tag_wait(&device.name),
            |device, by| {
                // 14-bit tags exist in flit mode only.
                relax_count(
                    &mut device.tags,
                    by,
                    if device.link.mode == LinkMode::Flit { 15_360 } else { 768 },
                )
            },
        ));
        let waits = figures.tag_wait(&device.name);
        all.extend(of_device(
            device,
            "maximum read request size",
            LimitKind::Outstanding,
            waits * 0.9,
            |device, by| {
                let sizes = Mrrs::ALL;
                let before = device.mrrs;
                let at = sizes.iter().position(|size| *size == before)?;
                device.mrrs = match by {
                    By::Tenth => return None,
                    By::Twice => *sizes.get(at + 1)?,
                    By::Gone => *sizes.last().filter(|largest| largest.bytes() > before.bytes())?,
                };
                Some(format!("{} B → {} B", before.bytes(), device.mrrs.bytes()))
            },
        ));
        let waits = figures.translation_wait(&device.name);
        let translations: [(&str, OfDevice); 2] = [
            ("kept translations", |device, by| relax_any(&mut device.ats.as_mut()?.entries, by, 4096)),
            ("translations asked for at once", |device, by| {
                let ats = device.ats.as_mut()?;
                relax_count(&mut ats.outstanding, by, ats.entries.into())
            }),
        ];
        for (what, change) in translations {
            all.extend(of_device(device, what, LimitKind::Latency, waits, change));
        }
        all.extend(of_device(device, "relaxed ordering", LimitKind::Latency, 0.0, |device, by| {
            let ordered = !std::mem::replace(&mut device.relaxed_ordering, true);
            (ordered && by != By::Tenth).then(|| "off → on".to_owned())
        }));
        all.extend(of_device(device, "time to be ready", LimitKind::Latency, 0.0, |device, by| {
            relax_time(&mut device.ready, by)
        }));
        // Where nothing fails, no time limit has ended.
        if figures.document.flows.iter().any(|flow| crate::verdict::failures(flow) > 0) {
            all.extend(of_device(device, "completion timeout", LimitKind::Latency, 0.9, |device, by| {
                relax_time(&mut device.completion_timeout, by).filter(|_| by != By::Gone)
            }));
        }
        let on_bus = figures.share_anywhere(&[Cause::WaitState, Cause::DeviceSelect, Cause::Arbitration]);
        let of_bus: [(&str, OfBusDevice); 3] = [
            ("device select", |bus, by| select_faster(&mut bus.device_select, by)),
            ("wait states", |bus, by| relax_fewer(&mut bus.wait_states, by, 0)),
            ("overhead", |bus, by| relax_fewer(&mut bus.overhead, by, 0)),
        ];
        for (of_bus, change) in of_bus {
            all.extend(of_device(device, of_bus, LimitKind::Bus, on_bus, move |device, by| {
                change(device.bus.as_mut()?, by)
            }));
        }
        all.extend(of_device(device, "answers to writes", LimitKind::Latency, busy, |device, by| {
            let non_posted = !std::mem::replace(&mut device.posted_writes, true);
            (non_posted && by != By::Tenth).then(|| "non-posted → posted".to_owned())
        }));
    }
    for spec in &experiment.devices {
        models(&mut all, figures, spec);
    }
    all
}

fn of_switch(
    switch: &SwitchConfig,
    what: &str,
    kind: LimitKind,
    suspicion: f64,
    change: fn(&mut SwitchConfig, By) -> Option<String>,
) -> Option<Candidate> {
    let name = switch.name.clone();
    let resource = format!("{what} of {}", switch.name);
    Candidate::of_part(
        resource,
        kind,
        suspicion,
        switch,
        move |experiment: &mut Experiment| {
            experiment.fabric.switches.iter_mut().find(|switch| switch.name == name)
        },
        change,
    )
}

fn of_device(
    device: &DeviceConfig,
    what: &str,
    kind: LimitKind,
    suspicion: f64,
    change: impl Fn(&mut DeviceConfig, By) -> Option<String> + Send + Sync + 'static,
) -> Option<Candidate> {
    let name = device.name.clone();
    let resource = format!("{what} of {}", device.name);
    Candidate::of_part(
        resource,
        kind,
        suspicion,
        device,
        move |experiment: &mut Experiment| {
            experiment.fabric.devices.iter_mut().find(|device| device.name == name)
        },
        change,
    )
}

/// A parallel bus: its clock, its lines, and what its bridge takes and holds.
fn buses(all: &mut Vec<Candidate>, figures: &Figures<'_>, bus: &BusConfig) {
    let name = &bus.name;
    let of_bus = |resource: String, kind, suspicion, change: fn(&mut BusConfig, By) -> Option<String>| {
        let name = name.clone();
        Candidate::of_part(
            resource,
            kind,
            suspicion,
            bus,
            move |experiment: &mut Experiment| {
                experiment.fabric.buses.iter_mut().find(|bus| bus.name == name)
            },
            change,
        )
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
    all.extend(of_bus(format!("bus {name}"), LimitKind::Bus, busy, |bus, by| {
        let before = bus.mode;
        bus.mode = match (by, before) {
            (By::Twice, BusMode::Pci33) => BusMode::Pci66,
            (By::Twice | By::Gone, BusMode::PciX66 | BusMode::PciX100) => BusMode::PciX133,
            (By::Gone, BusMode::Pci33) => BusMode::Pci66,
            _ => return None,
        };
        Some(format!("{} → {}", before.name(), bus.mode.name()))
    }));
    all.extend(of_bus(format!("bus {name}"), LimitKind::Bus, busy, |bus, by| {
        let wider = by != By::Tenth && bus.width == BusWidth::Bits32;
        bus.width = BusWidth::Bits64;
        wider.then(|| "32 → 64 bits".to_owned())
    }));
    let bridge = figures.share(name, &[Cause::Processing]);
    all.extend(of_bus(format!("latency of {name}"), LimitKind::Latency, bridge, |bus, by| {
        relax_time(&mut bus.bridge.latency, by)
    }));
    all.extend(of_bus(format!("synchronisation of {name}"), LimitKind::Latency, bridge, |bus, by| {
        relax_time(&mut bus.bridge.synchronisation, by)
    }));
    all.extend(of_bus(format!("overhead of {name}"), LimitKind::Bus, busy * 0.5, |bus, by| {
        relax_fewer(&mut bus.bridge.overhead, by, 0)
    }));
    all.extend(of_bus(format!("device select of {name}"), LimitKind::Bus, busy * 0.5, |bus, by| {
        select_faster(&mut bus.bridge.device_select, by)
    }));
    let retries = figures.share_anywhere(&[Cause::Retry]);
    all.extend(of_bus(format!("posted requests of {name}"), LimitKind::Credits, retries, |bus, by| {
        relax_count(&mut bus.bridge.posted, by, 1024)
    }));
    all.extend(of_bus(format!("reads of {name}"), LimitKind::Credits, retries, |bus, by| {
        relax_count(&mut bus.bridge.reads, by, 1024)
    }));
}

/// Claims a clock sooner, or as soon as there is.
fn select_faster(select: &mut DeviceSelect, by: By) -> Option<String> {
    let before = *select;
    *select = match (by, before) {
        (By::Tenth, _) | (_, DeviceSelect::Fast) => return None,
        (By::Twice, DeviceSelect::Slow) => DeviceSelect::Medium,
        _ => DeviceSelect::Fast,
    };
    Some(format!("{} → {} clocks", before.clocks(), select.clocks()))
}

/// The concurrency of the models of devices, and their times.
fn models(all: &mut Vec<Candidate>, figures: &Figures<'_>, spec: &DeviceSpec) {
    let of_model = |what: &str, kind, change: OfModel| {
        let device = spec.name.clone();
        // No part of the fabric waits for a network.
        let least = if kind == LimitKind::Rate { 0.5 } else { 0.0 };
        let suspicion = figures.share(&device, &[Cause::Processing, Cause::Completer]).max(least);
        let resource = format!("{what} of {device}");
        Candidate::of_part(
            resource,
            kind,
            suspicion,
            &spec.model,
            move |experiment: &mut Experiment| {
                let spec = experiment.devices.iter_mut().find(|spec| spec.name == device);
                spec.map(|spec| &mut spec.model)
            },
            change,
        )
    };
    let more: &[(&str, LimitKind, OfModel)] = match &spec.model {
        ModelSpec::Ring(_) => &[
            ("descriptors under way", LimitKind::Outstanding, |model, by| match model {
                ModelSpec::Ring(ring) => relax_count(&mut ring.depth, by, 65_536),
                _ => None,
            }),
            ("descriptors fetched at once", LimitKind::Outstanding, |model, by| match model {
                ModelSpec::Ring(ring) => relax_count(&mut ring.batch, by, 256),
                _ => None,
            }),
            ("ring", LimitKind::Outstanding, |model, by| match model {
                ModelSpec::Ring(ring) => relax_count(&mut ring.entries, by, 65_536),
                _ => None,
            }),
            ("descriptors to an interrupt", LimitKind::Latency, |model, by| match model {
                ModelSpec::Ring(ring) => {
                    let mut every = u16::try_from(ring.interrupt_every).unwrap_or(u16::MAX);
                    let words = relax_fewer(&mut every, by, 1)?;
                    ring.interrupt_every = every.into();
                    Some(words)
                }
                _ => None,
            }),
        ],
        ModelSpec::Storage(_) => &[
            ("access time", LimitKind::Latency, |model, by| match model {
                ModelSpec::Storage(storage) => relax_time(&mut storage.access, by),
                _ => None,
            }),
            ("sectors in flight", LimitKind::Outstanding, |model, by| match model {
                ModelSpec::Storage(storage) => relax_count(&mut storage.sectors_in_flight, by, 256),
                _ => None,
            }),
        ],
        ModelSpec::Nic(_) => &[
            ("Ethernet", LimitKind::Rate, |model, by| match model {
                ModelSpec::Nic(nic) => relax_rate(&mut nic.ethernet, by),
                _ => None,
            }),
            ("ring", LimitKind::Outstanding, |model, by| match model {
                ModelSpec::Nic(nic) => relax_count(&mut nic.entries, by, 4096),
                _ => None,
            }),
        ],
        ModelSpec::SimpleNic(_) => &[
            ("Ethernet", LimitKind::Rate, |model, by| match model {
                ModelSpec::SimpleNic(nic) => relax_rate(&mut nic.ethernet, by),
                _ => None,
            }),
            ("ring", LimitKind::Outstanding, |model, by| match model {
                ModelSpec::SimpleNic(nic) => relax_count(&mut nic.rings.entries, by, 32_768),
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
            ("processors of the software", LimitKind::Rate, |model, by| match model {
                ModelSpec::Card(card) => relax_count(&mut card.cores, by, 1024),
                _ => None,
            }),
            ("time to send of the software", LimitKind::Latency, |model, by| match model {
                ModelSpec::Card(card) => relax_time(&mut card.send, by),
                _ => None,
            }),
            ("time to receive of the software", LimitKind::Latency, |model, by| match model {
                ModelSpec::Card(card) => relax_time(&mut card.receive, by),
                _ => None,
            }),
            ("time to wake of the software", LimitKind::Latency, |model, by| match model {
                ModelSpec::Card(card) => relax_time(&mut card.wake, by),
                _ => None,
            }),
            ("buffer", LimitKind::Credits, |model, by| match model {
                ModelSpec::Card(card) => relax_count(&mut card.buffer, by, 1 << 40),
                _ => None,
            }),
            ("queue of the software", LimitKind::Credits, |model, by| match model {
                ModelSpec::Card(card) => relax_count(&mut card.queue, by, u32::MAX.into()),
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
            ("time to program a page", LimitKind::Latency, |model, by| match model {
                ModelSpec::Nvme(nvme) => relax_time(&mut nvme.config.program, by),
                _ => None,
            }),
            ("channels", LimitKind::Outstanding, |model, by| match model {
                ModelSpec::Nvme(nvme) => relax_count(&mut nvme.config.channels, by, 65_536),
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
    all.extend(more.iter().filter_map(|(what, kind, change)| of_model(what, *kind, *change)));
}
