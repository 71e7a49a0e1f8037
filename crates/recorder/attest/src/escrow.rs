//! Whether an escrow is that of an extract.

use std::path::Path;

use evidence::{Hasher, sha256};
use manifest::{NamedEscrow, parse_manifest};
use pseudonyms::Escrow;
use units::hex;

use crate::Error;
use crate::files::{MANIFEST_BYTES_MAX, with_suffix};

/// An escrow with all the stations that are remembered has a few MiB.
const ESCROW_BYTES_MAX: u64 = 64 << 20;

/// Why it is not known that an escrow leads back from the addresses of a file, in a line; nothing
/// where it names the file, or the manifest beside the file names its key. Of a part that another
/// program has cut out nothing is known.
///
/// # Errors
/// [`Error::OtherEscrow`] when that manifest names another one; when the file cannot be read.
pub fn doubt_of_escrow(escrow: &Escrow, file: &Path) -> Result<Option<String>, Error> {
    let (name, of) = (page::safe::path(file), page::safe::printable(&escrow.of));
    let doubt = format!(
        "{name} is not {of} itself, which this escrow is of: if it is no part of that, the \
         addresses are wrong"
    );
    Ok((!is_escrow_of(escrow, file)?).then_some(doubt))
}

fn is_escrow_of(escrow: &Escrow, file: &Path) -> Result<bool, Error> {
    let hash = hash_of(file)?;
    if hex(&hash) == escrow.sha256 {
        return Ok(true);
    }
    // Without a manifest, or with one that is of another file, nothing is known.
    let text = host::read_input_text(&with_suffix(file, ".json"), MANIFEST_BYTES_MAX);
    let Ok(text) = text else { return Ok(false) };
    let Ok(manifest) = parse_manifest(&text) else { return Ok(false) };
    let is_of_file = manifest.outputs.iter().any(|output| output.sha256 == hash);
    match manifest.escrow.filter(|_| is_of_file) {
        Some(named) if named.key_id != escrow.key_id() => {
            Err(Error::OtherEscrow { path: file.to_path_buf(), of: escrow.of.clone() })
        }
        named => Ok(named.is_some()),
    }
}

fn hash_of(file: &Path) -> Result<[u8; 32], Error> {
    let mut hasher = Hasher::default();
    let read = hasher.read_to_end(&mut host::open_input(file)?);
    read.map_err(|source| Error::Read { path: file.to_path_buf(), source })?;
    Ok(hasher.finish().sha256)
}

/// What is wrong with the escrow beside an extract, which need not be there.
pub(crate) fn unlike_escrow(named: &NamedEscrow, extract: &Path) -> Result<Option<String>, Error> {
    let path = with_suffix(extract, ".escrow");
    if host::target(&path)? == host::Target::Absent {
        return Ok(None);
    }
    let is_same = sha256(&host::read_input_bytes(&path, ESCROW_BYTES_MAX)?) == named.sha256;
    let name = page::safe::path(&path);
    Ok((!is_same).then(|| format!("{name}: not the escrow that was written with the extract")))
}
