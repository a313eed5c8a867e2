//! Max_Payload_Size of each port as software sets it: what every port of a hierarchy can, or what those on the way to the root port can.

use super::{LinkConfig, MpsPolicy};
use std::collections::BTreeMap;
use tlplab_units::Mps;

/// Payloads of the two ports of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payloads {
    /// Of the port at the parent's end.
    pub upper: Mps,
    /// Of the port at the component's end.
    pub lower: Mps,
}

impl Payloads {
    /// The payload sizes that both ports of a link support.
    pub(crate) fn supported(link: &LinkConfig) -> Self {
        let of = |port: Option<Mps>| port.unwrap_or(link.mps);
        Self { upper: of(link.upper.max_payload), lower: of(link.lower.max_payload) }
    }

    fn least(self) -> Mps {
        self.upper.min(self.lower)
    }
}

/// The sizes that software sets, by the component below each link, if these are all links and each one's parent is above one of them, or is the root complex.
pub fn payloads<'c>(
    policy: MpsPolicy,
    links: &BTreeMap<&'c str, &'c LinkConfig>,
) -> BTreeMap<&'c str, Payloads> {
    let mut least: BTreeMap<&str, Mps> = BTreeMap::new();
    for (name, link) in links {
        let slot = least.entry(way_up(links, name)[0]).or_insert(Mps::ALL[5]);
        *slot = (*slot).min(Payloads::supported(link).least());
    }
    let set = |name: &str| match policy {
        MpsPolicy::Common(most) => {
            let all = least[way_up(links, name)[0]].min(most);
            Payloads { upper: all, lower: all }
        }
        MpsPolicy::Smallest => Payloads { upper: Mps::ALL[0], lower: Mps::ALL[0] },
        MpsPolicy::Upward => {
            let mut above = Mps::ALL[5];
            let mut set = Payloads { upper: above, lower: above };
            for component in way_up(links, name).into_iter().skip(1) {
                let own = Payloads::supported(links[component]);
                let upper = own.upper.min(above);
                above = own.lower.min(upper);
                set = Payloads { upper, lower: above };
            }
            set
        }
    };
    links.keys().map(|name| (*name, set(name))).collect()
}

/// From the root port above a component to the component itself.
fn way_up<'c>(links: &BTreeMap<&'c str, &'c LinkConfig>, name: &'c str) -> Vec<&'c str> {
    let mut way = vec![name];
    let mut at = name;
    // Ways that never end are refused elsewhere.
    for _ in 0..=links.len() {
        let Some(link) = links.get(at) else { break };
        at = link.under.as_str();
        way.push(at);
    }
    way.reverse();
    way
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlplab_units::{Generation, Width};

    fn link(under: &str, mps: u32, upper: Option<u32>) -> LinkConfig {
        let size = |bytes| Mps::new(bytes).unwrap();
        let mut link = LinkConfig::new(under, Generation::Gen3, Width::ALL[0]);
        (link.mps, link.upper.max_payload) = (size(mps), upper.map(size));
        link
    }

    /// A switch of 512 B with an uplink of which the root port has 1 KiB; below it a device of 256 B, and one of 512 B below a port of 256 B.
    #[test]
    fn mps_policies_set_each_port_within_its_limit() {
        let all = [
            ("sw", link("host.rp0", 512, Some(1024))),
            ("a", link("sw", 256, Some(512))),
            ("b", link("sw", 512, Some(256))),
            ("alone", link("host.rp1", 512, None)),
        ];
        let links: BTreeMap<_, _> = all.iter().map(|(name, link)| (*name, link)).collect();
        let found = |policy| {
            let set = payloads(policy, &links);
            ["sw", "a", "b", "alone"].map(|name| (set[name].upper.bytes(), set[name].lower.bytes()))
        };
        let common = |most| found(MpsPolicy::Common(Mps::new(most).unwrap()));
        assert_eq!(common(4096), [(256, 256), (256, 256), (256, 256), (512, 512)]);
        assert_eq!(common(128), [(128, 128); 4]);
        assert_eq!(found(MpsPolicy::Smallest), [(128, 128); 4]);
        assert_eq!(found(MpsPolicy::Upward), [(1024, 512), (512, 256), (256, 256), (512, 512)]);
    }
}
