//! What becomes of values on their way into the lists: distinct, bounded, text that can be shown.

use wire::Names;

/// Values kept a list.
pub(crate) const VALUE_COUNT_MAX: usize = 16;

/// Details kept a session.
pub(crate) const DETAIL_COUNT_MAX: usize = 32;

/// Bytes kept a value.
pub(crate) const VALUE_LEN_MAX: usize = 256;

/// Adds a value that is not in the list yet, while there is space.
pub(crate) fn keep<T: PartialEq>(list: &mut Vec<T>, value: T) {
    if list.len() < VALUE_COUNT_MAX && !list.contains(&value) {
        list.push(value);
    }
}

/// The value as text of bounded length, which takes no more memory than it has bytes: characters
/// that cannot be shown are replaced.
pub(crate) fn text(bytes: &[u8]) -> String {
    const REPLACED: char = char::REPLACEMENT_CHARACTER;
    let bytes = bytes.get(..VALUE_LEN_MAX).unwrap_or(bytes);
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let invalid = (!chunk.invalid().is_empty()).then_some(REPLACED);
        let valid = chunk.valid().chars().map(|c| if c.is_control() { REPLACED } else { c });
        for c in valid.chain(invalid) {
            if text.len() + c.len_utf8() > VALUE_LEN_MAX {
                break;
            }
            text.push(c);
        }
    }
    text.shrink_to_fit();
    text
}

pub(crate) fn keep_text(list: &mut Vec<String>, bytes: &[u8]) {
    let is_known = list.iter().any(|known| known.as_bytes() == bytes);
    if !bytes.is_empty() && !is_known && list.len() < VALUE_COUNT_MAX {
        keep(list, text(bytes));
    }
}

/// Adds `key=value` to the details, for a value that is text already.
pub(crate) fn detail_text(names: &mut Names, key: &str, value: &str) {
    detail(names, key, value.as_bytes());
}

/// Adds `key=value` to the details; a value that is empty says nothing.
pub(crate) fn detail(names: &mut Names, key: &str, value: &[u8]) {
    detail_of_many(names, key, value, DETAIL_COUNT_MAX);
}

/// The same where so many are kept.
pub(crate) fn detail_of_many(names: &mut Names, key: &str, value: &[u8], count_max: usize) {
    let list = &mut names.app_detail;
    if value.is_empty() || list.len() >= count_max {
        return;
    }
    let value = text(value);
    let mut detail = String::with_capacity(key.len() + 1 + value.len());
    detail.extend([key, "=", &value]);
    if !list.contains(&detail) {
        list.push(detail);
    }
}
