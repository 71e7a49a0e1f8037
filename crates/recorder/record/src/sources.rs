//! What packets come from, and opening it.

use std::path::PathBuf;
use std::thread;

use core::num::NonZero;

use capture::{FileOptions, FileSource, LiveOptions, LiveSource, Source, XdpSource};
use format::directory::Gap;
use format::recorded::RecordedClock;
use selection::{Before, Selection};
use units::number::to_u64;
use units::{ByteSize, Timestamp};
use writer::Recovery;

use crate::error::Error;
use crate::memory;
use crate::options::{Input, Options, Way};

/// Where packets come from.
pub(crate) struct Sources {
    /// Those of the first queue, one after the other.
    pub(crate) first: Vec<Box<dyn Source>>,
    /// One of each further queue.
    pub(crate) further: Vec<Box<dyn Source>>,
    /// What the user should know of them beforehand.
    pub(crate) advice: Vec<String>,
    /// What of their packets is stored.
    pub(crate) selection: Selection,
    /// What was decided, one line each.
    pub(crate) setup: Vec<String>,
    /// Who says when their packets came.
    pub(crate) clock: RecordedClock,
    /// Another process that listens sees the same packets with the same times.
    pub(crate) may_hand_over: bool,
    /// What is had of the recorder before.
    pub(crate) before: Option<Before>,
}

impl Sources {
    /// How many queues there are.
    pub(crate) fn queues(&self) -> usize {
        1 + self.further.len()
    }

    /// Earlier packets are those of the recorder before.
    pub(crate) fn from(&self) -> Option<Timestamp> {
        self.before.as_ref().map(|before| before.from)
    }

    /// What the recorder before this one may have lost, where it did not stop in order: what waits
    /// in kernel rings is not lost.
    pub(crate) fn crash(&self, recovery: &Recovery, now: Timestamp) -> Option<Gap> {
        let Some(before) = &self.before else { return recovery.gap(now) };
        recovery.gap(before.held_from).filter(|gap| gap.from < gap.to)
    }
}

/// Opens the inputs, of whose packets the selection is stored.
pub(crate) fn open(options: &Options, selection: Selection) -> Result<Sources, Error> {
    check_cpus(&options.cpus)?;
    let Inputs { sources, advice, setup, clock, is_by_xdp } = open_inputs(options)?;
    let is_live = matches!(options.input, Input::Interfaces(_));
    let mut sources = sources.into_iter();
    // Files come one after the other, queues beside each other.
    let first_count = if is_live { 1 } else { sources.len() };
    let first = sources.by_ref().take(first_count).collect();
    let further = sources.collect();
    // All who listen see a packet, with one time, which the clock of this machine gave.
    let may_hand_over = is_live && !is_by_xdp && clock.of_kernel && !clock.of_adapter;
    Ok(Sources { first, further, advice, selection, setup, clock, may_hand_over, before: None })
}

/// Sources, and what is said of them.
#[derive(Default)]
struct Inputs {
    sources: Vec<Box<dyn Source>>,
    advice: Vec<String>,
    setup: Vec<String>,
    clock: RecordedClock,
    is_by_xdp: bool,
}

fn open_inputs(options: &Options) -> Result<Inputs, Error> {
    match &options.input {
        Input::Interfaces(names) if !names.is_empty() => open_interfaces(names, options),
        Input::Files(paths) if !paths.is_empty() => {
            let open = |path: &PathBuf| {
                let filter = options.filter.clone();
                FileSource::open(path, FileOptions { filter, snaplen: options.snaplen }).map(boxed)
            };
            let sources = paths.iter().map(open).collect::<Result<_, _>>()?;
            Ok(Inputs { sources, ..Inputs::default() })
        }
        _ => Err(Error::NoInput),
    }
}

fn open_interfaces(names: &[String], options: &Options) -> Result<Inputs, Error> {
    let live = LiveOptions {
        interfaces: names.to_vec(),
        filter: options.filter.clone(),
        snaplen: options.snaplen,
        promiscuous: options.promiscuous,
        ring_size: ByteSize(options.kernel_ring_bytes),
        timestamps: options.timestamps,
        busy_poll: options.busy_poll,
    };
    let receive_queues = names.iter().filter_map(|name| network::nic::receive_queue_count(name));
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let count = options.queues.count(receive_queues.max().unwrap_or(1), processors);
    let rings = to_u64(names.len()).saturating_mul(to_u64(count.get()));
    memory::check("kernel rings", rings.saturating_mul(options.kernel_ring_bytes))?;
    let mut setup = Vec::new();
    match options.way {
        Way::Xdp => return Ok(by_xdp(XdpSource::open_queues(&live, count)?)),
        Way::Auto if XdpSource::why_not(&live)?.is_none() => {
            match XdpSource::open_queues(&live, count) {
                Ok(sources) => return Ok(by_xdp(sources)),
                Err(error) => setup.push(format!("packet sockets instead of AF_XDP: {error}")),
            }
        }
        Way::Auto | Way::Packet => {}
    }
    let sources = LiveSource::open_queues(&live, count)?;
    let advice = sources.first().map(LiveSource::advice).unwrap_or_default();
    let clock = sources.first().map(LiveSource::clock).unwrap_or_default();
    Ok(Inputs { sources: boxed_all(sources), advice, setup, clock, is_by_xdp: false })
}

fn by_xdp(mut sources: Vec<XdpSource>) -> Inputs {
    let clock = RecordedClock { of_kernel: true, ..RecordedClock::default() };
    let advice = sources.first().map(XdpSource::advice).unwrap_or_default();
    let setup = sources.first_mut().map(Source::notes).unwrap_or_default();
    Inputs { sources: boxed_all(sources), advice, setup, clock, is_by_xdp: true }
}

fn boxed_all(sources: Vec<impl Source + 'static>) -> Vec<Box<dyn Source>> {
    sources.into_iter().map(boxed).collect()
}

fn boxed(source: impl Source + 'static) -> Box<dyn Source> {
    Box::new(source)
}

fn check_cpus(wanted: &[usize]) -> Result<(), Error> {
    let allowed = if wanted.is_empty() { Vec::new() } else { host::allowed_cpus()? };
    match wanted.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(&cpu) => Err(Error::Cpu { cpu, allowed }),
        None => Ok(()),
    }
}
