//! The structures of the header are those of `interface`.

use crate::compiler;
use std::fmt::Write as _;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;
use tlplab_device_library::interface::{
    ABI, Bar, Context, ERROR_MAX, Event, Identity, code, interrupts, kind,
};

#[test]
fn sizes_offsets_and_numbers_match_the_c_header() {
    let fields = [
        ("offsetof(struct tlplab_device_identity, class_code)", offset_of!(Identity, class_code)),
        ("offsetof(struct tlplab_device_identity, msi_vectors)", offset_of!(Identity, msi_vectors)),
        ("offsetof(struct tlplab_device_identity, msix_vectors)", offset_of!(Identity, msix_vectors)),
        ("offsetof(struct tlplab_device_identity, bars)", offset_of!(Identity, bars)),
        ("offsetof(struct tlplab_device_event, bytes)", offset_of!(Event, bytes)),
        ("offsetof(struct tlplab_device_event, data)", offset_of!(Event, data)),
        ("offsetof(struct tlplab_device_event, error)", offset_of!(Event, error)),
        ("offsetof(struct tlplab_device_event, message)", offset_of!(Event, message)),
        ("offsetof(struct tlplab_device_context, interrupts)", offset_of!(Context, interrupts)),
        ("offsetof(struct tlplab_device_context, mrrs)", offset_of!(Context, mrrs)),
        ("offsetof(struct tlplab_device_context, dma_read)", offset_of!(Context, dma_read)),
        ("offsetof(struct tlplab_device_context, dma_write)", offset_of!(Context, dma_write)),
        ("offsetof(struct tlplab_device_context, msix)", offset_of!(Context, msix)),
        ("offsetof(struct tlplab_device_context, intx)", offset_of!(Context, intx)),
        ("offsetof(struct tlplab_device_context, reply)", offset_of!(Context, reply)),
        ("offsetof(struct tlplab_device_context, refuse)", offset_of!(Context, refuse)),
        ("offsetof(struct tlplab_device_context, timer)", offset_of!(Context, timer)),
        ("offsetof(struct tlplab_device_context, finished)", offset_of!(Context, finished)),
        ("offsetof(struct tlplab_device_context, fail)", offset_of!(Context, fail)),
        ("offsetof(struct tlplab_device_context, set_config)", offset_of!(Context, set_config)),
        ("sizeof(struct tlplab_device_bar)", size_of::<Bar>()),
        ("sizeof(struct tlplab_device_identity)", size_of::<Identity>()),
        ("sizeof(struct tlplab_device_event)", size_of::<Event>()),
        ("sizeof(struct tlplab_device_context)", size_of::<Context>()),
        ("TLPLAB_DEVICE_ABI", ABI as usize),
        ("TLPLAB_DEVICE_ERROR_MAX", ERROR_MAX),
        ("TLPLAB_DEVICE_MMIO_READ", kind::MMIO_READ as usize),
        ("TLPLAB_DEVICE_DMA_READ_DONE", kind::DMA_READ_DONE as usize),
        ("TLPLAB_DEVICE_DMA_WRITE_ACCEPTED", kind::DMA_WRITE_ACCEPTED as usize),
        ("TLPLAB_DEVICE_REBASE", kind::REBASE as usize),
        ("TLPLAB_DEVICE_TIMEOUT", code::TIMEOUT as usize),
        ("TLPLAB_DEVICE_OTHER_ERROR", code::OTHER as usize),
        ("TLPLAB_DEVICE_MSIX", interrupts::MSIX as usize),
    ];
    let mut source = String::from(
        "#include <stddef.h>\n#include <stdio.h>\n#include <tlplab_device.h>\nint main(void) {\n",
    );
    for (expression, _) in fields {
        writeln!(source, "printf(\"%zu\\n\", (size_t)({expression}));").unwrap();
    }
    source.push('}');
    let folder = tempfile::tempdir().unwrap();
    let (file, program) = (folder.path().join("layout.c"), folder.path().join("layout"));
    std::fs::write(&file, source).unwrap();
    assert!(compiler().args([Path::new("-o"), &program, &file]).status().unwrap().success());
    let said = Command::new(program).output().unwrap().stdout;
    let said = String::from_utf8(said).unwrap();
    for ((expression, ours), said) in fields.iter().zip(said.lines()) {
        assert_eq!(said.parse(), Ok(*ours), "{expression}");
    }
    assert_eq!(said.lines().count(), fields.len());
}
