//! Four eyes: what one person asked for is handed out when another one has approved it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::machine::{Ran, Volume, run};

const QUERY: &str = "app dns";

struct Office {
    volume: Volume,
    signers: String,
    request: String,
}

impl Office {
    /// None where ssh-keygen is not there to make keys with names.
    fn new() -> Option<Self> {
        let volume = Volume::recorded();
        let mut signers = String::new();
        for name in ["alice", "bob", "mallory"] {
            let key = volume.file(name);
            let mut make = Command::new("ssh-keygen");
            make.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", &key]);
            if !make.status().is_ok_and(|status| status.success()) {
                println!("not run: needs ssh-keygen");
                return None;
            }
            let public = std::fs::read_to_string(format!("{key}.pub")).unwrap();
            if name != "mallory" {
                signers.extend([name, "@lab ", &public]);
            }
        }
        let [file, request] = ["signers", "request.json"].map(|name| volume.file(name));
        std::fs::write(&file, signers).unwrap();
        Some(Self { volume, signers: file, request })
    }

    fn ask(&self, who: &str, more: &[&str]) -> Ran {
        let key = self.volume.file(who);
        let words = ["request", QUERY, "--sign", &key, "-w", &self.request, "--force"];
        run(&[&words[..], &["--case", "2026/17", "--purpose", "a leak"], more].concat())
    }

    fn approve(&self, who: &str) -> Ran {
        for beside in ["approved", "approved.sig"] {
            drop(std::fs::remove_file(format!("{}.{beside}", self.request)));
        }
        run(&["approve", &self.request, "--sign", &self.volume.file(who)])
    }

    fn extract(&self, name: &str) -> Ran {
        let out = self.volume.file(name);
        let words = ["extract", &self.volume.path, "--approved", &self.request, "--force"];
        run(&[&words[..], &["--approvers", &self.signers, "-w", &out]].concat())
    }
}

#[test]
fn two_people_hand_out_what_one_asked_for_and_the_manifest_names_both() {
    let Some(office) = Office::new() else { return };
    office.ask("alice", &[]).done();
    office.extract("early.pcapng").is_refused("request.json.approved");
    let approved = office.approve("bob").done();
    assert!(approved.out.contains("case: 2026/17"), "{approved:?}");
    let done = office.extract("out.pcapng");
    assert!(done.code == Some(0), "{done:?}");
    let direct = office.volume.file("direct.pcapng");
    run(&["extract", &office.volume.path, QUERY, "-w", &direct]).done();
    let manifest = |name: &str| -> Value {
        let text = std::fs::read_to_string(office.volume.file(name)).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let (own, plain) = (manifest("out.pcapng.json"), manifest("direct.pcapng.json"));
    assert_eq!(own["outputs"][0]["packets"], plain["outputs"][0]["packets"]);
    assert_eq!((&own["case"], &own["purpose"]), (&"2026/17".into(), &"a leak".into()));
    let named = &own["request"]["approved"];
    let starts = |key: &str, name: &str| named[key].as_str().is_some_and(|it| it.starts_with(name));
    assert!(starts("requested_by", "alice@lab (") && starts("approved_by", "bob@lab ("), "{named}");
    let request = std::fs::read(&office.request).unwrap();
    assert_eq!(named["request_blake3"], blake3::hash(&request).to_hex().as_str());
}

#[test]
fn one_person_or_a_stranger_is_not_enough() {
    let Some(office) = Office::new() else { return };
    office.ask("alice", &[]).done();
    office.approve("alice").is_refused("both asked and approved");
    office.approve("mallory").done();
    office.extract("out.pcapng").is_refused("another key than the one given");
    office.approve("bob").done();
    let text = std::fs::read_to_string(&office.request).unwrap();
    std::fs::write(&office.request, text.replace("dns", "tls")).unwrap();
    office.extract("out.pcapng").is_refused("was changed after it was written");
    // A second request does not take the approval of the first.
    office.ask("alice", &["--purpose", "another"]);
    std::fs::write(&office.request, text.replace("a leak", "a leek")).unwrap();
    office.extract("out.pcapng").is_refused("request");
    office.approve("bob").is_refused("was changed after it was written");
    office.ask("alice", &["--valid-for", "1ms"]).done();
    office.approve("bob").is_refused("ask again");
    office.ask("mallory", &[]).done();
    office.approve("bob").done();
    office.extract("out.pcapng").is_refused("another key than the one given");
    assert!(!Path::new(&office.volume.file("out.pcapng")).exists());
    let mixed = ["extract", &office.volume.path, "tcp", "--approved", &office.request];
    let mixed = run(&[&mixed[..], &["--approvers", &office.signers, "-w", "x"]].concat());
    assert!(mixed.code == Some(2) && mixed.err.contains("cannot be used with"), "{mixed:?}");
}
