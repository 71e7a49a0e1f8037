//! Manifests, seals and signatures: every tampering is found.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::machine::{Volume, run, write_key};

struct Evidence {
    volume: Volume,
    file: String,
    manifest: String,
    public: String,
}

/// A signed extract of two sessions.
fn evidence() -> Evidence {
    let volume = Volume::recorded();
    let [file, key] = ["out.pcapng", "signing.key"].map(|name| volume.file(name));
    let ran = run(&["keygen", &key]).done();
    assert!(ran.out.starts_with("public key "), "{ran:?}");
    run(&["extract", &volume.path, "sni *", "--sign", &key, "-w", &file]).done();
    let (manifest, public) = (volume.file("out.pcapng.json"), volume.file("signing.key.pub"));
    Evidence { volume, file, manifest, public }
}

#[test]
fn a_signed_extract_is_verified_without_volume_and_recorder() {
    let Evidence { volume, file, manifest, public } = evidence();
    std::fs::remove_file(&volume.path).unwrap();
    let ran = run(&["verify-extract", &manifest, &file, "--public-key", &public]).done();
    assert!(ran.out.contains("signed with the key given, "), "{ran:?}");
    assert!(ran.out.contains("is the extract of its manifest, complete"), "{ran:?}");
    let ran = run(&["verify-extract", &manifest, &file]).done();
    assert!(ran.out.contains("an unverified key"), "{ran:?}");

    let other = volume.file("other.key");
    run(&["keygen", &other]).done();
    run(&["keygen", &other]).is_refused("exists");
    let ran = run(&["verify-extract", &manifest, &file, "--public-key", &format!("{other}.pub")]);
    assert!(ran.code == Some(1) && ran.out.contains("another key"), "{ran:?}");
    run(&["verify-extract", &manifest, &file, "--public-key", &other])
        .fails_with(2, "no Ed25519 public key");
}

#[test]
fn a_manifest_says_who_made_it_where_and_with_what() {
    let Evidence { volume: _volume, manifest, public, .. } = evidence();
    let text = std::fs::read_to_string(&manifest).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let made_by = &json["made_by"];
    let program = made_by["program"].as_str().unwrap();
    assert!(run(&["--version"]).done().out.trim() == program, "{program}");
    let said = |program: &str, argument: &str| {
        let ran = Command::new(program).arg(argument).output().unwrap();
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(made_by["host"], said("uname", "-n"));
    assert_eq!(made_by["user"], said("id", "-un"));
    // A public key is for everybody, as far as the umask lets it.
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(public).unwrap().permissions());
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap();
    let umask = u32::from_str_radix(umask.trim(), 8).unwrap();
    assert_eq!(mode & 0o777, 0o666 & !umask);
}

#[test]
fn flipping_any_part_is_found() {
    let Evidence { volume, file, manifest, public } = evidence();
    let verify = || run(&["verify-extract", &manifest, &file, "--public-key", &public]).code;
    let flip_each = |path: &str, steps: usize| {
        let whole = std::fs::read(path).unwrap();
        for at in (0..whole.len()).step_by((whole.len() / steps).max(1)) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(path, &bytes).unwrap();
            let code = verify();
            assert!(matches!(code, Some(1..=3)), "byte {at} of {path}: {code:?}");
        }
        std::fs::write(path, whole).unwrap();
    };
    flip_each(&file, 20);
    flip_each(&manifest, 60);
    flip_each(&public, 10);
    for path in [&file, &manifest] {
        let whole = std::fs::read(path).unwrap();
        for other in [&whole[..whole.len() - 1], &[&whole[..], b" "].concat()] {
            std::fs::write(path, other).unwrap();
            assert_ne!(verify(), Some(0), "{path} has {} bytes", other.len());
        }
        std::fs::write(path, whole).unwrap();
    }
    assert_eq!(verify(), Some(0));

    // A manifest that was written anew, with right hashes and without a signature.
    let plain = volume.file("plain.pcapng");
    run(&["extract", &volume.path, "sni *", "-w", &plain]).done();
    let unsigned = volume.file("plain.pcapng.json");
    run(&["verify-extract", &unsigned, &plain]).done();
    let ran = run(&["verify-extract", &unsigned, &plain, "--public-key", &public]);
    assert!(ran.code == Some(1) && ran.out.contains("is not signed"), "{ran:?}");
    let text = std::fs::read_to_string(&unsigned).unwrap();
    std::fs::write(&unsigned, text.replace("\"complete\": true", "\"complete\": null")).unwrap();
    assert_ne!(run(&["verify-extract", &unsigned, &plain]).code, Some(0));
    std::fs::write(&unsigned, text.replace("\"rows\": ", "\"rows\": 1")).unwrap();
    let ran = run(&["verify-extract", &unsigned, &plain]);
    assert!(ran.code == Some(1) && ran.out.contains("was changed"), "{ran:?}");
}

