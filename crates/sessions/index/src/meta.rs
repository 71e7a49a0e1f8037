//! What a segment says of itself: the text under the key `wirespool.segment` in its Parquet footer.
//!
//! One fact a line: a word, a blank, its values separated by blanks, names last. Line feeds,
//! carriage returns and backslashes in names are escaped. Unknown words are skipped, so that later
//! versions can add some. The lines are listed in docs/sessions.md, Segment metadata.

use core::fmt::Write as _;
use core::str::FromStr;

use format::directory::{Gap, GapCause, Summary};
use format::head::{SEQUENCE_MAX, StripeId, VolumeId};
use schemars::JsonSchema;
use serde::Serialize;
use units::{Epoch, InterfaceId, Timestamp};
use wire::LinkType;

use crate::error::{Error, Result};

/// Key of the text in the Parquet footer.
pub(crate) const KEY: &str = "wirespool.segment";
const VERSION: u16 = 3;
/// The oldest that is still read.
const VERSION_MIN: u16 = 1;

/// An interface as the segment's packets know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Number in the rows' `interface`.
    pub id: InterfaceId,
    /// Meaning of a packet's first byte.
    pub link_type: LinkType,
    /// Name given by the system or the capture file.
    pub name: String,
}

/// What a segment says of itself beyond its rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentMeta {
    /// Volume that the segment belongs to.
    pub volume: VolumeId,
    /// Opening of the volume that closed the segment.
    pub epoch: Epoch,
    /// First stripe: the segment's id.
    pub first: StripeId,
    /// Last stripe.
    pub last: StripeId,
    /// Earliest packet of the stripes and of the rows; `encode` sees to the rows.
    pub time_min: Timestamp,
    /// Latest packet of the stripes and of the rows.
    pub time_max: Timestamp,
    /// Packets stored.
    pub packets: u64,
    /// Packets stored that are in no row.
    pub unindexed_packets: u64,
    /// Packets whose payload was not looked at for names.
    pub unread_packets: u64,
    /// Stretches in which packets are missing.
    pub gaps: Vec<Gap>,
    /// Interfaces that the rows refer to.
    pub interfaces: Vec<Interface>,
    /// Name of the recording, where it was given one.
    pub recording: Option<String>,
    /// VLAN ids are part of the rows' keys.
    pub vlan_in_key: bool,
    /// Stripes among those without rows that shall have none: they ended the indexer twice.
    pub left_out: Vec<LeftOut>,
}

/// Stripes that stay without rows for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct LeftOut {
    /// First of them.
    #[serde(rename = "first_stripe")]
    pub first: StripeId,
    /// Last of them.
    #[serde(rename = "last_stripe")]
    pub last: StripeId,
    /// Packets in them.
    pub packets: u64,
}

impl LeftOut {
    /// Whether it is one of them.
    pub fn contains(&self, stripe: StripeId) -> bool {
        (self.first..=self.last).contains(&stripe)
    }
}

impl SegmentMeta {
    /// A segment in which nothing happened.
    pub fn new(volume: VolumeId, epoch: Epoch, first: StripeId, last: StripeId) -> Self {
        Self {
            volume,
            epoch,
            first,
            last,
            time_min: Timestamp::MAX,
            time_max: Timestamp::MIN,
            packets: 0,
            unindexed_packets: 0,
            unread_packets: 0,
            gaps: Vec::new(),
            interfaces: Vec::new(),
            recording: None,
            vlan_in_key: false,
            left_out: Vec::new(),
        }
    }

