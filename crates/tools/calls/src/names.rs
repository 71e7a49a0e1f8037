//! Names as the kernel has them.

use observe::tracepoints::calls::error_name;

/// Up to a zero.
pub(crate) fn of_bytes(name: &[u8; 16]) -> String {
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// The name of an error by its number, such as `ENOENT`.
pub(crate) fn error_label(number: i32) -> String {
    error_name(number).map_or_else(|| format!("error {number}"), ToOwned::to_owned)
}
