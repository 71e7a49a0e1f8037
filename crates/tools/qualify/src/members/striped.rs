//! Several members as one device, as a volume writes them: a stripe waits until all its columns
//! are there, is protected in one pass over memory, and goes to all members at once.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use device::{Buffer, Completion, Device, Error as DeviceError, Pool, ROW_SIZE, Shared};
use format::checksum::RowAddress;
use parity::Codec;
use units::{Epoch, Sequence};

use super::layout::Layout;
use super::protection::Protection;
use crate::error::Error;
use crate::number::{to_u64, to_usize};
use crate::stream::DEPTH;

/// Tokens of parity are above those of data.
const PARITY_TOKEN: u64 = 1 << 32;
/// The flush of a member: nothing else of it is under way then.
const FLUSH_TOKEN: u64 = u64::MAX;
/// Wait on one of several members before the others are looked at.
const LOOK: Duration = Duration::from_millis(1);
/// EOPNOTSUPP: what a device says that takes no discards.
const NOT_SUPPORTED: i32 = 95;
/// Where checksums believe to be: what they are computed from does not change what they cost.
const STRIPE: RowAddress = RowAddress { epoch: Epoch(1), sequence: Sequence(1), sub: 0, column: 0 };

/// Members side by side, with parity behind each stripe.
///
/// Each submitted write is a whole column; with protection they come stripe after stripe. A stripe
/// that no further write completes is written when nothing else is under way. An error of a member
/// comes out with the next completion, one of parity too, and at the latest with the flush.
#[derive(Debug)]
pub(super) struct Striped<'a, 'd> {
    members: Vec<&'a Mutex<&'d mut dyn Device>>,
    protection: Protection,
    layout: Layout,
    size_bytes: u64,
    codec: Codec,
    /// For parity; `None` where there is none.
    pool: Option<Pool>,
    /// Columns that wait for their stripe.
    waiting: VecDeque<Column>,
    /// Of parity columns so far: part of their tokens.
    parity_number: u64,
    completions: Vec<Completion>,
    failed: Option<DeviceError>,
    /// Submissions without a reaped completion.
    in_flight: usize,
    /// Which member was waited on.
    turn: usize,
}

/// A write that was submitted.
#[derive(Debug)]
struct Column {
    token: u64,
    offset: u64,
    data: Shared,
}

impl<'a, 'd> Striped<'a, 'd> {
    pub(super) fn new(
        members: Vec<&'a Mutex<&'d mut dyn Device>>,
        protection: Protection,
        (layout, size_bytes): (Layout, u64),
    ) -> Result<Self, Error> {
        let column_bytes = to_usize(layout.column_bytes);
        assert!(
            protection == Protection::None
                || (2 * ROW_SIZE..=512 * ROW_SIZE).contains(&column_bytes),
            "a protected column has 2 to 512 rows"
        );
        let buffers = DEPTH * protection.parity_columns();
        let pool = (buffers > 0).then(|| Pool::new(buffers, column_bytes)).transpose()?;
        Ok(Self {
            members,
            protection,
            layout,
            size_bytes,
            codec: Codec::new().map_err(|_| Error::NoCodec)?,
            pool,
            waiting: VecDeque::new(),
            parity_number: 0,
            completions: Vec::new(),
            failed: None,
            in_flight: 0,
            turn: 0,
        })
    }

    fn member(&self, at: usize) -> MutexGuard<'a, &'d mut dyn Device> {
        let member: &'a Mutex<_> = self.members.get(at).expect("a place lies on a member");
        stage::lock(member)
    }

    fn all(&self) -> impl Iterator<Item = MutexGuard<'a, &'d mut dyn Device>> {
        (0..self.members.len()).map(|at| self.member(at))
    }

    /// Members with something under way.
    fn busy(&self) -> Vec<usize> {
        (0..self.members.len()).filter(|at| self.member(*at).in_flight() > 0).collect()
    }

    /// Writes stripes that are whole, as long as there is memory for their parity. Where there is
    /// none, the slowest member sets the pace.
    fn write_whole_stripes(&mut self) {
        while self.waiting.len() >= self.layout.columns {
            let Some(parity) = self.parity_buffers() else { break };
            self.write_stripe(parity);
        }
    }

    /// What a run that was broken off leaves.
    fn write_the_rest(&mut self) {
        if !self.waiting.is_empty()
            && let Some(parity) = self.parity_buffers()
        {
            self.write_stripe(parity);
        }
    }

    /// All of a stripe, or none.
    fn parity_buffers(&self) -> Option<Vec<Buffer>> {
        let Some(pool) = &self.pool else { return Some(Vec::new()) };
        (0..self.protection.parity_columns()).map(|_| pool.take()).collect()
    }

    /// Protects the columns in front, and sends them and their parity to the members.
    fn write_stripe(&mut self, mut parity: Vec<Buffer>) {
        let columns = self.layout.columns.min(self.waiting.len());
        let columns: Vec<Column> = self.waiting.drain(..columns).collect();
        let stripe = columns.first().map_or(0, |first| first.offset);
        let len = to_usize(self.layout.column_bytes);
        let offsets = (stripe..).step_by(len);
        assert!(
            stripe.is_multiple_of(self.layout.column_bytes * to_u64(self.layout.columns))
                && columns.iter().map(|column| column.offset).eq(offsets.take(columns.len())),
            "columns come stripe after stripe"
        );
        self.protect(&columns, &mut parity);
        for column in columns {
            let (member, offset) = self.layout.place(column.offset);
            self.member(member).submit_write(column.token, offset, column.data, len);
        }
        let (_, offset) = self.layout.place(stripe);
        for (member, column) in (self.layout.columns..).zip(parity) {
            let token = PARITY_TOKEN + self.parity_number;
            self.parity_number += 1;
            self.member(member).submit_write(token, offset, column.freeze(), len);
        }
    }

