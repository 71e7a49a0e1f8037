//! FTP (RFC 959) and SMTP (RFC 5321): lines of both sides after the responder's greeting. Passwords
//! and what a mail contains are not kept.

use wire::{App, Names};

use crate::reader::find;
use crate::values::detail;
use crate::{Reading, Side, Step};

/// Lines of one payload that are read; the others are left out.
const LINES_AT_ONCE: usize = 32;

/// Lines of one session that are read.
const LINE_COUNT_MAX: u8 = 200;

/// Longer lines are no commands (RFC 5321 4.5.3.1 has 512 bytes).
const LINE_LEN_MAX: usize = 1024;

/// Longer words are no commands that are known.
const VERB_LEN_MAX: usize = 8;

/// Bytes of a greeting's line in which the protocol may stand.
const GREETING_LEN_MAX: usize = 256;

/// What is known of a dialog.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Dialog {
    stage: Stage,
    lines: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    #[default]
    None,
    /// A greeting that both have.
    Greeted,
    Ftp,
    Smtp,
    /// Another protocol, or content: nothing more is read.
    Over,
}

impl Dialog {
    /// Whether further lines belong to it.
    pub(crate) fn is_open(self) -> bool {
        matches!(self.stage, Stage::Greeted | Stage::Ftp | Stage::Smtp)
    }
}

/// Whether these bytes begin with a greeting.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    let start = bytes.get(..4).unwrap_or(bytes);
    b"220 ".starts_with(start) || b"220-".starts_with(start)
}

/// Reads the whole lines at the start of `bytes`.
pub(crate) fn read(bytes: &[u8], reading: Reading, names: &mut Names, dialog: &mut Dialog) -> Step {
    if dialog.stage == Stage::None {
        if reading.side == Side::Orig || !begins(bytes) {
            return Step::Foreign;
        }
        dialog.stage = Stage::Greeted;
    }
    if !dialog.is_open() {
        return Step::Foreign;
    }
    let Some(end) = bytes.iter().rposition(|&byte| byte == b'\n') else {
        let may_grow = !reading.is_last && bytes.len() < LINE_LEN_MAX;
        return if may_grow { Step::More } else { Step::Foreign };
    };
    let lines = bytes.get(..end).unwrap_or_default().split(|&byte| byte == b'\n');
    for line in lines.take(LINES_AT_ONCE) {
        if dialog.lines == LINE_COUNT_MAX || line.len() > LINE_LEN_MAX {
            dialog.stage = Stage::Over;
        }
        if !dialog.is_open() {
            break;
        }
        dialog.lines += 1;
        let line = line.trim_ascii();
        match reading.side {
            Side::Orig => command(line, names, dialog),
            Side::Resp => reply(line, names, dialog),
        }
    }
    match dialog.stage {
        Stage::Ftp => names.app.get_or_insert(App::Ftp),
        Stage::Smtp => names.app.get_or_insert(App::Smtp),
        _ => return Step::Done(bytes.len()),
    };
    Step::Done(end + 1)
}

/// A command with its argument.
fn command(line: &[u8], names: &mut Names, dialog: &mut Dialog) {
    let verb_len = line.iter().position(|&byte| byte == b' ').unwrap_or(line.len());
    let (verb, argument) = line.split_at(verb_len);
    let verb = verb.get(..VERB_LEN_MAX).unwrap_or(verb).to_ascii_uppercase();
    let argument = argument.trim_ascii();
    if dialog.stage == Stage::Greeted {
        dialog.stage = match &verb[..] {
            b"EHLO" | b"HELO" => Stage::Smtp,
            b"USER" | b"AUTH" | b"FEAT" | b"SYST" | b"OPTS" | b"CLNT" | b"HOST" => Stage::Ftp,
            b"QUIT" | b"NOOP" | b"" => Stage::Greeted,
            _ => Stage::Over,
        };
    }
    match dialog.stage {
        Stage::Ftp => ftp_command(&verb, (line, argument), names),
        Stage::Smtp => match &verb[..] {
            b"EHLO" | b"HELO" => detail(names, "smtp.helo", argument),
            b"MAIL" => detail(names, "smtp.from", mailbox(argument)),
            b"RCPT" => detail(names, "smtp.to", mailbox(argument)),
            b"DATA" | b"BDAT" => dialog.stage = Stage::Over,
            _ => {}
        },
        _ => {}
    }
}

/// Not `PASS`, `ACCT` and `ADAT`: their arguments are secrets.
fn ftp_command(verb: &[u8], (line, argument): (&[u8], &[u8]), names: &mut Names) {
    match verb {
        b"USER" => detail(names, "ftp.user", argument),
        b"RETR" | b"STOR" | b"STOU" | b"APPE" | b"DELE" | b"RNFR" | b"RNTO" | b"MKD" | b"RMD"
        | b"CWD" | b"SITE" | b"LIST" | b"AUTH" => detail(names, "ftp.command", line),
        _ => {}
    }
}

/// A reply: the greeting may show what is spoken; of the others the codes of failures are kept.
fn reply(line: &[u8], names: &mut Names, dialog: &mut Dialog) {
    if dialog.stage == Stage::Greeted {
        let greeting = line.get(..GREETING_LEN_MAX).unwrap_or(line).to_ascii_uppercase();
        let says = |word: &[u8]| find(&greeting, word).is_some();
        // Servers name their software: what runs both would name both.
        match (says(b"SMTP"), says(b"FTP")) {
            (true, false) => dialog.stage = Stage::Smtp,
            (false, true) => dialog.stage = Stage::Ftp,
            _ => {}
        }
    }
    let key = match dialog.stage {
        Stage::Ftp => "ftp.error",
        Stage::Smtp => "smtp.error",
        _ => return,
    };
    if let Some(code @ [b'4' | b'5', b'0'..=b'9', b'0'..=b'9']) = line.get(..3)
        && line.get(3).is_none_or(|&byte| byte == b' ')
    {
        detail(names, key, code);
    }
    if line.starts_with(b"220 ") && dialog.lines == 1 {
        let key = if dialog.stage == Stage::Ftp { "ftp.greeting" } else { "smtp.greeting" };
        detail(names, key, line.get(4..).unwrap_or_default());
    }
}

/// The address of `FROM:<...>` or `TO:<...>`, without parameters.
fn mailbox(argument: &[u8]) -> &[u8] {
    let start = argument.iter().position(|&byte| byte == b':').map_or(0, |at| at + 1);
    let path = argument.get(start..).unwrap_or_default().trim_ascii();
    match (path.first(), path.iter().position(|&byte| byte == b'>')) {
        (Some(b'<'), Some(end)) => path.get(1..end).unwrap_or_default(),
        _ => path.split(|&byte| byte == b' ').next().unwrap_or_default(),
    }
}