#[test]
fn a_folder_of_sessions_is_verified_file_by_file() {
    let volume = Volume::recorded();
    let (folder, manifest) = (volume.file("split"), volume.file("split.json"));
    run(&["extract", &volume.path, "udp", "--split", "sessions", "-w", &folder]).done();
    let verify = || run(&["verify-extract", &manifest, &folder]);
    verify().done();
    let first = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let bytes = std::fs::read(&first).unwrap();
    let check = |words: &str| {
        let ran = verify();
        assert!(ran.code == Some(1) && ran.out.contains(words), "{words}: {ran:?}");
    };
    std::fs::write(&first, [&bytes[..], b"x"].concat()).unwrap();
    check("bytes");
    std::fs::remove_file(&first).unwrap();
    check("missing");
    std::fs::write(&first, &bytes).unwrap();
    std::fs::write(Path::new(&folder).join("more"), "").unwrap();
    check("not of the extract");
}

#[test]
fn openssl_verifies_the_signature() {
    let Evidence { volume, manifest, public, .. } = evidence();
    let text = std::fs::read_to_string(&manifest).unwrap();
    let (body, _) = text.rsplit_once(",\n  \"seal\": ").unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let hex = json["seal"]["ed25519"]["signature"].as_str().unwrap();
    let signature: Vec<u8> = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect();
    let (message, signed) = (volume.file("message"), volume.file("signature"));
    std::fs::write(&message, body).unwrap();
    std::fs::write(&signed, signature).unwrap();
    let arguments = ["pkeyutl", "-verify", "-pubin", "-inkey", &public, "-rawin", "-in", &message];
    match Command::new("openssl").args(arguments).args(["-sigfile", &signed]).output() {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(error) => println!("not run: openssl: {error}"),
    }
}

#[test]
fn what_cannot_be_signed_is_refused() {
    let volume = Volume::recorded();
    let key = volume.file("key");
    let extract = ["extract", &volume.path, "udp", "--sign", &key];
    run(&[&extract[..], &["-w", &volume.file("a")]].concat()).is_refused("cannot read");
    write_key(&key, "no key");
    run(&[&extract[..], &["-w", &volume.file("a")]].concat()).fails_with(2, "no Ed25519 private");
    assert!(!Path::new(&volume.file("a")).exists());
}

#[test]
fn keys_that_others_may_read_are_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let volume = Volume::recorded();
    let [signing, address] = ["signing.key", "address.key"].map(|name| volume.file(name));
    run(&["keygen", &signing]).done();
    write_key(&address, &"00112233445566778899aabbccddeeff".repeat(2));
    for (option, key) in [("--sign", &signing), ("--anonymise", &address)] {
        let out = volume.file(&option.replace('-', ""));
        let extract = ["extract", &volume.path, "udp", option, key, "-w", &out];
        std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o640)).unwrap();
        let words = format!("others may read or change the key {key} (mode 0640)");
        run(&extract).is_refused(&words);
        assert!(!Path::new(&out).exists());
        std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600)).unwrap();
        run(&extract).done();
    }
}
