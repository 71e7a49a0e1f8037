//! Where the index files of a recording lie.

use events::{EventKind, Events};
use host::CachedVolume;
use index::{Files, IndexKeys, MemoryFiles};
use units::Clock;

use crate::opening::Opened;
use crate::options::Options;
use crate::patrol;

/// The index directory; one in memory, and a note why, where none is given and none can be opened.
pub(crate) fn open(
    given: Option<Box<dyn Files + Send + Sync>>,
    options: &Options,
    opened: &Opened,
    clock: &dyn Clock,
) -> (Box<dyn Files + Send + Sync>, Option<String>) {
    let (path, keeps_sessions) = (&*options.volume, options.keep_sessions.is_some());
    let id = &opened.writer.superblock().volume_id.to_string();
    let volume = CachedVolume { id, path, keeps_sessions };
    let mut note = None;
    let files = given.unwrap_or_else(|| {
        match host::open_index(options.index_dir.as_deref(), &volume, clock.realtime()) {
            Ok(directory) => Box::new(directory),
            Err(error) => {
                let text = if keeps_sessions {
                    "queries read the index from the volume, and no row outlives its packets \
                     (--keep-sessions)"
                } else {
                    "queries read the index from the volume"
                };
                note = Some(format!("no index cache ({error}); {text}"));
                Box::new(MemoryFiles::default())
            }
        }
    });
    (IndexKeys::new(opened.keyring.clone()).over(files, &[patrol::FILE]), note)
}

/// Says once that rows cannot be stored for longer than their packets, and when they can be again.
pub(crate) fn show_kept(unkept: &mut u64, stored: std::io::Result<()>, events: &Events) {
    let before = *unkept;
    *unkept = if stored.is_ok() { 0 } else { before.saturating_add(1) };
    let text = match stored {
        Err(error) if before == 0 => format!(
            "the index directory cannot be written ({error}): rows recorded from now on do not \
             outlive their packets (--keep-sessions), until it can be"
        ),
        Ok(()) if before > 0 => format!(
            "the index directory can be written again; rows of {} will not outlive their packets",
            units::plural(before, "segment")
        ),
        _ => return,
    };
    events.say(EventKind::RowsUnkept, "", text);
}
