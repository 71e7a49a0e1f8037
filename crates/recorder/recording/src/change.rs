//! What becomes of a member while a recording goes on.

use core::fmt;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use units::MemberId;

/// A change of what a member is good for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberChange {
    /// Number of the member.
    pub member: MemberId,
    /// Where it is, or was.
    pub path: String,
    /// What became of it.
    pub what: Change,
}

/// With what brings it back, where something does, and all of it in words.
impl Serialize for MemberChange {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("member", &self.member)?;
        map.serialize_entry("path", &self.path)?;
        map.serialize_entry("change", self.what.word())?;
        if let Some(comeback) = self.what.comeback() {
            map.serialize_entry("comeback", &comeback)?;
        }
        map.serialize_entry("text", &format_args!("{self}"))?;
        map.end()
    }
}

/// What became of a member.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Change {
    /// It was not there when the recording began.
    Absent,
    /// There is no such member: its seat is empty.
    Vacant,
    /// It had missed something, and takes part again.
    Returned,
    /// The recording went on without it.
    Expelled {
        /// Why.
        reason: String,
        /// What brings it back.
        comeback: Comeback,
    },
    /// A spare took its place.
    Replaced,
    /// It got back what it missed.
    Resilvered {
        /// Bytes written to it.
        bytes: u64,
        /// Pieces that no other member could give, either.
        lost: usize,
    },
}

/// What brings a member back that a recording goes on without.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Comeback {
    /// It is looked for, and taken back as soon as it is there and answers.
    ByItself,
    /// It failed although it was there: a disk that fails writes would be taken back and fail again
    /// for ever. It must have been gone meanwhile, or the recording begins anew.
    OnceGone,
}

impl fmt::Display for Comeback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ByItself => "it is taken back as soon as it is there and answers",
            Self::OnceGone => {
                "it is taken back once it was gone and is there again, as when it is unplugged and \
                 plugged in, or when the recording is started anew"
            }
        })
    }
}

impl Change {
    /// What brings the member back; `None` where it takes part, or its seat is empty.
    pub fn comeback(&self) -> Option<Comeback> {
        match self {
            Self::Absent => Some(Comeback::ByItself),
            Self::Expelled { comeback, .. } => Some(*comeback),
            Self::Vacant | Self::Returned | Self::Replaced | Self::Resilvered { .. } => None,
        }
    }

    /// One word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Vacant => "vacant",
            Self::Returned => "returned",
            Self::Expelled { .. } => "expelled",
            Self::Replaced => "replaced",
            Self::Resilvered { .. } => "resilvered",
        }
    }

    /// The redundancy is less than it should be, or something is lost.
    pub fn is_bad(&self) -> bool {
        match self {
            Self::Absent | Self::Expelled { .. } => true,
            Self::Resilvered { lost, .. } => *lost > 0,
            Self::Vacant | Self::Returned | Self::Replaced => false,
        }
    }
}

impl fmt::Display for MemberChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { member, path, what } = self;
        match what {
            Change::Absent => {
                write!(f, "member {member} ({path}) is absent; {}", Comeback::ByItself)
            }
            Change::Vacant => {
                write!(f, "the seat of member {member} is empty; replace puts a new device there")
            }
            Change::Returned => write!(f, "member {member} ({path}) is back, and stale"),
            Change::Expelled { reason, comeback } => {
                write!(
                    f,
                    "recording went on without member {member} ({path}): {reason}; {comeback}"
                )
            }
            Change::Replaced => write!(f, "the spare {path} is member {member} now"),
            Change::Resilvered { bytes, lost: 0 } => {
                let bytes = units::ByteSize(*bytes);
                write!(f, "member {member} ({path}) got back what it missed, {bytes}")
            }
            Change::Resilvered { lost, .. } => {
                write!(f, "member {member} ({path}) was resilvered, {lost} of its pieces are lost")
            }
        }
    }
}
