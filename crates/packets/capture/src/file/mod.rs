//! Capture files as a source: pcap, pcapng, snoop and Stenographer's packet files, as they are or
//! compressed by gzip or zstd; one file, all captures in a
//! directory, or standard input.
//!
//! Files are read forward once, never mapped and never sought, so that a pipe works like a file and
//! a file that is cut while it is read is an error, not a signal. Every packet before a damaged
//! place is handed out; the error then names the place. Memory is the read buffer of 256 KiB, or
//! one block (16 MiB at most) where that is larger.
//!
//! A call takes a few steps at most, whatever a file or a pipe gives, so that the caller can
//! stop: a file of blocks without packets, a directory of files that are no captures and a pipe
//! that gives a byte at a time are idle in between.

mod input;
mod intake;
mod options;
mod pcap;
mod pcapng;
mod ready;
mod snoop;
mod stenotype;
mod unpack;

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use format::pcapng::block_type;
use rustix::fs::OFlags;

use crate::{Batch, Counters, Damage, Error, Interface, Next, Source};
use input::{Filled, Input};
use intake::{Intake, Parsed, Refused, Stop};
pub use options::FileOptions;
use unpack::Compression;

/// The most memory that reading files takes, one after the other: the window of what is unpacked, a
/// packet, and what is known of interfaces, with buffers.
pub const FILE_BYTES_MAX: usize =
    unpack::WINDOW_BYTES_MAX + intake::PACKET_BYTES_MAX + OTHER_BYTES_MAX;
const OTHER_BYTES_MAX: usize = 32 << 20;

/// Files opened, buffers parsed and filled within one call, at most. A block of 16 MiB takes seven,
/// for the buffer doubles.
const STEPS_MAX: usize = 16;

/// Reads captures from files.
#[derive(Debug)]
pub struct FileSource {
    /// Files and directories, in the order of their paths.
    waiting: VecDeque<PathBuf>,
    /// A file of a directory that is no capture is passed over; one that was named is an error.
    is_directory: bool,
    /// Files of it that were opened and are captures, as far as is known.
    captures: u64,
    open: Option<Open>,
    intake: Intake,
    buffer: Vec<u8>,
    /// What was not read to its end when the stop came, until it is reported.
    unread: Option<PathBuf>,
}

/// The file under way.
#[derive(Debug)]
struct Open {
    path: PathBuf,
    input: Input,
    parser: Parser,
    /// Bytes that the batch handed out last still borrows.
    lent: usize,
}

#[derive(Debug)]
enum Parser {
    /// The first bytes have not been seen yet.
    Unknown,
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
    Snoop(snoop::Snoop),
    Stenotype(stenotype::Stenotype),
}

/// What one step came to; the packets themselves stay in the buffer.
enum Step {
    Packets,
    Block(Vec<u8>),
    Idle,
    End,
}

impl FileSource {
    /// A source of the capture at `path`: a file, `-` for standard input, or a directory, whose
    /// captures are read in the order of their paths, those of its directories included.
    pub fn open(path: &Path, options: FileOptions) -> Result<Self, Error> {
        let mut source = Self {
            waiting: VecDeque::new(),
            is_directory: false,
            captures: 0,
            open: None,
            intake: Intake::new(options)?,
            buffer: Vec::new(),
            unread: None,
        };
        if path == Path::new("-") {
            let path = PathBuf::from("standard input");
            let stdin = io::stdin().as_fd().try_clone_to_owned();
            let file = stdin.map_err(|source| Error::Read { path: path.clone(), source })?;
            source.start(path, file.into())?;
            return Ok(source);
        }
        let metadata = fs::metadata(path).map_err(read_error(path))?;
        if metadata.is_dir() {
            source.is_directory = true;
            source.enter(path)?;
        } else {
            source.open_file(path)?;
        }
        Ok(source)
    }

