//! SSH before its encryption (RFC 4253): identification lines, and the offers of both sides as
//! HASSH fingerprints.

use wire::{Names, Ssh};

use crate::reader::Reader;
use crate::values::text;
use crate::{Reading, Side, Step, fingerprint};

const BEGINNING: &[u8] = b"SSH-";

/// Of an identification line with its end (RFC 4253 4.2).
const LINE_LEN_MAX: usize = 255;

const KEY_EXCHANGE_INIT: u8 = 20;

/// Longer offers are not hashed: they have some 1.5 KiB.
const OFFER_LEN_MAX: usize = 8 << 10;

/// Lists in an offer up to compression (RFC 4253 7.1).
const LIST_COUNT: usize = 8;

pub(crate) fn begins(bytes: &[u8]) -> bool {
    let len = bytes.len().min(BEGINNING.len());
    !bytes.is_empty() && bytes.get(..len) == BEGINNING.get(..len)
}

/// Reads the identification and the offer after it.
pub(crate) fn read(bytes: &[u8], reading: Reading, names: &mut Names) -> Step {
    if bytes.len() < BEGINNING.len() && !reading.is_last {
        return if begins(bytes) { Step::More } else { Step::Foreign };
    }
    if !bytes.starts_with(BEGINNING) {
        return Step::Foreign;
    }
    let line_end = bytes.iter().take(LINE_LEN_MAX).position(|&byte| byte == b'\n');
    let Some(line_end) = line_end else {
        let is_too_long = bytes.len() >= LINE_LEN_MAX;
        return if is_too_long || reading.is_last { Step::Foreign } else { Step::More };
    };
    let (line, rest) = bytes.split_at_checked(line_end + 1).unwrap_or((bytes, &[]));
    let line = line.trim_ascii_end();
    let ssh = names.ssh.get_or_insert_default();
    keep(ssh, reading.side, (text(line), None));
    let is_version_2 = line.starts_with(b"SSH-2.") || line.starts_with(b"SSH-1.99-");
    let mut packet = Reader::new(rest);
    let Some(body) = packet.u32().and_then(|len| packet.take(usize::try_from(len).ok()?)) else {
        return if is_version_2 && !reading.is_last { Step::More } else { Step::Done(bytes.len()) };
    };
    let is_known = reading.side.of([&ssh.hassh, &ssh.hassh_server]).is_some();
    if !is_known
        && body.len() <= OFFER_LEN_MAX
        && let Some(offer) = hassh(body, reading.side)
    {
        keep(ssh, reading.side, (String::new(), Some(offer)));
    }
    Step::Done(bytes.len() - packet.rest().len())
}

/// The originator is the client.
fn keep(ssh: &mut Ssh, side: Side, (line, offer): (String, Option<String>)) {
    let Ssh { client, server, hassh, hassh_server } = ssh;
    let (kept_line, kept_offer) = side.of([(client, hassh), (server, hassh_server)]);
    if !line.is_empty() {
        kept_line.get_or_insert(line);
    }
    if kept_offer.is_none() {
        *kept_offer = offer;
    }
}

/// MD5 of the lists of key exchange, and of ciphers, codes and compressions of the sender's
/// direction.
fn hassh(packet: &[u8], side: Side) -> Option<String> {
    let mut reader = Reader::new(packet);
    reader.u8()?; // Length of the padding.
    if reader.u8()? != KEY_EXCHANGE_INIT {
        return None;
    }
    reader.take(16)?; // Cookie.
    let mut lists = [""; LIST_COUNT];
    for list in &mut lists {
        let len = usize::try_from(reader.u32()?).ok()?;
        *list = str::from_utf8(reader.take(len)?).ok()?;
    }
    let [exchange, _, to_server, to_client, code_to, code_from, compress_to, compress_from] = lists;
    let [cipher, code, compression] = match side {
        Side::Orig => [to_server, code_to, compress_to],
        Side::Resp => [to_client, code_from, compress_from],
    };
    Some(fingerprint::md5_hex(&format!("{exchange};{cipher};{code};{compression}")))
}
