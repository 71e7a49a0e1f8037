//! What a signature is: bytes that a payload must show, lengths that it may have, and a check where
//! structure has to be followed.

use wire::App;

use super::payload::Payload;

/// What a payload that matches is worth.
#[derive(Clone, Copy, Debug)]
pub(super) enum Proof {
    /// Nothing else looks like this.
    Sure,
    /// Needs the protocol's port, or another payload from the other side that matches too.
    Weak,
    /// Needs the protocol's port.
    OnPort,
    /// Needs the next of the same series from the same side: equal upper 48 bits, and lower 16 that
    /// go on from the ones before.
    Series(fn(&Payload<'_>) -> Option<u64>),
}

/// Bytes at a fixed place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// These bytes.
    Is(usize, &'static [u8]),
    /// One of these bytes.
    In(usize, &'static [u8]),
    /// A byte whose bits under the mask (first) have this value.
    Bits(usize, u8, u8),
    /// This text at the beginning, in any case.
    Text(&'static [u8]),
}

impl Part {
    fn matches(&self, payload: &Payload<'_>) -> bool {
        match *self {
            Self::Is(at, bytes) => payload.has(at, bytes),
            Self::In(at, set) => payload.u8(at).is_some_and(|byte| set.contains(&byte)),
            Self::Bits(at, mask, value) => payload.u8(at).is_some_and(|byte| byte & mask == value),
            Self::Text(text) => {
                let start = payload.seen().get(..text.len());
                start.is_some_and(|start| start.eq_ignore_ascii_case(text))
            }
        }
    }

    /// Whether a payload that has this byte at this place may match.
    fn allows(&self, place: usize, byte: u8) -> bool {
        let of = |bytes: &'static [u8], at: usize| bytes.get(place.checked_sub(at)?);
        match *self {
            Self::Is(at, bytes) => of(bytes, at).is_none_or(|&wanted| wanted == byte),
            Self::In(at, set) => at != place || set.contains(&byte),
            Self::Bits(at, mask, value) => at != place || byte & mask == value,
            Self::Text(text) => of(text, 0).is_none_or(|it| it.eq_ignore_ascii_case(&byte)),
        }
    }
}

/// Follows the structure; `None` where bytes are missing, which is as good as no.
pub(super) type Check = fn(&Payload<'_>) -> Option<bool>;

#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) app: App,
    pub(super) proof: Proof,
    parts: &'static [Part],
    /// Least and greatest length on the wire.
    lens: (usize, usize),
    check: Option<Check>,
    /// Only what begins like text is worth the check.
    pub(super) is_line: bool,
    is: Option<fn(&Payload<'_>) -> bool>,
}

/// A signature of fixed bytes.
pub(super) const fn rule(app: App, proof: Proof, parts: &'static [Part]) -> Rule {
    Rule { app, proof, parts, lens: (1, usize::MAX), check: None, is_line: false, is: None }
}

impl Rule {
    /// For payloads of these lengths only.
    pub(super) const fn len(self, least: usize, greatest: usize) -> Self {
        Self { lens: (least, greatest), ..self }
    }

    pub(super) const fn when(self, check: Check) -> Self {
        Self { check: Some(check), ..self }
    }

    /// The same for a protocol of lines of text.
    pub(super) const fn line(self, check: Check) -> Self {
        Self { check: Some(check), is_line: true, ..self }
    }

    /// The same where no byte can be missing.
    pub(super) const fn is(self, is: fn(&Payload<'_>) -> bool) -> Self {
        Self { is: Some(is), ..self }
    }

    /// Whether it counts at the protocol's port only.
    pub(super) fn is_on_port(&self) -> bool {
        matches!(self.proof, Proof::OnPort)
    }

    /// Whether a payload that has this byte at this place may match.
    pub(super) fn allows(&self, place: usize, byte: u8) -> bool {
        self.parts.iter().all(|part| part.allows(place, byte))
    }

    /// Whether the payload shows it, at whatever port.
    pub(super) fn shows(&self, payload: &Payload<'_>) -> bool {
        (self.lens.0..=self.lens.1).contains(&payload.len)
            && self.parts.iter().all(|part| part.matches(payload))
            && self.check.is_none_or(|check| check(payload) == Some(true))
            && self.is.is_none_or(|is| is(payload))
    }
}
