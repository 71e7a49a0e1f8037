//! Protocols of lines of text.

use super::payload::{Payload, contains};

/// Methods of HTTP (RFC 9110, 4918, 3253, 3744, `UPnP`, MS-RPCH), RTSP (RFC 2326) and SIP (RFC
/// 3261) are upper-case words of up to this length.
const METHOD_LEN_MAX: usize = 17;

/// Methods of HTTP that are believed before the line's end is seen, with what begins a target.
const HTTP_METHODS: [&[u8]; 9] =
    [b"GET", b"POST", b"HEAD", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"CONNECT", b"PROPFIND"];

/// The target's first byte after a method, and what the line ends with.
fn request<'a>(payload: &Payload<'a>) -> Option<(&'a [u8], &'a [u8], &'a [u8])> {
    let line = payload.line()?;
    let blank = line.iter().take(METHOD_LEN_MAX + 1).position(|&byte| byte == b' ')?;
    let (method, rest) = line.split_at_checked(blank)?;
    let is_method = method.len() >= 3
        && method.iter().all(|byte| byte.is_ascii_uppercase() || b"-_".contains(byte));
    is_method.then_some((method, rest.get(1..)?, rest.rsplit(|&byte| byte == b' ').next()?))
}

/// Whether the first line is not yet at its end.
fn is_line_cut(payload: &Payload<'_>) -> bool {
    !payload.seen().contains(&b'\n')
}

pub(super) fn http(payload: &Payload<'_>) -> Option<bool> {
    if let Some(version) = payload.seen().strip_prefix(b"HTTP/1.") {
        return Some(matches!(version, [b'0' | b'1', b' ', b'1'..=b'9', ..]));
    }
    let (method, target, version) = request(payload)?;
    let is_target = target.starts_with(b"/") || target.starts_with(b"http");
    let is_believed = HTTP_METHODS.contains(&method) && is_target && is_line_cut(payload);
    Some(version.starts_with(b"HTTP/1.") && target.len() > version.len() || is_believed)
}

/// SSDP (`UPnP` Device Architecture 1.3): HTTP in datagrams.
pub(super) fn ssdp(payload: &Payload<'_>) -> Option<bool> {
    if payload.has(0, b"HTTP/1.1 200 ") {
        let text = payload.seen();
        return Some(contains(text, b"\nST:") || contains(text, b"\nUSN:"));
    }
    let (method, target, version) = request(payload)?;
    let is_known = matches!(method, b"M-SEARCH" | b"NOTIFY" | b"SEARCH");
    Some(is_known && target.starts_with(b"*") && version == b"HTTP/1.1")
}

pub(super) fn rtsp(payload: &Payload<'_>) -> Option<bool> {
    if payload.has(0, b"RTSP/1.0 ") || payload.has(0, b"RTSP/2.0 ") {
        return Some(true);
    }
    let (_, target, version) = request(payload)?;
    Some(
        matches!(version, b"RTSP/1.0" | b"RTSP/2.0")
            || is_line_cut(payload) && target.starts_with(b"rtsp://"),
    )
}

