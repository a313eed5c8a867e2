//! Programs that were written for the published library, unchanged.

use crate::programs::{C, compile_published};
use std::path::Path;

/// `TLPLAB_LIBTLP` is a checkout of the published library; its headers are not used.
#[test]
fn published_programs_compile() {
    let Some(folder) = std::env::var_os("TLPLAB_LIBTLP") else {
        eprintln!("skipped: TLPLAB_LIBTLP names no folder with the published library's programs");
        return;
    };
    let mut programs = Vec::new();
    for part in ["apps", "test"] {
        let found =
            std::fs::read_dir(Path::new(&folder).join(part)).expect("a folder of the published library");
        programs.extend(found.map(|entry| entry.expect("it can be read").path()));
    }
    programs.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    programs.sort();
    assert!(programs.len() > 5, "{programs:?} are all programs in {}", folder.display());
    for program in programs {
        let said = compile_published(&program, C);
        println!("{}: {}", program.display(), if said.is_empty() { "compiled" } else { &said });
    }
}
