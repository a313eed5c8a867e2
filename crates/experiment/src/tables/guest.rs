//! The keys of a Linux guest.

use crate::keys::{Kind, Section, key};

/// `guest`
pub static GUEST: Section = Section {
    title: "a Linux guest",
    extra: None,
    keys: &[
        key("memory", Kind::Size, r#""128MiB""#, r#""256MiB""#, "Its memory, which is the host's."),
        key(
            "run",
            Kind::Text,
            "",
            r#""nvme.sh""#,
            "The script that it runs, relative to this file; it powers off when the script ends. Absent: a shell.",
        ),
        key(
            "files",
            Kind::List(&Kind::Text),
            "",
            r#"["mydev.ko"]"#,
            "Files that it finds in /tlplab, relative to this file: modules, programs, data.",
        ),
        key(
            "cpu",
            Kind::Table(&CPU),
            "",
            r#"{ syscall = "200ns" }"#,
            "What the work of its processor costs, which takes no simulated time otherwise.",
        ),
    ],
};

/// `guest.cpu`
pub static CPU: Section = Section {
    title: "a guest's processor",
    extra: None,
    keys: &[
        key("syscall", Kind::Time, r#""0s""#, r#""200ns""#, "Every system call takes so long."),
        key(
            "interrupt",
            Kind::Time,
            r#""0s""#,
            r#""1us""#,
            "Every interrupt takes so long before its handler begins.",
        ),
    ],
};