    /// The directory's view of the segment with `sessions` rows.
    pub(crate) fn summary(&self, sessions: u64) -> Summary {
        Summary {
            first: self.first,
            last: self.last,
            time_min: self.time_min,
            time_max: self.time_max,
            sessions,
            packets: self.packets,
            unindexed: self.unindexed_packets > 0,
            gaps: !self.gaps.is_empty(),
            unread: self.unread_packets > 0,
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = format!(
            "version {VERSION}\nvolume {}\nepoch {}\nfirst {}\nlast {}\ntime_ns {} {}\n\
             packets {}\nunindexed_packets {}\n",
            self.volume,
            self.epoch,
            self.first,
            self.last,
            self.time_min.0,
            self.time_max.0,
            self.packets,
            self.unindexed_packets,
        );
        if self.unread_packets > 0 {
            writeln!(text, "unread_packets {}", self.unread_packets)
                .expect("writing to a string cannot fail");
        }
        for Gap { cause, interface, packets, bytes, from, to } in &self.gaps {
            let (cause, interface) = (cause.name(), known(*interface));
            let (packets, bytes, from, to) = (known(*packets), known(*bytes), from.0, to.0);
            writeln!(text, "gap {cause} {interface} {packets} {bytes} {from} {to}")
                .expect("writing to a string cannot fail");
        }
        for Interface { id, link_type, name } in &self.interfaces {
            writeln!(text, "interface {id} {} {}", link_type.0, escape(name))
                .expect("writing to a string cannot fail");
        }
        if self.vlan_in_key {
            text.push_str("vlan_in_key yes\n");
        }
        for LeftOut { first, last, packets } in &self.left_out {
            writeln!(text, "left_out {first} {last} {packets}")
                .expect("writing to a string cannot fail");
        }
        if let Some(recording) = &self.recording {
            text.push_str("recording ");
            text.push_str(&escape(recording));
            text.push('\n');
        }
        text
    }

    /// The version of the text and of the segment's columns.
    pub(crate) fn version(text: &str) -> Result<u16> {
        one(text, "version", number)
    }

    pub(crate) fn from_text(text: &str) -> Result<Self> {
        if !(VERSION_MIN..=VERSION).contains(&Self::version(text)?) {
            return Err(Error::Metadata { field: "version" });
        }
        let (time_min, time_max) = one(text, "time_ns", |words| {
            Some((Timestamp(number(words)?), Timestamp(number(words)?)))
        })?;
        Ok(Self {
            volume: one(text, "volume", |words| volume_id(words.next()?))?,
            epoch: Epoch(one(text, "epoch", number)?),
            first: one(text, "first", |words| stripe_id(words.next()?))?,
            last: one(text, "last", |words| stripe_id(words.next()?))?,
            time_min,
            time_max,
            packets: one(text, "packets", number)?,
            unindexed_packets: one(text, "unindexed_packets", number)?,
            unread_packets: all(text, "unread_packets", |count| count.parse().ok())?
                .pop()
                .unwrap_or_default(),
            gaps: all(text, "gap", gap)?,
            interfaces: all(text, "interface", interface)?,
            recording: all(text, "recording", unescape)?.pop(),
            vlan_in_key: !all(text, "vlan_in_key", |value| (value == "yes").then_some(()))?
                .is_empty(),
            left_out: all(text, "left_out", left_out)?,
        })
    }
}

/// Reads every line of `text` that begins with `field`.
fn all<T>(text: &str, field: &'static str, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>> {
    text.split('\n')
        .filter_map(|line| line.strip_prefix(field)?.strip_prefix(' '))
        .map(|values| read(values).ok_or(Error::Metadata { field }))
        .collect()
}

type Words<'a> = core::str::Split<'a, char>;

/// Reads the line of `text` that begins with `field`.
fn one<T>(
    text: &str,
    field: &'static str,
    read: impl Fn(&mut Words<'_>) -> Option<T>,
) -> Result<T> {
    let values = all(text, field, |values| read(&mut values.split(' ')))?;
    values.into_iter().next().ok_or(Error::Metadata { field })
}

fn number<T: FromStr>(words: &mut Words<'_>) -> Option<T> {
    words.next()?.parse().ok()
}

/// `-` stands for unknown.
fn known<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn gap(line: &str) -> Option<Gap> {
    let mut words = line.split(' ');
    let name = words.next()?;
    let mut optional = || match words.next()? {
        "-" => Some(None),
        word => word.parse::<u64>().ok().map(Some),
    };
    let (interface, packets, bytes) = (optional()?, optional()?, optional()?);
    Some(Gap {
        cause: GapCause::ALL.into_iter().find(|cause| cause.name() == name)?,
        interface: interface.map(u32::try_from).transpose().ok()?.map(InterfaceId),
        packets,
        bytes,
        from: Timestamp(number(&mut words)?),
        to: Timestamp(number(&mut words)?),
    })
}

fn left_out(line: &str) -> Option<LeftOut> {
    let mut words = line.split(' ');
    let (first, last) = (stripe_id(words.next()?)?, stripe_id(words.next()?)?);
    Some(LeftOut { first, last, packets: number(&mut words)? })
}

fn interface(line: &str) -> Option<Interface> {
    let (id, rest) = line.split_once(' ')?;
    let (link_type, name) = rest.split_once(' ')?;
    Some(Interface {
        id: id.parse().ok()?,
        link_type: LinkType(link_type.parse().ok()?),
        name: unescape(name)?,
    })
}

fn stripe_id(word: &str) -> Option<StripeId> {
    let (sequence, sub) = word.split_once('.')?;
    let sequence = sequence.parse().ok().filter(|sequence| *sequence <= SEQUENCE_MAX)?;
    Some(StripeId { sequence, sub: sub.parse().ok()? })
}

fn volume_id(word: &str) -> Option<VolumeId> {
    let plain = word.len() == 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = plain.then(|| u128::from_str_radix(word, 16).ok())??;
    Some(VolumeId(id.to_be_bytes()))
}

fn escape(name: &str) -> String {
    name.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r")
}

fn unescape(text: &str) -> Option<String> {
    let mut name = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        name.push(match letter {
            '\\' => match letters.next()? {
                '\\' => '\\',
                'n' => '\n',
                'r' => '\r',
                _ => return None,
            },
            _ => letter,
        });
    }
    Some(name)
}
