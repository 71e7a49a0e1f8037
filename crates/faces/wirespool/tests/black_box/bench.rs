//! Repeated runs: of programs that are made for it, and of the machine.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::machine::{BINARY, Ran, run, run_unprivileged, text};

fn bench(arguments: &[&str]) -> Ran {
    run(&[&["bench"], arguments].concat())
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

fn path(folder: &TempDir, name: &str) -> String {
    text(folder.path().join(name))
}

/// Before every fifth run a file says "slow", before the others "fast".
fn switch(folder: &TempDir) -> (String, String) {
    let (count, state) = (path(folder, "count"), path(folder, "state"));
    fs::write(&count, "0").unwrap();
    fs::write(&state, "fast").unwrap();
    let prepare = format!(
        "n=$(( ($(cat {count}) + 1) % 5 )); echo $n > {count}; \
         if [ $n = 0 ]; then echo slow > {state}; else echo fast > {state}; fi"
    );
    (prepare, state)
}

#[test]
fn a_program_with_two_speeds_is_found_out_with_what_decides() {
    let folder = tempfile::tempdir().unwrap();
    let (prepare, state) = switch(&folder);
    let script = format!("if [ $(cat {state}) = slow ]; then sleep 0.3; else sleep 0.05; fi");
    let arguments =
        ["-r", "30", "-p", &prepare, "--fact", &state, "--json", "--", "sh", "-c", &script];
    let ran = bench(&arguments).done();
    let json = json(&ran);
    let modes = &json["results"][0]["modes"];
    assert_eq!(modes["upper"]["count"], 6, "{modes:#}");
    let factors = modes["factors"].as_array().unwrap();
    // On a busy machine what others did may go with it a little, too.
    assert_eq!(
        (&factors[0]["name"], &factors[0]["upper"]),
        (&state.as_str().into(), &"slow".into())
    );
    let waiting = modes["parts"].as_array().unwrap().iter().find(|part| part["name"] == "waiting");
    let waiting = waiting.unwrap();
    let more = waiting["upper"].as_f64().unwrap() - waiting["lower"].as_f64().unwrap();
    assert!((0.2..0.3).contains(&more), "{waiting}");
    // In words.
    let arguments = [&arguments[..6], &arguments[7..]].concat();
    let ran = bench(&arguments).done();
    assert!(ran.out.contains("two modes, "), "{ran:?}");
    assert!(ran.out.contains("explains 100.0 % of it: slow where it is slow"), "{ran:?}");
    assert!(ran.out.contains("more for waiting"), "{ran:?}");
}

#[test]
fn two_programs_go_in_turn_and_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let log = path(&folder, "log");
    let program = |name: &str, time: &str| format!("echo -n {name} >> {log}; sleep {time}");
    let (first, second) = (program("a", "0.05"), program("b", "0.1"));
    let csv = path(&folder, "runs.csv");
    let ran = bench(&[
        "-r", "8", "-w", "1", "-n", "first", "-n", "second", "--csv", &csv, "--json", "--shell",
        "sh", "--", &first, "--", &second,
    ]);
    let json = json(&ran.done());
    assert_eq!(fs::read_to_string(&log).unwrap(), format!("ab{}", "abba".repeat(4)));
    let ratio = &json["results"][1]["ratio_to_first"];
    assert_eq!(ratio["differs"], true, "{ratio}");
    assert!((1.5..2.1).contains(&ratio["ratio"].as_f64().unwrap()), "{ratio}");
    assert_eq!(json["results"][0]["command"], "first");
    let lines = fs::read_to_string(&csv).unwrap();
    assert_eq!(lines.lines().count(), 1 + 16, "{lines}");
    assert!(lines.lines().nth(1).unwrap().starts_with("first,1,1,"), "{lines}");
}

#[test]
fn values_are_filled_in() {
    let ran = bench(&["-r", "2", "-L", "t", "0.01,0.02", "--json", "--", "sleep", "{t}"]);
    let json = json(&ran.done());
    let of = |at: usize| (&json["results"][at]["command"], &json["results"][at]["parameters"]["t"]);
    assert_eq!(of(0), (&"sleep 0.01".into(), &"0.01".into()));
    assert_eq!(of(1), (&"sleep 0.02".into(), &"0.02".into()));
}

