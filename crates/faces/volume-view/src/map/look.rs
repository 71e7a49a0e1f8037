//! What cells of a map are drawn as, whatever draws them.

use page::text::time;
use upkeep::{Cell, Content, MemberState, RingMap};

/// Ages are shown in as many steps.
const AGES: u64 = 10;
/// A slot left early shows when as much of it is unused, in percent.
const UNUSED_SHOWN: u8 = 50;

/// What a cell is drawn as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Look {
    Unwritten,
    /// 0 is the newest tenth of what is held.
    Age(u8),
    LeftEarly(u8),
    Opening,
    AheadOfHead,
    Damaged,
}

pub(super) fn look(map: &RingMap, cell: &Cell) -> Look {
    let age = age(map, cell);
    match cell.content {
        Content::Damaged => Look::Damaged,
        _ if !cell.damaged.is_empty() => Look::Damaged,
        Content::Unwritten => Look::Unwritten,
        Content::AheadOfHead => Look::AheadOfHead,
        Content::Opening => Look::Opening,
        Content::LeftEarly { unused_percent } if unused_percent >= UNUSED_SHOWN => {
            Look::LeftEarly(age)
        }
        Content::LeftEarly { .. } | Content::Written => Look::Age(age),
    }
}

/// The tenth of what is held that a cell lies in.
pub(super) fn age(map: &RingMap, cell: &Cell) -> u8 {
    let Some((span, sequence)) = map.span.zip(cell.sequence) else { return 0 };
    let newest = span.acknowledged.sequence;
    let step = newest.since(sequence) * AGES / (newest + 1 - span.tail);
    u8::try_from(step.min(AGES - 1)).expect("a single digit")
}

/// The rows with the number of their zone.
pub(super) fn rows(map: &RingMap) -> Vec<(usize, &[Cell])> {
    let zones = usize::from(map.geometry.zones);
    let columns = usize::try_from(map.columns).expect("as many as a screen has");
    let zone_cells = map.cells.len() / zones;
    let zone_rows = map.cells.chunks(zone_cells.max(1)).enumerate();
    zone_rows.flat_map(|(zone, cells)| cells.chunks(columns).map(move |row| (zone, row))).collect()
}

/// Whether a member, by what is known of it, has not what the middle of the cell should hold.
pub(super) fn lacks(state: MemberState, cell: &Cell) -> bool {
    match (state, cell.sequence) {
        (MemberState::Whole, _) | (_, None) => false,
        (MemberState::Absent | MemberState::Vacant, Some(_)) => true,
        (MemberState::Stale { from, to }, Some(sequence)) => (from..to).contains(&sequence),
    }
}

/// When the oldest and the newest parts of the ring were written.
pub(super) fn ages(map: &RingMap) -> Option<(String, String)> {
    let mut known = map.written.iter().flatten();
    let newest = known.next()?;
    let oldest = known.next_back().unwrap_or(newest);
    Some((time(*oldest), time(*newest)))
}
