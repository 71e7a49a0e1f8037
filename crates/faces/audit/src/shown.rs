//! An audit for people.

use core::fmt::Write as _;
use std::path::PathBuf;

use page::safe::{path, printable};
use page::text::plural;
use units::hex;

use crate::line::{Event, FourEyes, Line, Request};
use crate::reading::{Shown, Verified};

/// A line of text, with its line feed.
pub fn shown_line(shown: &Shown<'_>) -> String {
    let (line, has_end) = match shown {
        Shown::Line(line) => (line, true),
        Shown::WithoutEnd(line) => (line, false),
    };
    let Line { seq, time, event, .. } = line;
    let what = match event {
        Event::Begun(request) | Event::Request(request) => of_request(request, has_end),
        Event::Start { program, faults: 0 } => format!("{program} started"),
        Event::Start { program, faults } => {
            format!("{program} started; the file had {}", plural(*faults, "fault"))
        }
        Event::Stop {} => "ended in order".to_owned(),
        Event::Torn { bytes, .. } => {
            format!("the line before was torn: {} of it are there", plural(*bytes, "byte"))
        }
        Event::Resumed { why, refused } => {
            format!("{} refused: lines could not be written: {why}", plural(*refused, "request"))
        }
        Event::Exchanged { missing, .. } => {
            format!("this file was put in the place of another one, which had line {missing}")
        }
        Event::Continued { removed, .. } if removed.is_empty() => "a further file".to_owned(),
        Event::Continued { removed, .. } => {
            let names: Vec<&str> = removed.iter().map(|it| &*it.file).collect();
            format!("a further file; removed: {}", names.join(", "))
        }
        Event::Unlisted { count } => {
            let requests = plural(*count, "request");
            format!("{requests} without a credential that counts have no lines")
        }
    };
    format!("{}  {seq}  {}\n", printable(time), printable(&what))
}

fn of_request(request: &Request, has_end: bool) -> String {
    let Request { credential, kind, from, method, path, parameters, .. } = request;
    let who = credential.as_deref().unwrap_or("-");
    let kind = kind.map_or("no credential", |kind| kind.word());
    let gap = if parameters.is_empty() { "" } else { "?" };
    let mut text = format!("{who} ({kind})  {from}  {method} {path}{gap}{parameters}");
    let mut add = |part: core::fmt::Arguments<'_>| {
        // Writing to a string does not fail.
        let _infallible = write!(text, "  {part}");
    };
    if let Some(about) = &request.about {
        add(format_args!("about {about}"));
    }
    if let Some(query) = &request.query {
        add(format_args!("query {query:?}"));
    }
    if let Some(volume) = &request.volume {
        add(format_args!("volume {volume}"));
    }
    if let Some(asked) = &request.four_eyes {
        let FourEyes { request, case, purpose, requested_by, approved_by } = asked;
        add(format_args!("request {request}"));
        add(format_args!("case {case:?}  purpose {purpose:?}  requested by {requested_by}"));
        if let Some(approver) = approved_by {
            add(format_args!("approved by {approver}"));
        }
    }
    if let Some(status) = request.status {
        add(format_args!("{status}"));
    }
    add(format_args!("{}", plural(request.bytes, "byte")));
    match (has_end, request.ended) {
        (true, Some(ended)) => add(format_args!("{}", ended.words())),
        _ => add(format_args!("no end: the service was ended meanwhile")),
    }
    if let Some(limit) = &request.cut_by {
        add(format_args!("by {limit}"));
    }
    if let Some(hash) = &request.sha256 {
        add(format_args!("sha256 {hash}"));
    }
    text
}

/// What verifying has found.
pub fn verified_text(verified: &Verified, files: &[PathBuf]) -> String {
    let Verified { lines, first, end, torn, faults, faults_count, has_head } = verified;
    let mut text = String::new();
    let mut say = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    for (file, fault) in faults {
        say(format!("{}, line {}: {}", path(file), fault.line, printable(&fault.why)));
    }
    let more = faults_count.saturating_sub(units::number::to_u64(faults.len()));
    if more > 0 {
        say(format!("and {} more", plural(more, "fault")));
    }
    if *has_head == Some(false) {
        say("no line has the hash of this head: lines are missing, or were changed".to_owned());
    }
    let files = plural(units::number::to_u64(files.len()), "file");
    if *lines == 0 {
        say(format!("no line of an audit in {files}"));
        return text;
    }
    if let Some(first) = first.filter(|first| *first > 1) {
        say(format!("lines before {first} are in no file that was given"));
    }
    if *torn > 0 {
        say(format!("{} torn, as the next ones state", plural(*torn, "line")));
    }
    let verdict = if verified.is_whole() { "whole" } else { "broken" };
    let lines = plural(*lines, "line");
    say(format!("{verdict}: {lines} in {files}, up to {}, head {}", end.seq, hex(&end.hash)));
    text
}
