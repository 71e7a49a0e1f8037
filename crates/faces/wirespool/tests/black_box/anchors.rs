//! Anchors: a volume that was rolled back, cut off or rewritten is noticed, and one that went on is
//! not blamed. The forgers have the secret key of the heads, as whoever can write to a member has.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::machine::{CAPTURES, Ran, Volume, run};
use crate::reforged::Reforged;

fn anchor(volume: &Volume, name: &str, more: &[&str]) -> String {
    let file = volume.file(name);
    run(&[&["anchor", &volume.path, "-w", &file][..], more].concat()).done();
    file
}

fn verify(volume: &Volume, anchor: &str) -> Ran {
    run(&["verify", &volume.path, "--anchor", anchor])
}

#[track_caller]
fn is_noticed(volume: &Volume, anchor: &str, words: &str) {
    let ran = verify(volume, anchor);
    assert!(ran.code == Some(1) && ran.out.contains(words), "{words}: {ran:?}");
}

#[test]
fn a_volume_is_the_one_that_its_anchor_saw_also_when_it_went_on() {
    let volume = Volume::recorded();
    let monday = anchor(&volume, "monday.anchor", &[]);
    let ran = verify(&volume, &monday).done();
    assert!(ran.out.contains("the volume is the one that it saw"), "{ran:?}");
    assert!(ran.out.contains("that they have"), "{ran:?}");
    volume.record(&["--read", CAPTURES]).done();
    verify(&volume, &monday).done();

    // The next one lists what came since, and names the one before.
    let tuesday = anchor(&volume, "tuesday.anchor", &["--previous", &monday, "--heads-only"]);
    let read = |path: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let (first, second) = (read(&monday), read(&tuesday));
    assert_eq!(second["previous"]["newest"], first["newest"]);
    let stripe = |value: &Value| -> f64 { value.as_str().unwrap().parse().unwrap() };
    assert!(stripe(&second["first"]) > stripe(&first["newest"]), "{second}");
    let ran = run(&["verify", &volume.path, "--anchor", &monday, "--anchor", &tuesday]).done();
    assert!(ran.out.contains("bodies are not in the anchor"), "{ran:?}");
    let ran = run(&["verify", &volume.path, "--anchor", &tuesday, "--json"]).done();
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&json[0]["verdict"], &json[0]["same_contents"]), (&"same".into(), &0.into()));
    assert_eq!(json[0]["same"]["last"], second["newest"]);

    let other = Volume::recorded();
    is_noticed(&other, &monday, "another volume");
    run(&["anchor", &other.path, "-w", &other.file("a"), "--previous", &monday])
        .is_refused("not as the previous anchor saw it");
    run(&["anchor", &volume.path, "-w", &monday]).is_refused("exists already");
    let empty = Volume::empty();
    run(&["anchor", &empty.path, "-w", &empty.file("a")]).is_refused("no packets to anchor");
    assert!(!Path::new(&empty.file("a")).exists() && !Path::new(&empty.file("a.stripes")).exists());
}

#[test]
fn a_volume_that_is_set_back_to_yesterday_is_noticed() {
    let volume = Volume::recorded();
    let yesterday = volume.file("image");
    std::fs::copy(&volume.path, &yesterday).unwrap();
    volume.record(&["--read", CAPTURES]).done();
    let witness = volume.file("witness.jsonl");
    let today = anchor(&volume, "today.anchor", &["--witness", &witness]);
    let of_witness = || run(&["verify", &volume.path, "--witness", &witness]);
    verify(&volume, &today).done();
    of_witness().done();

    std::fs::copy(&yesterday, &volume.path).unwrap();
    run(&["verify", &volume.path]).done();
    is_noticed(&volume, &today, "rolled back or cut off: the volume ends with");
    let ran = of_witness();
    assert!(ran.code == Some(1) && ran.out.contains("rolled back"), "{ran:?}");

    // It records on, beyond what the anchor saw: another past has the same numbers.
    for _ in 0..3 {
        volume.record(&["--read", CAPTURES]).done();
    }
    run(&["verify", &volume.path]).done();
    is_noticed(&volume, &today, "rewritten");
    let ran = verify(&volume, &today);
    assert!(ran.out.contains("as they were:") && ran.out.contains("not as they were:"), "{ran:?}");
    assert_eq!(of_witness().code, Some(1));
}

