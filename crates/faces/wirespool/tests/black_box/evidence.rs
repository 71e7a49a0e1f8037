//! Manifests, seals and signatures: every tampering is found.

#![expect(clippy::indexing_slicing, reason = "a test that cannot read its data fails")]

use std::path::Path;
use std::process::{Command, Stdio};

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
    run(&["keygen", &other]).is_refused("exists already, and no key is replaced");
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

#[test]
fn what_an_extract_is_made_for_is_in_its_manifest_and_shown() {
    let volume = Volume::recorded();
    let file = volume.file("out.pcapng");
    let case = ["--case", "2026/17 \u{1b}[31m", "--purpose", "leak", "--requester", "B. Jones"];
    run(&[&["extract", &volume.path, "sni *", "-w", &file][..], &case].concat()).done();
    let manifest = format!("{file}.json");
    let json: Value = serde_json::from_str(&std::fs::read_to_string(&manifest).unwrap()).unwrap();
    assert_eq!(json["case"], "2026/17 \u{1b}[31m");
    assert_eq!((&json["purpose"], &json["requester"]), (&"leak".into(), &"B. Jones".into()));
    let ran = run(&["verify-extract", &manifest, &file]).done();
    for line in ["case: 2026/17 \\u{1b}[31m\n", "purpose: leak\n", "requester: B. Jones\n"] {
        assert!(ran.out.contains(line), "{line}: {ran:?}");
    }
    let holds = volume.file("holds");
    std::fs::create_dir(&holds).unwrap();
    let hold = ["hold", &volume.path, "sni *", "--hold-dir", &holds];
    run(&hold).done();
    let list = ["hold", "--list", "--hold-dir", &holds];
    assert!(!run(&list).done().out.contains("CASE"));
    run(&[&hold[..], &case].concat()).done();
    let ran = run(&list).done();
    assert!(ran.out.contains("CASE") && ran.out.contains("2026/17 \\u{1b}[31m"), "{ran:?}");
    assert!(ran.out.contains("B. Jones") && ran.out.contains("leak"), "{ran:?}");

    let long = "x".repeat(1025);
    for text in ["", "  ", &long] {
        let ran = run(&["extract", &volume.path, "sni *", "-w", "-", "--case", text]);
        assert!(ran.code == Some(2) && ran.err.contains("--case"), "{ran:?}");
    }
    // Without any of it nothing is said.
    let plain = volume.file("plain.pcapng");
    run(&["extract", &volume.path, "sni *", "-w", &plain]).done();
    let json = std::fs::read_to_string(format!("{plain}.json")).unwrap();
    assert!(!json.contains("\"case\"") && !json.contains("\"requester\""));
}

/// The blocks of packets in the body of a piece.
fn packet_blocks(body: &[u8]) -> (u64, Vec<u8>) {
    let word = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap());
    let (mut at, mut count, mut blocks) = (0, 0, Vec::new());
    while at + 12 <= body.len() {
        let len = usize::try_from(word(at + 4)).unwrap();
        if word(at) == 6 {
            blocks.extend_from_slice(&body[at..at + len]);
            count += 1;
        }
        at += len;
    }
    (count, blocks)
}

#[test]
fn each_piece_is_named_with_its_stripe_and_what_it_gave() {
    let volume = Volume::recorded();
    let file = volume.file("all.pcapng");
    run(&["extract", &volume.path, "", "-w", &file]).done();
    let text = std::fs::read_to_string(format!("{file}.json")).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    let pieces = json["pieces"].as_array().unwrap();
    let sum: u64 = pieces.iter().map(|piece| number(&piece["packets"])).sum();
    assert_eq!(sum, number(&json["outputs"][0]["packets"]));
    let stripes = crate::reforged::Reforged::open(&volume.path).data();
    assert_eq!(stripes.len(), pieces.len());
    for ((head, body), piece) in stripes.iter().zip(pieces) {
        let (packets, blocks) = packet_blocks(body);
        assert_eq!(head.stripe.stripe.sequence.get(), number(&piece["sequence"]));
        assert_eq!(piece["cid"], units::hex(&head.cid));
        assert_eq!(piece["packets"], packets);
        assert_eq!(piece["blake3"], blake3::hash(&blocks).to_hex().to_string());
    }
    // Files were read: who stamped their packets is not known.
    let clocks = json["clocks"].as_array().unwrap();
    assert_eq!((clocks.len(), &clocks[0]["times_by"]), (1, &"files".into()));
    assert!(clocks[0].get("steps").is_none() && clocks[0].get("synchronised").is_none());
    let statement = json["statement"].as_array().unwrap();
    assert!(statement[0].as_str().unwrap().starts_with("complete"), "{statement:?}");
    // A few rows of some pieces say of these packets what all of a piece says.
    let some = volume.file("some.pcapng");
    run(&["extract", &volume.path, "port 53", "-w", &some]).done();
    let text = std::fs::read_to_string(format!("{some}.json")).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let sum: u64 = json["pieces"].as_array().unwrap().iter().map(|it| number(&it["packets"])).sum();
    assert!(sum > 0 && sum == number(&json["outputs"][0]["packets"]));
}

