//! An answer as it comes.

use core::future::poll_fn;
use core::pin::{Pin, pin};

use bytes::{Buf as _, Bytes};
use hyper::body::{Body as _, Incoming};
use hyper::header::HeaderMap;

use crate::Error;
use crate::asker::Asker;

/// A line has at most so many bytes: a session has names, and each of them is bounded.
const LINE_BYTES_MAX: usize = 16 << 20;
/// An id has at most so many characters.
const ID_LEN_MAX: usize = 64;

/// The bytes of an answer. Dropped, it ends the work for it at the service.
#[derive(Debug)]
pub struct Answer<'s> {
    asker: &'s Asker,
    body: Incoming,
    /// Received and not given out.
    rest: Bytes,
    /// Id under which the service remembers it.
    id: Option<String>,
    now_ns: Option<i64>,
    line_bytes_max: usize,
}

impl<'s> Answer<'s> {
    pub(crate) fn new(asker: &'s Asker, headers: &HeaderMap, body: Incoming) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let id = text("wirespool-answer");
        let is_id = |id: &&str| {
            id.len() <= ID_LEN_MAX && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        let id = id.filter(is_id).map(str::to_owned);
        let now_ns = text("wirespool-now").and_then(|text| text.parse().ok());
        let line_bytes_max = LINE_BYTES_MAX;
        Self { asker, body, rest: Bytes::new(), id, now_ns, line_bytes_max }
    }

    /// Id under which the service remembers it.
    ///
    /// # Errors
    /// When it has named none.
    pub fn id(&self) -> Result<&str, Error> {
        self.id.as_deref().ok_or_else(|| self.asker.unlike("its answer has no id"))
    }

    /// Lines are no longer than this.
    pub(crate) fn bound_lines(&mut self, bytes_max: Option<usize>) {
        self.line_bytes_max = bytes_max.unwrap_or(LINE_BYTES_MAX);
    }

    /// What relative times of its query count from, where the service has said so.
    pub fn now_ns(&self) -> Option<i64> {
        self.now_ns
    }

    /// The next bytes; `None` at the end, which the service has said.
    ///
    /// # Errors
    /// When there is no end: the connection broke, the service is silent, or the user has had
    /// enough.
    pub fn piece(&mut self) -> Result<Option<Bytes>, Error> {
        if !self.rest.is_empty() {
            return Ok(Some(core::mem::take(&mut self.rest)));
        }
        loop {
            let body = &mut self.body;
            let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
            let frame = self.asker.patiently(pin!(frame).as_mut())?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(self.asker.of_http(&error)),
                Some(Ok(frame)) => {
                    // What stands behind the last chunk is not asked for.
                    let Ok(bytes) = frame.into_data() else { continue };
                    if !bytes.is_empty() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }

    /// All of it, of so many bytes at most.
    ///
    /// # Errors
    /// When it is longer, or as [`Answer::piece`].
    pub fn whole(&mut self, bytes_max: usize) -> Result<Vec<u8>, Error> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.piece()? {
            if bytes.len() > bytes_max.saturating_sub(whole.len()) {
                return Err(self.asker.unlike(&format!("it says more than {bytes_max} bytes")));
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(whole)
    }

    /// The next line, without its end; `None` at the end. `line` is what it is read into.
    ///
    /// # Errors
    /// When it is too long, no UTF-8 or without an end, or as [`Answer::piece`].
    pub fn line<'l>(&mut self, line: &'l mut Vec<u8>) -> Result<Option<&'l str>, Error> {
        line.clear();
        loop {
            let Some(mut bytes) = self.piece()? else {
                let why = "its last line has no end";
                return if line.is_empty() { Ok(None) } else { Err(self.asker.unlike(why)) };
            };
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let count = end.unwrap_or(bytes.len());
            if count > self.line_bytes_max.saturating_sub(line.len()) {
                return Err(self.asker.unlike("one of its lines is too long"));
            }
            line.extend_from_slice(bytes.get(..count).unwrap_or_default());
            if end.is_some() {
                bytes.advance(count.saturating_add(1));
                self.rest = bytes;
                let no_text = |_| self.asker.unlike("one of its lines is no UTF-8");
                return core::str::from_utf8(line).map(Some).map_err(no_text);
            }
        }
    }
}
