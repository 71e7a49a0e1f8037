//! Secrets that this machine has sealed, by systemd's program for them.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use zeroize::Zeroizing;

use crate::Error;

/// What seals and opens credentials, by a TPM or by a key of the host.
const PROGRAM: &str = "systemd-creds";

/// What is in an encrypted credential, if this machine opens it. Its name is that of its file, and
/// part of what was sealed. Nothing of it goes into a file.
///
/// # Errors
/// The program is not there; it does not open this one.
pub fn open_credential(path: &Path, content: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
    let failed = |error| Error::path("start", Path::new(PROGRAM), error);
    let name = path.file_name().unwrap_or_default();
    let mut named = std::ffi::OsString::from("--name=");
    named.push(name);
    let mut command = Command::new(PROGRAM);
    command.arg("decrypt").arg(named).args(["-", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        // One that ends early says why.
        input.write_all(content).unwrap_or_default();
    }
    let ended = child.wait_with_output();
    let Output { status, stdout, stderr } =
        ended.map_err(|error| Error::system("wait for systemd-creds", error))?;
    let plain = Zeroizing::new(stdout);
    if status.success() {
        return Ok(plain);
    }
    let said = String::from_utf8_lossy(&stderr);
    let said = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(Error::Credential { path: path.to_owned(), said: said.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_none_is_refused_with_what_the_program_says() {
        let refused = open_credential(Path::new("/x/key.cred"), b"DHzAexF2RZGcSwvqCLwg/g==");
        match refused.unwrap_err() {
            Error::Credential { path, said } => {
                assert_eq!(path, Path::new("/x/key.cred"));
                assert!(!said.is_empty());
            }
            // Without systemd there is no such program.
            error => assert!(error.to_string().contains("cannot start systemd-creds"), "{error}"),
        }
    }
}