pub(super) fn sip(payload: &Payload<'_>) -> Option<bool> {
    if payload.has(0, b"SIP/2.0 ") {
        return Some(true);
    }
    let (_, target, version) = request(payload)?;
    let is_target = [&b"sip:"[..], b"sips:", b"tel:"].iter().any(|scheme| {
        target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    Some(is_target && (version == b"SIP/2.0" || is_line_cut(payload)))
}

pub(super) fn ssh(payload: &Payload<'_>) -> Option<bool> {
    Some(matches!(payload.array(4)?, [b'1' | b'2', b'.']))
}

/// A line of the text is one of these words, alone or with more after a blank.
fn is_command(payload: &Payload<'_>, words: &[&[u8]]) -> Option<bool> {
    let line = payload.line()?;
    let word = line.split(|&byte| byte == b' ').next()?;
    Some(payload.ends_line() && words.iter().any(|known| known.eq_ignore_ascii_case(word)))
}

/// A reply of three digits, and whether more lines follow.
fn reply<'a>(payload: &Payload<'a>) -> Option<(&'a [u8], &'a [u8])> {
    let line = payload.line()?;
    let (code, text) = line.split_at_checked(3)?;
    let is_reply = code.iter().all(u8::is_ascii_digit)
        && matches!(code.first(), Some(b'1'..=b'5'))
        && (text.is_empty() || text.starts_with(b" ") || text.starts_with(b"-"));
    is_reply.then_some((code, text))
}

pub(super) fn smtp_greeting(payload: &Payload<'_>) -> Option<bool> {
    let (code, text) = reply(payload)?;
    Some(code == b"220" && contains(text, b"SMTP"))
}

/// Replies that SMTP and FTP have in common with others.
pub(super) fn smtp_reply(payload: &Payload<'_>) -> Option<bool> {
    let (code, _) = reply(payload)?;
    Some(matches!(
        code,
        b"220" | b"221" | b"235" | b"250" | b"334" | b"354" | b"421" | b"550" | b"554"
    ))
}

pub(super) fn smtp_command(payload: &Payload<'_>) -> Option<bool> {
    let line = payload.line()?;
    let is_start =
        |text: &[u8]| line.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
    let is_long = is_start(b"MAIL FROM:") || is_start(b"RCPT TO:");
    Some(is_long || is_command(payload, &[b"EHLO", b"HELO", b"LHLO"])? && line.len() > 5)
}

pub(super) fn ftp_greeting(payload: &Payload<'_>) -> Option<bool> {
    let (code, text) = reply(payload)?;
    let is_ftp = contains(text, b"FTP") && !contains(text, b"SMTP");
    Some(code == b"220" && is_ftp || code == b"227" && contains(text, b"passive"))
}

pub(super) fn ftp_reply(payload: &Payload<'_>) -> Option<bool> {
    let (code, _) = reply(payload)?;
    Some(matches!(
        code,
        b"220" | b"230" | b"331" | b"234" | b"211" | b"215" | b"257" | b"500" | b"530"
    ))
}

pub(super) fn ftp_command(payload: &Payload<'_>) -> Option<bool> {
    const WORDS: &[&[u8]] = &[
        b"USER", b"PASS", b"AUTH", b"FEAT", b"SYST", b"OPTS", b"CWD", b"PWD", b"TYPE", b"PASV",
        b"EPSV", b"PORT", b"EPRT", b"LIST", b"NLST", b"RETR", b"STOR", b"QUIT", b"ACCT",
    ];
    is_command(payload, WORDS)
}

pub(super) fn pop3_greeting(payload: &Payload<'_>) -> Option<bool> {
    let text = payload.line()?.strip_prefix(b"+OK ")?;
    Some(contains(text, b"POP3") || contains(text, b"POP server"))
}

pub(super) fn pop3_reply(payload: &Payload<'_>) -> Option<bool> {
    let line = payload.line()?;
    Some(line == b"+OK" || line.starts_with(b"+OK ") || line.starts_with(b"-ERR"))
}

pub(super) fn pop3_command(payload: &Payload<'_>) -> Option<bool> {
    const WORDS: &[&[u8]] = &[
        b"USER", b"PASS", b"APOP", b"AUTH", b"CAPA", b"STAT", b"UIDL", b"STLS", b"LIST", b"RETR",
        b"DELE", b"TOP", b"QUIT",
    ];
    is_command(payload, WORDS)
}

pub(super) fn imap_greeting(payload: &Payload<'_>) -> Option<bool> {
    let line = payload.line()?;
    let is_greeting =
        [&b"* OK"[..], b"* PREAUTH", b"* BYE"].iter().any(|start| line.starts_with(start));
    Some(is_greeting && contains(line, b"IMAP") || line.starts_with(b"* CAPABILITY IMAP4"))
}

pub(super) fn imap_reply(payload: &Payload<'_>) -> Option<bool> {
    let line = payload.line()?;
    let mut words = line.split(|&byte| byte == b' ');
    let (tag, word) = (words.next()?, words.next()?);
    let is_status = matches!(word, b"OK" | b"NO" | b"BAD" | b"BYE");
    Some(is_status && (tag == b"*" || is_tag(tag)))
}

/// A tag that a client puts before its command: short, and with a digit (RFC 9051 2.2.1).
fn is_tag(tag: &[u8]) -> bool {
    tag.len() <= 12
        && tag.iter().all(|byte| byte.is_ascii_alphanumeric() || b".".contains(byte))
        && tag.iter().any(u8::is_ascii_digit)
}

pub(super) fn imap_command(payload: &Payload<'_>) -> Option<bool> {
    const WORDS: &[&[u8]] = &[
        b"CAPABILITY",
        b"LOGIN",
        b"AUTHENTICATE",
        b"STARTTLS",
        b"SELECT",
        b"EXAMINE",
        b"NOOP",
        b"LOGOUT",
        b"ID",
        b"NAMESPACE",
        b"LIST",
        b"LSUB",
        b"STATUS",
        b"FETCH",
        b"UID",
        b"IDLE",
    ];
    let mut words = payload.line()?.split(|&byte| byte == b' ');
    let (tag, word) = (words.next()?, words.next()?);
    let is_known = WORDS.iter().any(|known| known.eq_ignore_ascii_case(word));
    Some(is_tag(tag) && is_known && payload.ends_line())
}

pub(super) fn nntp_reply(payload: &Payload<'_>) -> Option<bool> {
    let (code, text) = reply(payload)?;
    let is_said =
        contains(text, b"NNTP") || contains(text, b"InterNetNews") || contains(text, b"news");
    Some(matches!(code, b"200" | b"201") && is_said)
}

pub(super) fn nntp_command(payload: &Payload<'_>) -> Option<bool> {
    let line = payload.line()?;
    let is_said =
        |text: &[u8]| line.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
    Some(
        is_said(b"MODE READER")
            || is_said(b"AUTHINFO USER ")
            || is_said(b"GROUP ") && payload.ends_line(),
    )
}

/// The first message of a client of IRC (RFC 2812 3.1), or one of its server with a numeric reply.
pub(super) fn irc(payload: &Payload<'_>) -> Option<bool> {
    let text = payload.seen();
    let line = payload.line()?;
    let is_pair = line.starts_with(b"NICK ") && contains(text, b"\nUSER ")
        || line.starts_with(b"USER ") && contains(line, b" :")
        || line.starts_with(b"CAP LS") && (line.len() == 6 || contains(line, b" 302"));
    let mut words = line.split(|&byte| byte == b' ');
    let is_server = words.next()?.starts_with(b":")
        && words.next().is_some_and(|word| {
            word == b"NOTICE" || word.len() == 3 && word.iter().all(u8::is_ascii_digit)
        });
    let is_notice = line.starts_with(b"NOTICE AUTH :") || line.starts_with(b"NOTICE * :");
    Some(is_pair || is_server && words.next().is_some() || is_notice)
}

/// A stream of XMPP (RFC 6120 4.2), with or without the declaration before it.
pub(super) fn xmpp(payload: &Payload<'_>) -> bool {
    let text = payload.seen();
    contains(text, b"<stream:stream")
        || contains(text, b"xmlns='jabber:")
        || contains(text, b"xmlns=\"jabber:")
}

pub(super) fn wsd(payload: &Payload<'_>) -> bool {
    let text = payload.seen();
    contains(text, b"soap") && (contains(text, b"discovery") || contains(text, b"Envelope"))
}

/// A priority in angle brackets (RFC 3164 4.1.1, RFC 5424 6.2.1).
fn priority(payload: &Payload<'_>) -> Option<usize> {
    let text = payload.seen().strip_prefix(b"<")?;
    let len = text.iter().take(4).position(|&byte| byte == b'>')?;
    let digits = core::str::from_utf8(text.get(..len)?).ok()?;
    let value: u16 = digits.parse().ok()?;
    (value <= 191).then_some(len + 2)
}

pub(super) fn syslog(payload: &Payload<'_>) -> Option<bool> {
    Some(payload.u8(priority(payload)?)?.is_ascii_graphic())
}

/// A year, after version 1 or not, or a month and a day, right after the priority.
pub(super) fn syslog_dated(payload: &Payload<'_>) -> Option<bool> {
    const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let text = payload.from(priority(payload)?);
    let is_month = MONTHS.chunks_exact(3).any(|month| text.starts_with(month))
        && text.get(3) == Some(&b' ')
        && text.get(6) == Some(&b' ');
    let date = text.strip_prefix(b"1 ").unwrap_or(text);
    let is_year = matches!(date, [b'2', b'0', _, _, b'-', ..]);
    Some(is_month || is_year)
}

/// The negotiation of Telnet (RFC 854): commands with an option each.
fn telnet_options(payload: &Payload<'_>) -> usize {
    let mut count = 0;
    let mut rest = payload.seen();
    while let [0xff, 0xfb..=0xfe, option, after @ ..] = rest {
        if *option > 50 && !matches!(option, 138..=140 | 255) {
            break;
        }
        count += 1;
        rest = after;
    }
    // A subnegotiation that is left over is as good as its option.
    if count > 0 && rest.starts_with(&[0xff, 0xfa]) { count + 1 } else { count }
}

pub(super) fn telnet(payload: &Payload<'_>) -> bool {
    telnet_options(payload) >= 2
}

pub(super) fn telnet_option(payload: &Payload<'_>) -> bool {
    telnet_options(payload) >= 1
}

/// A request of TFTP (RFC 1350 5): a file's name and a mode.
pub(super) fn tftp(payload: &Payload<'_>) -> Option<bool> {
    let mut words = payload.from(2).split(|&byte| byte == 0);
    let (file, mode) = (words.next()?, words.next()?);
    let is_name = !file.is_empty() && file.iter().all(|&byte| byte >= b' ' && byte != 0x7f);
    let is_mode =
        [&b"netascii"[..], b"octet", b"mail"].iter().any(|known| known.eq_ignore_ascii_case(mode));
    Some(is_name && is_mode)
}

/// Megaco's header in its long and its short form (H.248.1 Annex B).
pub(super) fn megaco(payload: &Payload<'_>) -> bool {
    let text = payload.seen();
    text.starts_with(b"MEGACO/") || matches!(text, [b'!', b'/', b'1'..=b'3', b' ', b'[' | b'<', ..])
}

pub(super) fn mgcp(payload: &Payload<'_>) -> Option<bool> {
    let line = payload.line()?;
    let is_answer = matches!(line, [b'1'..=b'5', b'0'..=b'9', b'0'..=b'9', b' ', b'0'..=b'9', ..]);
    Some(is_answer || contains(line, b" MGCP 1."))
}
