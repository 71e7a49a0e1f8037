//! Names as the kernel keeps them.

/// Up to a zero.
pub(crate) fn of_bytes(name: &[u8; 16]) -> String {
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}
