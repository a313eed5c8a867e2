//! Libraries that cannot be used say why.

use crate::compile;
use crate::copier::library;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tlplab_device_library::LibraryDevice;

fn refusal(path: &Path, parameters: &[(&str, &str)]) -> String {
    let parameters: BTreeMap<_, _> =
        parameters.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    LibraryDevice::open(path, &parameters).err().expect("it cannot be used")
}

/// A library whose `tlplab_device_open` does this.
fn opening(name: &str, open: &str) -> PathBuf {
    doing(name, open, "(void)cx;")
}

/// One that does this at each event, too.
pub(crate) fn doing(name: &str, open: &str, handle: &str) -> PathBuf {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("device.c");
    let source = format!(
        "#include <stdio.h>\n#include <tlplab_device.h>\n\
         struct tlplab_device *tlplab_device_open(uint32_t abi, const char *parameters, struct tlplab_device_identity *identity, char *error)\n\
         {{ static char device; (void)abi, (void)parameters, (void)error; identity->abi = TLPLAB_DEVICE_ABI; identity->vendor = 0x71ab;\n\
         identity->bars[0].size = 4096; {open} return (struct tlplab_device *)&device; }}\n\
         void tlplab_device_close(struct tlplab_device *device) {{ (void)device; }}\n\
         void tlplab_device_handle(struct tlplab_device *device, struct tlplab_device_context *cx, const struct tlplab_device_event *event)\n\
         {{ (void)device, (void)event; {handle} }}\n"
    );
    std::fs::write(&file, source).unwrap();
    compile(name, &file)
}

#[test]
fn files_that_are_no_libraries_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(refusal(&folder.path().join("none.so"), &[]).contains("there is no such file"));
    let text = folder.path().join("text.so");
    std::fs::write(&text, "no library").unwrap();
    assert!(refusal(&text, &[]).contains("file too short"), "{}", refusal(&text, &[]));
    let (source, other) = (folder.path().join("other.c"), "int other(void) { return 1; }");
    std::fs::write(&source, other).unwrap();
    assert!(refusal(&compile("other", &source), &[]).starts_with("it does not export tlplab_device_open"));
}

#[test]
fn a_library_refuses_parameters_in_its_own_words() {
    assert_eq!(refusal(&library(), &[("depth", "4")]), "the copier has no parameters");
    assert!(refusal(&library(), &[("depth", "4\0")]).contains("zero byte"));
    assert_eq!(refusal(&opening("mute", "return NULL;"), &[]), "it gives no reason");
}

#[test]
fn another_version_of_the_interface_is_refused() {
    let older = opening("older", "identity->abi = TLPLAB_DEVICE_ABI + 1;");
    assert!(refusal(&older, &[]).starts_with("it was built with version 3 of tlplab_device.h"));
}

#[test]
fn an_identity_that_cannot_be_is_refused() {
    for (name, open) in [
        ("odd", "identity->bars[0].size = 4097;"),
        ("last", "identity->bars[5].size = 4096; identity->bars[5].flags = TLPLAB_DEVICE_BAR_64BIT;"),
        ("many", "identity->msix_vectors = 70000;"),
        ("three", "identity->msi_vectors = 3;"),
    ] {
        let why = refusal(&opening(name, open), &[]);
        assert!(why.starts_with("it reports an invalid property: "), "{name}: {why}");
    }
    assert!(LibraryDevice::open(&opening("plain", ""), &BTreeMap::new()).is_ok());
}
