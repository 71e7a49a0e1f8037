//! Who can read a volume is changed, keys are destroyed, a plain volume is encrypted from now on.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::{Encrypted, OTHER, PUBLIC, SECRET};
use crate::machine::{CAPTURES, Ran, Volume, run, write_key};

/// The public key of [`OTHER`].
pub(crate) const OTHERS: &str = "age1cy0su9fwf3gf9mw868g5yut09p6nytfmmnktexz2ya5uqg9vl9sss4euqm";

/// Sessions that this key shows.
fn sessions(volume: &Encrypted, key: &str) -> Option<usize> {
    let ran = run(&["find", volume.path(), "", "--json", "--identity", key]);
    (ran.code == Some(0)).then(|| ran.out.lines().count())
}

fn keys(volume: &Encrypted, arguments: &[&str]) -> Ran {
    run(&[&["keys", volume.path()], arguments].concat())
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap()
}

#[test]
fn who_is_added_reads_the_past_and_who_is_removed_does_not_any_more() {
    let volume = Encrypted::new(3, "1");
    volume.record(&["--read", CAPTURES]).done();
    let all = sessions(&volume, &volume.key).unwrap();
    assert_eq!(sessions(&volume, &volume.other), None);
    let shown = keys(&volume, &[]).done().out;
    assert!(shown.contains(PUBLIC) && shown.contains("1 data key, made at"), "{shown}");

    let added = keys(&volume, &["--add", OTHERS, "--identity", &volume.key]).done().out;
    assert!(added.contains("1 data key wrapped anew"), "{added}");
    assert_eq!(sessions(&volume, &volume.key), Some(all));
    assert_eq!(sessions(&volume, &volume.other), Some(all));
    volume.record(&["--read", CAPTURES]).done();
    assert_eq!(sessions(&volume, &volume.other), Some(2 * all));

    let removed = ["--remove", PUBLIC, "--identity", &volume.other, "--json"];
    let removed = json(&keys(&volume, &removed).done());
    assert_eq!((&removed["rewrapped"], &removed["left"]), (&2.into(), &0.into()), "{removed}");
    assert_eq!(removed["recipients"], serde_json::json!([OTHERS]));
    assert_eq!(sessions(&volume, &volume.key), None);
    assert_eq!(sessions(&volume, &volume.other), Some(2 * all));
    run(&["verify", volume.path()]).done();
}

#[test]
fn what_cannot_be_changed_is_refused_or_said() {
    let volume = Encrypted::new(1, "0");
    volume.record(&["--read", CAPTURES]).done();
    keys(&volume, &["--remove", OTHERS]).is_refused("is not encrypted to");
    keys(&volume, &["--remove", PUBLIC]).is_refused("would have no recipient left");
    let nobody = keys(&volume, &["--add", "age1nobody"]);
    assert!(nobody.code == Some(2) && nobody.err.contains("is no recipient"), "{nobody:?}");
    run(&["erase", &Volume::recorded().path, "--max-age", "1s", "--keys-only"])
        .is_refused("is not encrypted");
    // Nobody who could read is there: what is recorded from now on is for both.
    let left = keys(&volume, &["--add", OTHERS, "--identity", &volume.other]);
    assert_eq!(left.code, Some(1), "{left:?}");
    assert!(left.out.contains("1 data key could not be opened"), "{left:?}");
    let all = sessions(&volume, &volume.key).unwrap();
    volume.record(&["--read", CAPTURES]).done();
    assert_eq!(sessions(&volume, &volume.key), Some(2 * all));
    let ran = run(&["find", volume.path(), "", "--json", "--identity", &volume.other]);
    assert!(ran.code == Some(1) && ran.out.lines().count() == all, "{ran:?}");
}

#[test]
fn keys_that_have_expired_are_destroyed_at_once() {
    let volume = Encrypted::new(1, "0");
    for _ in 0..2 {
        volume.record(&["--read", CAPTURES]).done();
    }
    let wrapped = || std::fs::read(volume.path()).unwrap()[12_288..16_384].to_vec();
    let before = wrapped();
    std::thread::sleep(Duration::from_millis(1500));
    let erase = ["erase", volume.path(), "--max-age", "1s", "--keys-only", "--clock-is-right"];
    let erased = run(&[&erase[..], &["--index-dir", &volume.index]].concat()).done().out;
    assert!(erased.starts_with("1 data key destroyed, made at "), "{erased}");
    assert!(erased.contains("are given out no more; what they hold stays, unreadable"), "{erased}");
    let listed = json(&keys(&volume, &["--json"]).done());
    assert_eq!((&listed["keys"], &listed["destroyed"]), (&1.into(), &1.into()), "{listed}");
    // The wrapped key begins behind the recipient.
    let key = 48 + 28 + PUBLIC.len() + 28;
    let old = &before[key..key + 200];
    assert!(!wrapped().windows(200).any(|part| part == old));
    run(&["verify", volume.path()]).done();
    // It is too old to be given out.
    assert_eq!(volume.record(&["--read", CAPTURES]).code, Some(1));
    std::thread::sleep(Duration::from_millis(1500));
    let again = run(&[&erase[..], &["--index-dir", &volume.index, "--json"]].concat()).done();
    assert_eq!(json(&again)["keys_destroyed"], 1);
}

#[test]
fn a_plain_volume_is_encrypted_from_the_next_recording_on() {
    let plain = Volume::recorded();
    let key = plain.file("key");
    write_key(&key, SECRET);
    let find = |more: &[&str]| {
        let words = ["find", &plain.path, "", "--json", "--index-dir", &plain.index];
        run(&[&words[..], more].concat())
    };
    let all = find(&[]).done().out.lines().count();
    let begun = run(&["keys", &plain.path, "--add", PUBLIC]).done().out;
    assert!(begun.contains("what is recorded from now on is encrypted"), "{begun}");
    plain.record(&["--read", CAPTURES]).done();
    find(&[]).is_refused("is encrypted: name the file of a private key with --identity FILE");
    assert_eq!(find(&["--identity", &key]).done().out.lines().count(), 2 * all);
    run(&["verify", &plain.path]).done();
}

#[test]
fn a_key_of_ssh_and_a_file_of_age_with_a_passphrase_read() {
    let volume = Encrypted::new(1, "0");
    let made = volume.file("ssh");
    let keygen = ["-q", "-t", "ed25519", "-N", "", "-C", "somebody", "-f", &made];
    if !Command::new("ssh-keygen").args(keygen).status().is_ok_and(|status| status.success()) {
        println!("not run: needs ssh-keygen");
        return;
    }
    let public = std::fs::read_to_string(format!("{made}.pub")).unwrap();
    keys(&volume, &["--add", public.trim()]).done();
    volume.record(&["--read", CAPTURES]).done();
    assert_eq!(sessions(&volume, &made), sessions(&volume, &volume.key));
    assert!(sessions(&volume, &made).is_some());
    // As `age -p` writes it; nobody is at a terminal here.
    let locked = volume.file("locked");
    write_key(&locked, "-----BEGIN AGE ENCRYPTED FILE-----\n");
    let refused = run(&["find", volume.path(), "", "--identity", &locked]);
    refused.fails_with(2, "--identity");
    write_key(&locked, OTHER);
}