#[test]
fn a_stripe_that_is_rewritten_with_all_that_follow_is_noticed() {
    let volume = Volume::recorded();
    let monday = anchor(&volume, "monday.anchor", &[]);
    let quick = anchor(&volume, "quick.anchor", &["--heads-only"]);
    let before = run(&["find", &volume.path, "", "--json"]).done().out;
    let changed = Reforged::open(&volume.path).rewrite_a_packet();
    // All checksums fit, and the chain is whole again: the volume by itself shows nothing.
    run(&["verify", &volume.path]).done();
    assert_eq!(run(&["find", &volume.path, "", "--json"]).done().out, before);
    for anchor in [&monday, &quick] {
        is_noticed(&volume, anchor, "rewritten: stripes are others than it saw");
        let ran = verify(&volume, anchor);
        assert!(ran.out.contains("not as they were: "), "{ran:?}");
        let line = ran.out.lines().find(|line| line.contains("not as they were")).unwrap();
        assert!(line.contains(&format!("stripes {changed} to ")), "{changed}: {ran:?}");
    }
}

#[test]
fn a_body_that_is_exchanged_for_one_with_the_same_checksum_is_noticed_by_its_hash() {
    let volume = Volume::recorded();
    let monday = anchor(&volume, "monday.anchor", &[]);
    let quick = anchor(&volume, "quick.anchor", &["--heads-only"]);
    let changed = Reforged::open(&volume.path).exchange_a_body();
    run(&["verify", &volume.path]).done();
    // The identities of all stripes are as they were.
    verify(&volume, &quick).done();
    is_noticed(&volume, &monday, "1 piece were exchanged");
    let ran = verify(&volume, &monday);
    assert!(ran.out.contains(&format!("stripes {changed} to {changed}")), "{ran:?}");
}

#[test]
fn an_anchor_or_a_witness_that_was_changed_is_refused_or_told() {
    let volume = Volume::recorded();
    let [key, witness] = ["signing.key", "witness.jsonl"].map(|name| volume.file(name));
    run(&["keygen", &key]).done();
    let monday = anchor(&volume, "a.anchor", &["--sign", &key, "--witness", &witness]);
    let public = format!("{key}.pub");
    let check = || run(&["verify", &volume.path, "--anchor", &monday, "--public-key", &public]);
    assert!(check().done().out.contains("signed with the key given"));
    let list = format!("{monday}.stripes");
    for path in [&monday, &list] {
        let whole = std::fs::read(path).unwrap();
        for at in (0..whole.len()).step_by((whole.len() / 40).max(1)) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(path, &bytes).unwrap();
            let code = check().code;
            assert!(matches!(code, Some(1..=3)), "byte {at} of {path}: {code:?}");
        }
        std::fs::write(path, whole).unwrap();
    }
    check().done();
    // One that was made later, of a volume that was set right, is not in the witness file.
    let other = anchor(&volume, "b.anchor", &[]);
    let ran = run(&["verify", &volume.path, "--anchor", &other, "--witness", &witness]);
    assert!(ran.code == Some(1) && ran.out.contains("has no line of 1 anchor"), "{ran:?}");
    run(&["verify", &volume.path, "--anchor", &other, "--public-key", &public]);
    std::fs::write(&witness, "hello\n").unwrap();
    run(&["verify", &volume.path, "--witness", &witness]).is_refused("line 1 is no line");
    let stranger = Volume::recorded();
    let elsewhere = stranger.file("w");
    anchor(&stranger, "c.anchor", &["--witness", &elsewhere]);
    run(&["verify", &volume.path, "--witness", &elsewhere])
        .fails_with(2, "has no line of this volume");
}

#[test]
fn what_the_ring_has_overwritten_is_no_change() {
    let volume = Volume::recorded();
    let monday = anchor(&volume, "monday.anchor", &[]);
    // Three laps of 64 MiB.
    let capture = volume.file("big.pcap");
    std::fs::write(&capture, crate::reforged::capture(48 << 20)).unwrap();
    volume.record(&["--read", &capture, "--no-index"]);
    volume.record(&["--read", &capture, "--no-index"]);
    let ran = verify(&volume, &monday);
    assert!(ran.code == Some(5) && ran.out.contains("nothing of what it saw is left"), "{ran:?}");
    assert!(ran.out.contains("overwritten since"), "{ran:?}");
}

