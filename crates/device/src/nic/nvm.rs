//! The non-volatile memory: 64 words with the MAC address and a checksum.

use super::regs::eerd;

const WORDS: usize = 64;
/// The place of the checksum: it makes the sum of all words [`SUM`].
const CHECKSUM: usize = 0x3F;
/// The sum of a valid memory.
const SUM: u16 = 0xBABA;

#[derive(Clone, Debug)]
pub(super) struct Nvm {
    words: [u16; WORDS],
    /// The value of [`EERD`](super::regs::EERD).
    read: u32,
    /// The value of [`EEWR`](super::regs::EEWR).
    written: u32,
}

impl Nvm {
    pub(super) fn new(mac: [u8; 6]) -> Self {
        let mut words = [0; WORDS];
        let (pairs, _) = mac.as_chunks();
        for (word, pair) in words.iter_mut().zip(pairs) {
            *word = u16::from_le_bytes(*pair);
        }
        for (at, word) in [
            (0x04, 0x8911), // LEDs as they are by default
            (0x05, 0x1000), // version of the image: 1.0
            (0x0B, 0x0000), // subsystem
            (0x0C, super::VENDOR),
            (0x0D, super::DEVICE),
            (0x0E, super::VENDOR),
            (0x10, 0x0010), // the checksum is valid
            (0x23, 0x8000),
        ] {
            words[at] = word;
        }
        words[CHECKSUM] = words.iter().fold(SUM, |rest, word| rest.wrapping_sub(*word));
        Self { words, read: eerd::DONE, written: eerd::DONE }
    }

    /// The MAC address.
    pub(super) fn mac(&self) -> [u8; 6] {
        let mut mac = [0; 6];
        let (pairs, _) = mac.as_chunks_mut();
        pairs.iter_mut().zip(self.words).for_each(|(pair, word)| *pair = word.to_le_bytes());
        mac
    }

    pub(super) fn read_command(&mut self, command: u32) {
        if command & eerd::START != 0 {
            // What is not there floats high.
            let word = self.words.get(place(command)).copied().unwrap_or(u16::MAX);
            self.read = u32::from(word) << 16 | command & 0xFFFC | eerd::DONE;
        }
    }
    pub(super) fn write_command(&mut self, command: u32) {
        if command & eerd::START != 0 {
            if let Some(word) = self.words.get_mut(place(command)) {
                *word = (command >> 16) as u16;
            }
            self.written = command & 0xFFFC | eerd::DONE;
        }
    }
    pub(super) fn read(&self) -> u32 {
        self.read
    }
    pub(super) fn written(&self) -> u32 {
        self.written
    }
}

fn place(command: u32) -> usize {
    (command as usize & 0xFFFF) >> 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(nvm: &mut Nvm, at: u32) -> u16 {
        nvm.read_command(at << 2 | eerd::START);
        assert_eq!(nvm.read() & 0xFFFF, at << 2 | eerd::DONE);
        (nvm.read() >> 16) as u16
    }

    #[test]
    fn it_adds_up() {
        let mac = [0x02, 0x1D, 0xE5, 1, 2, 3];
        let mut nvm = Nvm::new(mac);
        assert_eq!((0..64).fold(0u16, |sum, at| sum.wrapping_add(word(&mut nvm, at))), SUM);
        assert_eq!((word(&mut nvm, 0), word(&mut nvm, 2), word(&mut nvm, 64)), (0x1D02, 0x0302, 0xFFFF));
        assert_eq!(nvm.mac(), mac);
        nvm.write_command(0xAABB_0000 | 1 << 2 | eerd::START);
        assert_eq!((word(&mut nvm, 1), nvm.mac()), (0xAABB, [0x02, 0x1D, 0xBB, 0xAA, 2, 3]));
    }
}
