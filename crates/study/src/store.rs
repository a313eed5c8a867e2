//! Results by their keys, in packs: files that grow by an entry for each result, and are never changed otherwise.
//!
//! Each process writes a pack of its own, so that processes and machines may share a folder, and two folders are joined by copying.
//! Whatever ends a process, its pack is good up to the last entry that is whole: each has a checksum, and what has none counts as
//! none. A result is written in one piece, and what was written is there for others at once.
//!
//! ```text
//! pack    = "tlplab/points/2\n" { entry }
//! entry   = kind:u8 length:u32 checksum:u32 key:[u8; 32] payload
//! payload = names, a line each (kind N) | names:u32, of the names of this pack, and the rest of the record (kind R)
//! ```

use crate::figures::Names;
use crate::key::Key;
use crate::record::{Record, names_of, names_text};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock};

/// A folder with results.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    index: RwLock<Index>,
    own: Mutex<Option<Writer>>,
}

const MAGIC: &[u8; 16] = b"tlplab/points/2\n";
const NAMES: u8 = b'N';
const RECORD: u8 = b'R';
const HEADER: usize = 1 + 4 + 4 + 32;
/// So many packs stay open; of others a result opens its pack again.
const OPEN: usize = 64;

#[derive(Debug, Default)]
struct Index {
    packs: Vec<Pack>,
    numbers: BTreeMap<PathBuf, usize>,
    places: BTreeMap<Key, Place>,
}

#[derive(Debug)]
struct Pack {
    path: PathBuf,
    file: Option<File>,
    names: Vec<Names>,
    /// Up to here its entries are known.
    known: u64,
}

/// The place of an entry.
#[derive(Clone, Copy, Debug)]
struct Place {
    pack: u32,
    length: u32,
    at: u64,
}

/// The pack that this process writes.
#[derive(Debug)]
struct Writer {
    path: PathBuf,
    file: File,
    names: BTreeMap<Names, u32>,
    length: u64,
}

/// The addition of a result to the pack of this process.
struct Added {
    /// Its names, if no result before had them.
    names: Option<Names>,
    place: Place,
    /// The length of the pack before and now.
    grew: Range<u64>,
}

struct Header {
    kind: u8,
    length: u32,
    checksum: u32,
    key: Key,
}

impl Header {
    fn read(bytes: &[u8; HEADER]) -> Self {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut key = [0; 32];
        key.copy_from_slice(&bytes[9..]);
        Self { kind: bytes[0], length: word(1), checksum: word(5), key: Key::from_bytes(key) }
    }
}

fn checksum(kind: u8, key: &Key, payload: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    for part in [&[kind], &key.bytes()[..], payload] {
        sum.update(part);
    }
    sum.finalize()
}

fn put_entry(bytes: &mut Vec<u8>, kind: u8, key: &Key, payload: &[u8]) -> Result<(), String> {
    let length = u32::try_from(payload.len()).map_err(|_| "a result of four gigabytes".to_owned())?;
    bytes.push(kind);
    bytes.extend(length.to_le_bytes());
    bytes.extend(checksum(kind, key, payload).to_le_bytes());
    bytes.extend(key.bytes());
    bytes.extend(payload);
    Ok(())
}

impl Store {
    /// The store in a folder, which need not be there yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), index: RwLock::default(), own: Mutex::default() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The result of a key. One that is not whole counts as none.
    pub fn get(&self, key: &Key) -> Option<Record> {
        let known = |index: &RwLock<Index>| {
            let index = index.read().unwrap_or_else(PoisonError::into_inner);
            index.places.get(key).map(|place| index.record(key, *place))
        };
        known(&self.index).unwrap_or_else(|| {
            self.look();
            known(&self.index)?
        })
    }

