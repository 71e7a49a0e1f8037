//! One decision for each packet, by copies and classes together.

use core::fmt;
use core::time::Duration;

use capture::Packet;
use wire::LinkType;

use crate::classes::{Class, Classes, Kept};
use crate::duplicates::Duplicates;

/// What is done with one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Selected {
    /// It is stored.
    Whole,
    /// So many bytes of it are stored.
    First(usize),
    /// A class leaves it out.
    Cut,
    /// It came just before.
    Copy,
}

/// Decides packet by packet. Each queue has a clone of its own: both directions of a session are on
/// one queue, and so are the copies of a packet.
#[derive(Clone)]
pub struct Selection {
    duplicates: Option<Duplicates>,
    classes: Option<Classes>,
    note: Option<String>,
}

impl Selection {
    /// Of these classes, the first that fits decides. What comes again within the window is a copy.
    /// Sessions have a key with or without their VLAN, as the index has.
    ///
    /// # Errors
    /// Those of the classes' filters.
    pub fn new(
        classes: &[Class],
        copies_within: Option<Duration>,
        vlan_in_key: bool,
    ) -> Result<Self, filters::Error> {
        let compiled = (!classes.is_empty()).then(|| Classes::new(classes, vlan_in_key));
        Ok(Self {
            duplicates: copies_within.map(units::nanos).map(Duplicates::new),
            classes: compiled.transpose()?,
            note: note(classes, copies_within),
        })
    }

    /// What is left out, for readers of the packets; `None` where nothing is.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// What is stored of a packet.
    pub fn of(&mut self, link_type: LinkType, packet: &Packet<'_>) -> Selected {
        if self.duplicates.as_mut().is_some_and(|duplicates| duplicates.is_copy(packet)) {
            return Selected::Copy;
        }
        match self.classes.as_mut().map(|classes| classes.keep(link_type, packet)) {
            None | Some(Kept::Whole) => Selected::Whole,
            Some(Kept::First(len)) => Selected::First(len),
            Some(Kept::Nothing) => Selected::Cut,
        }
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection").field("note", &self.note).finish_non_exhaustive()
    }
}

fn note(classes: &[Class], copies_within: Option<Duration>) -> Option<String> {
    let classes = classes.iter().map(|class| format!("kept by class {class}"));
    let copies = copies_within.map(|window| format!("copies within {window:?} left out"));
    let notes: Vec<String> = classes.chain(copies).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::packet;

    #[test]
    fn each_queue_knows_only_its_own_packets() {
        let fresh = Selection::new(&[], Some(Duration::from_secs(1)), false).unwrap();
        let (mut first, mut second) = (fresh.clone(), fresh.clone());
        let of = |queue: &mut Selection| queue.of(LinkType::ETHERNET, &packet(b"bytes", 0));
        assert_eq!((of(&mut first), of(&mut first)), (Selected::Whole, Selected::Copy));
        assert_eq!(of(&mut second), Selected::Whole);
    }
}
