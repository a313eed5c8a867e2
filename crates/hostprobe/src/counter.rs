//! The processor's counter: two reads, between which lies what is timed and nothing else.
//!
//! A processor does not do what comes before and after a read of its counter in the order of the program, unless it is told to:
//! [`begin`] waits for everything before it and lets nothing after it start early, [`end`] waits until what is timed is over.
//! Counters are read by instructions that no library wraps; this file is those instructions and nothing else.
#![allow(unsafe_code, reason = "counters are read by instructions")]

pub(super) use instructions::{NAME, begin, end, objection};

#[cfg(target_arch = "x86_64")]
mod instructions {
    use std::arch::x86_64::{__cpuid, __rdtscp, _mm_lfence, _rdtsc};

    /// The name of the counter.
    pub(in super::super) const NAME: &str = "rdtsc";

    /// The reason that the counter cannot be used here.
    pub(in super::super) fn objection() -> Option<&'static str> {
        const RDTSCP: u32 = 1 << 27;
        const INVARIANT: u32 = 1 << 8;
        let highest = __cpuid(0x8000_0000).eax;
        if highest < 0x8000_0001 || __cpuid(0x8000_0001).edx & RDTSCP == 0 {
            return Some("this processor has no RDTSCP");
        }
        if highest < 0x8000_0007 || __cpuid(0x8000_0007).edx & INVARIANT == 0 {
            return Some(
                "this processor has no invariant TSC: the rate of its time-stamp counter may change",
            );
        }
        None
    }

    #[inline(always)]
    pub(in super::super) fn begin() -> u64 {
        // SAFETY: every x86-64 processor has LFENCE and RDTSC; they change no memory.
        unsafe {
            _mm_lfence();
            let ticks = _rdtsc();
            _mm_lfence();
            ticks
        }
    }

    #[inline(always)]
    pub(in super::super) fn end() -> u64 {
        let mut core = 0;
        // SAFETY: `objection` has seen that there is an RDTSCP; it writes to `core` alone.
        unsafe {
            let ticks = __rdtscp(&mut core);
            _mm_lfence();
            ticks
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod instructions {
    use std::arch::asm;

    /// The name of the counter.
    pub(in super::super) const NAME: &str = "cntvct_el0";

    /// The reason that the counter cannot be used here: Linux lets every program read it.
    pub(in super::super) fn objection() -> Option<&'static str> {
        None
    }

    #[inline(always)]
    pub(in super::super) fn begin() -> u64 {
        let ticks;
        // SAFETY: barriers and a register that programs may read. Not `nomem`: no access moves across.
        unsafe {
            asm!("dsb ld", "isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack, preserves_flags))
        };
        ticks
    }

    /// An ISB alone would not wait for a load's data.
    #[inline(always)]
    pub(in super::super) fn end() -> u64 {
        let ticks;
        // SAFETY: as above.
        unsafe {
            asm!("dsb ld", "isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack, preserves_flags))
        };
        ticks
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod instructions {
    pub(in super::super) const NAME: &str = "none";

    pub(in super::super) fn objection() -> Option<&'static str> {
        Some("only the counters of x86-64 and AArch64 are supported")
    }

    pub(in super::super) fn begin() -> u64 {
        0
    }

    pub(in super::super) fn end() -> u64 {
        0
    }
}
