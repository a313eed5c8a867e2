//! The targets of a measurement: the functions that a user names and every bridge above them, bridges first.

use super::access::{Access, Reader, Readers};
use super::register::Register;
use super::sysfs::{self, Function};
use super::{Failure, surroundings};
use std::collections::BTreeSet;
use std::path::Path;

/// A target, in the order in which the samples come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The function, as an index into [`Plan::functions`].
    pub function: usize,
    /// The bridge above it, as an index into [`Plan::targets`].
    pub parent: Option<usize>,
    /// The register that is read: a mapped register, or else the first register of configuration space.
    pub mapped: Option<Register>,
}

/// The targets on a machine.
#[derive(Clone, Debug)]
pub struct Plan {
    /// All functions of the machine.
    pub functions: Vec<Function>,
    /// The targets.
    pub targets: Vec<Target>,
    /// The signs that this is a virtual machine.
    pub signs: Vec<String>,
}

impl Plan {
    /// `devices` are addresses; none means all. `registers` are spelt as [`Register::parse`] says. `own` is whether `root` is of the machine
    /// that this runs on, and not a tree from elsewhere.
    ///
    /// # Errors
    /// There is nothing to measure, or not the requested target.
    pub fn make(root: &Path, own: bool, devices: &[String], registers: &[String]) -> Result<Self, Failure> {
        let functions = sysfs::functions(root)?;
        let registers: Vec<Register> =
            registers.iter().map(|said| Register::parse(&functions, said)).collect::<Result<_, _>>()?;
        let named: Vec<usize> =
            devices.iter().map(|named| sysfs::find(&functions, named)).collect::<Result<_, _>>()?;
        let wanted: BTreeSet<usize> = if named.is_empty() && registers.is_empty() {
            (0..functions.len()).collect()
        } else {
            let ends = named.into_iter().chain(registers.iter().map(|register| register.function));
            ends.flat_map(|end| path(&functions, end)).collect()
        };
        let mut targets = Vec::new();
        let roots = wanted.iter().copied().filter(|at| functions[*at].parent.is_none());
        for root in roots {
            place(&functions, &wanted, &registers, root, None, &mut targets);
        }
        let signs = surroundings::signs(root, &functions, own);
        Ok(Self { functions, targets, signs })
    }

    /// Opens every target, and after the last the system call that reads nothing.
    ///
    /// # Errors
    /// A target cannot be read; the message states the fix.
    pub fn open(&self) -> Result<impl Access + use<>, Failure> {
        let reader = |target: &Target| {
            let function = &self.functions[target.function];
            target.mapped.map_or_else(
                || Reader::configuration(function),
                |register| Reader::mapped(function, register),
            )
        };
        let mut readers: Vec<Reader> = self.targets.iter().map(reader).collect::<Result<_, _>>()?;
        readers.push(Reader::nothing(&self.functions[self.targets[0].function])?);
        Ok(Readers(readers))
    }

    /// The number of readers: one for each target, and the system call alone.
    pub fn readers(&self) -> usize {
        self.targets.len() + 1
    }
}

/// A function and the bridges above it.
fn path(functions: &[Function], end: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(end), |at| functions[*at].parent)
}

/// A function and its registers, then what is below it.
fn place(
    functions: &[Function],
    wanted: &BTreeSet<usize>,
    registers: &[Register],
    function: usize,
    parent: Option<usize>,
    targets: &mut Vec<Target>,
) {
    let here = targets.len();
    targets.push(Target { function, parent, mapped: None });
    for register in registers.iter().filter(|register| register.function == function) {
        targets.push(Target { function, parent, mapped: Some(*register) });
    }
    for below in wanted.iter().copied().filter(|at| functions[*at].parent == Some(function)) {
        place(functions, wanted, registers, below, Some(here), targets);
    }
}