    /// Opens a file; a pipe without blocking, whose writer may come later or never.
    #[expect(clippy::disallowed_methods, reason = "this crate opens capture files")]
    fn open_file(&mut self, path: &Path) -> Result<(), Error> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
        self.start(path.to_owned(), file.map_err(read_error(path))?)
    }

    /// Puts what is in a directory in front of what waits. Links to directories are not followed,
    /// and hidden files are left out: a program is still writing them.
    fn enter(&mut self, directory: &Path) -> Result<(), Error> {
        let mut found = Vec::new();
        for entry in fs::read_dir(directory).map_err(read_error(directory))? {
            let path = entry.map_err(read_error(directory))?.path();
            let name = path.file_name().map(OsStr::as_encoded_bytes).unwrap_or_default();
            if !name.starts_with(b".") {
                found.push(path);
            }
        }
        found.sort_unstable_by(|left, right| right.cmp(left));
        for path in found {
            self.waiting.push_front(path);
        }
        Ok(())
    }

    /// Opens the next file, or lists the next directory.
    fn advance(&mut self, path: &Path) -> Result<(), Error> {
        if self.is_directory {
            let kind = fs::symlink_metadata(path).map_err(read_error(path))?.file_type();
            if kind.is_dir() {
                return self.enter(path);
            }
            if !path.is_file() {
                return Ok(());
            }
        }
        self.open_file(path)
    }

    /// Nothing is left to read.
    fn end(&mut self) {
        // Where so many files were passed over that not all are named, that says it.
        if self.is_directory && self.captures == 0 && self.intake.has_space() {
            self.intake.note(|| "no capture is in the directory that was to be read".to_owned());
            // Once.
            self.is_directory = false;
        }
        self.intake.end_notes();
    }

    fn start(&mut self, path: PathBuf, file: File) -> Result<(), Error> {
        let buffer = mem::take(&mut self.buffer);
        let input = Input::new(file, buffer).map_err(read_error(&path))?;
        self.intake.path.clone_from(&path);
        self.captures += 1;
        self.open = Some(Open { path, input, parser: Parser::Unknown, lent: 0 });
        Ok(())
    }

    /// Reads on until there is something to hand out, or enough was done for one call.
    fn step(&mut self, wait: Duration) -> Result<Step, Error> {
        self.intake.clear();
        if let Some(path) = self.unread.take() {
            return Err(Error::Stopped { path });
        }
        let mut wait = wait;
        for _ in 0..STEPS_MAX {
            let Some(open) = &mut self.open else {
                let Some(path) = self.waiting.pop_front() else {
                    self.end();
                    return Ok(Step::End);
                };
                self.advance(&path)?;
                continue;
            };
            open.input.consume(mem::take(&mut open.lent));
            let Parsed { consumed, stop } = open.parse(&mut self.intake);
            if !self.intake.records.is_empty() {
                open.lent = consumed;
                return Ok(Step::Packets);
            }
            open.input.consume(consumed);
            match stop {
                Stop::HandOut => {}
                Stop::Block(block) => return Ok(Step::Block(block)),
                Stop::Refused(refused) => self.refuse(refused)?,
                Stop::More { what, needed } => match open.input.fill(needed, wait) {
                    // All that was read so far may have been refused by the filter.
                    Ok(Filled::Some) if consumed > 0 => return Ok(Step::Idle),
                    // The call has waited once: the rest of a block may be long in coming.
                    Ok(Filled::Some) => wait = Duration::ZERO,
                    Ok(Filled::Nothing) => return Ok(Step::Idle),
                    Ok(Filled::End) => self.end_file(what, needed)?,
                    Err(error) => {
                        let path = mem::take(&mut open.path);
                        // It would say so for ever.
                        self.open = None;
                        return Err(read_error(&path)(error));
                    }
                },
            }
        }
        Ok(Step::Idle)
    }

    /// Leaves the file at its end, which is damage unless a record, or a header, ends there.
    fn end_file(&mut self, what: &'static str, needed: usize) -> Result<(), Error> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        if let Parser::Pcapng(pcapng) = &mut open.parser {
            pcapng.end_section(&mut self.intake);
        }
        let (present, offset) = (open.input.bytes().len(), open.input.offset());
        self.buffer = open.input.into_buffer();
        let wide = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
        let damage = match open.parser {
            Parser::Unknown if present == 0 => Damage::Empty,
            _ if present == 0 => return Ok(()),
            _ => Damage::CutShort { what, present: wide(present), needed: wide(needed) },
        };
        Err(Error::Damaged { path: open.path, offset, damage })
    }

    /// Gives up the file under way.
    fn refuse(&mut self, refused: Refused) -> Result<(), Error> {
        let open = self.open.take().expect("only an open file is read");
        match refused {
            Refused::Error(Error::NotACapture { path, .. }) if self.is_directory => {
                self.captures -= 1;
                self.intake.note(|| format!("{}: passed over, not a capture", path.display()));
                Ok(())
            }
            // Its link type is one for which the expression means nothing; of others it does.
            Refused::Error(Error::Filter(filters::Error::Wrong { expression, message })) => {
                let message = format!("{message}: {}", open.path.display());
                Err(filters::Error::Wrong { expression, message }.into())
            }
            Refused::Error(error) => Err(error),
            Refused::Damage(damage) => {
                Err(Error::Damaged { path: open.path, offset: open.input.offset(), damage })
            }
        }
    }
}

