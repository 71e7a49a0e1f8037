//! The whole walk on machines that are made up: what is proposed, asked, run, written and refused.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use core::cell::{Cell, RefCell};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use blockdev::DiskKind;
use network::{Link, LinkState};
use setup::{
    Answers, Counted, Disk, Ending, Folder, Machine, Manager, Measure, Operator, Places, Rights,
    Volume, Words, walk,
};

/// A machine with a mirror port, two free disks and one that carries the system.
struct MadeUp {
    rights: Rights,
    manager: Manager,
    looks: Cell<u64>,
    files: RefCell<BTreeMap<PathBuf, String>>,
    volume: RefCell<Option<Volume>>,
}

impl MadeUp {
    fn new() -> Self {
        let rights = Rights { user: "root".to_owned(), may_capture: true, is_root: true };
        Self {
            rights,
            manager: Manager::None,
            looks: Cell::new(0),
            files: RefCell::default(),
            volume: RefCell::default(),
        }
    }
}

impl Machine for MadeUp {
    fn rights(&self) -> Rights {
        self.rights.clone()
    }

    fn places(&self) -> Places {
        Places { config: "/etc/wirespool/wirespool.toml".into(), data: "/var/lib/wirespool".into() }
    }

    fn links(&self) -> Result<Vec<Link>, String> {
        let link = |name: &str, has_address| Link {
            name: name.to_owned(),
            state: LinkState::Up,
            is_loopback: name == "lo",
            mbit_per_s: None,
            has_address,
        };
        Ok(vec![link("lo", false), link("eth0", true), link("eth1", false)])
    }

    fn counters(&self) -> BTreeMap<String, Counted> {
        self.looks.set(self.looks.get() + 1);
        let received_packets = self.looks.get() * 3000;
        let counted =
            Counted { received_bytes: received_packets * 600, received_packets, sent_packets: 0 };
        ["lo", "eth0", "eth1"].map(|name| (name.to_owned(), counted)).into()
    }

    fn disks(&self, reads: bool) -> Vec<Disk> {
        ["/dev/sda", "/dev/sdb", "/dev/sdc"]
            .iter()
            .map(|path| self.disk(path.as_ref(), reads).unwrap())
            .collect()
    }

    fn disk(&self, path: &Path, _reads: bool) -> Result<Disk, String> {
        Ok(Disk {
            path: path.to_path_buf(),
            size_bytes: 8 << 40,
            kind: DiskKind::Rotating,
            model: "ST8000".to_owned(),
            destroy_name: format!("serial-{}", path.file_name().unwrap().display()),
            refusal: (path == Path::new("/dev/sda"))
                .then(|| "is in use: sda1 is mounted on /".to_owned()),
        })
    }

    fn filesystems(&self) -> Vec<Folder> {
        vec![self.folder("/".as_ref()).unwrap()]
    }

    fn folder(&self, path: &Path) -> Result<Folder, String> {
        let filesystem = "the file system on sda1".to_owned();
        let (path, free_bytes) = (path.to_path_buf(), 100 << 30);
        Ok(Folder { path, filesystem, free_bytes, kind: Some(DiskKind::Nvme) })
    }

    fn volume(&self, _members: &[PathBuf]) -> Option<Volume> {
        self.volume.borrow().clone()
    }

    fn read(&self, path: &Path) -> Option<String> {
        self.files.borrow().get(path).cloned()
    }

    fn make_folder(&self, _path: &Path) -> Result<(), String> {
        Ok(())
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), String> {
        self.files.borrow_mut().insert(path.to_path_buf(), text.to_owned());
        Ok(())
    }

    fn give_to_service(&self, _path: &Path) -> Result<(), String> {
        Ok(())
    }

    fn manager(&self) -> Manager {
        self.manager
    }
}

/// An operator who answers from a list, and what was said and run.
#[derive(Default)]
struct Scripted {
    /// No terminal without answers.
    answers: Option<VecDeque<&'static str>>,
    said: String,
    asked: Vec<String>,
    ran: Vec<String>,
    /// A signal comes while this verb runs.
    stops_at: Option<&'static str>,
    is_stopped: bool,
    is_recording: bool,
}