#[test]
fn what_got_slower_is_told_by_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder, "monday.json");
    let named = ["-n", "it", "-r"];
    bench(&[&named[..], &["6", "--export-json", &file, "--", "sleep", "0.1"]].concat()).done();
    let hyperfine: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    for key in ["mean", "stddev", "median", "user", "system", "min", "max"] {
        assert!(hyperfine["results"][0][key].is_f64(), "{key}: {hyperfine:#}");
    }
    assert_eq!(hyperfine["results"][0]["times"].as_array().unwrap().len(), 6);
    let against = |runs: &str, tolerance: &str, seconds: &str| {
        let baseline = [runs, "--baseline", &file, "--tolerance", tolerance];
        bench(&[&named[..], &baseline, &["--", "sleep", seconds]].concat())
    };
    let ran = against("6", "10", "0.25");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("against ") && ran.out.contains("): slower\n"), "{ran:?}");
    let ran = against("6", "100", "0.1").done();
    assert!(ran.out.contains("): no change\n"), "{ran:?}");
    let ran = against("3", "10", "0.25");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.out.contains("too few runs to say"), "{ran:?}");
    let ran = bench(&["-r", "3", "--baseline", &file, "--", "true"]);
    ran.fails_with(2, "has no runs of \"true\", but of \"it\"");
}

