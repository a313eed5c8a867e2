//! As much of the protobuf wire format as a Perfetto trace needs.

/// A message under construction. Fields are appended; nested messages get a length of four bytes (a varint padded with
/// continuation bits, as Perfetto's own writer does), so that nothing moves once it is written.
#[derive(Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn key(&mut self, field: u32, wire_type: u64) {
        self.varint(u64::from(field) << 3 | wire_type);
    }

    /// A `uint64`, `uint32`, `int64` that is not negative, `bool` or `enum`.
    pub(super) fn uint(&mut self, field: u32, value: u64) {
        self.key(field, 0);
        self.varint(value);
    }

    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        self.key(field, 1);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn string(&mut self, field: u32, text: &str) {
        self.key(field, 2);
        self.varint(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// A nested message, filled by `fill`.
    ///
    /// # Panics
    /// It is 256 MiB or longer.
    pub(super) fn nested(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        self.key(field, 2);
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        fill(self);
        let length = self.bytes.len() - at - 4;
        assert!(length < 1 << 28, "a nested message of {length} bytes");
        for (i, byte) in self.bytes[at..at + 4].iter_mut().enumerate() {
            let more = if i < 3 { 0x80 } else { 0 };
            *byte = (length >> (7 * i)) as u8 & 0x7f | more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_encoded_as_in_the_protobuf_guide() {
        let mut message = Message::default();
        message.uint(1, 150);
        message.string(2, "testing");
        message.nested(3, |inner| inner.uint(1, 150));
        message.fixed64(4, 1);
        // The first three are the examples of the protobuf encoding guide, the length of the third padded.
        let expected = [
            &[0x08, 0x96, 0x01][..],
            &[0x12, 0x07, b't', b'e', b's', b't', b'i', b'n', b'g'],
            &[0x1a, 0x83, 0x80, 0x80, 0x00, 0x08, 0x96, 0x01],
            &[0x21, 1, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(message.as_bytes(), expected.concat());
    }
}
