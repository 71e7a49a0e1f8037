//! HTTP/1 heads (RFC 9112), requests and responses, several to a session; over UDP as SSDP sends
//! them; the one line that a request of HTTP/0.9 is (RFC 1945 5).
//!
//! Only what names the exchange is read, so header lines that break the grammar do not hide the
//! others.

use wire::{App, Names};

use crate::Step;
use crate::values::{keep, keep_text};

/// The longest method registered is 17 letters; private ones (`SSTP_DUPLEX_POST`) are as long.
const METHOD_LEN_MAX: usize = 32;

/// Lines of a head that are looked at, and of those the ones that say something.
const LINE_COUNT_MAX: usize = 256;
const FIELD_COUNT_MAX: usize = 16;

/// Bytes of a common method or a version that are compared.
const START_LEN: usize = 8;

/// Of the names of fields that say something.
const NAME_LEN_MAX: usize = 12;

const METHODS: [&[u8]; 9] = [
    b"GET ",
    b"POST ",
    b"HEAD ",
    b"PUT ",
    b"DELETE ",
    b"OPTIONS ",
    b"PATCH ",
    b"CONNECT ",
    b"TRACE ",
];

/// Methods that are believed, too, before the line's end is seen, once they stand there whole: of
/// `WebDAV` (RFC 4918, 3253, 5323, 4791) and of Microsoft's RPC over HTTP, SSTP and BITS.
const LONG_METHODS: [&[u8]; 15] = [
    b"PROPFIND ",
    b"PROPPATCH ",
    b"MKCOL ",
    b"COPY /",
    b"MOVE /",
    b"LOCK /",
    b"UNLOCK ",
    b"REPORT /",
    b"SEARCH /",
    b"MKCALENDAR ",
    b"VERSION-CONTROL ",
    b"RPC_IN_DATA ",
    b"RPC_OUT_DATA ",
    b"SSTP_DUPLEX_POST ",
    b"BITS_POST ",
];

/// A digit follows (RFC 9112 2.3).
const VERSION: &[u8] = b"HTTP/";

/// Ports on which a line without a version is a request of HTTP/0.9 whatever the answer.
const SIMPLE_PORTS: [u16; 4] = [80, 8000, 8008, 8080];

/// Bytes of a request of HTTP/0.9.
const SIMPLE_LEN_MAX: usize = 2048;

/// How a page begins, in lower case; blanks may stand before it.
const PAGES: [&[u8]; 6] = [b"<html", b"<!doctype html", b"<head", b"<title", b"<body", b"<h1"];

/// How a client begins HTTP/2 (RFC 9113 3.4); what follows is binary and compressed.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Whether these bytes begin a request or a response, as far as they go.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    if !bytes.first().is_some_and(u8::is_ascii_uppercase) {
        return false;
    }
    let short = bytes.len().min(START_LEN);
    let start = bytes.get(..short).unwrap_or_default();
    let is_known = METHODS.iter().chain([&VERSION, &PREFACE]).any(|word| {
        let len = word.len().min(start.len());
        word.first() == start.first() && word.get(..len) == start.get(..len)
    });
    let is_long = || LONG_METHODS.iter().any(|method| bytes.starts_with(method));
    is_known || is_long() || is_rare_request(bytes)
}

