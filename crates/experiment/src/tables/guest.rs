//! The keys of a Linux guest.

use crate::guest::GuestSpec;
use crate::keys::Kind;
use crate::section::{Section, Set, row};

/// `guest`
pub(crate) static GUEST: Section<GuestSpec> = Section {
    title: "a Linux guest",
    extra: None,
    rows: &[
        row(
            ("memory", Kind::Size, r#""128MiB""#, r#""256MiB""#),
            "Its memory, which is the host's.",
            Set::Bytes(|guest, it| guest.memory = it),
        ),
        row(
            ("run", Kind::Text, "", r#""nvme.sh""#),
            "The script that it runs, relative to this file; it powers off when the script ends. Absent: a shell.",
            Set::File(|guest, it| guest.run = Some(it)),
        ),
        row(
            ("files", Kind::List(&Kind::Text), "", r#"["mydev.ko"]"#),
            "Files that it finds in /tlplab, relative to this file: modules, programs, data.",
            Set::Files(|guest, it| guest.files = it),
        ),
        row(
            ("cpu", Kind::Table(&CPU), "", r#"{ syscall = "200ns" }"#),
            "Time for the work of its processor; without this table it takes no simulated time.",
            Set::Read(|guest, v| CPU.read(v, guest)),
        ),
    ],
};

/// `guest.cpu`
pub(crate) static CPU: Section<GuestSpec> = Section {
    title: "a guest's processor",
    extra: None,
    rows: &[
        row(
            ("syscall", Kind::Time, r#""0s""#, r#""200ns""#),
            "Time of a system call.",
            Set::Time(|guest, it| guest.syscall = it),
        ),
        row(
            ("interrupt", Kind::Time, r#""0s""#, r#""1us""#),
            "Time from an interrupt to the start of its handler.",
            Set::Time(|guest, it| guest.interrupt = it),
        ),
    ],
};