    /// Takes in what others have written.
    fn look(&self) {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.extension().is_some_and(|ending| ending == "pack") {
                index.take_in(path);
            }
        }
    }

    /// The number of results, whole or not.
    pub fn count(&self) -> usize {
        self.look();
        self.index.read().unwrap_or_else(PoisonError::into_inner).places.len()
    }

    /// Keeps a result.
    ///
    /// # Errors
    /// The folder cannot be made, or the pack cannot be written.
    pub fn put(&self, key: &Key, record: &Record) -> Result<(), String> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let mut writer = match own.take() {
            Some(writer) => writer,
            None => Writer::create(&self.folder)?,
        };
        let added = writer.append(key, record)?;
        // A pack in which an entry may be half is left as it is, and the next result begins another.
        self.index.write().unwrap_or_else(PoisonError::into_inner).add(&writer.path, *key, added);
        *own = Some(writer);
        Ok(())
    }
}

impl Writer {
    fn create(folder: &Path) -> Result<Self, String> {
        fs::create_dir_all(folder)
            .map_err(|error| format!("{}: cannot make the folder: {error}", folder.display()))?;
        // Random, so that packs of several machines meet in one folder.
        let name = |n: u8| RandomState::new().hash_one(n);
        let path = folder.join(format!("{:016x}{:016x}.pack", name(0), name(1)));
        let file = OpenOptions::new().append(true).create_new(true).open(&path);
        let mut file = file.map_err(|error| cannot_write(&path, &error))?;
        file.write_all(MAGIC).map_err(|error| cannot_write(&path, &error))?;
        Ok(Self { path, file, names: BTreeMap::new(), length: MAGIC.len() as u64 })
    }

