//! The neighbours on a link: interfaces here, Ethernet addresses there.
//!
//! Address resolution is the kernel's: a datagram to the peer makes it ask, and its table then has the answer.

use super::error::Error;
use super::frame::Mac;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::LinkAddr;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

/// The time that the kernel has to find a peer.
const PATIENCE: Duration = Duration::from_secs(1);
/// The discard service: nobody is disturbed by a datagram to it.
const DISCARD: u16 = 9;

/// An interface of this machine.
#[derive(Clone, Debug)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) link: LinkAddr,
    pub(super) mac: Mac,
    pub(super) loopback: bool,
}

impl Interface {
    /// The one that has the address, or that has the name and the address.
    pub(super) fn find(name: Option<&str>, local: Ipv4Addr) -> Result<Self, Error> {
        let all = || getifaddrs().map_err(|source| Error::io("list the network interfaces", source));
        let has_address = all()?
            .filter(|i| i.address.and_then(|a| a.as_sockaddr_in().map(|a| a.ip())) == Some(local))
            .map(|i| i.interface_name)
            .find(|found| name.is_none_or(|name| name == found));
        // The whole of 127/8 is the loopback's.
        let lo = || local.is_loopback().then(|| name.unwrap_or("lo").to_owned());
        let Some(name) = has_address.or_else(lo) else {
            return Err(match name {
                Some(name) => Error::Setup(format!(
                    "interface {name} does not have the address {local}: `ip address show {name}` lists its addresses"
                )),
                None => Error::NotLocal { address: local },
            });
        };
        let found = all()?.filter(|i| i.interface_name == name).find_map(|i| {
            let link = *i.address?.as_link_addr()?;
            let loopback = i.flags.contains(InterfaceFlags::IFF_LOOPBACK);
            Some(Self { name: i.interface_name, link, mac: link.addr()?, loopback })
        });
        found.ok_or_else(|| Error::Setup(format!("interface {name} is not an Ethernet interface")))
    }

    /// The Ethernet address of `peer` on this link; `None` if nobody says that it is there.
    pub(super) fn resolve(&self, local: Ipv4Addr, peer: Ipv4Addr, patience: Patience) -> Option<Mac> {
        let until = Instant::now() + PATIENCE;
        let socket = UdpSocket::bind((local, 0)).ok()?;
        socket.send_to(&[], (peer, DISCARD)).ok()?;
        loop {
            // Of this thread: it may be in a network namespace of its own.
            let table = std::fs::read_to_string("/proc/thread-self/net/arp").ok()?;
            let found = look_up(&table, &self.name, peer);
            if found.is_some() || patience == Patience::None || Instant::now() >= until {
                return found;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The time to wait for an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// Not at all: the question is asked, and next time there may be an answer.
    None,
    /// A second.
    Some,
}

/// Finds an address in the kernel's table (`/proc/net/arp`).
fn look_up(table: &str, interface: &str, peer: Ipv4Addr) -> Option<Mac> {
    const COMPLETE: u32 = 2;
    table.lines().skip(1).find_map(|line| {
        let [address, _type, flags, mac, _mask, device] =
            line.split_whitespace().collect::<Vec<_>>().try_into().ok()?;
        let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok()?;
        let here = device == interface && address.parse() == Ok(peer) && flags & COMPLETE != 0;
        let bytes =
            mac.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect::<Option<Vec<_>>>()?;
        if here { bytes.try_into().ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_read() {
        let table = "IP address       HW type     Flags       HW address            Mask     Device\n\
                     10.0.0.2         0x1         0x2         02:00:00:00:00:aa     *        veth0\n\
                     10.0.0.3         0x1         0x0         00:00:00:00:00:00     *        veth0\n\
                     10.0.0.2         0x1         0x6         02:00:00:00:00:bb     *        veth1\n";
        let address = |last| Ipv4Addr::new(10, 0, 0, last);
        assert_eq!(look_up(table, "veth0", address(2)), Some([2, 0, 0, 0, 0, 0xaa]));
        assert_eq!(look_up(table, "veth1", address(2)), Some([2, 0, 0, 0, 0, 0xbb]));
        assert_eq!(look_up(table, "veth0", address(3)), None, "not complete");
        assert_eq!(look_up(table, "veth0", address(4)), None);
        assert_eq!(look_up("", "veth0", address(2)), None);
    }
}
