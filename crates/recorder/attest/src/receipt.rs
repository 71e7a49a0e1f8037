//! The receipt of an erasure, checked by itself.

use std::path::Path;

use evidence::{ReceiptError, Trust, parse_receipt};
use manifest::parse_manifest;
use units::Timestamp;

use crate::Error;
use crate::files::attested;

/// A receipt names slots, and few are as large as this.
const RECEIPT_BYTES_MAX: u64 = 1 << 28;

/// Checks the receipt of a `forget` or an `erase`: lines that are safe to be shown, and whether it
/// is as it was written, by somebody who is trusted where that is wanted.
///
/// # Errors
/// When it cannot be read, is of a later version, or the manifest of an extract.
pub fn check_receipt(path: &Path, trust: &Trust) -> Result<(Vec<String>, bool), Error> {
    let text = host::read_input_text(path, RECEIPT_BYTES_MAX)?;
    let name = page::safe::path(path);
    let (receipt, sealed, seal) = match parse_receipt(&text) {
        Ok(read) => read,
        Err(source @ ReceiptError::Version(_)) => {
            return Err(Error::Receipt { path: path.to_path_buf(), source });
        }
        Err(_) if parse_manifest(&text).is_ok() => {
            return Err(Error::NoFile { path: path.to_path_buf() });
        }
        // Cut off, or changed so that it is none.
        Err(error) => return Ok((vec![format!("{name}: {error}")], false)),
    };
    let made = Timestamp(receipt.made_ns);
    let found = attested(path, &text, (Some((sealed, &seal)), made), trust)?;
    let mut lines = session_view::attested(&name, &found);
    if found.seal.is_ok() {
        lines.extend(session_view::receipt_lines(&name, &receipt));
    }
    Ok((lines, found.is_right()))
}
