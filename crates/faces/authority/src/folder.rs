//! The folder of an authority: its key and certificate, what it issued, and the list of what is
//! revoked.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use host::{Locked, Output, OutputFolder, Target};
use rcgen::KeyPair;

use crate::Error;
use crate::issue::{certificate, own, revocations};
use crate::ledger::{Issued, Kind, Ledger, positive};

const KEY: &str = "ca.key";
const CERTIFICATE: &str = "ca.pem";
const LEDGER: &str = "issued";
const REVOCATIONS: &str = "crl.pem";

const DAY_S: i64 = 24 * 60 * 60;
const NAME_LEN_MAX: usize = 40;
/// Some 700 000 certificates.
const LEDGER_BYTES_MAX: u64 = 64 << 20;

/// Whom a certificate is wanted for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// What for.
    pub kind: Kind,
    /// Whose it is.
    pub name: String,
    /// Where a service is asked: names and numbers of its host.
    pub addresses: Vec<String>,
    /// It counts for so long.
    pub days: u32,
}

/// A certificate that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Enrolled {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The key was there before: the certificate is renewed.
    pub is_renewed: bool,
    /// It counts until then.
    pub until_s: i64,
}

/// An authority, which no other process uses meanwhile.
#[derive(Debug)]
pub struct Authority {
    folder: PathBuf,
    key: KeyPair,
    ledger: Ledger,
    list_days: u32,
    _alone: Locked,
}

impl Authority {
    /// Makes one in a new folder; its certificate counts for so many days, and its list of
    /// revocations, of nothing yet, for `list_days`.
    ///
    /// # Errors
    /// When the folder is there and not empty, or cannot be made.
    pub fn init(folder: &Path, (days, list_days): (u32, u32), now_s: i64) -> Result<(), Error> {
        if host::target(&folder.join(KEY))? != Target::Absent {
            return Err(Error::Exists { folder: folder.to_path_buf() });
        }
        let key = KeyPair::generate()?;
        let output = OutputFolder::create(folder)?;
        let certificate = own(&key, host::random_bytes()?, (now_s, after(now_s, days)))?;
        let ledger = Ledger::default();
        let list = revocations(&key, &ledger, (now_s, after(now_s, list_days)))?;
        Ok(output.finish_with([
            (KEY, key.serialize_pem()),
            (CERTIFICATE, certificate),
            (LEDGER, ledger.text()),
            (REVOCATIONS, list),
        ])?)
    }

    /// The authority of a folder; lists that it writes count for `list_days`.
    ///
    /// # Errors
    /// When there is none, or others may read its key.
    pub fn open(folder: &Path, list_days: u32) -> Result<Self, Error> {
        let key_path = folder.join(KEY);
        if host::target(&key_path)? == Target::Absent {
            return Err(Error::Absent { folder: folder.to_path_buf() });
        }
        let alone = Locked::take(folder)?;
        let key = read_pair(&key_path)?;
        let path = folder.join(LEDGER);
        let ledger = Ledger::read(&host::read_private(&path, LEDGER_BYTES_MAX)?);
        let ledger = ledger.map_err(|line| {
            let why = format!("line {line} is no certificate that was issued");
            Error::File { path, why }
        })?;
        Ok(Self { folder: folder.to_path_buf(), key, ledger, list_days, _alone: alone })
    }

    /// What was issued.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Makes a certificate, for the key that is there or a new one.
    ///
    /// # Errors
    /// When the name or an address is none, the key was revoked, or a file cannot be written.
    pub fn enrol(&mut self, wanted: &Wanted, now_s: i64) -> Result<Enrolled, Error> {
        let Wanted { kind, name, addresses, days } = wanted;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.is_empty() || name.len() > NAME_LEN_MAX || !name.bytes().all(is_name) {
            return Err(Error::Name(name.clone()));
        }
        let until_s = after(now_s, *days);
        let serial = positive(host::random_bytes()?);
        let (kind, revoked_s) = (*kind, None);
        let issued = Issued { serial, kind, name: name.clone(), until_s, revoked_s };
        let path = |end: &str| self.folder.join(format!("{}-{name}.{end}", kind.name()));
        let (key_path, certificate_path) = (path("key"), path("pem"));
        let is_renewed = host::target(&key_path)? != Target::Absent;
        // Who has the old certificate has the key, too.
        if is_renewed && self.ledger.is_revoked(kind, name) {
            return Err(Error::Revoked { key: key_path });
        }
        let key = if is_renewed { read_pair(&key_path)? } else { KeyPair::generate()? };
        let text = certificate(&self.key, &key, &issued, (addresses, now_s))?;
        // A line for a certificate that was not made after all does no harm.
        self.ledger.issued.push(issued);
        self.write_ledger()?;
        if !is_renewed {
            let mut output = Output::create(&key_path, false)?;
            let written = output.write_all(key.serialize_pem().as_bytes());
            written
                .map_err(|error| Error::File { path: key_path.clone(), why: error.to_string() })?;
            output.finish()?;
        }
        host::write_file(&certificate_path, text.as_bytes())?;
        self.write_list(now_s)?;
        Ok(Enrolled { certificate: certificate_path, key: key_path, is_renewed, until_s })
    }

    /// Revokes all that these have, and writes the list; gives how many certificates of each
    /// counted still.
    ///
    /// # Errors
    /// When nobody has such a name: nothing is changed then.
    pub fn revoke(&mut self, names: &[String], now_s: i64) -> Result<Vec<usize>, Error> {
        let mut ledger = self.ledger.clone();
        let revoked =
            names.iter().map(|name| ledger.revoke(name, now_s).ok_or_else(|| self.unknown(name)));
        let revoked = revoked.collect::<Result<Vec<usize>, Error>>()?;
        self.ledger = ledger;
        self.write_ledger()?;
        self.write_list(now_s)?;
        Ok(revoked)
    }

    /// Where the list of revocations is.
    pub fn list(&self) -> PathBuf {
        self.folder.join(REVOCATIONS)
    }

    /// Where its own certificate is.
    pub fn certificate(&self) -> PathBuf {
        self.folder.join(CERTIFICATE)
    }

    fn unknown(&self, name: &str) -> Error {
        let names: Vec<&str> = self.ledger.issued.iter().map(|issued| &*issued.name).collect();
        let has = if names.is_empty() { "; nobody has any" } else { "" };
        Error::Unknown(page::safe::printable(name), has.to_owned())
    }

    fn write_ledger(&self) -> Result<(), Error> {
        let text = self.ledger.text();
        host::change_private(&self.folder.join(LEDGER), LEDGER_BYTES_MAX, &mut |_| Ok(text.clone()))
    }

    fn write_list(&self, now_s: i64) -> Result<(), Error> {
        let until_s = after(now_s, self.list_days);
        let text = revocations(&self.key, &self.ledger, (now_s, until_s))?;
        Ok(host::write_file(&self.list(), text.as_bytes())?)
    }
}

fn after(now_s: i64, days: u32) -> i64 {
    now_s.saturating_add(i64::from(days).saturating_mul(DAY_S))
}

fn read_pair(path: &Path) -> Result<KeyPair, Error> {
    let text = host::read_key(path)?;
    let wrong = |error: rcgen::Error| Error::File {
        path: path.to_path_buf(),
        why: format!("it is no private key: {error}"),
    };
    KeyPair::from_pem(&text).map_err(wrong)
}

#[cfg(test)]
mod tests;
