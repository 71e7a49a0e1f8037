//! Sessions that go on after they were put aside: each is put aside again, whole, until it is over,
//! and replaces its earlier hold. Where the ring has overwritten its beginning meanwhile, both
//! stay.

use std::path::{Path, PathBuf};

use units::NANOS_PER_SECOND;

use crate::{Aside, Error, remove};

/// The first look; each further one waits twice as long, so that a session is read a few times.
const FIRST_NS: i64 = 10 * NANOS_PER_SECOND;
const WAIT_NS_MAX: i64 = 320 * NANOS_PER_SECOND;
/// A session without new packets for so long is over: rows of one are joined over less.
const OVER_NS: i64 = 600 * NANOS_PER_SECOND;
/// Holds that are looked after at a time, some hundred bytes each. Others stay as they are, and
/// their manifests say up to when they are complete.
const HOLDS_MAX: usize = 1 << 12;

/// A hold that may lack the rest of its session.
#[derive(Debug)]
struct Growing {
    query: String,
    path: PathBuf,
    packets: u64,
    quiet_ns: i64,
    wait_ns: i64,
    next_ns: i64,
}

/// Holds that are to have the rest of their sessions.
#[derive(Debug, Default)]
pub struct Rest {
    holds: Vec<Growing>,
}

impl Rest {
    /// Looks after a hold of so many packets, which was made by `query`.
    pub fn add(&mut self, query: &str, (path, packets): (&Path, u64), now_ns: i64) {
        if self.holds.len() < HOLDS_MAX {
            self.holds.push(Growing {
                query: query.to_owned(),
                path: path.to_path_buf(),
                packets,
                quiet_ns: 0,
                wait_ns: FIRST_NS,
                next_ns: now_ns.saturating_add(FIRST_NS),
            });
        }
    }

    /// Some session is to be looked at.
    pub fn is_due(&self, now_ns: i64) -> bool {
        self.holds.iter().any(|hold| hold.next_ns <= now_ns)
    }

    /// Puts aside what is due by `put`, which is given the query, and in the end (`is_last`) all.
    ///
    /// # Errors
    /// Those of `put`, and when an earlier hold cannot be removed.
    pub fn look<E: From<Error>>(
        &mut self,
        now_ns: i64,
        is_last: bool,
        put: &mut dyn FnMut(&str) -> Result<Aside, E>,
    ) -> Result<(), E> {
        for mut hold in core::mem::take(&mut self.holds) {
            if is_last || hold.next_ns <= now_ns {
                let aside = put(&hold.query)?;
                hold.take(aside, now_ns)?;
            }
            if hold.quiet_ns < OVER_NS {
                self.holds.push(hold);
            }
        }
        Ok(())
    }
}

impl Growing {
    fn take(&mut self, aside: Aside, now_ns: i64) -> Result<(), Error> {
        self.quiet_ns = self.quiet_ns.saturating_add(self.wait_ns);
        if let Aside::Held { path, packets, completeness, .. } = aside {
            let has_all = completeness.retired_pieces == 0 && packets >= self.packets;
            if has_all && packets == self.packets {
                discard(&path)?;
            } else {
                if has_all {
                    discard(&self.path)?;
                }
                (self.path, self.packets, self.quiet_ns) = (path, packets, 0);
            }
        }
        self.wait_ns = self.wait_ns.saturating_mul(2).min(WAIT_NS_MAX);
        self.next_ns = now_ns.saturating_add(self.wait_ns);
        Ok(())
    }
}

/// One that a user has removed meanwhile is gone already.
fn discard(path: &Path) -> Result<(), Error> {
    let (folder, name) = (path.parent().unwrap_or(Path::new("")), path.file_name());
    let name = name.unwrap_or_default().to_string_lossy();
    remove(folder, &name).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use completeness::Completeness;

    struct Folder {
        folder: tempfile::TempDir,
        count: u32,
    }

    impl Folder {
        fn hold(&mut self, packets: u64, retired_pieces: u64) -> Aside {
            self.count += 1;
            let path = self.folder.path().join(format!("hold-{}.pcapng", self.count));
            let manifest = format!(
                r#"{{"query":"","volume_id":"","complete":true,
                    "outputs":[{{"packets":{packets},"bytes":1}}]}}"#
            );
            std::fs::write(&path, "packets").unwrap();
            std::fs::write(path.with_extension("pcapng.json"), &manifest).unwrap();
            let completeness = Completeness { retired_pieces, ..Completeness::default() };
            Aside::Held { path, packets, completeness: Box::new(completeness), manifest }
        }

        fn packets(&self) -> Vec<u64> {
            let (holds, unreadable) = crate::list(self.folder.path()).unwrap();
            assert!(unreadable.is_empty(), "{unreadable:?}");
            holds.iter().map(|hold| hold.packets).collect()
        }
    }

    #[test]
    fn a_hold_grows_with_its_session_until_that_is_over() {
        let mut folder = Folder { folder: tempfile::tempdir().unwrap(), count: 0 };
        let mut rest = Rest::default();
        let Aside::Held { path, .. } = folder.hold(12, 0) else { unreachable!() };
        rest.add("host a", (&path, 12), 0);
        assert!(!rest.is_due(FIRST_NS - 1) && rest.is_due(FIRST_NS));
        let mut now = FIRST_NS;
        for (packets, retired, expected) in [
            (30, 0, &[30][..]),
            (30, 0, &[30]),
            (40, 0, &[40]),
            // The ring has gone round: the beginning is in the earlier hold alone.
            (35, 1, &[40, 35]),
            (35, 0, &[40, 35]),
        ] {
            let mut put = |query: &str| {
                assert_eq!(query, "host a");
                Ok::<_, Error>(folder.hold(packets, retired))
            };
            rest.look(now, false, &mut put).unwrap();
            assert_eq!(folder.packets(), expected);
            now += WAIT_NS_MAX;
        }
        let mut looks = 0;
        while rest.is_due(i64::MAX) {
            let mut nothing = |_: &str| Ok::<_, Error>(Aside::Nothing);
            rest.look(now, false, &mut nothing).unwrap();
            now += WAIT_NS_MAX;
            looks += 1;
        }
        assert!(looks < 3, "{looks}: it was quiet for long enough");
    }

    #[test]
    fn in_the_end_all_are_put_aside_once_more() {
        let mut folder = Folder { folder: tempfile::tempdir().unwrap(), count: 0 };
        let mut rest = Rest::default();
        let Aside::Held { path, .. } = folder.hold(12, 0) else { unreachable!() };
        rest.add("host a", (&path, 12), 0);
        rest.look(1, true, &mut |_| Ok::<_, Error>(folder.hold(20, 0))).unwrap();
        assert_eq!(folder.packets(), [20]);
    }
}
