//! From records of the kernel to requests with their times.
//!
//! A request is known by its disk and where it begins. Those that were made and then joined to
//! another before they went to the disk lie within it: the earliest of them is when it began to
//! wait. What began before the watch has no such time.
//!
//! Records may be missing. A disk has one request for a place at a time: another one that is sent
//! there ends the one before, whose end was not seen, so that no times are made up.

use std::collections::{BTreeMap, VecDeque};

use host::DeviceNumber;
use observe::tracepoints::{BlockRequest, Happened, Operation, Purpose, TraceEvent};

/// A request that the disk has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The whole disk.
    pub disk: DeviceNumber,
    /// First byte on it.
    pub begin: u64,
    /// Its bytes; of a flush 0.
    pub bytes: u64,
    /// What the request was for.
    pub purpose: Purpose,
    /// Who asked, or where that was not seen, who ran when it went to the disk.
    pub process: u32,
    /// Thread id.
    pub thread: u32,
    /// When it was made; `None` where that was not seen.
    pub queued_ns: Option<u64>,
    /// When it went to the disk.
    pub issued_ns: u64,
    /// When the disk had done it.
    pub done_ns: u64,
    /// Requests that the disk had then, with this one.
    pub under_way: u32,
}

impl Request {
    /// Nanoseconds that it waited before it went to the disk.
    pub fn queue_ns(&self) -> Option<u64> {
        Some(self.issued_ns.saturating_sub(self.queued_ns?))
    }

    /// Nanoseconds that the disk took.
    pub fn device_ns(&self) -> u64 {
        self.done_ns.saturating_sub(self.issued_ns)
    }

    /// Both together, as far as it was seen.
    pub fn total_ns(&self) -> u64 {
        self.done_ns.saturating_sub(self.queued_ns.unwrap_or(self.issued_ns))
    }

    /// The byte behind it.
    pub fn end(&self) -> u64 {
        self.begin.saturating_add(self.bytes)
    }
}

/// Where a request begins; flushes without data are at the end.
type Place = (DeviceNumber, u64);

/// A request that was made.
#[derive(Clone, Copy, Debug)]
struct Made {
    operation: Operation,
    process: u32,
    thread: u32,
    at_ns: u64,
}

/// A request at the disk.
#[derive(Clone, Copy, Debug)]
struct Sent {
    request: BlockRequest,
    made: Option<Made>,
    process: u32,
    thread: u32,
    at_ns: u64,
    under_way: u32,
}

/// Puts the records of a request together.
#[derive(Debug, Default)]
pub(super) struct Requests {
    made: BTreeMap<Place, VecDeque<Made>>,
    sent: BTreeMap<Place, Sent>,
    under_way: BTreeMap<DeviceNumber, u32>,
    /// Ends of what was sent before the watch, and requests of which a record is missing.
    unmatched: u64,
}

/// Of requests that were made; those that are joined to others without lying in them stay.
const MADE_MAX: usize = 1 << 16;
/// Flushes have no place.
const NOWHERE: u64 = u64::MAX;

impl Requests {
    /// Takes the next record in, in the order of time; gives the request that it ends.
    pub(super) fn take(&mut self, event: &TraceEvent) -> Option<Request> {
        match event.happened {
            Happened::Queued(request) => self.queued(event, request),
            Happened::Issued(request) => self.issued(event, request),
            Happened::Requeued(request) => self.requeued(request),
            Happened::Completed(request) => return self.completed(event, request),
            _ => {}
        }
        None
    }

    /// Requests whose beginning or end was not seen.
    pub(super) fn unmatched(&self) -> u64 {
        self.unmatched
    }

    fn queued(&mut self, event: &TraceEvent, request: BlockRequest) {
        if self.made.len() >= MADE_MAX {
            self.made.clear();
        }
        let made = Made {
            operation: request.purpose.operation,
            process: event.process,
            thread: event.thread,
            at_ns: event.time_ns,
        };
        self.made.entry(place(&request)).or_default().push_back(made);
    }

