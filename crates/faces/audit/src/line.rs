//! A line of an audit, and its form.

use serde::{Deserialize, Serialize};
use units::Timestamp;

/// A longer line was not written by us: it holds a query, which has 32 KiB at most, each byte of
/// which may be escaped by six.
pub(crate) const LINE_BYTES_MAX: usize = 512 << 10;

/// What every line begins with.
pub(crate) const BEGINS: &str = "{\"prev\":\"";

/// A line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Line {
    /// SHA-256 of the line before, with its line feed, in hex digits.
    pub prev: String,
    /// Its number, from 1, over all files of a chain.
    pub seq: u64,
    /// When it was written, in RFC 3339.
    pub time: String,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What a line tells of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The service began.
    Start {
        /// Name and version.
        program: String,
        /// What was wrong with the file that it goes on with.
        faults: u64,
    },
    /// The service ended in order.
    Stop {},
    /// A request whose answer is about to be sent; another line tells of its end.
    Begun(Box<Request>),
    /// A request that was answered.
    Request(Box<Request>),
    /// The line before is none: a process or machine ended while it was written.
    Torn {
        /// Bytes that are there of it.
        bytes: u64,
        /// SHA-256 of the last whole line.
        behind: String,
    },
    /// Lines can be written again.
    Resumed {
        /// Why they could not.
        why: String,
        /// Requests that were refused for that.
        refused: u64,
    },
    /// Somebody has put this file in the place of the one that was written. That is a fault.
    Exchanged {
        /// Number of the last line of the other one, which is not in this one.
        missing: u64,
        /// Its SHA-256.
        hash: String,
    },
    /// The first line of a further file.
    Continued {
        /// Name of the file before, if the service gave it one.
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// Files that are removed now, the oldest ones.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<Removed>,
    },
    /// Requests without a credential that counts, beyond a rate: they have no lines.
    Unlisted {
        /// How many.
        count: u64,
    },
}

/// A file that was removed because there were as many as there may be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Removed {
    /// Its name.
    pub file: String,
    /// Its length.
    pub bytes: u64,
}

/// A request.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// Counted by the service since its start.
    pub number: u64,
    /// Address and port of the other end.
    pub from: String,
    /// Name of the credential, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// What was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Credential>,
    /// Whose account it was about, of a login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// As in the request.
    pub method: String,
    /// As in the request, at most so many bytes as fit.
    pub path: String,
    /// Behind the question mark, as it was sent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub parameters: String,
    /// The query, all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Name of the volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// What the query and the credential's filter permit of time, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[Option<String>; 2]>,
    /// Of an extract that one asks for and another one approves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub four_eyes: Option<FourEyes>,
    /// Of HTTP; none where the client left before there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Bytes of the answer that the connection has taken.
    pub bytes: u64,
    /// How it ended; none of one that has begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// The limit that cut it: `time`, `bytes` or `limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_by: Option<String>,
    /// Of an extract that was sent whole, as its manifest has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blake3: Option<String>,
    /// From the first byte of the request on.
    pub took_ms: u64,
}

/// An extract that one asks for and another one approves.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FourEyes {
    /// Id of the request: the BLAKE3 of what was asked.
    pub request: String,
    /// The case that it belongs to.
    pub case: String,
    /// Why it was asked.
    pub purpose: String,
    /// Who has asked.
    pub requested_by: String,
    /// Who has approved it, or is about to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
}

/// What a client shows to be let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Credential {
    /// A token.
    Token,
    /// A certificate of a client.
    Certificate,
    /// The cookie of a browser, which stands for a token.
    Cookie,
    /// The cookie of a browser, which stands for a person.
    Person,
    /// Name and password of a person, to log in.
    Password,
    /// The cookie of a browser, which stands for somebody who has logged in at a provider.
    Provider,
    /// The link by which the first administrator is made.
    Link,
}

impl Credential {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Certificate => "certificate",
            Self::Cookie => "cookie",
            Self::Person => "person",
            Self::Password => "password",
            Self::Provider => "provider",
            Self::Link => "link",
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All of the answer was handed to the connection.
    Complete,
    /// The same of an answer that a limit cut.
    Cut,
    /// The client left before.
    ClientLeft,
    /// The answer broke off on our side.
    BrokenOff,
    /// It was refused, with a status of 400 or above.
    Refused,
}

impl Ended {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Cut => "cut",
            Self::ClientLeft => "client left",
            Self::BrokenOff => "broken off",
            Self::Refused => "refused",
        }
    }
}

impl Line {
    /// As it stands in a file, with its line feed. It has only harmless characters.
    pub fn to_text(&self) -> String {
        page::safe::json_line(self)
    }

    /// What a line of a file says; none where it says nothing.
    pub fn read(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// When it was written.
    pub fn at(&self) -> Option<Timestamp> {
        self.time.parse().ok()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn request(credential: &str, number: u64) -> Request {
        Request {
            number,
            from: "127.0.0.1:4711".to_owned(),
            credential: Some(credential.to_owned()),
            kind: Some(Credential::Token),
            method: "GET".to_owned(),
            path: "/api/v1/extract".to_owned(),
            status: Some(200),
            ended: Some(Ended::Complete),
            ..Request::default()
        }
    }

    #[test]
    fn whatever_is_asked_a_line_is_one_line_of_harmless_characters_and_comes_back() {
        for query in ["port 53\nport 54", "\u{1b}[2J", "\u{202e}", "\"", "\\", "\0", "a\u{2028}b"] {
            let request = Request { query: Some(query.to_owned()), ..request("a", 1) };
            for event in [Event::Request(Box::new(request.clone())), Event::Begun(request.into())] {
                let line = Line { prev: "0".repeat(64), seq: 1, time: "t".to_owned(), event };
                let text = line.to_text();
                assert_eq!(text.find('\n'), Some(text.len() - 1), "{text}");
                assert!(text.trim_end().bytes().all(|byte| (b' '..=b'~').contains(&byte)));
                assert_eq!(Line::read(text.as_bytes()), Some(line));
            }
        }
    }

    #[test]
    fn the_longest_query_fits_into_a_line() {
        let query = Some("\u{1}".repeat(32 << 10));
        let request = Request { query, ..request("a", 1) };
        let event = Event::Request(Box::new(request));
        let line = Line { prev: "0".repeat(64), seq: 1, time: "t".to_owned(), event };
        assert!(line.to_text().len() < LINE_BYTES_MAX);
    }
}
