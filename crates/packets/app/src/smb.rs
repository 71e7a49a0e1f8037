//! SMB 1 to 3 over TCP (MS-SMB, MS-SMB2), as far as one segment shows a message: dialect, shares,
//! and who logs on through NTLM.

use wire::Names;

use crate::Step;
use crate::reader::{Reader, find};
use crate::values::{VALUE_LEN_MAX, detail, detail_text};

/// Length prefix of the `NetBIOS` session service (RFC 1002 4.3.1), with type 0.
const PREFIX_LEN: usize = 4;
const HEADER_LEN_1: usize = 32;
const HEADER_LEN_2: usize = 64;

const NEGOTIATE_1: u8 = 0x72;
const SESSION_SETUP_1: u8 = 0x73;
const TREE_CONNECT_1: u8 = 0x75;
const NEGOTIATE_2: u16 = 0;
const SESSION_SETUP_2: u16 = 1;
const TREE_CONNECT_2: u16 = 3;

const NTLM: &[u8] = b"NTLMSSP\0\x03\0\0\0";

pub(crate) fn begins(bytes: &[u8]) -> bool {
    matches!(bytes, [0, _, _, _, 0xff | 0xfe, b'S', b'M', b'B', ..])
}

/// Reads one message.
pub(crate) fn read(bytes: &[u8], names: &mut Names) -> Step {
    if !begins(bytes) {
        return Step::Foreign;
    }
    let mut reader = Reader::new(bytes);
    let len = reader.u32().and_then(|len| usize::try_from(len).ok()).unwrap_or_default();
    let message = reader.take_up_to(len);
    if message.first() == Some(&0xfe) {
        read_2(message, names);
    } else {
        read_1(message, names);
    }
    Step::Done(PREFIX_LEN + message.len())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn range(bytes: &[u8], at: usize, len: usize) -> Option<&[u8]> {
    bytes.get(at..)?.get(..len)
}

/// MS-SMB2 2.2.1, 2.2.4 and 2.2.9.
fn read_2(message: &[u8], names: &mut Names) -> Option<()> {
    let command = u16_at(message, 12)?;
    let is_response = message.get(16)? & 1 != 0;
    let body = message.get(HEADER_LEN_2..)?;
    match (command, is_response) {
        (NEGOTIATE_2, true) => {
            let [major, minor] = u16_at(body, 4)?.to_be_bytes();
            let (minor, patch) = (minor >> 4, minor & 15);
            // 0x02ff asks for another round (2.2.4).
            if (major, minor, patch) != (2, 15, 15) {
                let patch =
                    if major >= 3 || patch > 0 { format!(".{patch}") } else { String::new() };
                detail_text(names, "smb.dialect", &format!("{major}.{minor}{patch}"));
            }
        }
        (SESSION_SETUP_2, false) => read_logon(body, names)?,
        (TREE_CONNECT_2, false) => {
            let (at, len) = (u16_at(body, 4)?, u16_at(body, 6)?);
            detail_text(names, "smb.tree", &utf16(range(message, at.into(), len.into())?));
        }
        _ => {}
    }
    Some(())
}

/// MS-CIFS 2.2.4.52 and 2.2.4.55.
fn read_1(message: &[u8], names: &mut Names) -> Option<()> {
    let command = *message.get(4)?;
    let is_response = message.get(9)? & 0x80 != 0;
    let is_unicode = u16_at(message, 10)? & 0x8000 != 0;
    let words = usize::from(*message.get(HEADER_LEN_1)?) * 2;
    let data = message.get(HEADER_LEN_1 + 1 + words + 2..)?;
    match (command, is_response) {
        (NEGOTIATE_1, true) => detail(names, "smb.dialect", b"1"),
        (SESSION_SETUP_1, false) => read_logon(data, names)?,
        (TREE_CONNECT_1, false) => {
            let password_len = u16_at(message, HEADER_LEN_1 + 1 + 6)?;
            let path = data.get(password_len.into()..)?;
            if is_unicode {
                // Aligned to two bytes from the header's start.
                let at = message.len() - path.len();
                let path = path.get(at % 2..)?;
                let end = path.as_chunks::<2>().0.iter().position(|unit| *unit == [0, 0])?;
                detail_text(names, "smb.tree", &utf16(path.get(..2 * end)?));
            } else {
                detail(names, "smb.tree", path.split(|&byte| byte == 0).next()?);
            }
        }
        _ => {}
    }
    Some(())
}

/// Domain, user and workstation of NTLM's last message (MS-NLMP 2.2.1.3).
fn read_logon(message: &[u8], names: &mut Names) -> Option<()> {
    let at = find(message, NTLM)?;
    let message = message.get(at..)?;
    let is_unicode = message.get(60)? & 1 != 0;
    for (place, key) in [(28, "smb.domain"), (36, "smb.user"), (44, "smb.host")] {
        let (len, at) = (u16_at(message, place)?, u16_at(message, place + 4)?);
        let value = range(message, at.into(), len.into())?;
        if is_unicode {
            detail_text(names, key, &utf16(value));
        } else {
            detail(names, key, value);
        }
    }
    Some(())
}

/// As far as a value is kept.
fn utf16(bytes: &[u8]) -> String {
    let units =
        bytes.as_chunks::<2>().0.iter().take(VALUE_LEN_MAX).map(|&unit| u16::from_le_bytes(unit));
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}
