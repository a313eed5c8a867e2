//! Indices into a fabric's tables. All follow the sorted names of components, so they do not depend on the order of declaration.

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub(crate) u16);

/// A switch, the root complex or an end point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u16);

/// A stream of transactions that statistics are kept of, such as one load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub(crate) u16);

/// A link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u16);

/// A function within its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FunctionAt {
    pub(crate) node: NodeId,
    /// 0 at an end point; at a switch the port; at the root complex 0 is the host bridge and root ports follow.
    pub(crate) index: usize,
}

macro_rules! index {
    ($($name:ident),+) => {
        $(impl $name {
            /// Position in the corresponding table of the result.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        })+
    };
}
index!(PortId, NodeId, FlowId, LinkId);
