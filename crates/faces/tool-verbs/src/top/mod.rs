//! `wirespool top`.

mod flags;
mod once;
mod pages;
mod saved;
mod selected;
mod tabs;

use core::time::Duration;
use std::path::Path;

use ::tui::{Pages as _, State};
use anyhow::bail;
use capture::{FileOptions, FileSource, LiveOptions, Source as _};
use host::{StopFlag, SystemClock};
use host::{Target, target};
use network::interfaces;
use talkers::Limits;
use units::ByteSize;

pub use self::flags::Flags;
use self::pages::TopPages;
use self::tabs::TABS;
use crate::arguments;
use crate::failure::{Outcome, Usage, Verdict};
use crate::{recorder, stdout};
use verbs::top::feed::Origin;

/// Kernel memory for packets of each interface.
const RING: ByteSize = ByteSize(32 << 20);
/// Lines that the user can scroll through; a query finds what is beyond.
const LINES_MAX: usize = 1000;

/// Shows who talks, who reads and writes, and what the machine does.
pub fn run(flags: &Flags) -> Outcome {
    host::keep_freed_memory();
    arguments::query(&flags.query)?;
    if let (Some(tab), Some(by)) = (flags.tab, &flags.by) {
        check_grouping(tab, by)?;
    }
    if !flags.once && !stdout::is_drawn_on() {
        let what = if stdout::is_terminal() {
            "top draws, and this terminal takes lines alone (by TERM)"
        } else {
            "top needs a terminal"
        };
        let text = format!("{what}; --once prints what there is, with --json for programs");
        return Err(Usage(text).into());
    }
    let (title, origin) = origin(flags)?;
    if flags.at.is_some() && matches!(origin, Origin::Interfaces(_)) {
        let text = "--at is a moment of a volume or a file: an interface has no past";
        return Err(Usage(text.to_owned()).into());
    }
    let stop = if flags.once { StopFlag::install()? } else { StopFlag::install_on_terminal()? };
    let limits = Limits {
        packet_bytes: usize::try_from(flags.memory).unwrap_or(usize::MAX),
        ..Limits::default()
    };
    let lines_max = if flags.once { usize::MAX } else { LINES_MAX };
    let mut pages = TopPages::new(title, origin, limits, lines_max)?;
    let at = flags.at.as_deref().map(|text| pages.second(text)).transpose().map_err(Usage)?;
    if flags.once {
        return once::run(flags, &mut pages, at, &stop);
    }
    let mut state = State::new(&pages);
    state.begin_with(flags.tab, flags.by.as_deref(), flags.query.trim());
    if let Some(second) = at {
        state.go_back_to(second);
    }
    ::tui::run(&mut pages, &mut state, &SystemClock, &|| stop.is_set())?;
    Ok(Verdict::Clean)
}

fn check_grouping(tab: &str, by: &str) -> Result<(), Usage> {
    let tab = TABS.iter().find(|it| it.name == tab).expect("a tab was checked when it was read");
    if tab.groupings.contains(&by) {
        return Ok(());
    }
    Err(Usage(format!("--by: lines of {} go by {}", tab.name, tab.groupings.join(", "))))
}

/// Where packets come from, and what that is called.
fn origin(flags: &Flags) -> anyhow::Result<(String, Origin)> {
    let live = |interfaces: Vec<String>| {
        let options = LiveOptions {
            interfaces,
            filter: flags.filter.clone(),
            ring_size: RING,
            ..LiveOptions::default()
        };
        (options.interfaces.join(", "), Origin::Interfaces(options))
    };
    let Some(source) = &flags.source else { return Ok(live(interfaces()?)) };
    let name = source.to_string_lossy().into_owned();
    let is_interface = !name.contains('/') && interfaces()?.contains(&name);
    if is_interface && !source.exists() {
        return Ok(live(vec![name]));
    }
    if flags.filter.is_some() {
        let text = "--filter is for interfaces: of what was recorded, --query selects";
        return Err(Usage(text.to_owned()).into());
    }
    if matches!(target(source)?, Target::Absent) {
        bail!("{name}: neither an interface nor a file");
    }
    if is_volume(source, flags) {
        let mut options = flags.reading.options(source.clone())?;
        let is_growing = recorder::state(source, &flags.reading.members()).is_some();
        options.is_recorded = is_growing;
        return Ok((name, Origin::Volume { options, is_growing }));
    }
    // What is no capture is said before anything is shown.
    let mut file = FileSource::open(source, FileOptions::default())?;
    let _packets = file.next_batch(Duration::ZERO)?;
    Ok((name, Origin::File(source.clone())))
}

fn is_volume(path: &Path, flags: &Flags) -> bool {
    ::volume::open_superblocks(path, &flags.reading.members()).is_ok()
}
