//! Opening: one hook for each interface, and one socket for each of its receive queues, given out
//! to the sources in turn.

use core::num::NonZeroUsize;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use filters::{LONGEST_PACKET, Libpcap, Program};
use units::ByteSize;
use wire::LinkType;

use super::bpf::AttachMode;
use super::choice::splits_sessions;
use super::program::Hook;
use super::socket::{Binding, CopyMode, Receiver, chunk_for};
use super::umem::Umem;
use super::{Queue, XdpSource};
use crate::live::ethtool::Card;
use crate::live::port::{LINK_HEADER_MAX, Port};
use crate::live::{LiveOptions, Timestamps, dedicated, halve_until, link_type, open_socket};
use crate::{Counters, Error, Interface};

/// Fewer chunks than this are not worth a socket.
const FEWEST_CHUNKS: usize = 64;

/// What the opening of an interface gives.
struct Opened {
    queues: Vec<Queue>,
    hook: Arc<Hook>,
}

impl XdpSource {
    /// Opens the interfaces with at most so many sources, to which their receive queues are given
    /// in turn, and starts to capture. Every packet is given out by one of the sources. What the
    /// interface itself drops is counted by the first one; for the others it is none.
    ///
    /// # Errors
    /// [`Error::XdpPermission`] without the capabilities; [`Error::XdpTags`] where tags would be
    /// lost; [`Error::XdpTaken`], [`Error::XdpQueueTaken`] where others are there already;
    /// [`Error::XdpTooLong`] for an MTU that the kernel cannot hand over.
    ///
    /// # Panics
    /// No interface is named.
    pub fn open_queues(options: &LiveOptions, count: NonZeroUsize) -> Result<Vec<Self>, Error> {
        assert!(!options.interfaces.is_empty(), "a capture needs an interface");
        open(options, count)
    }
}

/// Opens the interfaces for at most so many sources.
fn open(options: &LiveOptions, count: NonZeroUsize) -> Result<Vec<XdpSource>, Error> {
    let interfaces: Vec<_> =
        options.interfaces.iter().map(|name| of_options(name, options)).collect();
    let mut told = Vec::new();
    let mut opened = Vec::new();
    for (place, name) in options.interfaces.iter().enumerate() {
        opened.push(open_interface(place, name, options, &mut told)?);
    }
    // Without a queue there is nothing to take.
    let queues_max = opened.iter().map(|it| it.queues.len()).max().unwrap_or(1);
    let count = count.get().min(queues_max);
    let mut sources = (0..count)
        .map(|number| new_source(options, interfaces.clone(), number == 0))
        .collect::<Result<Vec<_>, _>>()?;
    for queue in opened.into_iter().flat_map(|it| it.queues) {
        let at = usize::try_from(queue.number).expect("few queues") % count;
        sources.get_mut(at).expect("the remainder is smaller").queues.push(queue);
    }
    if let Some(first) = sources.first_mut() {
        first.notes = told;
    }
    // All of them are there: nothing is lost to a socket that is not.
    for queue in sources.iter().flat_map(|source| &source.queues) {
        queue.hook.set_open(queue.number, true);
    }
    Ok(sources)
}

fn of_options(name: &str, options: &LiveOptions) -> Interface {
    Interface {
        name: name.to_owned(),
        description: None,
        link_type: LinkType::ETHERNET,
        snaplen: options.snaplen,
        filter: options.filter.clone(),
        options: Vec::new(),
    }
}

fn new_source(
    options: &LiveOptions,
    interfaces: Vec<Interface>,
    is_first: bool,
) -> Result<XdpSource, Error> {
    let open = |name: &String| {
        let port = Port::new(name, open_socket(name)?, is_first)?;
        if options.promiscuous && is_first {
            let asked = port.socket.be_promiscuous();
            asked.map_err(|source| port.error("promiscuous mode", source))?;
        }
        Ok(port)
    };
    let ports = options.interfaces.iter().map(open).collect::<Result<Vec<_>, Error>>()?;
    let filter = options.filter.as_deref();
    let filter: Option<Program> =
        filter.map(|text| Libpcap::get()?.compile(LinkType::ETHERNET, text)).transpose()?;
    let snaplen = if options.snaplen == 0 { LONGEST_PACKET } else { options.snaplen };
    let counters = vec![Counters::default(); interfaces.len()];
    Ok(XdpSource::new(interfaces, ports, (filter, snaplen), counters, options.busy_poll))
}

fn open_interface(
    place: usize,
    name: &str,
    options: &LiveOptions,
    told: &mut Vec<String>,
) -> Result<Opened, Error> {
    let socket = open_socket(name)?;
    check_kind(name, socket.hardware_type())?;
    let ifindex = socket.ifindex();
    let card = Card { socket: &socket, name };
    check_tags(card)?;
    let mtu = Port::new(name, open_socket(name)?, false)?.mtu;
    let queue_count = card.receive_queues();
    let hook = Hook::attach(ifindex, queue_count);
    let hook = Arc::new(hook.map_err(|source| attach_error(name, source))?);
    if hook.mode == AttachMode::Generic && dedicated::may_lie_on_another(name) {
        return Err(Error::XdpLayered { name: name.to_owned() });
    }
    let mut opened = Opened { queues: Vec::new(), hook };
    let mut why_copied = None;
    for number in 0..queue_count {
        let mut opening = Opening { name, ifindex, number, mtu, told: &mut *told, options };
        let (receiver, reason) = opening.receiver(opened.hook.mode)?;
        why_copied = why_copied.or(reason);
        let set = opened.hook.set_socket(number, receiver.as_fd());
        set.map_err(|source| system(name, "setting a socket of the XDP program", source))?;
        opened.queues.push(Queue::new(place, number, receiver, Arc::clone(&opened.hook)));
    }
    tell(name, &opened, why_copied.as_ref(), told);
    if options.timestamps == Timestamps::Adapter {
        told.push(format!(
            "interface {name}: AF_XDP has no times of the adapter, the kernel's are used"
        ));
    }
    if splits_sessions(card) {
        told.push(format!(
            "interface {name} spreads packets over {queue_count} queues by a hash that may put \
             both directions of a session on two; ethtool -X {name} xfrm symmetric-xor"
        ));
    }
    Ok(opened)
}

