//! What of the packets is stored on purpose: copies and what a traffic class leaves out are not.

use capture::Packet;
use wire::LinkType;

use crate::classes::{Classes, Kept};
use crate::duplicates::Duplicates;
use crate::job::Options;

/// What is done with one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Selected {
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
pub(crate) struct Selection {
    duplicates: Option<Duplicates>,
    classes: Option<Classes>,
    note: Option<String>,
}

impl Selection {
    /// # Errors
    /// Those of the classes' filters.
    pub(crate) fn new(options: &Options) -> Result<Self, capture::Error> {
        let window_ns = options.drop_duplicates.map(units::nanos);
        let vlan_in_key = options.sessions.is_some_and(|config| config.vlan_in_key);
        let has_classes = !options.classes.is_empty();
        let classes = has_classes.then(|| Classes::new(&options.classes, vlan_in_key));
        Ok(Self {
            duplicates: window_ns.map(Duplicates::new),
            classes: classes.transpose()?,
            note: note(options),
        })
    }

    /// What is left out, for readers of the packets; `None` where nothing is.
    pub(crate) fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// What is stored of a packet.
    pub(crate) fn of(&mut self, link_type: LinkType, packet: &Packet<'_>) -> Selected {
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

fn note(options: &Options) -> Option<String> {
    let classes = options.classes.iter().map(|class| format!("kept by class {class}"));
    let copies = options.drop_duplicates.map(|window| format!("copies within {window:?} left out"));
    let notes: Vec<String> = classes.chain(copies).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

#[cfg(test)]
pub(crate) mod tests {
    use core::time::Duration;

    use units::Timestamp;

    use super::*;
    use crate::job::Input;

    /// A packet as tests of what is selected need it.
    pub(crate) fn packet(bytes: &[u8], time_ns: i64) -> Packet<'_> {
        Packet {
            timestamp: Timestamp(time_ns),
            interface: 0,
            original_len: u32::try_from(bytes.len()).unwrap(),
            outbound: None,
            head: bytes,
            tag: None,
            tail: &[],
            options: &[],
        }
    }

    #[test]
    fn each_queue_knows_only_its_own_packets() {
        let window = Duration::from_secs(1);
        let anywhere = Options::new("volume".into(), Input::Files(Vec::new()));
        let options = Options { drop_duplicates: Some(window), ..anywhere };
        let fresh = Selection::new(&options).unwrap();
        let (mut first, mut second) = (fresh.clone(), fresh.clone());
        let of = |queue: &mut Selection| queue.of(LinkType::ETHERNET, &packet(b"bytes", 0));
        assert_eq!((of(&mut first), of(&mut first)), (Selected::Whole, Selected::Copy));
        assert_eq!(of(&mut second), Selected::Whole);
    }
}
