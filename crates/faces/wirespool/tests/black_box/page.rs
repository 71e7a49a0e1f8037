//! The page of a qualification in a browser, and what else reports become.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::machine::{Ran, run, text};

const PROFILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/qualify/profiles");

/// A report of a modelled disk with all parts that are quick in a test.
fn report(folder: &Path, more: &[&str]) -> String {
    let profile = format!("{PROFILES}/single-8tb.csv");
    let path = text(folder.join("report.json"));
    let flags = ["--rate", "1.5G", "--mix", "640", "--size", "64G", "-o", &path];
    let ran = run(&[&["qualify", "--model", &profile][..], &flags, more].concat());
    assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
    path
}

/// Opens a page without a display; what it became, and what the browser had to say of it.
pub(crate) fn browse(page: &Path, folder: &Path) -> Option<(String, String)> {
    let mut chromium = Command::new("chromium");
    chromium.args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]);
    chromium.args(["--disable-background-networking", "--disable-component-update"]);
    chromium.args(["--disable-sync", "--no-first-run", "--enable-logging=stderr"]);
    // The browser has errands of its own: they lead nowhere.
    chromium.arg("--host-resolver-rules=MAP * ~NOTFOUND");
    chromium.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    chromium.arg(format!("file://{}", page.display()));
    let output = match chromium.output() {
        Ok(output) => output,
        Err(error) => {
            println!("not run: chromium: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "{output:?}");
    let ran = Ran::new(&output);
    Some((ran.out, ran.err))
}

/// The page's own policy refuses every script and request, and the browser says each on its
/// console: what it is silent about does neither.
#[test]
fn a_page_opens_in_a_browser_with_all_its_plots_and_asks_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    report(folder.path(), &["--html", page.to_str().unwrap()]);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.len() < 1_000_000, "{}", html.len());
    let Some((dom, said)) = browse(&page, folder.path()) else { return };
    assert!(!said.contains("CONSOLE"), "{said}");
    let other = folder.path().join("other.html");
    let asking = "<img src=\"https://example.invalid/x.png\"></main>";
    std::fs::write(&other, html.replace("</main>", asking)).unwrap();
    let (_, said) = browse(&other, folder.path()).expect("it ran a moment ago");
    assert!(said.contains("CONSOLE") && said.contains("example.invalid"), "{said}");
    let plots = plots(&dom);
    assert!(plots.len() == 10 && plots.iter().all(|points| *points > 1), "{plots:?}");
}

/// The plots of a page: how many points the mark of each has that has most.
pub(crate) fn plots(dom: &str) -> Vec<u64> {
    let plot = |plot: &str| {
        let plot = plot.split("</svg>").next().unwrap();
        let drawn = plot.split("data-points=\"").skip(1);
        let most = drawn.map(|rest| rest.split('"').next().unwrap().parse::<u64>().unwrap()).max();
        let title = plot.split("</title>").next().unwrap();
        assert!(most.unwrap() > 0 && plot.contains(" d=\"M") && !plot.contains("NaN"), "{title}");
        assert!(plot.contains("<desc id="), "{title}");
        most.unwrap()
    };
    dom.split("<svg ").skip(1).map(plot).collect()
}

#[test]
fn a_report_becomes_a_page_tables_and_plots() {
    let folder = tempfile::tempdir().unwrap();
    let report = report(folder.path(), &["--part", "sweep", "--part", "extents"]);
    let file = |name: &str| text(folder.path().join(name));
    let (html, csv, svg) = (file("page.html"), file("tables"), file("plots"));
    let to = ["--html", &html, "--csv", &csv, "--svg", &svg];
    run(&[&["qualify", "show", &report][..], &to].concat()).done();
    assert!(std::fs::read_to_string(&html).unwrap().starts_with("<!DOCTYPE html>"));
    let sweep = std::fs::read_to_string(folder.path().join("tables/sweep.csv")).unwrap();
    assert_eq!(sweep.lines().count(), 22, "{sweep}");
    assert!(folder.path().join("plots/rate-over-place.svg").exists());
    // A folder with something in it is not written to; a page is replaced by --force alone.
    run(&["qualify", "show", &report, "--csv", &csv]).is_refused("not empty");
    run(&["qualify", "show", &report, "--html", &html]).is_refused("--force replaces it");
    run(&["qualify", "show", &report, "--html", &html, "--force"]).done();
    run(&["qualify", "show", &report, "--html", &file("no/page.html")]).is_refused("create");
}