impl Scripted {
    fn at_a_terminal(answers: &[&'static str]) -> Self {
        Self { answers: Some(answers.iter().copied().collect()), ..Self::default() }
    }
}

impl Operator for Scripted {
    fn can_be_asked(&self) -> bool {
        self.answers.is_some()
    }

    fn say(&mut self, text: &str) {
        self.said.push_str(text);
        self.said.push('\n');
    }

    fn ask(&mut self, question: &str) -> Option<String> {
        self.asked.push(question.to_owned());
        self.answers.as_mut()?.pop_front().map(str::to_owned)
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    fn rest(&mut self, _time: Duration) {}

    fn progress(&mut self, _text: &str) {}

    fn run(&mut self, words: &Words) -> Result<(), String> {
        self.ran.push(words.join(" "));
        self.is_stopped |= self.stops_at == words.first().map(String::as_str);
        Ok(())
    }

    fn run_program(&mut self, words: &[&str]) -> Result<(), String> {
        self.ran.push(words.join(" "));
        self.is_recording = true;
        Ok(())
    }

    fn is_recording(&self, _volume: &Path) -> bool {
        self.is_recording
    }

    fn first_session(&self, _volume: &Path) -> Option<String> {
        self.is_recording.then(|| "10.0.0.1 10.0.0.2 dns".to_owned())
    }
}

fn on_disks() -> Answers {
    Answers {
        members: vec!["/dev/sdb".into(), "/dev/sdc".into()],
        measure: Some(Measure::None),
        takes_proposals: true,
        ..Answers::default()
    }
}

#[test]
fn flags_alone_lead_through_all_steps() {
    let machine = MadeUp { manager: Manager::Systemd, ..MadeUp::new() };
    let mut operator = Scripted::default();
    let answers = Answers { measure: Some(Measure::Full), ..on_disks() };
    assert_eq!(walk(&answers, &machine, &mut operator), Ok(true), "{}", operator.said);
    let ran: Vec<&str> = operator.ran.iter().map(String::as_str).collect();
    assert_eq!(
        ran,
        [
            "qualify /dev/sdb --full --destroy serial-sdb --output \
             /etc/wirespool/qualification-dev-sdb.json",
            "qualify /dev/sdc --full --destroy serial-sdc --output \
             /etc/wirespool/qualification-dev-sdc.json",
            "create /dev/sdb --member /dev/sdc --parity 1 --qualification \
             /etc/wirespool/qualification-dev-sdb.json --qualification \
             /etc/wirespool/qualification-dev-sdc.json",
            "serve token create setup --scope sessions,payload,extract --token-file \
             /etc/wirespool/tokens",
            "config check /etc/wirespool/wirespool.toml",
            "systemctl enable --now wirespool",
        ]
    );
    assert!(operator.said.contains("any one member may fail without loss"), "{}", operator.said);
    assert!(operator.said.contains("10.0.0.1 10.0.0.2 dns"), "{}", operator.said);
    let config = machine.read(Path::new("/etc/wirespool/wirespool.toml")).unwrap();
    assert!(config.contains("volume = \"/dev/sdb\"\ninterface = [\"eth1\"]"), "{config}");
}

#[test]
fn at_a_terminal_enter_takes_what_is_proposed_and_a_wrong_answer_is_asked_again() {
    let machine = MadeUp::new();
    // Interface; a disk in use and then free ones are chosen by name; parity; start.
    let answers = ["", "/dev/sda", "/dev/sdb,/dev/sdc", "maybe", "yes", "none", "3", "0", "no"];
    let mut operator = Scripted::at_a_terminal(&answers);
    let ended = walk(&Answers::default(), &machine, &mut operator);
    assert_eq!(ended, Ok(true), "{} {:?}", operator.said, operator.asked);
    assert!(operator.asked[0].ends_with("(several with commas)? [eth1]: "), "{:?}", operator.asked);
    assert!(operator.said.contains("  write yes or no"), "{}", operator.said);
    assert_eq!(operator.ran[0], "create /dev/sdb --member /dev/sdc --parity 0");
    assert!(operator.said.contains("wirespool serve --config /etc/wirespool/wirespool.toml"));
}

#[test]
fn without_a_terminal_nothing_is_asked_and_the_flag_is_named() {
    let mut operator = Scripted::default();
    let unanswered = walk(&Answers::default(), &MadeUp::new(), &mut operator).unwrap_err();
    assert!(unanswered.to_string().ends_with("give --interface"), "{unanswered}");
    let answers =
        Answers { interfaces: vec!["eth1".to_owned()], takes_proposals: false, ..on_disks() };
    let unanswered = walk(&answers, &MadeUp::new(), &mut operator).unwrap_err();
    assert!(unanswered.to_string().ends_with("give --yes"), "{unanswered}");
    assert!(operator.ran.is_empty() && operator.asked.is_empty());
}

#[test]
fn a_disk_in_use_is_refused_whatever_was_agreed_to() {
    let mut operator = Scripted::default();
    let answers = Answers { members: vec!["/dev/sda".into()], replaces: true, ..on_disks() };
    let refused = walk(&answers, &MadeUp::new(), &mut operator).unwrap_err();
    let words = "/dev/sda may not be used: is in use: sda1 is mounted on /";
    assert!(refused.to_string().starts_with(words), "{refused}");
    assert!(operator.ran.is_empty());
}

#[test]
fn a_dry_run_runs_and_writes_nothing() {
    let (machine, mut operator) = (MadeUp::new(), Scripted::default());
    let answers = Answers { is_dry: true, takes_proposals: false, ..on_disks() };
    assert_eq!(walk(&answers, &machine, &mut operator), Ok(true));
    assert!(operator.ran.is_empty() && machine.files.borrow().is_empty());
    assert!(operator.said.contains("would run: wirespool create /dev/sdb --member /dev/sdc"));
}

#[test]
fn interrupted_it_says_what_is_left_and_takes_what_is_there_when_run_again() {
    let machine = MadeUp::new();
    let mut operator = Scripted { stops_at: Some("create"), ..Scripted::default() };
    assert_eq!(walk(&on_disks(), &machine, &mut operator), Err(Ending::Interrupted));
    assert!(operator.said.contains("  left  volume, configuration, service"), "{}", operator.said);
    *machine.volume.borrow_mut() = Some(Volume {
        path: "/dev/sdb1".into(),
        id: "0f1e".to_owned(),
        columns: (1, 1),
        size_bytes: 7 << 40,
    });
    let mut operator = Scripted::default();
    let answers = Answers { start: Some(false), ..on_disks() };
    assert_eq!(walk(&answers, &machine, &mut operator), Ok(true));
    assert!(operator.ran[0].starts_with("serve token create"), "{:?}", operator.ran);
    let config = machine.read(Path::new("/etc/wirespool/wirespool.toml")).unwrap();
    assert!(config.contains("volume = \"/dev/sdb1\""), "{config}");
}

#[test]
fn an_ordinary_user_gets_a_volume_in_a_file_and_no_recorder() {
    let rights = Rights { user: "anna".to_owned(), may_capture: false, is_root: false };
    let (machine, mut operator) = (MadeUp { rights, ..MadeUp::new() }, Scripted::default());
    let answers = Answers { members: Vec::new(), start: Some(false), ..on_disks() };
    assert_eq!(walk(&answers, &machine, &mut operator), Ok(true), "{}", operator.said);
    assert!(operator.said.contains("CAP_NET_RAW") && operator.said.contains("--read FILE.pcap"));
    assert_eq!(operator.ran[0], "create /var/lib/wirespool/volume --parity 0 --size 53687091200");
    let config = machine.read(Path::new("/etc/wirespool/wirespool.toml")).unwrap();
    assert!(config.contains("volumes = [") && !config.contains("[recorder"), "{config}");
}

#[test]
fn a_configuration_that_differs_is_shown_and_kept() {
    let (machine, mut operator) = (MadeUp::new(), Scripted::default());
    let path = PathBuf::from("/etc/wirespool/wirespool.toml");
    machine.files.borrow_mut().insert(path.clone(), "[api]\n".to_owned());
    let refused = walk(&on_disks(), &machine, &mut operator).unwrap_err();
    assert!(refused.to_string().contains("--force replaces it"), "{refused}");
    assert!(operator.said.contains("  + [recorder.main]"), "{}", operator.said);
    assert_eq!(machine.read(&path).unwrap(), "[api]\n");
    let answers = Answers { replaces: true, start: Some(false), ..on_disks() };
    assert_eq!(walk(&answers, &machine, &mut operator), Ok(true));
}
