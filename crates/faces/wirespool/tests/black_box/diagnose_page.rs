//! Diagnoses as pages: the finding and the plots are there, and a browser shows them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::machine::{Ran, command, enter, folder_on_block_device, run, text};
use crate::page::{browse, plots};

/// A connection that is read from slowly, as long as this value lives.
struct Slow {
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Slow {
    fn new(address: &str) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut reader, _) = listener.accept().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let reading = std::thread::spawn(move || {
            let mut block = vec![0; 1 << 14];
            while reader.read(&mut block).is_ok_and(|len| len > 0) {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let writing = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) && sender.write_all(&[7; 1 << 14]).is_ok() {}
        });
        Self { stop, threads: vec![reading, writing] }
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// The page as the browser has it, or as it was written where there is no browser.
fn opened(page: &Path, folder: &Path) -> String {
    let html = fs::read_to_string(page).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.len() < 1_000_000, "{}", html.len());
    let Some((dom, said)) = browse(page, folder) else { return html };
    assert!(!said.contains("CONSOLE"), "{said}");
    dom
}

#[test]
fn a_page_of_connections_has_the_finding_and_their_plots() {
    let name = "a_page_of_connections_has_the_finding_and_their_plots";
    if !enter("ip link set lo up", &format!("diagnose_page::{name}")) {
        return;
    }
    let slow = Slow::new("127.0.0.1:0");
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("tcp.html");
    let path = text(page.clone());
    let look = ["diagnose", "tcp", "--here", "--interval", "100ms", "--html", &path];
    let samples = text(folder.path().join("tcp.parquet"));
    let ran = run(&[&look[..], &["--for", "2s", "--save", &samples]].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    drop(slow);
    let dom = opened(&page, folder.path());
    for words in ["Diagnosis of connections", "1. warning: ", "waits for its receiver", "Evidence"]
    {
        assert!(dom.contains(words), "{words} in {dom}");
    }
    assert!(dom.contains(&format!("(process {})", std::process::id())), "{dom}");
    // Window and round trip of both ends, and what the one that sends delivered.
    let plots = plots(&dom);
    assert!(plots.len() == 5 && plots.iter().all(|points| *points > 5), "{plots:?}");
    assert!(fs::read(&samples).unwrap().starts_with(b"PAR1"));
    // What is there is replaced only when that is asked for, and not looked for in vain.
    run(&[&look[..], &["--for", "1h"]].concat()).is_refused("exists already; --force replaces it");
    run(&[&look[..], &["--for", "100ms", "--force"]].concat()).done();
    assert!(fs::read_to_string(&page).unwrap().contains("Nothing found"));
}

#[test]
fn a_page_of_disks_has_latencies_sizes_and_places_or_says_what_it_takes() {
    let Some(folder) = folder_on_block_device() else { return };
    let page = folder.path().join("io.html");
    let path = text(page.clone());
    let place = text(folder.path().to_path_buf());
    let watch = ["diagnose", "io", &place, "--for", "3s", "--html", &path];
    let watch = command(&watch).stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let mut file = fs::File::create(folder.path().join("<i>&.bin")).unwrap();
    for _ in 0..16 {
        file.write_all(&vec![7; 1 << 20]).unwrap();
        file.sync_all().unwrap();
    }
    let ran = Ran::new(&watch.wait_with_output().unwrap());
    assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
    let dom = opened(&page, folder.path());
    assert!(dom.contains("Diagnosis of disks") && !dom.contains("<i>&"), "{dom}");
    if dom.contains("Block devices, as the kernel counts") {
        println!("not run: tracing takes root and tracefs");
        return assert!(dom.contains("Not seen"), "{dom}");
    }
    if dom.contains("did not hand out") {
        return println!("not run: the kernel kept records of requests back");
    }
    for title in ["Bytes over time", "Offset over time, written", "Latency of writes", "Sizes of"] {
        assert!(dom.contains(&format!("<h3>{title}")), "{title} in {dom}");
    }
    assert!(dom.contains("&lt;i&gt;&amp;.bin"), "{dom}");
    assert!(plots(&dom).len() >= 4, "{dom}");
    run(&["diagnose", "io", "--for", "1h", "--html", "/nonexistent/x.html"]).is_refused("create");
    for (arguments, said) in [
        (&["--files", "--html", &path][..], "cannot be used with '--html"),
        (&["--force"], "not provided:\n  <--html <FILE>>"),
    ] {
        let ran = run(&[&["diagnose", "io"], arguments].concat());
        assert!(ran.code == Some(2) && ran.err.contains(said), "{said}: {ran:?}");
    }
}

#[test]
fn a_page_of_a_machine_has_all_parts() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("all.html");
    let path = text(page.clone());
    let ran = run(&["diagnose", "--for", "300ms", "--html", &path]);
    assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
    let html = fs::read_to_string(&page).unwrap();
    for words in
        ["Diagnosis of a machine", "facts of this machine", "Connections", "What disks did"]
    {
        assert!(html.contains(words), "{words} in {html}");
    }
}