    fn append(&mut self, key: &Key, record: &Record) -> Result<Added, String> {
        let mut bytes = Vec::new();
        let names = record.metrics.names();
        let is_new = !self.names.contains_key(names);
        let number = match self.names.get(names) {
            Some(number) => *number,
            None => {
                let text = names_text(names);
                put_entry(&mut bytes, NAMES, &Key::of(text.as_bytes()), text.as_bytes())?;
                let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
                self.names.insert(names.clone(), number);
                number
            }
        };
        let mut payload = number.to_le_bytes().to_vec();
        record.write_rest(&mut payload);
        let at = bytes.len() as u64;
        put_entry(&mut bytes, RECORD, key, &payload)?;
        self.file.write_all(&bytes).map_err(|error| cannot_write(&self.path, &error))?;
        let place = Place { pack: 0, length: payload.len() as u32, at: self.length + at };
        let grew = self.length..self.length + bytes.len() as u64;
        self.length = grew.end;
        Ok(Added { names: is_new.then(|| names.clone()), place, grew })
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> String {
    format!("{}: cannot write it: {error}", path.display())
}

impl Index {
    fn number_of(&mut self, path: PathBuf) -> usize {
        *self.numbers.entry(path).or_insert_with_key(|path| {
            let file = File::open(path).ok().filter(|_| self.packs.len() < OPEN);
            self.packs.push(Pack { path: path.clone(), file, names: Vec::new(), known: 0 });
            self.packs.len() - 1
        })
    }

    /// This process has written a result. Part of it may be known already: another thread has looked meanwhile.
    fn add(&mut self, path: &Path, key: Key, added: Added) {
        let number = self.number_of(path.to_owned());
        let pack = &mut self.packs[number];
        if pack.known.max(MAGIC.len() as u64) != added.grew.start {
            return self.take_in(path.to_owned());
        }
        pack.names.extend(added.names);
        pack.known = added.grew.end;
        self.places.insert(key, Place { pack: u32::try_from(number).unwrap_or(u32::MAX), ..added.place });
    }

    /// Takes in what is new in a pack. One that cannot be read has nothing.
    fn take_in(&mut self, path: PathBuf) {
        let number = self.number_of(path);
        let pack = &mut self.packs[number];
        let length = pack.file.as_ref().map_or_else(|| fs::metadata(&pack.path), File::metadata);
        if length.is_ok_and(|found| found.len() > pack.known) {
            let mut found = Vec::new();
            // Ends where the pack does, or is no pack.
            let _ = pack.scan(|key, length, at| found.push((key, length, at)));
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let found = found.into_iter().map(|(key, length, at)| (key, Place { pack: number, length, at }));
            if self.places.is_empty() {
                // A million of them are sorted sooner than put in one by one. Of a run that is there twice the later result is as good.
                self.places = found.collect();
                return;
            }
            for (key, place) in found {
                // Two have made the same run: one of them is enough, if it is whole.
                if self.places.get(&key).is_none_or(|known| self.record(&key, *known).is_none()) {
                    self.places.insert(key, place);
                }
            }
        }
    }

    fn record(&self, key: &Key, place: Place) -> Option<Record> {
        let pack = &self.packs[place.pack as usize];
        let mut bytes = vec![0; HEADER + place.length as usize];
        match &pack.file {
            Some(file) => file.read_exact_at(&mut bytes, place.at),
            None => File::open(&pack.path).and_then(|file| file.read_exact_at(&mut bytes, place.at)),
        }
        .ok()?;
        let (header, payload) = bytes.split_first_chunk::<HEADER>()?;
        if Header::read(header).checksum != checksum(RECORD, key, payload) {
            return None;
        }
        let (names, rest) = payload.split_first_chunk::<4>()?;
        Record::read_rest(pack.names.get(u32::from_le_bytes(*names) as usize)?, rest)
    }
}

impl Pack {
    /// Tells the entries that are new, up to the first that is not whole.
    fn scan(&mut self, mut found: impl FnMut(Key, u32, u64)) -> io::Result<()> {
        let file = File::open(&self.path)?;
        let length = file.metadata()?.len();
        let mut file = BufReader::with_capacity(1 << 18, file);
        if self.known == 0 {
            let mut magic = [0; MAGIC.len()];
            file.read_exact(&mut magic)?;
            if magic != *MAGIC {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.known = magic.len() as u64;
        } else {
            file.seek(SeekFrom::Start(self.known))?;
        }
        let mut bytes = [0; HEADER];
        while self.known + (HEADER as u64) <= length {
            file.read_exact(&mut bytes)?;
            let header = Header::read(&bytes);
            let end = self.known + HEADER as u64 + u64::from(header.length);
            if end > length {
                break;
            }
            match header.kind {
                NAMES => {
                    let mut text = vec![0; header.length as usize];
                    file.read_exact(&mut text)?;
                    let whole = checksum(NAMES, &header.key, &text) == header.checksum;
                    let names = String::from_utf8(text).ok().filter(|_| whole);
                    // Without its names no later entry can be read.
                    let names = names.and_then(|text| names_of(&text)).ok_or(io::ErrorKind::InvalidData)?;
                    self.names.push(names);
                }
                RECORD => {
                    found(header.key, header.length, self.known);
                    file.seek_relative(i64::from(header.length))?;
                }
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
            self.known = end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Metrics;
    use proptest::prelude::*;

    fn record(n: usize) -> Record {
        let name = if n.is_multiple_of(3) { "a" } else { "b" };
        Record {
            failure: (n % 4 == 1).then(|| format!("at {n} us")),
            verdict: None,
            metrics: Metrics::from([(name.to_owned(), n as f64), ("throughput".to_owned(), 1.0)]),
        }
    }

    fn key(n: usize) -> Key {
        Key::of(&n.to_le_bytes())
    }

    fn filled(folder: &Path, numbers: std::ops::Range<usize>) -> Vec<u8> {
        let store = Store::new(folder);
        for n in numbers {
            store.put(&key(n), &record(n)).unwrap();
            assert_eq!(store.get(&key(n)), Some(record(n)), "it is there at once");
        }
        let own = store.own.lock().unwrap();
        fs::read(&own.as_ref().unwrap().path).unwrap()
    }

    #[test]
    fn two_stores_of_a_folder_find_each_others_records() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (Store::new(folder.path()), Store::new(folder.path()));
        assert_eq!(one.get(&key(0)), None);
        for n in 0..20 {
            other.put(&key(n), &record(n)).unwrap();
            assert_eq!(one.get(&key(n)), Some(record(n)));
            one.put(&key(100 + n), &record(n)).unwrap();
            assert_eq!(other.get(&key(100 + n)), Some(record(n)));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "a pack for each");
    }

    #[test]
    fn folders_are_joined_by_copying_however_many_packs_they_have() {
        let (folder, more) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for n in 0..OPEN + 20 {
            filled(more.path(), n..n + 1);
        }
        for entry in fs::read_dir(more.path()).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
        let store = Store::new(folder.path());
        for n in 0..OPEN + 20 {
            assert_eq!(store.get(&key(n)), Some(record(n)));
        }
    }

    #[test]
    fn a_truncated_pack_keeps_its_whole_records_and_takes_new_ones() {
        let folder = tempfile::tempdir().unwrap();
        let whole = filled(folder.path(), 0..6);
        let mut before = 0;
        for end in 0..=whole.len() {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("cut.pack"), &whole[..end]).unwrap();
            let store = Store::new(folder.path());
            let there: Vec<bool> = (0..6)
                .map(|n| store.get(&key(n)).inspect(|found| assert_eq!(*found, record(n))).is_some())
                .collect();
            let count = there.iter().filter(|there| **there).count();
            assert!(there[..count].iter().all(|there| *there) && count >= before, "{end}: {there:?}");
            before = count;
            store.put(&key(5), &record(5)).unwrap();
            assert_eq!(Store::new(folder.path()).get(&key(5)), Some(record(5)));
        }
        assert_eq!(before, 6);
    }

    /// Threads that write and look at once find every result with its own names.
    #[test]
    fn concurrent_threads_find_every_stored_record() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let named = |n: usize| Record {
            metrics: Metrics::from([(format!("name{}", n % 50), n as f64)]),
            ..Record::default()
        };
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let store = &store;
                scope.spawn(move || {
                    for n in (thread..300).step_by(3) {
                        assert_eq!(store.get(&key(n)), None);
                        store.put(&key(n), &named(n)).unwrap();
                        assert_eq!(store.get(&key(n)), Some(named(n)));
                    }
                });
            }
        });
        for store in [&store, &Store::new(folder.path())] {
            (0..300).for_each(|n| assert_eq!(store.get(&key(n)), Some(named(n))));
        }
    }

