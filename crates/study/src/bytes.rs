//! Texts and numbers in bytes, as results are kept.

/// Adds a text with its length.
pub(crate) fn put_text(bytes: &mut Vec<u8>, text: &str) {
    // A text of four gigabytes is no message of a run.
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    bytes.extend(length.to_le_bytes());
    bytes.extend(&text.as_bytes()[..length as usize]);
}

/// Takes a text with its length off the beginning; `None` if it is not whole.
pub(crate) fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let length = u32::from_le_bytes(take(bytes)?);
    let (text, rest) = bytes.split_at_checked(length as usize)?;
    *bytes = rest;
    std::str::from_utf8(text).ok()
}

/// Takes so many bytes off the beginning; `None` if there are fewer.
pub(crate) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}
