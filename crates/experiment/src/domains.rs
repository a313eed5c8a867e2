//! `host.domain`: quadrants of an I/O die, sockets, which what goes between root ports leaves and enters.

use crate::error::{Error, Problem, suggest};
use crate::keys::Kind;
use crate::section::{Section, Set, row};
use crate::topology::Topology;
use crate::view::View;
use std::collections::BTreeMap;
use tlplab_fabric::config::{DomainConfig, HostConfig, PeerToPeer};

/// `host.domain.NAME`
pub(crate) static DOMAIN: Section<DomainConfig> = Section {
    title: "a domain",
    extra: None,
    rows: &[
        row(
            ("ports", Kind::List(&Kind::Text), "", r#"["host.rp0"]"#),
            "The root ports that are in it. Between them TLPs go straight.",
            Set::Texts(|domain, it| domain.ports = it),
        ),
        row(
            ("under", Kind::Text, "", r#""socket0""#),
            "The domain that it is in. Absent: none.",
            Set::Text(|domain, it| domain.under = Some(it)),
        ),
        row(
            ("rate", Kind::Rate, "", r#""512Gb/s""#),
            "Rate at which TLPs, headers and data, leave it, and at which they enter it. Absent: no limit.",
            Set::Rate(|domain, it| domain.rate = Some(it)),
        ),
        row(
            ("latency", Kind::Time, r#""0s""#, r#""60ns""#),
            "Time to leave it, and to enter it.",
            Set::Time(|domain, it| domain.latency = it),
        ),
        row(
            ("entries", Kind::Integer { min: 1, max: 4096 }, "", "32"),
            "TLPs that have left or entered it and still wait; at this number it accepts no further TLP. Absent: no limit.",
            Set::U16(|domain, it| domain.entries = Some(it)),
        ),
    ],
};

/// The domains of the host, above which `topology` has been read.
pub(crate) fn read(
    root: &View<'_>,
    host: &HostConfig,
    topology: &Topology,
) -> Result<Vec<DomainConfig>, Error> {
    let Some(all) = root.get("host").and_then(|host| host.get("domain")) else { return Ok(Vec::new()) };
    if matches!(host.peer_to_peer, PeerToPeer::Split(_)) {
        let problem = Problem::new("requests that the root complex splits cannot pass domains");
        return Err(all.key_error(problem.hint("write p2p = \"forward\"")));
    }
    let entries = all.entries().find_map(|(_, domain)| domain.get("entries"));
    if let (Some(entries), Some(_)) = (entries, host.write_turnaround) {
        let problem = Problem::new("a domain has entries, and the host a write_turnaround");
        return Err(
            entries.key_error(problem.hint("both set where writes to another root port wait: leave one out"))
        );
    }
    let mut domains = Vec::new();
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    for (name, written) in all.entries() {
        let domain = DOMAIN.read_into(&written, DomainConfig::new(name))?;
        for port in written.get("ports").iter().flat_map(View::items) {
            check_port(&port, topology)?;
            if let Some(other) = taken.insert(port.text().to_owned(), name) {
                return Err(port.error(format!("{} is in \"{other}\" already", port.text())));
            }
        }
        if let Some(under) = written.get("under")
            && all.get(under.text()).is_none()
        {
            let hint = suggest(under.text(), all.entries().map(|(name, _)| name), "the domains");
            let problem = Problem::new(format!("there is no domain \"{}\"", under.text()));
            return Err(under.problem(problem.hint(hint)));
        }
        check_loop(&all, name, &written)?;
        domains.push(domain);
    }
    Ok(domains)
}

/// The domain that memory is in.
pub(crate) fn of_memory(root: &View<'_>, host: &HostConfig) -> Result<Option<String>, Error> {
    let Some(host_view) = root.get("host") else { return Ok(None) };
    let Some(said) = host_view.get("memory").and_then(|memory| memory.get("domain")) else { return Ok(None) };
    let all = host_view.get("domain");
    let names = || all.iter().flat_map(View::entries).map(|(name, _)| name);
    if !names().any(|name| name == said.text()) {
        let problem = Problem::new(format!("there is no domain \"{}\"", said.text()));
        let hint = match names().next() {
            Some(_) => suggest(said.text(), names(), "the domains"),
            None => format!("for example [host.domain.{}] with ports = [\"host.rp0\"]", said.text()),
        };
        return Err(said.problem(problem.hint(hint)));
    }
    if host.line_interval.is_some() {
        let problem = Problem::new("completions that come line by line cannot pass domains");
        return Err(said.key_error(problem.hint("leave host.line_interval out, or this key")));
    }
    Ok(Some(said.text().to_owned()))
}

fn check_port(port: &View<'_>, topology: &Topology) -> Result<(), Error> {
    let switches = topology.switches.iter().map(|switch| &switch.uplink);
    let links = switches.chain(topology.buses.iter().map(|bus| &bus.uplink));
    let links = links.chain(topology.devices.iter().map(|device| &device.link));
    let mut used = links.map(|link| link.under.as_str()).filter(|under| under.starts_with("host."));
    if used.clone().any(|under| under == port.text()) {
        return Ok(());
    }
    let first = used.next().unwrap_or("host.rp0");
    let problem = Problem::new(format!("nothing is under \"{}\"", port.text()));
    Err(port.problem(problem.hint(format!("name root ports with something below, such as \"{first}\""))))
}

fn check_loop(all: &View<'_>, name: &str, domain: &View<'_>) -> Result<(), Error> {
    let mut way = vec![name.to_owned()];
    let mut under = domain.get("under").map(|under| under.text().to_owned());
    while let Some(above) = under {
        way.push(above.clone());
        if above == name {
            let problem = Problem::new(format!("this makes a loop: {}", way.join(" under ")));
            return Err(domain.problem(problem.hint("one of them is in no other: leave its under out")));
        }
        if way.len() > all.entries().count() + 1 {
            break;
        }
        under = all.get(&above).and_then(|view| view.get("under")).map(|under| under.text().to_owned());
    }
    Ok(())
}
