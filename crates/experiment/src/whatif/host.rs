//! Candidates for limits in the host: the root complex, its memory and the stages before it, its processor's tags.

use super::{
    By, Candidate, Figures, lengthen_time, relax_any, relax_count, relax_quantiles, relax_rate, relax_time,
};
use crate::experiment::Experiment;
use crate::result::LimitKind;
use crate::verdict::PAGE_WALKS;
use tlplab_fabric::attribution::Cause;
use tlplab_fabric::config::{
    DomainConfig, HostConfig, HostStageConfig, IommuConfig, LARGEST_CACHE, PeerToPeer, TablesConfig,
};
use tlplab_transaction::CompletionPolicy;

/// The largest number of entries, reads, tags and the like.
const MOST: u64 = u16::MAX as u64;

type OfHost = fn(&mut HostConfig, By) -> Option<String>;
type OfStage = fn(&mut HostConfig) -> &mut Option<HostStageConfig>;

fn tables(host: &mut HostConfig) -> Option<&mut TablesConfig> {
    host.iommu.as_mut()?.tables.as_mut()
}

pub(super) fn candidates(experiment: &Experiment, figures: &Figures<'_>) -> Vec<Candidate> {
    let host = &experiment.fabric.host;
    let mut all = Vec::new();
    let mut add = |resource: &str, kind, suspicion: f64, change: OfHost| {
        all.extend(of_host(host, resource, kind, suspicion, change));
    };
    let work = [Cause::Processing, Cause::Completer];
    add("latency of host", LimitKind::Latency, figures.share("host", &work[..1]), |host, by| {
        relax_time(&mut host.latency, by)
    });
    let memory = figures.share("host", &[Cause::Completer]);
    add("latency of host memory", LimitKind::Memory, memory, |host, by| {
        relax_time(&mut host.memory.latency, by)
    });
    let queued = figures.share("host", &[Cause::Completer, Cause::Queueing]);
    add("memory of host", LimitKind::Memory, queued, |host, by| {
        relax_rate(host.memory.bandwidth.as_mut()?, by)
    });
    let waits = figures.share("host", &[Cause::Queueing]);
    add("reads of host", LimitKind::Memory, waits, |host, by| relax_any(host.reads.as_mut()?, by, MOST));
    add("write interval of host", LimitKind::Memory, queued, |host, by| {
        relax_time(&mut host.write_interval, by)
    });
    add("write turnaround of host", LimitKind::Latency, waits, |host, by| {
        relax_time(host.write_turnaround.as_mut()?, by)
    });
    add("line interval of host", LimitKind::Memory, memory, |host, by| {
        relax_time(host.line_interval.as_mut()?, by)
    });
    add("commit time of host", LimitKind::Memory, memory, |host, by| relax_time(&mut host.commit, by));
    add("way to the other node of host", LimitKind::Memory, figures.share("host.numa", &work), |host, by| {
        relax_time(&mut host.numa.as_mut()?.hop, by)
    });
    let tags = figures.share("host", &[Cause::TagWait]);
    add("tags of host", LimitKind::Tags, tags, |host, by| relax_any(&mut host.tags, by, MOST));
    let credits = figures.share_anywhere(&[Cause::CreditWait, Cause::Replay]);
    add("port buffers of host", LimitKind::Credits, credits, |host, by| {
        relax_any(host.port_buffer.as_mut()?, by, MOST)
    });
    let walks = figures.share("host.iommu", &[Cause::Completer, Cause::Processing, Cause::Queueing]);
    let iommu: [(&str, OfHost); 6] = [
        ("page size of the IOMMU of host", |host, by| larger_page(&mut host.iommu.as_mut()?.page, by)),
        ("IO-TLB entries of host", |host, by| more_entries(host.iommu.as_mut()?, by)),
        ("time of reading a table of host", |host, by| relax_time(&mut tables(host)?.step, by)),
        ("table entries kept by host", |host, by| relax_any(&mut tables(host)?.entries, by, 4096)),
        ("second-stage translations kept by host", |host, by| {
            let tables = tables(host)?;
            if tables.nested == 0 { None } else { relax_any(&mut tables.nested_entries, by, 4096) }
        }),
        ("second stage of host", |host, by| {
            let before = std::mem::take(&mut tables(host)?.nested);
            (before > 0 && by == By::Gone).then(|| "none".to_owned())
        }),
    ];
    for (resource, change) in iommu {
        add(resource, LimitKind::Memory, walks, change);
    }
    // Of a measured host: its cache, its other node, what its reads take longer at random, when it sleeps.
    let measured: [(&str, OfHost); 14] = [
        ("hit time of the cache of host", |host, by| relax_time(&mut host.cache.as_mut()?.hit, by)),
        ("snoop time of host", |host, by| relax_time(&mut host.cache.as_mut()?.snoop, by)),
        ("write allocation of host", |host, by| relax_time(&mut host.cache.as_mut()?.write_allocate, by)),
        ("cache of host", |host, by| relax_count(&mut host.cache.as_mut()?.size, by, LARGEST_CACHE)),
        ("DDIO ways of host", |host, by| {
            let cache = host.cache.as_mut()?;
            relax_count(&mut cache.ddio_ways, by, cache.ways.into())
        }),
        ("write allocation of the other node of host", |host, by| {
            relax_time(host.numa.as_mut()?.write_allocate.as_mut()?, by)
        }),
        ("jitter of host", |host, by| relax_quantiles(&mut host.jitter.as_mut()?.quantiles, by)),
        ("jitter of host memory", |host, by| relax_quantiles(&mut host.jitter.as_mut()?.memory, by)),
        ("time to wake of host", |host, by| relax_quantiles(&mut host.sleep.as_mut()?.wake, by)),
        ("time to wake from dozing of host", |host, by| relax_quantiles(&mut host.sleep.as_mut()?.doze, by)),
        ("time until host sleeps", |host, by| lengthen_time(&mut host.sleep.as_mut()?.after, by)),
        ("time until host dozes", |host, by| lengthen_time(&mut host.sleep.as_mut()?.doze_after, by)),
        ("time between stalls of host", |host, by| lengthen_time(&mut host.stall.as_mut()?.every, by)),
        ("stalls of host", |host, by| relax_time(&mut host.stall.as_mut()?.lasts, by)),
    ];
    for (resource, change) in measured {
        add(resource, LimitKind::Memory, memory, change);
    }
    let policies: [(&str, OfHost); 2] = [
        ("completions of host", |host, by| {
            let before = std::mem::replace(&mut host.completions, CompletionPolicy::Max);
            (by != By::Tenth && before != CompletionPolicy::Max).then(|| "as long as MPS allows".to_owned())
        }),
        ("peer-to-peer of host", |host, by| {
            let before = std::mem::replace(&mut host.peer_to_peer, PeerToPeer::Forward);
            (by != By::Tenth && matches!(before, PeerToPeer::Split(_)))
                .then(|| "split → as they are".to_owned())
        }),
    ];
    for (resource, change) in policies {
        add(resource, LimitKind::Latency, queued * 0.5, change);
    }
    if figures.document.flows.iter().any(|flow| crate::verdict::failures(flow) > 0) {
        add("completion timeout of host", LimitKind::Latency, 0.5, |host, by| {
            relax_time(&mut host.completion_timeout, by).filter(|_| by != By::Gone)
        });
    }
    all.extend(page_walks(host, walks));
    let stages: [(&str, OfStage); 3] = [
        ("io_cache", |host| &mut host.io_cache),
        ("memory_bus", |host| &mut host.memory_bus),
        ("bridge", |host| &mut host.bridge),
    ];
    for (name, of) in stages {
        stage(&mut all, figures, name, of, of(&mut host.clone()).as_ref());
    }
    host.domains.iter().for_each(|built| domain(&mut all, figures, built));
    all.iter_mut().for_each(|candidate| candidate.of_host = true);
    all
}