/// False where `ssh-keygen` is missing.
fn ssh_keygen(arguments: &[&str]) -> bool {
    let ran = Command::new("ssh-keygen").args(arguments).stdin(Stdio::null()).output();
    match ran {
        Ok(ran) => assert!(ran.status.success(), "{arguments:?}: {ran:?}"),
        Err(error) => {
            println!("not run: ssh-keygen: {error}");
            return false;
        }
    }
    true
}

#[test]
fn keys_of_openssh_sign_what_ssh_keygen_verifies() {
    let volume = Volume::recorded();
    let [key, other, file] = ["id", "other", "out.pcapng"].map(|name| volume.file(name));
    if !ssh_keygen(&["-q", "-t", "ed25519", "-N", "", "-C", "alice@lab", "-f", &key]) {
        return;
    }
    ssh_keygen(&["-q", "-t", "ed25519", "-N", "", "-f", &other]);
    run(&["extract", &volume.path, "sni *", "--sign", &key, "-w", &file]).done();
    let manifest = format!("{file}.json");
    let signature = format!("{manifest}.sig");
    let allowed = volume.file("allowed_signers");
    let public = std::fs::read_to_string(format!("{key}.pub")).unwrap();
    std::fs::write(&allowed, format!("alice@lab namespaces=\"wirespool\" {public}")).unwrap();
    let by_ssh_keygen = |of: &str, signature: &str| {
        let mut command = Command::new("ssh-keygen");
        command.args(["-Y", "verify", "-f", &allowed, "-I", "alice@lab", "-n", "wirespool"]);
        command.args(["-s", signature]).stdin(std::fs::File::open(of).unwrap());
        command.output().unwrap()
    };
    let ran = by_ssh_keygen(&manifest, &signature);
    assert!(ran.status.success(), "{ran:?}");

    let verify = |public: &str| run(&["verify-extract", &manifest, &file, "--public-key", public]);
    for public in [format!("{key}.pub"), allowed.clone()] {
        let ran = verify(&public).done();
        assert!(ran.out.contains("signed with the key given of alice@lab, "), "{ran:?}");
        assert!(ran.out.contains("out.pcapng.json.sig: a signature with the key given"), "{ran:?}");
    }
    let ran = verify(&format!("{other}.pub"));
    assert!(ran.code == Some(1) && ran.out.contains("another key"), "{ran:?}");
    let expired = volume.file("expired");
    std::fs::write(&expired, format!("alice valid-before=\"20200101\" {public}")).unwrap();
    let ran = verify(&expired);
    assert!(ran.code == Some(1) && ran.out.contains("was not valid"), "{ran:?}");
    std::fs::write(&expired, format!("alice namespaces=\"git\" {public}")).unwrap();
    verify(&expired).fails_with(2, "for other namespaces");

    // A signature that ssh-keygen makes is as good, also of a manifest that was not signed.
    let plain = volume.file("plain.pcapng");
    run(&["extract", &volume.path, "sni *", "-w", &plain]).done();
    let unsigned = format!("{plain}.json");
    ssh_keygen(&["-q", "-Y", "sign", "-f", &key, "-n", "wirespool", &unsigned]);
    run(&["verify-extract", &unsigned, &plain, "--public-key", &allowed]).done();
    std::fs::remove_file(format!("{unsigned}.sig")).unwrap();
    ssh_keygen(&["-q", "-Y", "sign", "-f", &key, "-n", "git", &unsigned]);
    let ran = run(&["verify-extract", &unsigned, &plain, "--public-key", &allowed]);
    assert!(ran.code == Some(1) && ran.out.contains("namespace git"), "{ran:?}");
    // That of another file.
    std::fs::copy(&signature, format!("{unsigned}.sig")).unwrap();
    let ran = run(&["verify-extract", &unsigned, &plain]);
    assert!(ran.code == Some(1) && ran.out.contains("does not fit the file"), "{ran:?}");

    // A hold has one, too, and loses it when it is removed.
    let holds = volume.file("holds");
    std::fs::create_dir(&holds).unwrap();
    run(&["hold", &volume.path, "sni *", "--hold-dir", &holds, "--sign", &key]).done();
    let names = std::fs::read_dir(&holds).unwrap().map(|entry| entry.unwrap().path());
    let held: Vec<_> = names.map(|path| path.into_os_string().into_string().unwrap()).collect();
    let signature = held.iter().find(|name| name.ends_with(".json.sig")).unwrap();
    let ran = by_ssh_keygen(signature.strip_suffix(".sig").unwrap(), signature);
    assert!(ran.status.success() && held.len() == 3, "{held:?} {ran:?}");
}

