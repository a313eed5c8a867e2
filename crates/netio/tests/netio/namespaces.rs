//! Two network namespaces joined by a cable, for as long as a test runs.

use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The addresses of the two ends.
pub(crate) const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];
/// Their interfaces.
pub(crate) const INTERFACES: [&str; 2] = ["tlp0", "tlp1"];

/// The namespaces.
pub(crate) struct Cable {
    names: [String; 2],
}

impl Cable {
    /// Lays the cable; `None`, with a word to the person who runs the test, where the privilege is missing.
    pub(crate) fn lay() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let names = ["a", "b"].map(|end| format!("tlp{}-{number}{end}", std::process::id()));
        for (made, name) in names.iter().enumerate() {
            if !ip(&format!("netns add {name}")) {
                remove(&names[..made]);
                assert!(
                    std::env::var_os("TLPLAB_STRICT").is_none_or(|needs| needs.is_empty()),
                    "network namespaces cannot be made here (they need root and `ip`), and TLPLAB_STRICT is set"
                );
                eprintln!("skipped: network namespaces cannot be made here (they need root and `ip`)");
                return None;
            }
        }
        let cable = Self { names };
        let [a, b] = &cable.names;
        let [here, there] = INTERFACES;
        assert!(ip(&format!("link add {here} netns {a} type veth peer name {there} netns {b}")));
        for ((name, interface), address) in cable.names.iter().zip(INTERFACES).zip(ENDS) {
            assert!(ip(&format!("-n {name} address add {address}/24 dev {interface}")));
            assert!(ip(&format!("-n {name} link set {interface} up")));
            assert!(ip(&format!("-n {name} link set lo up")));
        }
        Some(cable)
    }

    /// `ip` at one end.
    pub(crate) fn ip(&self, end: usize, arguments: &str) {
        assert!(ip(&format!("-n {} {arguments}", self.names[end])), "ip {arguments}");
    }

    /// What `work` makes at one end, 0 or 1. Sockets stay where they were opened.
    pub(crate) fn at<R: Send>(&self, end: usize, work: impl FnOnce() -> R + Send) -> R {
        let path = format!("/var/run/netns/{}", self.names[end]);
        let inside = || {
            setns(File::open(path).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
            work()
        };
        std::thread::scope(|scope| scope.spawn(inside).join().unwrap())
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        remove(&self.names);
    }
}

fn remove(names: &[String]) {
    for name in names {
        ip(&format!("netns del {name}"));
    }
}

fn ip(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split(' ')).output().is_ok_and(|output| output.status.success())
}