fn of_host(
    host: &HostConfig,
    resource: &str,
    kind: LimitKind,
    suspicion: f64,
    change: OfHost,
) -> Option<Candidate> {
    Candidate::of_part(
        resource.to_owned(),
        kind,
        suspicion,
        host,
        |experiment: &mut Experiment| Some(&mut experiment.fabric.host),
        change,
    )
}

/// The page walks of the figures have several properties: their number at once, and the duration of each.
fn page_walks(host: &HostConfig, suspicion: f64) -> Vec<Candidate> {
    let all: [(&str, OfHost); 3] = [
        (PAGE_WALKS, |host, by| relax_any(host.iommu.as_mut()?.walkers.as_mut()?, by, MOST)),
        ("time of a page walk of host", |host, by| {
            let iommu = host.iommu.as_mut()?;
            if iommu.tables.is_some() { None } else { relax_time(&mut iommu.walk, by) }
        }),
        ("time between page walks of host", |host, by| relax_time(&mut host.iommu.as_mut()?.interval, by)),
    ];
    let one = |(resource, change): (&str, OfHost)| {
        let candidate = of_host(host, resource, LimitKind::Memory, suspicion, change)?;
        Some(Candidate { in_figures: Some(PAGE_WALKS), ..candidate })
    };
    all.into_iter().filter_map(one).collect()
}

