//! The machine's time zone, as `TZ` or /etc/localtime says.

#![expect(unsafe_code, reason = "localtime_r has no safe wrapper")]

use core::mem::MaybeUninit;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Seconds that the machine's clocks are ahead of UTC at `unix_seconds`; 0 where that is not known.
pub fn local_offset_s(unix_seconds: i64) -> i32 {
    let mut broken_down = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are to memory of this function, and zeros are a valid `tm`.
    let known =
        unsafe { !libc::localtime_r(&raw const unix_seconds, broken_down.as_mut_ptr()).is_null() };
    if !known {
        return 0;
    }
    // SAFETY: zeros are a valid `tm`, and so is what the call wrote.
    let offset = unsafe { broken_down.assume_init() }.tm_gmtoff;
    i32::try_from(offset).unwrap_or(0)
}

/// The time zone that `TZ` asks for, where this machine does not know it: its clocks are taken for
/// UTC then.
pub fn unknown_zone() -> Option<String> {
    let zone = std::env::var_os("TZ")?;
    let folder = std::env::var_os("TZDIR").map_or_else(|| PathBuf::from(ZONES), PathBuf::from);
    (!is_known(&zone, &folder)).then(|| zone.to_string_lossy().into_owned())
}

/// Where the system has its zones.
const ZONES: &str = "/usr/share/zoneinfo";

/// The forms of tzset(3): a file below `folder` or anywhere, or a rule such as `CET-1CEST`; with
/// nothing in it, UTC is meant.
fn is_known(zone: &OsStr, folder: &Path) -> bool {
    let bytes = zone.as_bytes();
    let bytes = bytes.strip_prefix(b":").unwrap_or(bytes);
    let file = folder.join(OsStr::from_bytes(bytes));
    bytes.is_empty() || file.is_file() || is_rule(bytes)
}

/// Whether it begins as a rule: a name of three letters or more, or any in angle brackets, and an
/// offset.
fn is_rule(bytes: &[u8]) -> bool {
    let name_bytes = if let Some(quoted) = bytes.strip_prefix(b"<") {
        quoted.iter().position(|&byte| byte == b'>').map(|end| end + 2)
    } else {
        let letters = bytes.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        (letters >= 3).then_some(letters)
    };
    let offset = name_bytes.and_then(|len| bytes.get(len..)).unwrap_or_default();
    let offset = offset.strip_prefix(b"-").or_else(|| offset.strip_prefix(b"+")).unwrap_or(offset);
    offset.first().is_some_and(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_less_than_a_day_and_nothing_for_times_that_are_none() {
        for second in [0, 1_700_000_000, -3_000_000_000] {
            assert!(local_offset_s(second).abs() < 86_400);
        }
        assert_eq!(local_offset_s(i64::MAX), 0);
    }

    #[test]
    fn a_zone_is_known_by_its_file_or_as_a_rule() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("Europe")).unwrap();
        let file = folder.path().join("Europe/Berlin");
        std::fs::write(&file, "").unwrap();
        let file = format!(":{}", file.display());
        let rules = ["CET-1CEST,M3.5.0,M10.5.0/3", "<+03>-3", "UTC0", "EST+5EDT"];
        for zone in ["", ":", "Europe/Berlin", ":Europe/Berlin", &*file].into_iter().chain(rules) {
            assert!(is_known(OsStr::new(zone), folder.path()), "{zone}");
        }
        for zone in ["Europe/Berln", "Europe", "CET", "/nowhere", "ab1", "<+03", "-3"] {
            assert!(!is_known(OsStr::new(zone), folder.path()), "{zone}");
        }
    }
}