/// Any other token (RFC 9110 9.1) is believed to be a method when the version stands at the end of
/// the line.
pub(crate) fn is_rare_request(bytes: &[u8]) -> bool {
    // No further than a method reaches: a payload of nothing but letters may be long.
    let start = bytes.iter().take(METHOD_LEN_MAX + 1);
    let len = start.take_while(|&&byte| is_token(byte)).count();
    let (Some(method), Some([b' ', target @ ..])) = (bytes.get(..len), bytes.get(len..)) else {
        return false;
    };
    // Text in small letters is mostly prose: its lines are not looked through.
    let may_be_request = is_target(target) || !method.iter().any(u8::is_ascii_lowercase);
    if !(3..=METHOD_LEN_MAX).contains(&len) || !may_be_request {
        return false;
    }
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    line.trim_ascii_end().rsplit(|&byte| byte == b' ').next().is_some_and(is_version)
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether these bytes begin with a target in origin or absolute form (RFC 9112 3.2).
fn is_target(bytes: &[u8]) -> bool {
    bytes.starts_with(b"/") || bytes.starts_with(b"http://") || bytes.starts_with(b"https://")
}

fn is_version(word: &[u8]) -> bool {
    word.strip_prefix(VERSION).and_then(|rest| rest.first()).is_some_and(u8::is_ascii_digit)
}

/// The target of a request of HTTP/0.9: the payload is this line and nothing else.
pub(crate) fn simple_target(bytes: &[u8]) -> Option<&[u8]> {
    let line = bytes.get(..SIMPLE_LEN_MAX).unwrap_or(bytes).strip_prefix(b"GET ")?;
    if bytes.last() != Some(&b'\n') || bytes.len() > SIMPLE_LEN_MAX || !is_target(line) {
        return None;
    }
    let target = line.trim_ascii_end();
    target.iter().all(u8::is_ascii_graphic).then_some(target)
}

/// Whether a request of HTTP/0.9 is believed for its port.
pub(crate) fn is_simple_port(ports: (u16, u16)) -> bool {
    SIMPLE_PORTS.iter().any(|&port| ports.0 == port || ports.1 == port)
}

/// Whether an answer begins as a page does.
pub(crate) fn is_page(bytes: &[u8]) -> bool {
    let bytes = bytes.trim_ascii_start();
    PAGES
        .iter()
        .any(|page| bytes.get(..page.len()).is_some_and(|start| start.eq_ignore_ascii_case(page)))
}

/// Keeps the names of a request of HTTP/0.9.
pub(crate) fn keep_simple(target: &[u8], names: &mut Names) {
    names.app.get_or_insert(App::Http);
    keep_text(&mut names.http_method, b"GET");
    keep_text(&mut names.http_path, target);
}

/// Reads the head at the start of `bytes`.
pub(crate) fn read(bytes: &[u8], last: bool, names: &mut Names) -> Step {
    if !begins(bytes) && !is_rare_request(bytes) {
        return Step::Foreign;
    }
    if bytes.starts_with(PREFACE) {
        names.app.get_or_insert(App::Http2);
        return Step::Done(bytes.len());
    }
    if bytes.starts_with(b"PRI ") && PREFACE.starts_with(bytes) {
        return if last { Step::Foreign } else { Step::More };
    }
    let (head, step) = match head_len(bytes) {
        Some(len) => (bytes.get(..len).unwrap_or_default(), Step::Done(len)),
        None if last => (bytes, Step::Done(bytes.len())),
        None => {
            let first_line_is_wrong = bytes
                .iter()
                .position(|&byte| byte == b'\n')
                .is_some_and(|end| !is_first_line(bytes.get(..end).unwrap_or_default()));
            return if first_line_is_wrong { Step::Foreign } else { Step::More };
        }
    };
    if !read_head(head, names) {
        return Step::Foreign;
    }
    names.app.get_or_insert(App::Http);
    step
}

/// Keeps what the first line and the fields say; false when the first line is none.
fn read_head(head: &[u8], names: &mut Names) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    if !lines.next().is_some_and(|line| read_first_line(line, names)) {
        return false;
    }
    let fields = lines.take(LINE_COUNT_MAX).filter_map(|line| field(line));
    for (list, value) in fields.take(FIELD_COUNT_MAX) {
        keep_text(list(names), value.trim_ascii());
    }
    true
}

/// The list that the values of a field go into.
type List = fn(&mut Names) -> &mut Vec<String>;

fn names_of_field(name: &[u8]) -> Option<List> {
    let fields: [(&[u8], List); 3] = [
        (b"host", |names| &mut names.http_host),
        (b"user-agent", |names| &mut names.http_user_agent),
        (b"content-type", |names| &mut names.http_content_type),
    ];
    let known = fields.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
    known.map(|(_, list)| list)
}

/// Field and value of a line that says something.
fn field(line: &[u8]) -> Option<(List, &[u8])> {
    // No further than the longest name reaches.
    let colon = line.iter().take(NAME_LEN_MAX + 1).position(|&byte| byte == b':')?;
    Some((names_of_field(line.get(..colon)?)?, line.get(colon + 1..)?))
}

/// Up to and with the empty line; line ends may be bare (RFC 9112 2.2).
fn head_len(bytes: &[u8]) -> Option<usize> {
    let mut ends = bytes.iter().enumerate().filter(|&(_, &byte)| byte == b'\n').map(|(at, _)| at);
    let mut end = ends.next()?;
    for next in ends {
        if bytes.get(end + 1..next)?.trim_ascii().is_empty() {
            return Some(next + 1);
        }
        end = next;
    }
    None
}

fn is_first_line(line: &[u8]) -> bool {
    let mut words = line.trim_ascii().split(|&byte| byte == b' ');
    words.next().is_some_and(is_version) || words.next_back().is_some_and(is_version)
}

/// Keeps the request's method and target, or the response's status.
fn read_first_line(line: &[u8], names: &mut Names) -> bool {
    let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let (Some(first), Some(second)) = (words.next(), words.next()) else {
        return false;
    };
    if is_version(first) {
        let Some(status) = core::str::from_utf8(second).ok().and_then(|text| text.parse().ok())
        else {
            return false;
        };
        keep(&mut names.http_status, status);
        return true;
    }
    if !words.next_back().is_some_and(is_version) {
        return false;
    }
    keep_text(&mut names.http_method, first);
    keep_text(&mut names.http_path, second);
    true
}
