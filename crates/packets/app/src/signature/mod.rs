//! What protocol a session speaks, by signatures of its first payloads.
//!
//! A signature is a row in a table (`tcp`, `udp`): fixed bytes, lengths, and where that does
//! not suffice a check that follows the structure. Each says what it proves: a sure one decides at
//! once; a weak one needs the protocol's port, or a payload of the other side that matches too; one
//! of a series needs the next of the series. So a name by content never rests on fewer than about
//! 20 bits that are not as they are by chance. No name is better than a wrong one.
//!
//! Bounded: the first [`PAYLOAD_COUNT_MAX`] payloads of a session, of each the first KiB, and the
//! fixed size of a [`Watch`]. A decision is final, except that the protocol inside replaces an
//! envelope (`is_envelope`).

mod ber;
mod candidates;
mod database;
mod dns;
mod industry;
mod media;
mod payload;
mod ports;
mod rule;
mod system;
mod tcp;
mod text;
mod tls;
mod tunnel;
mod udp;

use wire::{App, AppBy, Recognised};

use candidates::matches;
pub use payload::{Carrier, Payload};
use rule::Proof;

use crate::Side;

/// Payloads of a session that are looked at: of the captures of the tests, twelve name no session
/// that six do not.
pub const PAYLOAD_COUNT_MAX: u8 = 6;

/// Weak matches remembered a side.
const WEAK_COUNT_MAX: usize = 4;

/// How far a series may go on between two packets: some may be lost.
const SERIES_STEP_MAX: u16 = 64;

/// What one payload shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sight {
    /// A protocol that it proves.
    sure: Option<Recognised>,
    /// Protocols that it may be of.
    weak: [Option<App>; WEAK_COUNT_MAX],
    /// A member of a series.
    series: Option<(App, u64)>,
}

impl Sight {
    /// Whether the payload shows nothing, so that there is nothing to remember.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Looks at one payload by itself. The first sure rule of a table decides.
pub fn look(payload: &Payload<'_>) -> Sight {
    let mut sight = Sight::default();
    for rule in matches(payload) {
        match rule.proof {
            Proof::Sure => {
                sight.sure = Some(Recognised { app: rule.app, by: AppBy::Content });
                break;
            }
            Proof::Weak if !ports::is_on_own(rule.app, payload) => {
                remember(&mut sight.weak, rule.app);
            }
            Proof::Weak | Proof::OnPort => {
                let by = AppBy::PortAndContent;
                sight.sure.get_or_insert(Recognised { app: rule.app, by });
            }
            Proof::Series(place) => {
                sight.series = sight.series.or(place(payload).map(|place| (rule.app, place)));
            }
        }
    }
    sight
}

fn remember(list: &mut [Option<App>; WEAK_COUNT_MAX], app: App) {
    if !list.contains(&Some(app))
        && let Some(free) = list.iter_mut().find(|entry| entry.is_none())
    {
        *free = Some(app);
    }
}

/// Whether a protocol is known to carry others, so that what comes later may say more.
fn is_envelope(app: App) -> bool {
    app == App::Netbiosssn
}

/// What is known of a session's protocol so far; small, as every session has one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Watch {
    found: Option<Recognised>,
    /// What may become a name, while there is something.
    hints: Option<Box<Hints>>,
}

const _: () = assert!(size_of::<Watch>() == 16);

/// Weak matches and last members of series, by side.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Hints {
    weak: [[Option<App>; WEAK_COUNT_MAX]; 2],
    series: [Option<(App, u64)>; 2],
}

/// Bytes of the heap that a [`Watch`] takes at most.
pub const HINT_BYTES: usize = size_of::<Hints>();

impl Watch {
    /// Of a session whose protocol was recognised before.
    pub fn of(found: Recognised) -> Self {
        Self { found: Some(found), hints: None }
    }

    /// The protocol that was recognised.
    pub fn found(&self) -> Option<Recognised> {
        self.found
    }

    /// Takes what a payload of one side shows; true when nothing more is to be found.
    pub fn take(&mut self, side: Side, sight: &Sight) -> bool {
        let found = sight.sure.or_else(|| {
            let hints = self.hints.get_or_insert_default();
            let app = hints.dialogue(side, sight).or_else(|| hints.goes_on(side, sight))?;
            Some(Recognised { app, by: AppBy::Content })
        });
        if self.found.is_none_or(|before| is_envelope(before.app)) {
            self.found = found.or(self.found);
        }
        let is_final = self.found.is_some_and(|found| !is_envelope(found.app));
        if is_final {
            self.give_up();
        }
        is_final
    }

    /// Forgets what has not become a name.
    pub fn give_up(&mut self) {
        self.hints = None;
    }
}

impl Hints {
    /// A protocol that payloads of both sides may be of.
    fn dialogue(&mut self, side: Side, sight: &Sight) -> Option<App> {
        let [orig, resp] = &mut self.weak;
        let (mine, other) = if side == Side::Orig { (orig, resp) } else { (resp, orig) };
        let apps = sight.weak.iter().flatten();
        apps.clone().for_each(|&app| remember(mine, app));
        apps.clone().find(|&&app| other.contains(&Some(app))).copied()
    }

    /// The protocol of a series that goes on.
    fn goes_on(&mut self, side: Side, sight: &Sight) -> Option<App> {
        let (app, place) = sight.series?;
        let [orig, resp] = &mut self.series;
        let before = if side == Side::Orig { orig } else { resp }.replace((app, place))?;
        let low = |place: u64| u16::try_from(place & 0xffff).expect("16 bits");
        let step = low(place).wrapping_sub(low(before.1));
        let is_next = before.0 == app
            && before.1 >> 16 == place >> 16
            && (1..=SERIES_STEP_MAX).contains(&step);
        is_next.then_some(app)
    }
}

/// The protocol at home at the responder's port: for sessions of which no payload was seen.
pub fn by_port(carrier: Carrier, port: u16) -> Option<Recognised> {
    Some(Recognised { app: ports::at_home(carrier, port)?, by: AppBy::Port })
}

#[cfg(test)]
mod tests;
