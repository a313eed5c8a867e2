//! Questions to the adapter's driver.

use std::ffi::c_int;
use std::net::Ipv4Addr;

use nix::errno::Errno;
use tlplab_netio::Apis;

use crate::context::local_towards;
use crate::errno;
use crate::guard::or_errno;

/// `struct nettlp_msix`.
#[repr(C, packed)]
pub struct NettlpMsix {
    addr: u64,
    data: u32,
}

/// `struct in_addr`, by value: the address in network byte order.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct InAddr(u32);

fn host(address: InAddr) -> Apis {
    let adapter = Ipv4Addr::from(address.0.to_ne_bytes());
    Apis { local: local_towards(adapter), adapter }
}

/// `libtlp.h`.
#[unsafe(no_mangle)]
pub extern "C" fn nettlp_msg_get_bar4_start(address: InAddr) -> usize {
    or_errno(0, || {
        host(address).bar4_base().map(|base| base as usize).map_err(|error| errno::of_transport(&error))
    })
}

/// `libtlp.h`.
#[unsafe(no_mangle)]
pub extern "C" fn nettlp_msg_get_dev_id(address: InAddr) -> u16 {
    or_errno(0, || host(address).device_id().map(|id| id.0).map_err(|error| errno::of_transport(&error)))
}

/// `libtlp.h`.
///
/// # Safety
/// `table` points to `count` of `struct nettlp_msix`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nettlp_msg_get_msix_table(
    address: InAddr,
    table: *mut NettlpMsix,
    count: c_int,
) -> c_int {
    or_errno(-1, || {
        let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
        let found = host(address).msix_table().map_err(|error| errno::of_transport(&error))?;
        let found = found.get(..count).ok_or(Errno::EINVAL)?;
        if table.is_null() && count > 0 {
            return Err(Errno::EFAULT);
        }
        for (place, message) in found.iter().enumerate() {
            // SAFETY: the caller's promise: `place` is below `count`. The struct is packed, and may lie anywhere.
            unsafe {
                table.add(place).write_unaligned(NettlpMsix { addr: message.address, data: message.data })
            };
        }
        Ok(0)
    })
}