/// A part of the host that traffic between root ports leaves and enters.
fn domain(all: &mut Vec<Candidate>, figures: &Figures<'_>, built: &DomainConfig) {
    let share = |side: &str| figures.share(&format!("host.{}.{side}", built.name), &Cause::ALL);
    let suspicion = share("exit") + share("entrance");
    let mut add = |what: &str, change: fn(&mut DomainConfig, By) -> Option<String>| {
        let (resource, name) = (format!("{what} of host.{}", built.name), built.name.clone());
        all.extend(Candidate::of_part(
            resource,
            LimitKind::Routing,
            suspicion,
            built,
            move |experiment: &mut Experiment| {
                experiment.fabric.host.domains.iter_mut().find(|domain| domain.name == name)
            },
            change,
        ));
    };
    add("latency", |domain, by| relax_time(&mut domain.latency, by));
    add("rate", |domain, by| relax_rate(domain.rate.as_mut()?, by));
    add("entries", |domain, by| relax_any(domain.entries.as_mut()?, by, MOST));
}

/// A stage between root complex, memory and processor.
fn stage(
    all: &mut Vec<Candidate>,
    figures: &Figures<'_>,
    name: &str,
    of: OfStage,
    built: Option<&HostStageConfig>,
) {
    let Some(built) = built else { return };
    let suspicion = figures.share(&format!("host.{name}"), &Cause::ALL);
    let mut add = |what: &str, change: fn(&mut HostStageConfig, By) -> Option<String>| {
        let resource = format!("{what} of host.{name}");
        all.extend(Candidate::of_part(
            resource,
            LimitKind::Memory,
            suspicion,
            built,
            move |experiment: &mut Experiment| of(&mut experiment.fabric.host).as_mut(),
            change,
        ));
    };
    add("latency", |stage, by| relax_time(&mut stage.latency, by));
    add("rate", |stage, by| relax_rate(stage.rate.as_mut()?, by));
    add("entries", |stage, by| relax_any(stage.entries.as_mut()?, by, MOST));
}

fn more_entries(iommu: &mut IommuConfig, by: By) -> Option<String> {
    relax_any(&mut iommu.entries, by, MOST)
}

/// The next larger page that tables can have; the largest, if pages are not to limit.
fn larger_page(page: &mut u64, by: By) -> Option<String> {
    let sizes = [(4 << 10, "4 KiB"), (2 << 20, "2 MiB"), (1 << 30, "1 GiB")];
    let mut larger = sizes.iter().filter(|(bytes, _)| *bytes > *page);
    let (bytes, name) = if by == By::Gone { larger.next_back()? } else { larger.next()? };
    let before = sizes.iter().find(|(bytes, _)| *bytes == *page).map_or("other pages", |(_, name)| name);
    *page = *bytes;
    Some(format!("{before} → {name}"))
}