#[test]
fn what_cannot_be_run_is_refused_in_one_line() {
    for (arguments, code, words) in [
        (&[][..], 2, "no command; write wirespool bench -- COMMAND"),
        (&["--", "true", "--"], 2, "an empty command"),
        (&["-n", "a", "-n", "b", "--", "true"], 2, "--command-name 2 times for 1 commands"),
        (&["-m", "5", "-M", "3", "--", "true"], 2, "--min-runs 5 with --max-runs 3"),
        (&["--", "/nonexistent/program"], 3, "no program \"/nonexistent/program\""),
        (&["--", "echo a | wc"], 3, "--shell sh"),
        (&["--", "false"], 3, "false ended with exit code 1; --ignore-failure"),
        (&["-p", "exit 7", "--", "true"], 3, "--prepare \"exit 7\" ended with exit code 7"),
        (&["-s", "exit 7", "--", "true"], 3, "--setup \"exit 7\" ended with exit code 7"),
        (&["-r", "2", "-c", "exit 7", "--", "true"], 3, "--cleanup \"exit 7\""),
        (&["--cpus", "4000", "--", "true"], 3, "processor 4000 is not among those"),
        (&["--file", "/nonexistent", "--", "true"], 3, "/nonexistent"),
        (&["--fact", "/nonexistent", "--", "true"], 3, "/nonexistent"),
        (&["--baseline", "/nonexistent", "--", "true"], 3, "/nonexistent"),
        (&["--export-json", "/nonexistent/x", "--", "true"], 3, "/nonexistent/x"),
        (&["host", "/nonexistent"], 2, "/nonexistent is no directory"),
    ] {
        bench(arguments).fails_with(code, words);
    }
    for arguments in [
        &["-r", "0", "--", "true"][..],
        &["--cpus", "3-1", "--", "true"],
        &["--tolerance", "5", "--", "true"],
        &["host", "--size", "1G"],
        &["ls"],
    ] {
        let ran = bench(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
    }
}

#[test]
fn failures_are_measured_if_wished_and_things_around_happen_once() {
    let folder = tempfile::tempdir().unwrap();
    let log = path(&folder, "log");
    let line = |word: &str| format!("echo -n {word} >> {log}");
    let [setup, prepare, cleanup] = ["s", "p", "c"].map(line);
    let command = format!("{}; exit 3", line("x"));
    let ran = bench(&[
        "-i", "-r", "2", "-s", &setup, "-p", &prepare, "-c", &cleanup, "--json", "--", "sh", "-c",
        &command,
    ]);
    let json = json(&ran.done());
    assert_eq!(json["results"][0]["exit_codes"], serde_json::json!([3, 3]));
    assert_eq!(fs::read_to_string(&log).unwrap(), "spxpxc");
    // Behind a failure, too.
    fs::remove_file(&log).unwrap();
    assert_eq!(bench(&["-c", &cleanup, "--", "false"]).code, Some(3));
    assert_eq!(fs::read_to_string(&log).unwrap(), "c");
}

#[test]
fn a_stop_tells_what_was_measured_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let log = path(&folder, "log");
    let script = format!("echo $$ >> {log}; exec sleep 0.4");
    // The parent of the tests may have ignored the interrupt.
    let mut command = Command::new("env");
    let cleaned = path(&folder, "cleaned");
    let cleanup = format!("sleep 0.5; echo > {cleaned}");
    command.args(["--default-signal=INT", BINARY, "bench", "-r", "100", "-c", &cleanup]);
    command.args(["--", "sh", "-c", &script]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    let begun = || fs::read_to_string(&log).unwrap_or_default().lines().count();
    while begun() < 3 {
        assert!(started.elapsed() < Duration::from_secs(30));
        sleep(Duration::from_millis(10));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.out.starts_with("2 runs, in "), "{ran:?}");
    assert!(ran.out.contains("; stopped before the end\n"), "{ran:?}");
    assert!(fs::exists(&cleaned).unwrap(), "what is behind everything runs to its end");
    let last = fs::read_to_string(&log).unwrap().lines().last().unwrap().to_owned();
    assert!(!fs::exists(format!("/proc/{last}")).unwrap(), "the run was ended, too");
}

#[test]
fn what_is_recorded_with_a_run_is_in_the_json() {
    let folder = tempfile::tempdir().unwrap();
    let data = path(&folder, "data");
    fs::write(&data, vec![7; 1 << 20]).unwrap();
    let ran = bench(&["-r", "2", "--cpus", "0", "--file", &data, "--json", "--", "cat", &data]);
    if ran.code == Some(3) {
        println!("not run: processor 0 is not ours");
        return;
    }
    let json = json(&ran.done());
    let run = &json["results"][0]["runs"][1];
    assert_eq!(run["facts"]["processor"], "0", "{run:#}");
    assert!(run["used"]["minor_faults"].as_u64().unwrap() > 0, "{run:#}");
    let cached = &run["facts"][format!("% cached of {data}")];
    assert_eq!(cached.as_f64(), Some(100.0), "{run:#}");
}

#[test]
fn an_ordinary_user_measures_too() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["bench", "-r", "3", "--", "true"];
    let Some(ran) = run_unprivileged(folder.path(), &arguments) else { return };
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.starts_with("3 runs, in ") && ran.out.contains("\ntrue"), "{ran:?}");
}

#[test]
fn the_machine_is_measured_and_held_against_another_day() {
    let folder = tempfile::tempdir().unwrap();
    let directory = path(&folder, "disk");
    fs::create_dir(&directory).unwrap();
    let file = path(&folder, "monday.json");
    let look = |arguments: &[&str]| {
        let fixed = ["host", &directory, "--size", "32M", "--for", "500ms"];
        bench(&[&fixed, arguments].concat())
    };
    look(&["--export-json", &file]).done();
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0, "the file is gone");
    let mut monday: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let results = monday["results"].as_array().unwrap();
    assert_eq!(results.len(), 12, "{results:#?}");
    for result in results {
        assert!(result["times"].as_array().unwrap().len() >= 5, "{result}");
        assert!(result["median"].as_f64().unwrap() > 0.0, "{result}");
    }
    // Once it computed ten times as much.
    for value in monday["results"][0]["times"].as_array_mut().unwrap() {
        *value = (value.as_f64().unwrap() * 10.0).into();
    }
    fs::write(&file, monday.to_string()).unwrap();
    let ran = look(&["--baseline", &file, "--tolerance", "80"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let mut slower = ran.out.lines().filter(|line| line.ends_with("): slower"));
    assert!(slower.any(|line| line.contains("integers, one processor: ")), "{ran:?}");
}