#[test]
fn an_encrypted_volume_is_anchored_and_checked_without_keys() {
    let volume = Volume::empty();
    std::fs::remove_file(&volume.path).unwrap();
    let recipient = crate::encrypted::PUBLIC;
    let create = ["create", &volume.path, "--size", "64M", "--piece", "256K", "--sparse"];
    run(&[&create[..], &["--recipient", recipient]].concat()).done();
    volume.record(&["--read", CAPTURES]).done();
    let monday = anchor(&volume, "monday.anchor", &[]);
    verify(&volume, &monday).done();
    Reforged::open(&volume.path).exchange_a_body();
    run(&["verify", &volume.path]).done();
    is_noticed(&volume, &monday, "exchanged");
}

/// Whoever has the disks can exchange a body with all checksums, and make a raw extract of that
/// whose hashes fit; or name in its manifest the bodies that were there before.
#[test]
fn bodies_of_a_raw_extract_are_compared_with_the_anchor() {
    let volume = Volume::empty();
    std::fs::remove_file(&volume.path).unwrap();
    let create = ["create", &volume.path, "--size", "64M", "--piece", "256K", "--sparse"];
    run(&[&create[..], &["--recipient", crate::encrypted::PUBLIC]].concat()).done();
    volume.record(&["--read", CAPTURES]).done();
    let monday = anchor(&volume, "monday.anchor", &[]);
    let quick = anchor(&volume, "quick.anchor", &["--heads-only"]);
    let raw = |name: &str| {
        let raw = volume.file(name);
        run(&["extract", &volume.path, "", "--raw", "-w", &raw]).done();
        (format!("{raw}.json"), raw)
    };
    let check = |(manifest, raw): &(String, String), anchor: &str| {
        run(&["verify-extract", manifest, raw, "--anchor", anchor])
    };
    let sound = raw("sound.raw");
    let said = check(&sound, &monday).done();
    assert!(said.out.contains(", with the bodies of "), "{said:?}");
    let said = check(&sound, &quick).done();
    assert!(!said.out.contains("bodies"), "{said:?}");

    Reforged::open(&volume.path).exchange_a_body();
    let forged = raw("forged.raw");
    run(&["verify-extract", &forged.0, &forged.1]).done();
    let said = check(&forged, &monday);
    let words = "the bodies of 1 piece are not those that it saw";
    assert!(said.code == Some(1) && said.out.contains(words), "{said:?}");

    // A manifest of the forged file that names the pieces of the sound one.
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    let pieces = |text: &str| {
        let (_, pieces) = text.split_once("\"pieces\": ").unwrap();
        pieces.split_once(evidence::BEFORE_SEAL).unwrap().0.to_owned()
    };
    let text = read(&forged.0);
    let text = text.replace(&pieces(&text), &pieces(&read(&sound.0)));
    let (text, _) = text.split_once(evidence::BEFORE_SEAL).unwrap();
    let seal = evidence::Seal::of(text.as_bytes(), None);
    let seal = serde_json::to_string(&evidence::SealForm::new(&seal)).unwrap();
    let sealed = [text, evidence::BEFORE_SEAL, &seal, evidence::AFTER_SEAL].concat();
    std::fs::write(&forged.0, sealed).unwrap();
    run(&["verify-extract", &forged.0, &forged.1]).done();
    let said = check(&forged, &monday);
    let words = "holds 1 piece that its manifest does not list, and lacks 1 piece of it";
    assert!(said.code == Some(1) && said.out.contains(words), "{said:?}");
}

const TSA: &str = "\
[req]\ndistinguished_name=dn\n[dn]\n\
[ca]\nbasicConstraints=critical,CA:true\nkeyUsage=critical,keyCertSign\n\
[stamps]\nbasicConstraints=critical,CA:false\nextendedKeyUsage=critical,timeStamping\n\
[tsa]\ndefault_tsa=tsa1\n\
[tsa1]\nserial=serial\nsigner_digest=sha256\ndefault_policy=1.2.3.4.1\n\
digests=sha256,sha384,sha512\ness_cert_id_alg=sha256\n";

