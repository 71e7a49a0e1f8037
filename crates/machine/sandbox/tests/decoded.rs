//! What a program of others may still do when it is handed packets: a shell in its place tries.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use sandbox::{Error, decode};

const SHELL: &str = "/bin/sh";

fn said(script: &str, input: &[u8]) -> Result<String, Error> {
    let text = decode(Path::new(SHELL), &["-c", script], input, 1 << 20)?;
    Ok(String::from_utf8(text).unwrap())
}

#[test]
fn it_gets_what_it_is_handed_and_is_heard_to_the_end() {
    let script = "while read -r line; do echo \"<$line>\"; done";
    let many = "a line of a packet\n".repeat(20_000);
    let heard = said(script, many.as_bytes()).unwrap();
    assert_eq!(heard, "<a line of a packet>\n".repeat(20_000));
    let input = b"x\n";
    let why = |script: &str| said(script, input).unwrap_err().to_string();
    assert!(why("read -r line; exit 3").contains("failed"));
    assert!(
        why("while :; do echo 0123456789012345678901234567890123456789; done").contains("much")
    );
    let absent = decode(Path::new("/nonexistent/tshark"), &[], input, 1).unwrap_err();
    assert!(absent.to_string().contains("cannot find the program"), "{absent}");
}

#[test]
fn it_reads_no_file_of_others_writes_none_and_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // Who is not confined may do all of it.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, "secret\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o666)).unwrap();
    let (secret, made) = (secret.display(), folder.path().join("made"));
    let parent = std::process::id();
    let attempts = [
        format!("read -r line < {secret}"),
        "read -r line < /etc/passwd".to_owned(),
        format!("read -r line < /proc/{parent}/status"),
        format!("echo changed > {secret}"),
        format!("echo made > {}", made.display()),
        format!("kill -0 {parent}"),
        "exec /bin/true".to_owned(),
        "x=$(echo forked) && [ \"$x\" = forked ]".to_owned(),
    ];
    for attempt in attempts {
        // A shell ends where what it is asked for cannot be done.
        let script = format!("if {attempt}; then echo done; fi 2> /dev/null");
        let heard = said(&script, b"").unwrap_or_default();
        assert_eq!(heard, "", "{attempt}");
        let free = std::process::Command::new(SHELL).args(["-c", &script]).output().unwrap();
        let is_exec = attempt.starts_with("exec");
        assert!(is_exec && free.status.success() || free.stdout == b"done\n", "{attempt}");
        fs::write(folder.path().join("secret"), "secret\n").unwrap();
        drop(fs::remove_file(&made));
    }
}

#[test]
fn it_has_little_time_and_memory_and_makes_no_file() {
    // Seconds, blocks of files, descriptors, KiB of address space.
    let heard = said("ulimit -t; ulimit -f; ulimit -n; ulimit -v; ulimit -c", b"").unwrap();
    assert_eq!(heard.split_whitespace().collect::<Vec<_>>(), ["20", "0", "64", "3145728", "0"]);
    let raised = said("ulimit -t 1000 && echo raised", b"").unwrap_or_default();
    assert_eq!(raised, "");
}
