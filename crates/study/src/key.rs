//! The inputs that a result follows from, as one hash.

use sha2::{Digest, Sha256};
use std::fmt;

/// SHA-256 of all that a result follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// The hash of one thing.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The key of several parts: which they are, and what each is. Lengths keep them apart.
    pub fn of_parts(parts: &[(&str, &[u8])]) -> Self {
        let mut hash = Sha256::new();
        for (name, content) in parts {
            for bytes in [name.as_bytes(), content] {
                hash.update((bytes.len() as u64).to_le_bytes());
                hash.update(bytes);
            }
        }
        Self(hash.finalize().into())
    }

    /// The key of a run: what it is, and the files that it names.
    pub(crate) fn of_run<'a>(mut parts: Vec<(&str, &'a [u8])>, files: &'a [(String, Self)]) -> Self {
        parts.extend(files.iter().map(|(_, key)| ("file", &key.0[..])));
        Self::of_parts(&parts)
    }

    /// Reads what it displays.
    pub fn read(text: &str) -> Option<Self> {
        let byte = |n: usize| u8::from_str_radix(text.get(2 * n..2 * n + 2)?, 16).ok();
        let mut bytes = [0; 32];
        for (n, slot) in bytes.iter_mut().enumerate() {
            *slot = byte(n)?;
        }
        (text.len() == 64).then_some(Self(bytes))
    }

    /// The key of these bytes, which were a key's before.
    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_sha_256() {
        // FIPS 180-2, B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Key::of(b"abc").to_string(), abc);
        assert_eq!(Key::read(abc), Some(Key::of(b"abc")));
        assert_eq!(Key::read(&abc[1..]), None);
        assert_eq!(Key::read(&abc.replace('b', "x")), None);
    }

    #[test]
    fn parts_are_kept_apart() {
        let one = Key::of_parts(&[("a", b"bc"), ("d", b"")]);
        for other in [
            &[("ab", &b"c"[..]), ("d", b"")][..],
            &[("a", b"bc")],
            &[("a", b"bcd"), ("", b"")],
            &[("d", b""), ("a", b"bc")],
        ] {
            assert_ne!(one, Key::of_parts(other));
        }
    }
}