impl Open {
    /// Whether there is more than was handed out. A pipe goes on as long as its writer does, so
    /// that a stop is how it ends.
    fn has_rest(&self) -> bool {
        !self.input.waits() && (self.input.bytes().len() > self.lent || !self.input.is_at_end())
    }

    /// Parses what is buffered.
    fn parse(&mut self, intake: &mut Intake) -> Parsed {
        let bytes = self.input.bytes();
        match &mut self.parser {
            Parser::Pcap(pcap) => pcap.parse(bytes, intake),
            Parser::Pcapng(pcapng) => pcapng.parse(bytes, intake),
            Parser::Snoop(snoop) => snoop.parse(bytes, intake),
            Parser::Stenotype(stenotype) => stenotype.parse(bytes, intake),
            Parser::Unknown => self.recognize(intake),
        }
    }

    /// Finds out the format by the file's first bytes.
    fn recognize(&mut self, intake: &mut Intake) -> Parsed {
        const HEADER: &str = "the file header";
        let bytes = self.input.bytes();
        let Some(&magic) = bytes.first_chunk::<4>() else { return Parsed::more(0, HEADER, 4) };
        let consumed = if magic == block_type::SECTION_HEADER.to_le_bytes() {
            self.parser = Parser::Pcapng(pcapng::Pcapng::new());
            0
        } else if let Some(form) = pcap::recognize(magic) {
            match pcap::Pcap::start(form, bytes, intake) {
                Ok(Some((pcap, consumed))) => {
                    self.parser = Parser::Pcap(pcap);
                    consumed
                }
                Ok(None) => return Parsed::more(0, HEADER, pcap::FILE_HEADER_SIZE),
                Err(refused) => return Parsed::refused(0, refused),
            }
        } else if snoop::recognize(magic) {
            match snoop::Snoop::start(bytes, intake) {
                Ok(Some((snoop, consumed))) => {
                    self.parser = Parser::Snoop(snoop);
                    consumed
                }
                Ok(None) => return Parsed::more(0, HEADER, snoop::FILE_HEADER_SIZE),
                Err(refused) => return Parsed::refused(0, refused),
            }
        } else if stenotype::recognize(magic) {
            const BLOCK_HEADER: usize = 48;
            if bytes.len() < BLOCK_HEADER {
                return Parsed::more(0, HEADER, BLOCK_HEADER);
            }
            match stenotype::Stenotype::start(bytes, intake) {
                Ok(Some(stenotype)) => self.parser = Parser::Stenotype(stenotype),
                Ok(None) => {
                    let (path, hint) = (self.path.clone(), "");
                    return Parsed::refused(0, Error::NotACapture { path, hint });
                }
                Err(refused) => return Parsed::refused(0, refused),
            }
            0
        } else if let Some(compression) = Compression::recognize(magic) {
            return self.unpack(compression);
        } else {
            return Parsed::refused(0, Error::NotACapture { path: self.path.clone(), hint: "" });
        };
        Parsed { consumed, stop: Stop::HandOut }
    }

    /// Goes on with what the file holds.
    fn unpack(&mut self, compression: Compression) -> Parsed {
        match self.input.unpack(compression) {
            Ok(true) => Parsed::more(0, "the file header", 4),
            Ok(false) => {
                let (path, hint) = (self.path.clone(), ", but compressed twice");
                Parsed::refused(0, Error::NotACapture { path, hint })
            }
            Err(error) => Parsed::refused(0, read_error(&self.path)(error)),
        }
    }
}

impl Source for FileSource {
    fn interfaces(&self) -> &[Interface] {
        &self.intake.interfaces
    }

    fn next_batch(&mut self, wait: Duration) -> Result<Next<'_>, Error> {
        Ok(match self.step(wait)? {
            Step::Packets => {
                let open = self.open.as_ref().expect("packets come from an open file");
                let Intake { interfaces, options, records, .. } = &self.intake;
                Next::Packets(Batch::new(interfaces, open.input.bytes(), options, records))
            }
            Step::Block(block) => Next::Block(block),
            Step::Idle => Next::Idle,
            Step::End => Next::End,
        })
    }

    fn counters(&mut self) -> Vec<Counters> {
        self.intake.counters()
    }

    fn notes(&mut self) -> Vec<String> {
        self.intake.take_notes()
    }

    fn begin_stop(&mut self) {
        let cut = self.open.take().filter(Open::has_rest).map(|open| open.path);
        self.unread = cut.or_else(|| self.waiting.front().cloned());
        self.waiting.clear();
    }
}

fn read_error(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    |source| Error::Read { path, source }
}