#[test]
fn keys_of_openssh_that_cannot_sign_are_refused_in_a_line() {
    let volume = Volume::recorded();
    let [locked, rsa] = ["locked", "rsa"].map(|name| volume.file(name));
    if !ssh_keygen(&["-q", "-t", "ed25519", "-N", "secret", "-a", "1", "-f", &locked]) {
        return;
    }
    ssh_keygen(&["-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", &rsa]);
    let out = volume.file("a");
    for (key, words) in [(&locked, "the key has a passphrase"), (&rsa, "of the kind ssh-rsa")] {
        let mut command = Command::new("setsid");
        command.arg(crate::machine::BINARY).args(["extract", &volume.path, "udp", "-w", &out]);
        let ran = command.args(["--sign", key]).stdin(Stdio::null()).output().unwrap();
        crate::machine::Ran::new(&ran).fails_with(2, words);
    }
    assert!(!Path::new(&out).exists());
    run(&["extract", &volume.path, "udp", "-w", &out]).done();
    let public = format!("{rsa}.pub");
    run(&["verify-extract", &format!("{out}.json"), &out, "--public-key", &public])
        .fails_with(2, "of the kind ssh-rsa");
}

/// The report stands by itself: nothing in it runs, nothing is loaded, and each check has a line.
#[test]
fn the_report_for_people_says_what_was_checked_and_runs_nothing() {
    let Evidence { volume, public, .. } = evidence();
    let (file, key) = (volume.file("case.pcapng"), volume.file("signing.key"));
    let hostile = "<script>alert(1)</script> & \"leak\"";
    let words = ["extract", &volume.path, "sni *", "--sign", &key, "-w", &file];
    let case = ["--case", hostile, "--purpose", "the leak of April", "--requester", "B. Jones"];
    run(&[&words[..], &case].concat()).done();
    let anchor = volume.file("monday.anchor");
    run(&["anchor", &volume.path, "-w", &anchor, "--sign", &key]).done();
    let (manifest, page) = (volume.file("case.pcapng.json"), volume.file("report.html"));
    let check = |more: &[&str]| {
        let words = ["verify-extract", &manifest, &file, "--public-key", &public];
        let report = ["--anchor", &anchor, "--html", &page];
        run(&[&words[..], &report, more].concat())
    };
    check(&[]).done();
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.len() < 200_000, "{}", html.len());
    let json: Value = serde_json::from_str(&std::fs::read_to_string(&manifest).unwrap()).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    for words in [
        "Every check that was made is right",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "the leak of April",
        "B. Jones",
        "case.pcapng",
        &text(&json["outputs"][0]["sha256"]),
        &text(&json["volume_id"]),
        "Seal and signature",
        "monday.anchor",
        "What this proves",
        "What this does not prove",
        "How to check this again",
    ] {
        assert!(html.contains(words), "{words} in {html}");
    }
    for words in ["<script", "<img", "<link", "<iframe", " src=", "http://", "https://", "onload"] {
        assert!(!html.contains(words), "{words} in {html}");
    }
    check(&[]).is_refused("exists already");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[200] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert_eq!(check(&["--force"]).code, Some(1));
    let html = std::fs::read_to_string(&page).unwrap();
    for words in ["Something is not as it was written", "does not match the SHA-256"] {
        assert!(html.contains(words), "{words} in {html}");
    }
    assert!(!html.contains("Every check that was made is right"));
    // A browser prints it; without one the page was looked at above.
    let pdf = volume.file("report.pdf");
    let print = format!("--print-to-pdf={pdf}");
    let mut chromium = Command::new("chromium");
    chromium.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]);
    chromium.arg(print).arg(format!("file://{page}")).stderr(Stdio::null());
    match chromium.stdout(Stdio::null()).status() {
        Ok(status) if status.success() => {
            let pdf = std::fs::read(&pdf).unwrap();
            assert!(pdf.starts_with(b"%PDF-") && pdf.len() > 10_000, "{} bytes", pdf.len());
        }
        other => println!("not run: chromium prints no PDF: {other:?}"),
    }
}