/// An authority of time stamps, made by openssl; false with a reason where that is missing.
fn make_authority(folder: &Path) -> bool {
    std::fs::write(folder.join("tsa.cnf"), TSA).unwrap();
    std::fs::write(folder.join("serial"), "01\n").unwrap();
    let openssl = |words: &str| {
        let mut command = Command::new("openssl");
        command.args(words.split(' ')).current_dir(folder).stdin(Stdio::null()).output()
    };
    for words in [
        "genrsa -out ca.key 2048",
        "req -x509 -new -key ca.key -subj /CN=Root -config tsa.cnf -extensions ca -out ca.pem",
        "genrsa -out tsa.key 2048",
        "req -new -key tsa.key -subj /CN=Stamps -config tsa.cnf -out tsa.csr",
        "x509 -req -in tsa.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile tsa.cnf \
         -extensions stamps -out tsa.pem",
    ] {
        match openssl(words) {
            Ok(ran) => assert!(ran.status.success(), "{words}: {ran:?}"),
            Err(error) => {
                println!("not run: openssl: {error}");
                return false;
            }
        }
    }
    true
}

fn stamp(folder: &Path, request: &str, answer: &str) {
    let reply = ["ts", "-reply", "-config", "tsa.cnf", "-signer", "tsa.pem", "-inkey", "tsa.key"];
    let mut command = Command::new("openssl");
    command.args(reply).args(["-queryfile", request, "-out", answer]).current_dir(folder);
    let ran = command.stdin(Stdio::null()).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
}

#[test]
fn an_authority_of_time_stamps_vouches_for_anchors_and_manifests() {
    let volume = Volume::recorded();
    let folder = volume.folder.path();
    if !make_authority(folder) {
        return;
    }
    let (root, file) = (volume.file("ca.pem"), volume.file("out.pcapng"));
    let monday = anchor(&volume, "monday.anchor", &["--timestamp-request"]);
    let manifest = format!("{file}.json");
    run(&["extract", &volume.path, "sni *", "-w", &file, "--timestamp-request"]).done();
    for of in [&monday, &manifest] {
        stamp(folder, &format!("{of}.tsq"), &format!("{of}.tsr"));
        // As openssl sees it.
        let answer = format!("{of}.tsr");
        let check = ["ts", "-verify", "-data", of, "-in", &answer, "-CAfile", &root];
        let ran = Command::new("openssl").args(check).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
    }
    let trusted = ["--tsa-ca", &root];
    let of_anchor = ["verify", &volume.path, "--anchor", &monday];
    let ran = run(&[&of_anchor[..], &trusted].concat()).done();
    assert!(ran.out.contains("by Stamps; its certificate leads to an authority given"), "{ran:?}");
    let ran = run(&of_anchor).done();
    assert!(ran.out.contains("nobody vouches for its certificate"), "{ran:?}");
    let of_extract = ["verify-extract", &manifest, &file, "--anchor", &monday];
    let ran = run(&[&of_extract[..], &trusted].concat()).done();
    assert!(ran.out.contains("which were there on") && ran.out.contains("lists the stripes of"));

    // The stamp of another text, and an authority that nobody named.
    std::fs::copy(format!("{monday}.tsr"), format!("{manifest}.tsr")).unwrap();
    let ran = run(&of_extract);
    assert!(ran.code == Some(1) && ran.out.contains("it stamps another text"), "{ran:?}");
    stamp(folder, &format!("{manifest}.tsq"), &format!("{manifest}.tsr"));
    let other = tempfile::tempdir().unwrap();
    assert!(make_authority(other.path()));
    let foreign = other.path().join("ca.pem");
    let foreign = ["--tsa-ca", foreign.to_str().unwrap()];
    let ran = run(&[&of_extract[..], &foreign].concat());
    assert!(ran.code == Some(1) && ran.out.contains("is not trusted"), "{ran:?}");
    run(&[&of_extract[..], &["--tsa-ca", &manifest]].concat()).fails_with(2, "no certificate");
}

#[test]
fn an_extract_of_other_stripes_than_the_anchor_saw_is_told() {
    let volume = Volume::recorded();
    let monday = anchor(&volume, "monday.anchor", &[]);
    let extract = |name: &str| {
        let file = volume.file(name);
        run(&["extract", &volume.path, "", "-w", &file]).done();
        (format!("{file}.json"), file)
    };
    let check = |(manifest, file): &(String, String)| {
        run(&["verify-extract", manifest, file, "--anchor", &monday])
    };
    check(&extract("before.pcapng")).done();
    Reforged::open(&volume.path).rewrite_a_packet();
    let ran = check(&extract("after.pcapng"));
    assert!(ran.code == Some(1) && ran.out.contains("other stripes than the anchor"), "{ran:?}");
}
