//! The data of a storage device in a file.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tlplab_cosim::medium::{FileMedium, open_all};
use tlplab_device::nvme::Medium;
use tlplab_experiment::guest::GuestKind;
use tlplab_experiment::{Experiment, Options};

const BYTES: u64 = 1 << 20;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn open(path: &Path) -> FileMedium {
    FileMedium::open(path, BYTES).expect("a file that can be used")
}

fn read(medium: &FileMedium, at: u64, bytes: usize) -> Vec<u8> {
    let mut out = vec![0xAA; bytes];
    medium.read(at, &mut out);
    out
}

#[test]
fn a_file_is_made_by_the_first_write() {
    let folder = folder();
    let path = folder.path().join("disk.img");
    let mut medium = open(&path);
    assert_eq!(read(&medium, 5, 10), [0; 10]);
    medium.discard(0, BYTES);
    medium.flush().expect("nothing failed");
    assert!(!path.exists(), "who only looks leaves nothing behind");
    medium.write(4096, b"hello");
    let file = fs::metadata(&path).expect("it is there");
    assert_eq!(file.len(), BYTES);
    assert!(file.blocks() * 512 < BYTES / 4, "{} blocks on the disk", file.blocks());
    assert_eq!(read(&medium, 4095, 7), *b"\0hello\0");
    assert_eq!(&fs::read(&path).expect("a file")[4096..4101], b"hello", "it is in the file at once");
}

#[test]
fn written_blocks_survive_reopening_the_file() {
    let folder = folder();
    let path = folder.path().join("disk.img");
    let mut medium = open(&path);
    medium.write(BYTES - 3, b"end");
    medium.write(0, b"begin");
    medium.flush().expect("nothing failed");
    drop(medium);
    let mut medium = open(&path);
    assert_eq!(read(&medium, 0, 5), *b"begin");
    assert_eq!(read(&medium, BYTES - 3, 3), *b"end");
    medium.write(1, b"E");
    drop(medium);
    assert_eq!(read(&open(&path), 0, 5), *b"bEgin");
}

#[test]
fn a_file_of_another_length_is_refused() {
    let folder = folder();
    let path = folder.path().join("disk.img");
    for found in [0, BYTES - 1, BYTES + 1] {
        fs::File::create(&path).and_then(|file| file.set_len(found)).expect("a file");
        let why = FileMedium::open(&path, BYTES).err().expect("it is refused");
        assert!(why.starts_with(&format!("it has {found} B, but the device has {BYTES} B")), "{why}");
        assert_eq!(fs::metadata(&path).expect("a file").len(), found, "it is left as it was");
    }
}

#[test]
fn a_file_has_one_device() {
    let folder = folder();
    let path = folder.path().join("disk.img");
    let mut first = open(&path);
    first.write(0, b"mine");
    let why = FileMedium::open(&path, BYTES).err().expect("it is refused");
    assert!(why.contains("another device or another run has it open"), "{why}");
    drop(first);
    open(&path);
}

/// Two devices name a file that is not there yet: the second to write gets the error at its next flush, once.
#[test]
fn the_next_flush_reports_a_failed_write() {
    let folder = folder();
    let path = folder.path().join("disk.img");
    let (mut first, mut second) = (open(&path), open(&path));
    first.write(0, b"first");
    second.write(0, b"second");
    second.write(8, b"again");
    let error = second.flush().expect_err("it has failed");
    assert!(error.0.contains("another device"), "{}", error.0);
    second.flush().expect("it was told");
    first.flush().expect("nothing failed");
    assert_eq!(read(&first, 0, 6), *b"first\0");
}

#[test]
fn opening_a_file_in_a_missing_folder_is_refused() {
    let folder = folder();
    let why = FileMedium::open(&folder.path().join("none/disk.img"), BYTES).err();
    assert_eq!(why.as_deref(), Some("its folder does not exist"));
    let why = FileMedium::open(folder.path(), BYTES).err();
    assert!(why.is_some(), "a folder is no file");
}

#[test]
fn discarded_bytes_read_as_zeros() {
    let folder = folder();
    let path = folder.path().join("disk.img");
    let mut medium = open(&path);
    let data: Vec<u8> = (0..300_000u32).map(|at| (at % 255) as u8 + 1).collect();
    medium.write(100, &data);
    // Neither begins nor ends at a page.
    medium.discard(1100, 200_000);
    assert_eq!(read(&medium, 1099, 1), data[999..1000]);
    assert_eq!(read(&medium, 1100, 200_000), vec![0; 200_000]);
    assert_eq!(read(&medium, 201_100, 98_000), data[201_000..299_000]);
    medium.flush().expect("nothing failed");
    drop(medium);
    assert_eq!(fs::metadata(&path).expect("a file").len(), BYTES, "as long as before");
}

fn experiment(folder: &Path, keys: &str) -> Experiment {
    let text = format!(
        "title = \"t\"\nstop = \"1us\"\n[device.ssd]\nunder = \"host.rp0\"\nlink = \"gen3 x4\"\nmodel = \"nvme\"\n{keys}"
    );
    let read = |_: &str| Ok(text.clone());
    let path = folder.join("t.toml");
    // It is opened, and not run: nothing need happen.
    let options = Options { guest: Some(GuestKind::UserMode), ..Options::default() };
    Experiment::parse_with(&read, path.to_str().expect("UTF-8"), &options).expect("an experiment")
}

#[test]
fn an_experiment_names_its_files() {
    let folder = folder();
    let none = open_all(&experiment(folder.path(), "size = \"1MiB\"\n")).expect("nothing to open");
    assert!(none.is_empty());
    let named = experiment(folder.path(), "size = \"1MiB\"\nfile = \"disk.img\"\n");
    let mut media = open_all(&named).expect("it is made later");
    media.get_mut("ssd").expect("its device").write(0, b"x");
    drop(media);
    assert_eq!(fs::metadata(folder.path().join("disk.img")).expect("beside the experiment").len(), 1 << 20);
    let other = experiment(folder.path(), "size = \"2MiB\"\nfile = \"disk.img\"\n");
    let why = open_all(&other).err().expect("another size").to_string();
    assert!(why.contains("t.toml:8") && why.contains("it has 1048576 B"), "{why}");
}