/// Notes how packets reach the recorder, and why in no better way.
fn tell(name: &str, opened: &Opened, why_copied: Option<&io::Error>, told: &mut Vec<String>) {
    let way = match (opened.hook.mode, why_copied) {
        (AttachMode::Driver, None) => "zero-copy".to_owned(),
        (AttachMode::Driver, Some(error)) => {
            format!("by its driver, copied (no zero-copy: {error})")
        }
        (AttachMode::Generic, _) => {
            let error = opened.hook.why_generic.as_ref();
            let error = error.map_or_else(String::new, |error| format!(": {error}"));
            format!("in generic mode, copied (no driver mode{error})")
        }
    };
    let queues = opened.queues.len();
    told.push(format!(
        "interface {name}: AF_XDP on {queues} receive queue{}, {way}; the host does not see its \
         packets meanwhile",
        if queues == 1 { "" } else { "s" }
    ));
}

fn check_kind(name: &str, hardware_type: io::Result<Option<u16>>) -> Result<(), Error> {
    let name = || name.to_owned();
    match hardware_type {
        Ok(Some(libc::ARPHRD_ETHER)) => Ok(()),
        Ok(Some(known)) if link_type(known).is_some() => {
            Err(Error::NotEthernet { name: name(), hardware_type: known })
        }
        Ok(Some(hardware_type)) => Err(Error::HardwareType { name: name(), hardware_type }),
        Ok(None) => Err(Error::NoInterface { name: name() }),
        Err(source) => Err(system(&name(), "getsockname", source)),
    }
}

/// A tag that the card has taken out of a frame does not reach the program.
fn check_tags(card: Card<'_>) -> Result<(), Error> {
    // A pair of interfaces takes none out, whatever it says; what the other end never put in is
    // beyond this one.
    let is_lost = card.takes_tags_out() && card.driver().as_deref() != Some("veth");
    if is_lost { Err(Error::XdpTags { name: card.name.to_owned() }) } else { Ok(()) }
}

fn attach_error(name: &str, source: io::Error) -> Error {
    let name = name.to_owned();
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Error::XdpPermission { name },
        Some(libc::EBUSY) => Error::XdpTaken { name },
        _ => Error::System { name, operation: "attaching the XDP program", source },
    }
}

fn system(name: &str, operation: &'static str, source: io::Error) -> Error {
    Error::System { name: name.to_owned(), operation, source }
}

/// One socket that is being opened.
struct Opening<'a> {
    name: &'a str,
    ifindex: u32,
    number: u32,
    mtu: usize,
    options: &'a LiveOptions,
    told: &'a mut Vec<String>,
}

impl Opening<'_> {
    /// Without copying where that is possible; else the reason why not. In generic mode there is no
    /// driver to ask.
    fn receiver(&mut self, mode: AttachMode) -> Result<(Receiver, Option<io::Error>), Error> {
        let asked = match mode {
            AttachMode::Driver => self.with_memory(CopyMode::Zero).map_err(Some),
            AttachMode::Generic => Err(None),
        };
        let (receiver, reason) = match asked {
            Ok(receiver) => (receiver, None),
            Err(reason) => {
                let copied = self.with_memory(CopyMode::Copied);
                (copied.map_err(|source| self.error(source))?, reason)
            }
        };
        if let Some(time) = self.options.busy_poll {
            let asked = receiver.poll_busily(time);
            asked.map_err(|source| system(self.name, "SO_BUSY_POLL", source))?;
        }
        Ok((receiver, reason))
    }

    /// With as much memory as was wished for, or less where the kernel has not that much.
    fn with_memory(&mut self, mode: CopyMode) -> io::Result<Receiver> {
        let (chunk_bytes, is_whole) = chunk_for(self.mtu + LINK_HEADER_MAX);
        let binding =
            Binding { ifindex: self.ifindex, queue: self.number, mode, in_parts: !is_whole };
        let wished = self.options.ring_size;
        let size = usize::try_from(wished.0).unwrap_or(usize::MAX).max(FEWEST_CHUNKS * chunk_bytes);
        let (receiver, is_smaller) = halve_until(size, |size| {
            let chunks = size / chunk_bytes;
            // The kernel's rings are powers of two.
            let chunks = 1_u32 << chunks.max(FEWEST_CHUNKS).ilog2().min(30);
            Receiver::open(Umem::new(chunk_bytes, chunks)?, binding)
        })?;
        if is_smaller && self.number == 0 {
            let given = u64::try_from(receiver.umem().chunks_len()).unwrap_or(u64::MAX);
            self.told.push(format!(
                "interface {}: the kernel ring has {} instead of {wished}: memory is short",
                self.name,
                ByteSize(given)
            ));
        }
        Ok(receiver)
    }

    fn error(&self, source: io::Error) -> Error {
        let (_, is_whole) = chunk_for(self.mtu + LINK_HEADER_MAX);
        let name = self.name.to_owned();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Error::XdpPermission { name },
            Some(libc::EBUSY) => Error::XdpQueueTaken { name, queue: self.number },
            Some(libc::EINVAL | libc::EOPNOTSUPP) if !is_whole => {
                Error::XdpTooLong { name, mtu: self.mtu }
            }
            _ => Error::System { name, operation: "binding an AF_XDP socket", source },
        }
    }
}
