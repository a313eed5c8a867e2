//! Sizes that configuration space can hold.

use core::fmt;

macro_rules! size {
    ($(#[$doc:meta])* $name:ident: $($bytes:literal),+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u16);

        impl $name {
            /// Every allowed value.
            pub const ALL: &'static [Self] = &[$(Self($bytes)),+];
            /// `bytes`, if it is one of the allowed values.
            pub fn new(bytes: u32) -> Option<Self> {
                Self::ALL.iter().copied().find(|s| u32::from(s.0) == bytes)
            }
            /// The size in bytes.
            pub const fn bytes(self) -> u32 {
                self.0 as u32
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} B", self.0)
            }
        }
    };
}

size! {
    /// Max_Payload_Size (PCIe 5.0 §7.5.3.4).
    Mps: 128, 256, 512, 1024, 2048, 4096
}
size! {
    /// Max_Read_Request_Size (PCIe 5.0 §7.5.3.4).
    Mrrs: 128, 256, 512, 1024, 2048, 4096
}
size! {
    /// Read Completion Boundary (PCIe 5.0 §2.3.1.1): 64 or 128 at a root complex, 128 elsewhere.
    Rcb: 64, 128
}
