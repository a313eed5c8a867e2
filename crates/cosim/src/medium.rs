//! The data of a storage device in a sparse file.

use nix::fcntl::{FallocateFlags, Flock, FlockArg, fallocate};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tlplab_device::nvme::{Medium, MediumError};
use tlplab_experiment::device_models::ModelSpec;
use tlplab_experiment::{Error, Experiment, FileKind};

/// The zeros written at once, where holes cannot be punched into a file.
const ZEROS: usize = 1 << 16;

/// A medium whose bytes are a file's. What is written is in the file at once: what a device may still lose, it keeps in its cache.
/// A file that is not there is made by the first write: who only looks at an experiment leaves nothing behind.
pub struct FileMedium {
    path: PathBuf,
    bytes: u64,
    file: Option<Flock<File>>,
    /// The first write that failed; the next flush tells of it.
    failed: Option<io::Error>,
}

impl FileMedium {
    /// The file at `path`, which is or will be `bytes` long.
    ///
    /// # Errors
    /// The fact and the fix.
    pub fn open(path: &Path, bytes: u64) -> Result<Self, String> {
        let mut medium = Self { path: path.into(), bytes, file: None, failed: None };
        if path.exists() {
            let found =
                medium.file(false).and_then(|file| file.metadata()).map_err(|error| error.to_string())?.len();
            if found != bytes {
                return Err(format!(
                    "it has {found} B, but the device has {bytes} B; change size, or use another file"
                ));
            }
        } else if !path.parent().is_none_or(|folder| folder.as_os_str().is_empty() || folder.is_dir()) {
            return Err("its folder does not exist".into());
        }
        Ok(medium)
    }

    /// The file, which is made if it is not there and may be.
    fn file(&mut self, create: bool) -> io::Result<&File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                let file = OpenOptions::new()
                    .read(true)
                    .write(true)
                    .create(create)
                    .truncate(false)
                    .open(&self.path)?;
                let busy = |_| io::Error::other("another device or another run has it open");
                let file = Flock::lock(file, FlockArg::LockExclusiveNonblock)
                    .map_err(|(_, errno)| errno)
                    .map_err(busy)?;
                if create {
                    file.set_len(self.bytes)?; // without a block on the disk
                }
                file
            }
        };
        Ok(self.file.insert(file))
    }

    fn write_at(&mut self, data: &[u8], at: u64) {
        if let Err(error) = self.file(true).and_then(|file| file.write_all_at(data, at)) {
            self.failed.get_or_insert(error);
        }
    }
}

impl Medium for FileMedium {
    fn read(&self, at: u64, out: &mut [u8]) {
        // What cannot be read is zero, as what was never written; a file that is there is long enough.
        let read = self.file.as_ref().is_some_and(|file| file.read_exact_at(out, at).is_ok());
        if !read {
            out.fill(0);
        }
    }

    fn write(&mut self, at: u64, data: &[u8]) {
        self.write_at(data, at);
    }

    fn discard(&mut self, at: u64, bytes: u64) {
        let Some(file) = &self.file else { return };
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        if fallocate(&**file, flags, at as i64, bytes as i64).is_ok() {
            return;
        }
        let zeros = [0; ZEROS];
        let mut done = 0;
        while done < bytes {
            let piece = (bytes - done).min(ZEROS as u64);
            self.write_at(&zeros[..piece as usize], at + done);
            done += piece;
        }
    }

    fn flush(&mut self) -> Result<(), MediumError> {
        match self.failed.take() {
            Some(error) => Err(MediumError(error.to_string())),
            None => Ok(()),
        }
    }
}

/// The media of the devices that name a file, by the devices' names, for [`Inputs::media`](tlplab_experiment::run::Inputs::media).
///
/// # Errors
/// The first file that cannot be used, where the experiment names it.
pub fn open_all(experiment: &Experiment) -> Result<BTreeMap<String, Box<dyn Medium>>, Error> {
    let mut media: BTreeMap<String, Box<dyn Medium>> = BTreeMap::new();
    for device in &experiment.devices {
        let ModelSpec::Nvme(spec) = &device.model else { continue };
        let Some(path) = &spec.file else { continue };
        let named = |file: &&tlplab_experiment::NeededFile| {
            file.kind == FileKind::Medium && file.is_named_by(&device.name, "file")
        };
        let place = experiment.files.iter().find(named).expect("a file that a key names has its place");
        let bytes = spec.config.namespaces.iter().map(|namespace| namespace.bytes).sum();
        let medium = FileMedium::open(Path::new(path), bytes).map_err(|why| place.missing(&why))?;
        media.insert(device.name.clone(), Box::new(medium));
    }
    Ok(media)
}