    fn issued(&mut self, event: &TraceEvent, request: BlockRequest) {
        let made = self.made_of(&request);
        self.unmatched += u64::from(self.unsend(&request).is_some());
        let under_way = self.under_way.entry(request.device).or_default();
        *under_way += 1;
        let sent = Sent {
            request,
            made,
            process: event.process,
            thread: event.thread,
            at_ns: event.time_ns,
            under_way: *under_way,
        };
        self.sent.insert(place(&request), sent);
    }

    /// Takes those that lie within a request; the earliest of them made it.
    fn made_of(&mut self, request: &BlockRequest) -> Option<Made> {
        let (device, first) = place(request);
        let last = match first {
            NOWHERE => NOWHERE,
            first => first.saturating_add(u64::from(request.sectors).max(1) - 1),
        };
        let places: Vec<Place> =
            self.made.range((device, first)..=(device, last)).map(|(place, _)| *place).collect();
        let mut earliest: Option<Made> = None;
        for place in places {
            let Some(waiting) = self.made.get_mut(&place) else { continue };
            let is_of = |made: &Made| made.operation == request.purpose.operation;
            // Flushes are joined: one of the disk ends all that wait.
            let is_flush = first == NOWHERE;
            while let Some(made) = waiting.front().copied().filter(|made| is_flush || is_of(made)) {
                waiting.pop_front();
                earliest = Some(earliest.filter(|known| known.at_ns <= made.at_ns).unwrap_or(made));
                if !is_flush && place.1 == first {
                    break;
                }
            }
            if waiting.is_empty() {
                self.made.remove(&place);
            }
        }
        earliest
    }

    /// It waits again, from when it was made.
    fn requeued(&mut self, request: BlockRequest) {
        let Some(sent) = self.unsend(&request) else { return };
        let made = sent.made.unwrap_or(Made {
            operation: request.purpose.operation,
            process: sent.process,
            thread: sent.thread,
            at_ns: sent.at_ns,
        });
        self.made.entry(place(&request)).or_default().push_front(made);
    }

    fn completed(&mut self, event: &TraceEvent, request: BlockRequest) -> Option<Request> {
        // A write without data ends when the flush has that was sent for it.
        if request.sectors == 0 && request.purpose.operation != Operation::Flush {
            return None;
        }
        let Some(sent) = self.unsend(&request) else {
            self.unmatched += 1;
            return None;
        };
        let BlockRequest { device, sector, sectors, purpose } = sent.request;
        let (process, thread) =
            sent.made.map_or((sent.process, sent.thread), |made| (made.process, made.thread));
        Some(Request {
            disk: device,
            begin: sector.saturating_mul(512),
            bytes: sent.request.bytes(),
            purpose: if sectors == 0 { flush(purpose) } else { purpose },
            process,
            thread,
            queued_ns: sent.made.map(|made| made.at_ns),
            issued_ns: sent.at_ns,
            done_ns: event.time_ns,
            under_way: sent.under_way,
        })
    }

    fn unsend(&mut self, request: &BlockRequest) -> Option<Sent> {
        let sent = self.sent.remove(&place(request))?;
        if let Some(under_way) = self.under_way.get_mut(&request.device) {
            *under_way = under_way.saturating_sub(1);
        }
        Some(sent)
    }
}

fn place(request: &BlockRequest) -> Place {
    (request.device, if request.sectors == 0 { NOWHERE } else { request.sector })
}

