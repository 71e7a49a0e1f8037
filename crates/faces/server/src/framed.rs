//! The form of answers that are sent as a worker writes them, and are never there as a whole: for
//! their schemas alone.
#![expect(dead_code, reason = "no value is ever made")]

use schemars::JsonSchema;
use serde_json::{Map, Value};
use session_view::{PacketLine, Session};

use crate::stream::Rest;

/// What a worker writes, with what is said of it.
#[derive(JsonSchema)]
#[schemars(rename = "{W}")]
pub(crate) struct Framed<W> {
    #[serde(flatten)]
    written: W,
    #[serde(flatten)]
    rest: Rest<'static>,
}

/// Sessions.
#[derive(JsonSchema)]
pub(crate) struct Page {
    sessions: Vec<Session>,
}

/// Packets, one by one.
#[derive(JsonSchema)]
pub(crate) struct Packets {
    packets: Vec<PacketLine<'static>>,
}

/// Packets, as tshark decodes them.
#[derive(JsonSchema)]
pub(crate) struct Decoded {
    /// PSML of all, or PDML of one; empty where there are no packets.
    xml: String,
}

/// Rows of an answer to SQL; columns are keys.
#[derive(JsonSchema)]
pub(crate) struct Rows {
    rows: Vec<Map<String, Value>>,
}

/// A hold that was made.
#[derive(JsonSchema)]
pub(crate) struct Held {
    hold: NewHold,
}

#[derive(JsonSchema)]
struct NewHold {
    /// Name of its file.
    file: String,
    packets: u64,
}
