//! Parameters of several endpoints, and of those with many.

use crate::endpoint::{Needs, Parameter};
use crate::scope::Scope;

/// What a cursor looks like, as a regular expression.
pub(crate) const CURSOR_PATTERN: &str =
    "^[12]_-?[0-9]+_[0-9]+[.][0-9]+-[0-9]+_[0-9]+_-?[0-9]+_[0-9a-f]{8}$";

pub(crate) const QUERY: Parameter = Parameter::text(
    "query",
    "Which sessions, in the query language (docs/query.md); all without it",
);
pub(crate) const VOLUME: Parameter =
    Parameter::text("volume", "Name or id of the volume; needed where several are served");

pub(crate) const LIMIT_SHOWN: Parameter = Parameter::number(
    "limit",
    "At most so many packets, 1000 without it, 10000 and 32 MiB at most",
);
pub(crate) const PACKET: Parameter = Parameter::number(
    "packet",
    "All fields of this one, counted from 1, in the place of a line of each",
);

pub(crate) const ONLY_RANGE: Parameter = Parameter::flag(
    "only_range",
    "Of the sessions' packets only those between the query's before and after",
);

/// What an extract is asked for, and where it goes on.
pub(crate) static EXTRACT: [Parameter; 14] = [
    QUERY,
    VOLUME,
    ONLY_RANGE,
    Parameter::flag("whole_sessions", "With payload: all packets of sessions that have such a one"),
    LIMIT_SESSIONS,
    LIMIT_PACKETS,
    LIMIT_BYTES,
    Parameter::number("around_ms", "All packets from so long before each session to so long after"),
    PACKET_FILTER,
    PAYLOAD,
    COMMENTS,
    OFFSET,
    SHA256,
    NOW_NS,
];

/// What may narrow an extract that was approved, and where it goes on.
pub(crate) static APPROVED_EXTRACT: [Parameter; 10] = [
    ONLY_RANGE,
    LIMIT_SESSIONS,
    LIMIT_PACKETS,
    LIMIT_BYTES,
    PACKET_FILTER,
    PAYLOAD,
    COMMENTS,
    OFFSET,
    SHA256,
    NOW_NS,
];

const LIMIT_SESSIONS: Parameter = Parameter::number("limit", "At most so many sessions");
const LIMIT_PACKETS: Parameter = Parameter::number("limit_packets", "At most so many packets");
const LIMIT_BYTES: Parameter = Parameter::number("limit_bytes", "At most so many bytes of packets");
const PACKET_FILTER: Parameter =
    Parameter::text("packet_filter", "Those that pass this filter, in the words of pcap-filter");
const PAYLOAD: Parameter =
    Parameter::text("payload", "Those with this in them: a text, hex:DIGITS or re:EXPRESSION");
const COMMENTS: Parameter =
    Parameter::flag("comments", "Each packet has the id of its session as a comment, and its side");
const OFFSET: Parameter =
    Parameter::number("offset", "Go on behind so many bytes of an extract: 409 if that cannot be");
const SHA256: Parameter =
    Parameter::text("sha256", "With offset: SHA-256 of these bytes, in hex digits")
        .like("^[0-9a-f]{64}$");

const NOW_NS: Parameter =
    Parameter::number("now_ns", "What relative times count from: as Wirespool-Now has said it");

/// Who may know of an extract that was asked for.
pub(crate) const ASKS_OR_APPROVES: Needs = Needs::OneOf(&[Scope::Request, Scope::Approve]);
pub(crate) const NOTE: Parameter =
    Parameter::text("note", "What there is to say of it, of 1024 bytes at most");

pub(crate) const NAME: Parameter = Parameter::text("name", "Name of the person");
pub(crate) const PASSWORD: Parameter = Parameter::text("password", "Password of the person");
pub(crate) const NEW_PASSWORD: Parameter = Parameter::text("new_password", "12 characters or more");
pub(crate) const CODE: Parameter = Parameter::text(
    "code",
    "Six digits of the authenticator, or one of the ten codes; where there is one",
);
pub(crate) const KEY: Parameter = Parameter::object(
    "key",
    "In the place of a code: what a key has signed, id, client_data, authenticator_data and \
     signature in base 64 for URLs",
);
pub(crate) const KEY_NAME: Parameter = Parameter::text("name", "How the person calls the key");
pub(crate) const NEW_KEY: Parameter = Parameter::object(
    "key",
    "What the browser says of it: client_data and attestation in base 64 for URLs",
);
pub(crate) const LINK: Parameter = Parameter::text("link", "What stands behind link= in the link");
pub(crate) const PROVIDER_CODE: Parameter =
    Parameter::text("code", "What the provider has sent as code");
pub(crate) const STATE: Parameter = Parameter::text("state", "What it has sent as state");
pub(crate) const ISSUER: Parameter =
    Parameter::text("iss", "What it has sent as iss, where it does");
pub(crate) const ROLE: Parameter = Parameter::text("role", "Name of a role");
pub(crate) const PERSON_NAME: Parameter =
    Parameter::text("name", "Name by which the person logs in");
pub(crate) const TOKEN_NAME: Parameter =
    Parameter::text("name", "Name of the credential, for the log");
