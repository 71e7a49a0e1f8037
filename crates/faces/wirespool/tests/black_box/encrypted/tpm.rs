//! A private key that a TPM has sealed, against `swtpm`: a TPM as a program.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use super::{Encrypted, PUBLIC, SECRET};
use crate::machine::{Ran, command, text, write_key};

/// A TPM that runs, with a state of its own.
struct Tpm {
    child: Child,
    /// As programs name it.
    device: String,
}

impl Tpm {
    /// None where what it takes is not there, with the reason.
    fn start(folder: &Path) -> Option<Self> {
        for program in ["swtpm", "systemd-creds", "tpm2_pcrextend"] {
            let version = Command::new(program).arg("--version").output();
            if !version.is_ok_and(|said| said.status.success()) {
                println!("not run: needs {program}");
                return None;
            }
        }
        std::fs::create_dir(folder).unwrap();
        let (state, socket) = (text(folder.to_path_buf()), text(folder.join("s")));
        let mut start = Command::new("swtpm");
        start.args(["socket", "--tpm2", "--flags", "not-need-init,startup-clear"]);
        start.args(["--tpmstate", &format!("dir={state}")]);
        start.args(["--server", &format!("type=unixio,path={socket}")]);
        start.args(["--ctrl", &format!("type=unixio,path={socket}.ctrl")]);
        let child = start.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let tpm = Self { child, device: format!("swtpm:path={socket}") };
        crate::serve::until("the TPM listens", || Path::new(&socket).exists());
        Some(tpm)
    }

    fn run(&self, program: &str, words: &[&str]) -> Output {
        let mut run = Command::new(program);
        run.env("SYSTEMD_TPM2_DEVICE", &self.device).env("TPM2TOOLS_TCTI", &self.device);
        run.args(words).output().unwrap()
    }

    /// Seals a file as a credential beside it; false where the program has no TPM built in.
    fn seal(&self, file: &str, credential: &str) -> bool {
        let sealed = ["encrypt", "--with-key=tpm2", "--tpm2-pcrs=16", file, credential];
        let sealed = self.run("systemd-creds", &sealed);
        let said = String::from_utf8_lossy(&sealed.stderr).into_owned();
        let is_supported = !said.contains("not supported") && !said.contains("not installed");
        if !is_supported {
            println!("not run: systemd-creds has no TPM: {said}");
        }
        assert!(sealed.status.success() || !is_supported, "{said}");
        if is_supported {
            // Others may read what the program writes; a key they may not.
            write_key(credential, &std::fs::read_to_string(credential).unwrap());
        }
        is_supported
    }
}

impl Drop for Tpm {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn find(volume: &Encrypted, tpm: &Tpm, identity: &str) -> Ran {
    let words = ["find", volume.path(), "", "--json", "--index-dir", &volume.index];
    let mut find = command(&[&words[..], &["--identity", identity]].concat());
    Ran::new(&find.env("SYSTEMD_TPM2_DEVICE", &tpm.device).output().unwrap())
}

#[test]
fn a_key_that_a_tpm_has_sealed_opens_where_that_tpm_is_in_that_state_alone() {
    let volume = Encrypted::new(1, "0");
    let Some(tpm) = Tpm::start(Path::new(&volume.file("tpm"))) else { return };
    let (key, sealed) = (volume.file("analyst.key"), volume.file("analyst.cred"));
    write_key(&key, &format!("# public key: {PUBLIC}\n{SECRET}\n"));
    if !tpm.seal(&key, &sealed) {
        return;
    }
    std::fs::remove_file(&key).unwrap();
    let content = std::fs::read(&sealed).unwrap();
    assert!(!content.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()));
    volume.record(&["--read", crate::machine::CAPTURES]).done();
    let found = find(&volume, &tpm, &sealed).done();
    assert_eq!(found.out, volume.find(""), "what the plain key finds");
    assert!(found.out.lines().count() > 10);
    // Under another name it is another credential, and one that was changed is none.
    let renamed = volume.file("other.cred");
    write_key(&renamed, &String::from_utf8(content.clone()).unwrap());
    find(&volume, &tpm, &renamed).fails_with(2, "does not open here");
    let mut changed = content.clone();
    let at = content.len() / 2;
    changed[at] = if content[at] == b'A' { b'B' } else { b'A' };
    write_key(&sealed, &String::from_utf8(changed).unwrap());
    find(&volume, &tpm, &sealed).fails_with(2, "does not open here");
    write_key(&sealed, &String::from_utf8(content).unwrap());
    // Another TPM, as the disks and the file come to a thief.
    let other = Tpm::start(Path::new(&volume.file("other-tpm"))).unwrap();
    find(&volume, &other, &sealed).fails_with(2, "does not open here");
    // The machine has started something else: its measurements are others.
    let measured = format!("16:sha256={}1", "0".repeat(63));
    assert!(tpm.run("tpm2_pcrextend", &[&measured]).status.success());
    find(&volume, &tpm, &sealed).fails_with(2, "does not open here");
}

#[test]
fn a_service_says_how_it_gets_a_sealed_key() {
    let volume = Encrypted::new(1, "0");
    let (sealed, tokens) = (volume.file("analyst.cred"), volume.file("tokens"));
    write_key(&sealed, "DHzAexF2RZGcSwvqCLwg/iAAAAABAAAADAAAABAAAAA=\n");
    write_key(&tokens, "");
    let words = ["serve", volume.path(), "--token-file", &tokens, "--identity", &sealed];
    let served = crate::machine::run(&words);
    assert!(
        served.code == Some(3) && served.err.contains("LoadCredentialEncrypted="),
        "{served:?}"
    );
}
