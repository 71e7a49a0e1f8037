//! Modbus over TCP: units and functions asked for, and exceptions.

use wire::Names;

use crate::Step;
use crate::reader::Reader;
use crate::values::detail_text;

/// Its port: the form alone is too weak.
pub(crate) const PORT: u16 = 502;

/// Unit, function and data: at most 254 bytes (Modbus Messaging on TCP/IP 1.0b, 4.1).
const LEN_MAX: u16 = 254;

/// Whether these bytes begin with a message: protocol 0 and a length that may be.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    match bytes {
        [_, _, 0, 0, high, low, _, _, ..] => {
            (2..=LEN_MAX).contains(&u16::from_be_bytes([*high, *low]))
        }
        _ => false,
    }
}

/// Reads one message.
pub(crate) fn read(bytes: &[u8], names: &mut Names) -> Step {
    let mut reader = Reader::new(bytes);
    let mut fields = || {
        reader.u32()?; // Transaction, protocol.
        let len = reader.u16()?;
        Some(Reader::new(reader.take_up_to(len.into())))
    };
    let message = fields().and_then(|mut message| Some((message.u8()?, message.u8()?, message)));
    let Some((unit, function, mut rest)) = message.filter(|_| begins(bytes)) else {
        return Step::Foreign;
    };
    detail_text(names, "modbus.unit", &unit.to_string());
    if function & 0x80 == 0 {
        detail_text(names, "modbus.function", &function.to_string());
    } else if let Some(code) = rest.u8() {
        detail_text(names, "modbus.exception", &format!("{}:{code}", function & 0x7f));
    }
    Step::Done(bytes.len() - reader.rest().len())
}
