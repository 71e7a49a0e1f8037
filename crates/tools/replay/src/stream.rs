//! Reads on while senders send: for inputs that are larger than the memory given.

use core::num::NonZeroU64;
use std::sync::mpsc::SyncSender;

use crate::frames::Chunk;
use crate::options::Input;
use crate::reader::{Read, Reader, Step};
use crate::sender::Shared;

/// A chunk on its way to its sender.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) chunk: Chunk,
    pub(crate) loop_number: u64,
    /// The place where that loop begins.
    pub(crate) base: u64,
}

/// The life of the reading thread.
pub(crate) struct Stream<'a> {
    /// What was read already, by sender.
    pub(crate) first: Vec<Vec<Chunk>>,
    pub(crate) reader: Reader,
    pub(crate) input: Input<'a>,
    pub(crate) senders: Vec<SyncSender<Piece>>,
    pub(crate) loops: Option<NonZeroU64>,
    pub(crate) shared: &'a Shared,
}

/// Hands pieces of one loop to senders; a sender that has ended takes none.
struct Hand<'a> {
    senders: &'a [SyncSender<Piece>],
    loop_number: u64,
    base: u64,
    is_refused: bool,
}

impl Hand<'_> {
    fn over(&mut self, number: usize, chunk: Chunk) {
        let Self { loop_number, base, .. } = *self;
        let sender = self.senders.get(number).expect("the number is that of a sender");
        self.is_refused |= sender.send(Piece { chunk, loop_number, base }).is_err();
    }
}

impl Stream<'_> {
    /// Reads until all loops are read or no thread sends any more.
    pub(crate) fn run(mut self: Box<Self>) -> Read {
        let (mut loop_number, mut base) = (0, 0);
        let mut first_read: Option<Read> = None;
        loop {
            let senders = &self.senders;
            let mut hand = Hand { senders, loop_number, base, is_refused: false };
            // In turns, as they were read: a sender whose queue is full must not keep the others
            // from theirs.
            let mut ready: Vec<_> = self.first.drain(..).map(Vec::into_iter).collect();
            while ready.iter().any(|chunks| chunks.len() > 0) {
                for (number, chunks) in ready.iter_mut().enumerate() {
                    chunks.next().into_iter().for_each(|chunk| hand.over(number, chunk));
                }
            }
            let is_whole = read_loop(&mut self.reader, &mut hand, self.shared);
            base += self.reader.end();
            loop_number += 1;
            let is_last = self.loops.is_some_and(|loops| loop_number >= loops.get());
            let rules = self.reader.rules();
            let mut read = self.reader.finish();
            let broken_off = core::mem::take(&mut read.broken_off);
            let total = first_read.get_or_insert(read);
            total.broken_off.extend(broken_off);
            // An empty input would be read again and again without anything to send.
            if !is_whole || is_last || total.packets == 0 {
                return first_read.unwrap_or_default();
            }
            match (self.input.open)() {
                Ok(source) => self.reader = Reader::new(source, rules),
                Err(error) => {
                    total.broken_off.push(error.to_string());
                    return first_read.unwrap_or_default();
                }
            }
        }
    }
}

/// Reads a loop to its end; false where it was left before.
fn read_loop(reader: &mut Reader, hand: &mut Hand<'_>, shared: &Shared) -> bool {
    while !shared.is_stopped() && !hand.is_refused {
        let step = reader.step(&mut |number, chunk| hand.over(number, chunk));
        if step != Step::Packets {
            reader.flush(&mut |number, chunk| hand.over(number, chunk));
        }
        if step == Step::End {
            return true;
        }
    }
    false
}
