//! How a child ended, as its parent says it to whoever asked for it.

use core::time::Duration;

use crate::message::{Fields, Message};

const EXITED: u8 = 1;
const SIGNALLED: u8 = 2;
const KILLED_BY_US: u8 = 3;
const UNKNOWN: u8 = 4;

/// How a child ended, and what it used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// How it ended.
    pub how: How,
    /// Processor time of all its threads.
    pub cpu: Duration,
    /// The most memory that it had in use at once.
    pub peak_bytes: u64,
}

/// How a child ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// With this exit code.
    Exited(i32),
    /// By a signal.
    Signalled {
        /// Its number.
        signal: i32,
        /// It was [`Child::kill`](crate::Child::kill), or that value being dropped.
        by_us: bool,
    },
    /// Nobody knows: its launcher was killed, and it with that.
    Unknown,
}

impl Ended {
    pub(crate) fn unknown() -> Self {
        Self { how: How::Unknown, cpu: Duration::ZERO, peak_bytes: 0 }
    }

    pub(crate) fn encode(&self) -> Message {
        let (kind, number) = match self.how {
            How::Exited(code) => (EXITED, code),
            How::Signalled { signal, by_us: false } => (SIGNALLED, signal),
            How::Signalled { signal, by_us: true } => (KILLED_BY_US, signal),
            How::Unknown => (UNKNOWN, 0),
        };
        let cpu_us = u64::try_from(self.cpu.as_micros()).unwrap_or(u64::MAX);
        let number = u64::from(number.cast_unsigned());
        Message::default().byte(kind).number(number).number(cpu_us).number(self.peak_bytes)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let kind = fields.byte()?;
        let number = u32::try_from(fields.number()?).ok()?.cast_signed();
        let how = match kind {
            EXITED => How::Exited(number),
            SIGNALLED => How::Signalled { signal: number, by_us: false },
            KILLED_BY_US => How::Signalled { signal: number, by_us: true },
            UNKNOWN => How::Unknown,
            _ => return None,
        };
        let cpu = Duration::from_micros(fields.number()?);
        let peak_bytes = fields.number()?;
        fields.end()?;
        Some(Self { how, cpu, peak_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_the_same_at_the_other_side() {
        let all = [
            How::Exited(0),
            How::Exited(255),
            How::Signalled { signal: 31, by_us: false },
            How::Signalled { signal: 9, by_us: true },
            How::Unknown,
        ];
        for how in all {
            let ended = Ended { how, cpu: Duration::from_micros(77), peak_bytes: 1 << 33 };
            assert_eq!(Ended::decode(ended.encode().as_bytes()), Some(ended));
        }
        assert_eq!(Ended::decode(b""), None);
    }
}
