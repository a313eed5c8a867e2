//! The detection of a virtual machine, by its own signs and by the times of its reads.
//!
//! In one, a read of configuration space is no read of a bus: the processor leaves the guest, and a program answers. That takes
//! microseconds, the same for every function, so a difference of two such reads is the hypervisor's and not a link's.

use super::sysfs::{Function, attribute};
use std::path::Path;

/// The maker and the product in the firmware of virtual machines; empty where any will do.
const MAKERS: [(&str, &str); 12] = [
    ("QEMU", ""),
    ("VMware", ""),
    ("innotek", ""),
    ("Xen", ""),
    ("Bochs", ""),
    ("Parallels", ""),
    ("Alibaba Cloud", ""),
    ("OpenStack", ""),
    ("DigitalOcean", ""),
    ("Google", "Compute Engine"),
    ("Microsoft Corporation", "Virtual Machine"),
    ("Apple Inc.", "Virtualization"),
];
/// Vendors of functions that only programs make: Red Hat's for QEMU, VMware, VirtualBox.
const EMULATED: [(u16, &str); 3] = [(0x1b36, "QEMU"), (0x15ad, "VMware"), (0x80ee, "VirtualBox")];

/// A system call that reads a register of configuration space takes longer than this, besides the call itself, only where it
/// is trapped: a read over a switch and two slow links is below 3 µs, one inside the processor below 1 µs.
const TRAPPED_NS: f64 = 5000.0;
/// Functions differ by less than this part of a read, where every read is the same trap.
const ALIKE: f64 = 0.2;

/// The signs of a virtual machine; none on a real one. `processor` is whether the processor is to be asked, which knows nothing of a tree that
/// was given.
pub fn signs(root: &Path, functions: &[Function], processor: bool) -> Vec<String> {
    let mut signs: Vec<String> = Vec::new();
    if processor && let Some(name) = hypervisor() {
        signs.push(format!("CPUID names the hypervisor {name}"));
    }
    if let Some(kind) = attribute(&root.join("hypervisor"), "type") {
        signs.push(format!("/sys/hypervisor/type is {kind}"));
    }
    let firmware = root.join("class/dmi/id");
    let maker = attribute(&firmware, "sys_vendor").unwrap_or_default();
    let product = attribute(&firmware, "product_name").unwrap_or_default();
    let known = MAKERS.iter().any(|(by, name)| maker.contains(by) && product.contains(name));
    // EC2's own firmware is on its bare machines, too.
    if known || maker == "Amazon EC2" && !product.contains("metal") {
        let names = [maker, product].into_iter().filter(|name| !name.is_empty());
        signs.push(format!("its firmware names {}", names.collect::<Vec<_>>().join(", ")));
    }
    if attribute(&root.join("firmware/devicetree/base"), "compatible")
        .is_some_and(|what| what.contains("dummy-virt"))
    {
        signs.push("its device tree describes a virtual machine".into());
    }
    for (vendor, name) in EMULATED {
        if let Some(function) = functions.iter().find(|function| function.identity as u16 == vendor) {
            signs.push(format!("function {} is one of {name}", function.address));
        }
    }
    signs
}

/// The reason that reads of configuration space with these minima, in nanoseconds above the system call alone, are not reads of buses.
pub fn trapped(minima: &[f64]) -> Option<String> {
    let least = minima.iter().copied().fold(f64::INFINITY, f64::min);
    let most = minima.iter().copied().fold(0.0, f64::max);
    if minima.is_empty() || least < TRAPPED_NS || (most - least) > ALIKE * least {
        return None;
    }
    Some(format!(
        "every configuration read takes {:.1} to {:.1} µs, of any function: each is a trap (a VM exit), not a read of a bus",
        least / 1000.0,
        most / 1000.0
    ))
}

#[cfg(target_arch = "x86_64")]
fn hypervisor() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    if __cpuid(1).ecx >> 31 == 0 {
        return None;
    }
    let leaf = __cpuid(0x4000_0000);
    let name: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|part| part.to_le_bytes()).collect();
    let name: String = String::from_utf8_lossy(&name).chars().filter(|c| c.is_ascii_graphic()).collect();
    Some(if name.is_empty() { "without a name".into() } else { name })
}

/// AArch64 keeps it from programs; firmware and functions say it.
#[cfg(not(target_arch = "x86_64"))]
fn hypervisor() -> Option<String> {
    None
}