    /// While another process writes, what is not there yet comes later.
    #[test]
    fn an_entry_that_was_half_is_found_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let whole = filled(folder.path(), 0..6);
        let other = tempfile::tempdir().unwrap();
        let store = Store::new(other.path());
        for end in 0..=whole.len() {
            fs::write(other.path().join("growing.pack"), &whole[..end]).unwrap();
            store.get(&key(999));
        }
        for n in 0..6 {
            assert_eq!(store.get(&key(n)), Some(record(n)));
        }
    }

    proptest! {
        #[test]
        fn a_changed_byte_loses_results_and_changes_none(at in any::<prop::sample::Index>(), bit in 0..8) {
            let folder = tempfile::tempdir().unwrap();
            let mut bytes = filled(folder.path(), 0..6);
            let other = tempfile::tempdir().unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= 1u8 << bit;
            fs::write(other.path().join("x.pack"), bytes).unwrap();
            let store = Store::new(other.path());
            let found: Vec<Option<Record>> = (0..6).map(|n| store.get(&key(n))).collect();
            for (n, found) in found.iter().enumerate() {
                prop_assert!(found.as_ref().is_none_or(|found| *found == record(n)), "{:?}", found);
            }
            prop_assert!(found.iter().any(Option::is_none));
        }
    }
}
