//! Datagrams as nobody would write them, and nearly as somebody would: made of bytes, so that a fuzzer, or chance, chooses.

#[path = "choices.rs"]
mod choices;

pub(crate) use choices::Choices;
use tlplab_nettlp::MAX_DATAGRAM;

/// A datagram, in a buffer that is used again and again.
pub(crate) struct Letter {
    bytes: [u8; MAX_DATAGRAM],
    len: usize,
    pub(crate) port: u16,
}

impl Letter {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; MAX_DATAGRAM], len: 0, port: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Random bytes, or nearly a TLP: its fields are likely ones, and then a byte may be changed and its end cut off.
    pub(crate) fn write(&mut self, choices: &mut Choices<'_>) {
        self.len = 0;
        let kind = choices.byte();
        let tag = choices.of(&[0u8, 0, 1, 2, 3, 17, 255]);
        self.port = match choices.byte() {
            0..=99 => 0x3000 + u16::from(tag),
            100..=219 => 0x4000 + u16::from(tag & 15),
            220..=229 => 0x5001,
            230..=239 => 12287,
            240..=247 => 0x5002,
            _ => choices.half(),
        };
        match kind {
            0..=39 => {
                for _ in 0..choices.byte() % 48 {
                    let byte = choices.byte();
                    self.push(&[byte]);
                }
                return;
            }
            40..=59 => {
                // One of the services: six bytes, or four.
                let head = choices.of(&[0x3Cu8, 0x7C, 0x44, 0x10, 0x11, 1, 2, 3]);
                // Mostly such data as leave the function switched on, and BAR 4 where it is.
                let register = choices.of(&[0u8, 1, 1, 3, 5, 8, 8, 0x10]);
                let (high, low) =
                    (choices.of(&[0xA0u8, 0xB0, 0xB0, 0xC0]), choices.of(&[6u8, 6, 6, 6, 0x0C]));
                let rest = [head, register, high, 0, 0, low];
                return self.push(&rest[..if self.port == 12287 { 4 } else { 6 }]);
            }
            _ => {}
        }
        // Some numbers come again and again, and all of them come.
        let sequence = choices.half();
        let sequence = if sequence & 0x8000 == 0 { sequence & 0x3F } else { sequence };
        self.push(&[(sequence >> 8) as u8, sequence as u8, 0, 0, 0, choices.byte()]);
        self.tlp(kind, tag, choices);
        if self.bytes[8] & 0x80 != 0 && self.len + 4 <= MAX_DATAGRAM {
            self.push(&[0; 4]);
        }
        if choices.byte() < 32 {
            let at = usize::from(choices.half()) % self.len;
            self.bytes[at] = choices.byte();
        }
        if choices.byte() < 16 {
            self.len = usize::from(choices.half()) % self.len;
        }
    }

    fn tlp(&mut self, kind: u8, tag: u8, choices: &mut Choices<'_>) {
        let dw = choices.of(&[1u16, 1, 1, 2, 16, 64, 128, 0]);
        let data = 4 * usize::from(if dw == 0 { 1024 } else { dw });
        let id = choices.of(&[0x1B00u16, 0x1B00, 0x1C00, 0x0000, 0x0000, 0x1D00]);
        let enables = choices.of(&[if dw == 1 { 0x0Fu8 } else { 0xFF }, 0x01, 0x81, 0xF0, 0x00, 0xA5]);
        let address = choices.of(&[
            0x0000_1000u32,
            0x0000_1004,
            0x000F_FFC0,
            0xA000_0000,
            0xB000_0000,
            0xB000_0040,
            0xB000_1000,
            0xB00F_F000,
            0x9000_0000,
            0xFEE0_0000,
        ]);
        let [dw_high, dw_low] = dw.to_be_bytes();
        // EP, or a digest.
        let dw_high = dw_high | choices.of(&[0u8, 0, 0, 0, 0, 0, 0x40, 0x80]);
        let [id_high, id_low] = id.to_be_bytes();
        match kind {
            60..=119 => self.push(&[0x00, 0, dw_high, dw_low, id_high, id_low, tag, enables]),
            120..=169 => self.push(&[0x40, 0, dw_high, dw_low, id_high, id_low, tag, enables]),
            170..=229 => {
                // An answer; status mostly good, byte count mostly what is there.
                let status = choices.of(&[0u8, 0, 0, 0, 0x20, 0x80]);
                let count = choices.of(&[data as u16 & 0xFFF, 4, 64, 512, 1]);
                let with_data = status == 0;
                let length = if with_data { [dw_high, dw_low] } else { [0, 0] };
                self.push(&[if with_data { 0x4A } else { 0x0A }, 0, length[0], length[1], 0x1C, 0]);
                self.push(&[status | (count >> 8) as u8, count as u8, id_high, id_low, tag]);
                self.push(&[choices.of(&[0u8, 0x40, 0x04, 0x44])]);
                if with_data {
                    self.data(data, choices.byte());
                }
                return;
            }
            _ => {
                let format =
                    choices.of(&[0x20u8, 0x60, 0x02, 0x42, 0x04, 0x4C, 0x30, 0x74, 0x1B, 0x5B, 0x80]);
                let code = choices.of(&[enables, 0x30, 0x7F]);
                let traffic_class = choices.byte() & 0x70 & u8::from(format == 0x20).wrapping_neg();
                self.push(&[format, traffic_class, dw_high, dw_low, id_high, id_low, tag, code]);
                self.push(&[0; 4]);
            }
        }
        self.push(&address.to_be_bytes());
        if self.bytes[6] & 0x40 != 0 {
            self.data(data, choices.byte());
        }
    }

    fn data(&mut self, bytes: usize, value: u8) {
        let end = (self.len + bytes).min(MAX_DATAGRAM);
        self.bytes[self.len..end].fill(value);
        self.len = end;
    }

    /// Its bytes.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