fn flush(purpose: Purpose) -> Purpose {
    Purpose { operation: Operation::Flush, ..purpose }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(sector: u64, sectors: u32, operation: Operation) -> BlockRequest {
        let purpose =
            Purpose { operation, is_readahead: false, is_metadata: false, is_sync: false };
        BlockRequest { device: DeviceNumber { major: 8, minor: 0 }, sector, sectors, purpose }
    }

    fn at(time_ns: u64, process: u32, happened: Happened) -> TraceEvent {
        TraceEvent { time_ns, process, thread: process, happened }
    }

    fn ended(events: &[TraceEvent]) -> (Vec<Request>, u64) {
        let mut requests = Requests::default();
        let ended = events.iter().filter_map(|event| requests.take(event)).collect();
        (ended, requests.unmatched())
    }

    const WRITE: Operation = Operation::Write;

    #[test]
    fn a_request_waits_in_the_queue_and_then_at_the_disk() {
        let write = request(64, 8, WRITE);
        let (ended, _) = ended(&[
            at(10, 7, Happened::Queued(write)),
            at(30, 1, Happened::Issued(write)),
            at(100, 0, Happened::Completed(write)),
        ]);
        let [one] = ended[..] else { panic!("{ended:?}") };
        assert_eq!((one.begin, one.bytes, one.process), (32_768, 4096, 7));
        assert_eq!((one.queue_ns(), one.device_ns(), one.total_ns()), (Some(20), 70, 90));
        assert_eq!(one.under_way, 1);
    }

    #[test]
    fn requests_that_are_joined_wait_from_the_first_of_them() {
        let (front, back, whole) =
            (request(64, 8, WRITE), request(72, 8, WRITE), request(64, 16, WRITE));
        let (ended, _) = ended(&[
            at(5, 9, Happened::Queued(back)),
            at(10, 7, Happened::Queued(front)),
            at(30, 1, Happened::Issued(whole)),
            at(100, 0, Happened::Completed(whole)),
            // Nothing of them is left for another request to the same place.
            at(200, 3, Happened::Issued(back)),
            at(210, 0, Happened::Completed(back)),
        ]);
        assert_eq!((ended[0].process, ended[0].queue_ns()), (9, Some(25)));
        assert_eq!((ended[1].process, ended[1].queue_ns()), (3, None));
    }

    #[test]
    fn a_request_that_is_put_back_still_waits_from_its_beginning() {
        let write = request(64, 8, WRITE);
        let (ended, _) = ended(&[
            at(10, 7, Happened::Queued(write)),
            at(20, 1, Happened::Issued(write)),
            at(25, 1, Happened::Requeued(write)),
            at(40, 1, Happened::Issued(write)),
            at(50, 0, Happened::Completed(write)),
        ]);
        assert_eq!((ended[0].queue_ns(), ended[0].device_ns()), (Some(30), 10));
        assert_eq!((ended.len(), ended[0].under_way), (1, 1));
    }

    #[test]
    fn what_began_before_the_watch_is_counted_and_no_request() {
        let read = request(8, 8, Operation::Read);
        let (ended, unmatched) = ended(&[at(1, 0, Happened::Completed(read))]);
        assert_eq!((ended.len(), unmatched), (0, 1));
    }

    #[test]
    fn a_request_whose_end_is_missing_gives_no_time_to_the_next() {
        let read = request(8, 8, Operation::Read);
        let (ended, unmatched) = ended(&[
            at(10, 7, Happened::Issued(read)),
            at(1_000_000, 7, Happened::Issued(read)),
            at(1_000_050, 0, Happened::Completed(read)),
        ]);
        assert_eq!((ended.len(), unmatched), (1, 1));
        assert_eq!((ended[0].device_ns(), ended[0].under_way), (50, 1));
    }

    #[test]
    fn one_flush_of_the_disk_ends_those_of_several_processes() {
        let (asked, sent) = (request(0, 0, WRITE), request(0, 0, Operation::Flush));
        let (ended, unmatched) = ended(&[
            at(10, 7, Happened::Queued(asked)),
            at(12, 8, Happened::Queued(asked)),
            at(20, 1, Happened::Issued(sent)),
            at(90, 0, Happened::Completed(sent)),
            at(91, 0, Happened::Completed(asked)),
            at(91, 0, Happened::Completed(asked)),
        ]);
        assert_eq!((ended.len(), unmatched), (1, 0));
        assert_eq!((ended[0].process, ended[0].queue_ns()), (7, Some(10)));
        assert_eq!(ended[0].purpose.operation, Operation::Flush);
    }
}
