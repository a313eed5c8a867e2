//! The functions that the kernel knows, and which bridge each is below: `/sys/bus/pci/devices`.

use super::Failure;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A function of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Domain, bus, device and function, as the kernel spells it: `0000:02:00.0`.
    pub address: String,
    /// The bridge that it is below, as an index; `None` on a root bus.
    pub parent: Option<usize>,
    /// Vendor and device, as the first register of its configuration space holds them.
    pub identity: u32,
    /// Class code, 24 bits.
    pub class: u32,
    /// Rate and width of the link above it as they are now, such as `8.0 GT/s PCIe x4`; `None` where there is none.
    pub link: Option<String>,
    /// True if the kernel has let it sleep: a read wakes it up.
    pub sleeps: bool,
    /// The folder of its files.
    pub folder: PathBuf,
}

impl Function {
    /// True if it is a PCI-to-PCI bridge, which a port of a root complex or of a switch is, too.
    pub fn is_bridge(&self) -> bool {
        self.class >> 8 == 0x0604
    }

    /// Nanoseconds of an Ack and an UpdateFC on the link above it, 8 bytes each; `None` where nothing is known of a link.
    pub fn acknowledgements_ns(&self) -> Option<f64> {
        let (speed, width) = self.link.as_ref()?.rsplit_once(" x")?;
        let rate: f64 = speed.split_whitespace().next()?.parse().ok()?;
        let lanes: f64 = width.parse().ok()?;
        // 8b/10b up to 5 GT/s, then nearly a bit in each transfer.
        let bits_per_byte = if rate > 5.0 { 8.0 * 130.0 / 128.0 } else { 10.0 };
        (rate > 0.0 && lanes > 0.0).then(|| 16.0 * bits_per_byte / (rate * lanes))
    }
}

/// All functions, by address.
///
/// # Errors
/// There is no PCI, or none visible to this process.
pub fn functions(root: &Path) -> Result<Vec<Function>, Failure> {
    let list = root.join("bus/pci/devices");
    let nothing =
        |why: String| Failure::Machine(format!("there are no PCI functions to measure here: {why}"));
    let entries = fs::read_dir(&list).map_err(|e| nothing(format!("{}: {e}", list.display())))?;
    let folders: BTreeMap<String, PathBuf> = entries
        .flatten()
        .filter_map(|entry| {
            Some((entry.file_name().into_string().ok()?, fs::canonicalize(entry.path()).ok()?))
        })
        .filter(|(name, _)| is_address(name))
        .collect();
    if folders.is_empty() {
        return Err(nothing(format!(
            "{} is empty, as in many containers and virtual machines",
            list.display()
        )));
    }
    let places: BTreeMap<String, usize> =
        folders.keys().cloned().enumerate().map(|(at, name)| (name, at)).collect();
    folders.into_iter().map(|(address, folder)| read(address, folder, &places)).collect()
}

fn read(address: String, folder: PathBuf, places: &BTreeMap<String, usize>) -> Result<Function, Failure> {
    let number = |file: &str| {
        let said = attribute(&folder, file)?;
        u32::from_str_radix(said.trim_start_matches("0x"), 16).ok()
    };
    let wanted = |file: &str| {
        number(file).ok_or_else(|| {
            Failure::Machine(format!("{}: expected a hexadecimal number", folder.join(file).display()))
        })
    };
    // The folder of a function is in that of the bridge above it, or in that of a root bus.
    let parent =
        folder.parent().and_then(Path::file_name).and_then(|name| places.get(name.to_str()?)).copied();
    let speed = attribute(&folder, "current_link_speed").filter(|speed| !speed.starts_with("Unknown"));
    let width = attribute(&folder, "current_link_width").filter(|width| width != "0" && width != "255");
    Ok(Function {
        parent,
        identity: wanted("device")? << 16 | wanted("vendor")?,
        class: wanted("class")?,
        link: speed.zip(width).map(|(speed, width)| format!("{speed} x{width}")),
        sleeps: attribute(&folder, "power/runtime_status").is_some_and(|status| status == "suspended"),
        address,
        folder,
    })
}

/// The name of the running system: its name, release and machine.
pub fn kernel() -> String {
    let said = nix::sys::utsname::uname();
    said.map(|said| {
        let parts = [said.sysname(), said.release(), said.machine()];
        parts.map(std::ffi::OsStr::to_string_lossy).join(" ")
    })
    .unwrap_or_default()
}

/// One line of a file of a function.
pub(super) fn attribute(folder: &Path, file: &str) -> Option<String> {
    fs::read_to_string(folder.join(file)).ok().map(|text| text.trim().to_owned())
}

/// True if this is how the kernel spells an address.
pub(super) fn is_address(name: &str) -> bool {
    let hex = |text: &str, digits: std::ops::RangeInclusive<usize>| {
        digits.contains(&text.len()) && text.chars().all(|c| c.is_ascii_hexdigit())
    };
    let parts: Vec<&str> = name.split(':').collect();
    let [domain, bus, rest] = parts[..] else { return false };
    let Some((device, function)) = rest.split_once('.') else { return false };
    hex(domain, 4..=8) && hex(bus, 2..=2) && hex(device, 2..=2) && hex(function, 1..=1)
}

/// The function that a user names, with or without the domain.
///
/// # Errors
/// It does not exist.
pub fn find(functions: &[Function], named: &str) -> Result<usize, Failure> {
    let whole = if named.matches(':').count() == 1 { format!("0000:{named}") } else { named.to_owned() };
    let whole = whole.to_ascii_lowercase();
    functions.iter().position(|function| function.address == whole).ok_or_else(|| {
        let known: Vec<&str> = functions.iter().map(|function| function.address.as_str()).take(8).collect();
        let more = if functions.len() > known.len() { ", …" } else { "" };
        let spelt =
            if is_address(&whole) { "" } else { " (expected an address such as 0000:02:00.0 or 02:00.0)" };
        Failure::Input(format!("unknown function {named}{spelt}; there are {}{more}", known.join(", ")))
    })
}
