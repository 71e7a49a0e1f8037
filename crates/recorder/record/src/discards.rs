//! Which members get discards ahead of the head: flash, unless the user chose otherwise.

use blockdev::disk::Disk;
use units::ByteSize;
use volume::MemberAt;
use writer::Writer;

use crate::options::Discard;
use crate::storage::Storage;

/// Starts discards on the members that get them; the lines say what happens on which member.
pub(crate) fn begin(
    writer: &mut Writer,
    (members, storage): (&[MemberAt], &dyn Storage),
    wished: Discard,
) -> Vec<String> {
    let run_bytes = writer.discard_bytes();
    let mut lines = Vec::new();
    for MemberAt { member, path } in members {
        let refusal = refusal(storage.disk(path), wished, run_bytes);
        writer.discard_ahead(*member, refusal.is_none());
        let path = path.display();
        let what = match refusal {
            None => format!("gets discards ahead of the head, {} at a time", ByteSize(run_bytes)),
            Some(Refusal { is_expected: true, .. }) => continue,
            Some(Refusal { why, .. }) => format!("gets no discards: {why}"),
        };
        lines.push(format!("discard: member {member} ({path}) {what}"));
    }
    lines
}

/// Whether a disk that joins a running recording gets discards.
pub(crate) fn is_wanted(disk: Option<Disk>, wished: Discard, run_bytes: u64) -> bool {
    refusal(disk, wished, run_bytes).is_none()
}

/// Why a member gets no discards.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Refusal {
    why: String,
    /// A user expects it, so no line says it.
    is_expected: bool,
}

/// A disk of which nothing can be known is left alone.
fn refusal(disk: Option<Disk>, wished: Discard, run_bytes: u64) -> Option<Refusal> {
    let refused = |why: &str, is_expected| Some(Refusal { why: why.to_owned(), is_expected });
    let Some(disk) = disk else {
        return refused("it is no block device", wished != Discard::On);
    };
    match (wished, disk.discard_granularity) {
        (Discard::Off, _) => refused("switched off", true),
        (Discard::Auto, _) if disk.is_rotational => refused("it turns", true),
        (_, None) => refused("it takes no discards", wished != Discard::On),
        (_, Some(unit)) if unit > run_bytes => {
            let why = format!(
                "it discards {} at once, and {} lie ahead of the head",
                ByteSize(unit),
                ByteSize(run_bytes)
            );
            Some(Refusal { why, is_expected: false })
        }
        (_, Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flash_is_told_and_the_rest_only_when_asked_for_and_able() {
        let disk =
            |is_rotational, discard_granularity| Some(Disk { is_rotational, discard_granularity });
        let why = |disk: Option<Disk>, wished| refusal(disk, wished, 16 << 20).map(|it| it.why);
        let flash = disk(false, Some(4096));
        let turning = disk(true, Some(4096));
        assert_eq!(why(flash, Discard::Auto), None);
        assert_eq!(why(flash, Discard::On), None);
        assert_eq!(why(flash, Discard::Off).as_deref(), Some("switched off"));
        assert_eq!(why(turning, Discard::Auto).as_deref(), Some("it turns"));
        assert_eq!(why(turning, Discard::On), None);
        for wished in [Discard::Auto, Discard::On] {
            let unable = why(disk(false, None), wished);
            assert_eq!(unable.as_deref(), Some("it takes no discards"));
            assert_eq!(why(None, wished).as_deref(), Some("it is no block device"));
            assert!(why(disk(false, Some(1 << 30)), wished).unwrap().contains("at once"));
        }
    }

    #[test]
    fn only_what_was_asked_for_or_is_surprising_is_said() {
        let said = |disk, wished| !refusal(disk, wished, 16 << 20).unwrap().is_expected;
        assert!(!said(None, Discard::Auto) && said(None, Discard::On));
        let coarse = Disk { is_rotational: false, discard_granularity: Some(1 << 30) };
        assert!(said(Some(coarse), Discard::Auto));
        assert!(!said(Some(coarse), Discard::Off));
    }
}
