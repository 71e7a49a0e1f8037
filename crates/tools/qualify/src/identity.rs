//! Whether a qualification is of the disk that is at hand.

use std::path::Path;

use blockdev::disk::{Layer, layers};

use crate::error::Error;
use crate::report::{Qualification, TargetKind};

/// Why a qualification is not of a target.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the text of each variant says what its fields are")]
pub enum Other {
    #[error("it is of a modelled disk")]
    Model,
    #[error("it is of a device, and this is a file")]
    OfDevice,
    #[error("it is of a file, and this is a device")]
    OfFile,
    #[error("it is of the disk {measured}, and this is {here}")]
    Serial { measured: String, here: String },
    #[error("it is of a disk {measured}, and this is {here}")]
    Kind { measured: String, here: String },
    #[error("it is of {measured} bytes, and this has {here}")]
    Size { measured: u64, here: u64 },
}

/// The beginning of the BLAKE3 of a report's file: `b3sum` shows it.
pub fn report_id(text: &str) -> [u8; 16] {
    let hash = blake3::hash(text.as_bytes());
    *hash.as_bytes().first_chunk().expect("a hash has 32 bytes")
}

/// Why `found` is not of what is, or is to be made, at `path`; `None` when it is. Disks that report
/// no serial number are known by model and size.
pub fn other(found: &Qualification, path: &Path) -> Result<Option<Other>, Error> {
    let is_device = host::target(path)? == host::Target::BlockDevice;
    match (found.target.kind, is_device) {
        (TargetKind::Model, _) => return Ok(Some(Other::Model)),
        (TargetKind::Device, false) => return Ok(Some(Other::OfDevice)),
        (TargetKind::OwnFile | TargetKind::File, true) => return Ok(Some(Other::OfFile)),
        _ => {}
    }
    let here = match host::target(path)? {
        // What is not there yet will lie where its folder lies.
        host::Target::Absent => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            if host::target(folder)? == host::Target::Absent {
                return Err(Error::NoDirectory { path: path.to_path_buf() });
            }
            layers(folder)?
        }
        _ => layers(path)?,
    };
    Ok(differ(found.target.layers.first(), here.first()))
}

fn differ(measured: Option<&Layer>, here: Option<&Layer>) -> Option<Other> {
    // A file system without a device has nothing to be known by.
    let (Some(measured), Some(here)) = (measured, here) else { return None };
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "without a name".to_owned());
    if let (Some(one), Some(other)) = (&measured.serial, &here.serial) {
        let (measured, here) = (one.clone(), other.clone());
        if measured != here {
            return Some(Other::Serial { measured, here });
        }
    }
    if measured.model != here.model {
        let (measured, here) = (text(&measured.model), text(&here.model));
        return Some(Other::Kind { measured, here });
    }
    let (measured, here) = (measured.size_bytes, here.size_bytes);
    (measured != here).then_some(Other::Size { measured, here })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(serial: Option<&str>, model: Option<&str>, size_bytes: u64) -> Layer {
        let (serial, model) = (serial.map(str::to_owned), model.map(str::to_owned));
        Layer { serial, model, size_bytes, ..Layer::default() }
    }

    #[test]
    fn disks_are_the_same_by_serial_number_model_and_size() {
        let one = disk(Some("ZA1"), Some("X"), 8);
        assert_eq!(differ(Some(&one), Some(&one)), None);
        let text = |here: Layer| differ(Some(&one), Some(&here)).unwrap().to_string();
        assert_eq!(text(disk(Some("ZA2"), Some("X"), 8)), "it is of the disk ZA1, and this is ZA2");
        assert_eq!(text(disk(None, Some("Y"), 8)), "it is of a disk X, and this is Y");
        assert_eq!(text(disk(None, Some("X"), 9)), "it is of 8 bytes, and this has 9");
        assert_eq!(differ(Some(&disk(None, None, 8)), Some(&disk(None, None, 8))), None);
        assert_eq!(differ(Some(&one), None), None);
    }
}