#[test]
fn a_guarantee_that_fell_is_a_negative_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let old = report(folder.path(), &["--part", "sweep"]);
    run(&["qualify", "diff", &old, &old]).done();
    let new = text(folder.path().join("new.json"));
    let mut json: Value = serde_json::from_str(&std::fs::read_to_string(&old).unwrap()).unwrap();
    let guaranteed = &mut json["verdict"]["judged"][0]["guaranteed_bytes_per_s"];
    *guaranteed = (guaranteed.as_u64().unwrap() / 10 * 9).into();
    std::fs::write(&new, json.to_string()).unwrap();
    let ran = run(&["qualify", "diff", &old, &new]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.ends_with("the guarantee fell by more than 5.0 %\n"), "{ran:?}");
    run(&["qualify", "diff", &old, &new, "--tolerance", "15"]).done();
    let ran = run(&["qualify", "diff", &new, &old, "--json"]).done();
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&json["has_fallen"], &json["compared"][0]["change"]),
        (&false.into(), &"better".into())
    );
    let absent = text(folder.path().join("absent.json"));
    run(&["qualify", "diff", &old, &absent]).is_refused("absent.json");
}

#[test]
fn a_plan_says_how_many_disks_and_when_none_do() {
    let plan = |more: &[&str]| run(&[&["qualify", "plan", "--rate", "10G"], more].concat());
    let ran = plan(&["--mix", "640", "--disk", "hdd-8tb", "--parity", "2", "--json"]).done();
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["proposals"][0]["data_disks"], 7);
    // The published array of 8 x 8 TB: near 10 Gbit/s, and not there.
    let eight = plan(&["--mix", "640", "--disk", "hdd-8tb", "--parity", "2", "--disks", "8"]);
    assert_eq!(eight.code, Some(1), "{eight:?}");
    assert!(eight.out.contains("TOO SLOW") && eight.out.contains("nothing of this fits"));
    for (flags, said) in [
        (&["--disk", "hdd-9tb"][..], "--disk hdd-9tb: neither a file nor one of hdd-8tb, hdd-4tb"),
        (&["--mean", "11G"], "no mean is above the rate"),
        (&["--parity", "2", "--disks", "2"], "leaves none for data"),
        (&["--parity", "3"], "3 is not in 0..=2"),
        (&["--disks", "25"], "25 is not in 1..=24"),
    ] {
        let ran = plan(flags);
        assert!(ran.code == Some(2) && ran.err.contains(said), "{said}: {ran:?}");
    }
    assert_eq!(run(&["qualify", "plan"]).code, Some(2));
}

#[test]
fn a_disk_that_was_qualified_is_planned_with() {
    let folder = tempfile::tempdir().unwrap();
    let report = report(folder.path(), &["--part", "ring"]);
    let flags = ["--rate", "3G", "--mix", "640", "--disk", &report, "--parity", "1", "--json"];
    let ran = run(&[&["qualify", "plan"][..], &flags].concat()).done();
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["disks"][0]["name"], "report");
    assert!(json["disks"][0]["source"].as_str().unwrap().ends_with(", measured"));
    // 384 MB/s of disks that guarantee about 200 each.
    assert_eq!(json["proposals"][0]["data_disks"], 2);
    assert!(json["proposals"][0]["traffic_bit_per_s_lost"][1].is_null());
}

/// The command is that of docs/qualification.md.
#[test]
fn the_plots_of_the_documents_are_what_the_model_draws() {
    let folder = tempfile::tempdir().unwrap();
    let (profile, plots) = (format!("{PROFILES}/single-8tb.csv"), folder.path().join("plots"));
    let disks = ["--data-disks", "6", "--parity-disks", "2", "--rate", "10G", "--mix", "640"];
    let parts = ["--pool", "4G", "--part", "fill", "--part", "ring", "--svg"];
    let target = ["qualify", "--model", &profile];
    let ran = run(&[&target[..], &disks, &parts, &[plots.to_str().unwrap()]].concat());
    assert_eq!(ran.code, Some(1), "near 10 Gbit/s, and not there: {ran:?}");
    let committed = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/plots"));
    let entries = std::fs::read_dir(committed).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names.len(), 6);
    for name in names {
        let read = |folder: &Path| std::fs::read_to_string(folder.join(&name)).unwrap();
        assert!(read(committed) == read(&plots), "make {} anew", name.display());
    }
}
