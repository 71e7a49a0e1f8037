//! What becomes of values on their way into the lists: distinct, bounded, text that can be shown.

use wire::Names;

/// Values kept a list.
pub(crate) const VALUE_COUNT_MAX: usize = 16;

/// Details kept a session.
pub(crate) const DETAIL_COUNT_MAX: usize = 32;

/// Bytes kept a value.
pub(crate) const VALUE_LEN_MAX: usize = 256;

/// Adds a value that is not in the list yet, while there is room.
pub(crate) fn keep<T: PartialEq>(list: &mut Vec<T>, value: T) {
    if list.len() < VALUE_COUNT_MAX && !list.contains(&value) {
        list.push(value);
    }
}

/// The value as text of bounded length: characters that cannot be shown are replaced.
pub(crate) fn text(bytes: &[u8]) -> String {
    let bytes = bytes.get(..VALUE_LEN_MAX).unwrap_or(bytes);
    let mut text = String::from_utf8_lossy(bytes).replace(|c: char| c.is_control(), "\u{fffd}");
    let mut end = text.len().min(VALUE_LEN_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

pub(crate) fn keep_text(list: &mut Vec<String>, bytes: &[u8]) {
    let is_known = list.iter().any(|known| known.as_bytes() == bytes);
    if !bytes.is_empty() && !is_known && list.len() < VALUE_COUNT_MAX {
        keep(list, text(bytes));
    }
}

/// Adds `key=value` to the details.
pub(crate) fn detail(names: &mut Names, key: &str, value: &[u8]) {
    detail_text(names, key, &text(value));
}

/// Adds `key=value` to the details; a value that is empty says nothing.
pub(crate) fn detail_text(names: &mut Names, key: &str, value: &str) {
    let list = &mut names.app_detail;
    if value.is_empty() || list.len() >= DETAIL_COUNT_MAX {
        return;
    }
    let detail = format!("{key}={}", text(value.as_bytes()));
    if !list.contains(&detail) {
        list.push(detail);
    }
}
