//! Output files that are either whole or not there.

use crate::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file being written. Its content goes to a temporary file beside it and takes its name in [`Output::commit`], so that whoever
/// reads the path sees the old content or the new, never half of it. Dropped without a commit, it leaves nothing behind.
///
/// `-` is standard output. Pipes and devices cannot be replaced by a rename and are written directly.
pub struct Output {
    path: PathBuf,
    sink: Sink,
}

enum Sink {
    Stdout(BufWriter<io::Stdout>),
    Direct(BufWriter<File>),
    Atomic { writer: BufWriter<NamedTempFile>, target: PathBuf },
}

impl Output {
    /// Opens `path` for writing.
    ///
    /// # Errors
    /// The directory does not exist or cannot be written to; `path` is a directory.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref().to_path_buf();
        let sink = Sink::open(&path).map_err(|error| Error::io(&path, "write", error))?;
        Ok(Self { path, sink })
    }

    /// Adds `bytes`, and keeps none back: who reads a pipe sees what there is.
    ///
    /// # Errors
    /// The disk is full; nobody reads the pipe.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.write_all(bytes).and_then(|()| self.flush());
        written.map_err(|error| Error::io(&self.path, "write", error))
    }

    /// Ends the file and gives it its name.
    ///
    /// # Errors
    /// The disk is full, or the rename was refused. The old content of `path` is then untouched.
    pub fn commit(self) -> Result<(), Error> {
        let Self { path, sink } = self;
        sink.commit().map_err(|error| Error::io(&path, "write", error))
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Sink {
    fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdout(BufWriter::new(io::stdout())));
        }
        // A symbolic link keeps pointing where it points: the file it names is replaced, not the link.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        match fs::metadata(&target) {
            Ok(found) if found.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Ok(found) if !found.is_file() => {
                let file = File::options().write(true).open(&target)?;
                return Ok(Self::Direct(BufWriter::new(file)));
            }
            _ => {}
        }
        let directory = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".tlplab-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // As an ordinary new file: the umask decides. (Temporary files are private otherwise.)
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(directory)?;
        Ok(Self::Atomic { writer: BufWriter::with_capacity(1 << 16, file), target })
    }

    fn commit(self) -> io::Result<()> {
        match self {
            Self::Stdout(mut writer) => writer.flush(),
            Self::Direct(mut writer) => writer.flush(),
            Self::Atomic { writer, target } => {
                let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
                file.persist(target).map_err(|refused| refused.error)?;
                Ok(())
            }
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Stdout(writer) => writer,
            Self::Direct(writer) => writer,
            Self::Atomic { writer, .. } => writer,
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink.writer().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.sink.writer().flush()
    }
}

/// Writes `content` to `path`, whole or not at all; `-` is standard output.
///
/// # Errors
/// The errors of [`Output::create`] and [`Output::commit`].
pub fn write(path: impl AsRef<Path>, content: &[u8]) -> Result<(), Error> {
    let mut output = Output::create(path)?;
    output.append(content)?;
    output.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_content_stays_until_the_new_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("result.json");
        write(&path, b"old").unwrap();
        let mut output = Output::create(&path).unwrap();
        output.write_all(b"half").unwrap();
        output.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(output);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "the temporary file is gone");
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[cfg(unix)]
    #[test]
    fn links_and_devices_keep_their_nature() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        write(&file, b"one").unwrap();
        symlink(&file, &link).unwrap();
        write(&link, b"two").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_ne!(fs::metadata(&file).unwrap().permissions().mode() & 0o044, 0, "others may read it");
        write("/dev/null", b"nothing").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn errors_name_the_path() {
        let error = Output::create("/no/such/directory/x.html").err().unwrap().to_string();
        assert!(error.starts_with("/no/such/directory/x.html: cannot write:"), "{error}");
        let directory = tempfile::tempdir().unwrap();
        let error = Output::create(directory.path()).err().unwrap().to_string();
        assert!(error.contains("directory"), "{error}");
    }
}