    /// Checksums of everything behind the row of the head, and parity.
    fn protect(&self, columns: &[Column], parity: &mut [Buffer]) {
        let body = ROW_SIZE..to_usize(self.layout.column_bytes);
        let data: Vec<&[u8]> = columns
            .iter()
            .map(|column| column.data.get(body.clone()).expect("a write is a column"))
            .collect();
        let mut parity: Vec<&mut [u8]> = parity
            .iter_mut()
            .map(|column| column.get_mut(body.clone()).expect("parity is a column"))
            .collect();
        writer::protect(self.codec, STRIPE, &data, &mut parity);
    }

    /// Finished operations of all members; those of parity belong to no caller.
    fn collect(&mut self, wait: Option<Duration>) {
        let mut found = Vec::new();
        for mut member in self.all() {
            member.reap(None, &mut found);
        }
        let busy = self.busy();
        if let Some(wait) = wait.filter(|_| found.is_empty() && !busy.is_empty()) {
            // Members complete independently: wait on one in turn, shortly if there are others.
            self.turn = self.turn.wrapping_add(1) % busy.len();
            let wait = if busy.len() == 1 { wait } else { wait.min(LOOK) };
            let at = busy.get(self.turn).copied().expect("one of the busy ones");
            self.member(at).reap(Some(wait), &mut found);
        }
        for completion in found {
            if completion.token < PARITY_TOKEN {
                self.completions.push(completion);
            } else if let Err(error) = completion.result {
                self.failed.get_or_insert(error);
            }
        }
    }

    /// Until no member has anything under way.
    fn settle(&mut self) {
        loop {
            self.write_whole_stripes();
            if self.busy().is_empty() {
                self.write_the_rest();
            }
            if self.busy().is_empty() {
                break;
            }
            self.collect(Some(Duration::from_millis(100)));
        }
    }
}

impl Device for Striped<'_, '_> {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn submit_write(&mut self, token: u64, offset: u64, data: Shared, len: usize) {
        let column_bytes = self.layout.column_bytes;
        assert!(
            to_u64(len) == column_bytes && offset.is_multiple_of(column_bytes),
            "a write is a column"
        );
        assert!(offset + column_bytes <= self.size_bytes, "the write lies within the members");
        self.in_flight += 1;
        if self.protection == Protection::None {
            let (member, offset) = self.layout.place(offset);
            self.member(member).submit_write(token, offset, data, len);
        } else {
            self.waiting.push_back(Column { token, offset, data });
            self.write_whole_stripes();
        }
    }

    /// Done at once.
    fn submit_flush(&mut self, token: u64) {
        let result = self.flush();
        self.completions.push(Completion::new(token, result, 0));
        self.in_flight += 1;
    }

    /// Not taken: parity would not follow.
    fn submit_discard(&mut self, token: u64, offset: u64, _len: u64) {
        let result = Err(DeviceError::Io { operation: "discard", offset, errno: NOT_SUPPORTED });
        self.completions.push(Completion::new(token, result, 0));
        self.in_flight += 1;
    }

    /// Done at once.
    fn submit_read(&mut self, token: u64, offset: u64, len: usize) {
        let mut bytes = vec![0; len];
        let result = self.read_at(offset, &mut bytes);
        self.completions.push(Completion::of_read(token, result, (bytes, 0)));
        self.in_flight += 1;
    }

    fn reap(&mut self, wait: Option<Duration>, out: &mut Vec<Completion>) {
        self.write_whole_stripes();
        if self.busy().is_empty() {
            self.write_the_rest();
        }
        self.collect(wait.filter(|_| self.completions.is_empty()));
        if let Some(first) = self.completions.iter_mut().find(|one| one.result.is_ok())
            && let Some(error) = self.failed.take()
        {
            first.result = Err(error);
        }
        self.in_flight -= self.completions.len();
        out.append(&mut self.completions);
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let mut rest = into;
        for piece in self.layout.pieces(offset, rest.len()) {
            let (part, behind) = rest.split_at_mut(piece.len);
            self.member(piece.member).read_at(piece.offset, part)?;
            rest = behind;
        }
        Ok(())
    }

    /// Of data alone: parity does not follow.
    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        let mut rest = data;
        for piece in self.layout.pieces(offset, rest.len()) {
            let (part, behind) = rest.split_at(piece.len);
            self.member(piece.member).write_at(piece.offset, part)?;
            rest = behind;
        }
        Ok(())
    }

    /// Of all members at the same time, parity included.
    fn flush(&mut self) -> Result<(), DeviceError> {
        self.settle();
        for mut member in self.all() {
            member.submit_flush(FLUSH_TOKEN);
        }
        self.settle();
        self.failed.take().map_or(Ok(()), Err)
    }

    fn notes(&self) -> &[String] {
        &[]
    }
}
