//! What goes back to a client: a text that is ready, or bytes as a worker writes them.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use tokio::sync::mpsc::Receiver;

use crate::busy::Busy;
use crate::log::Entry;
use crate::trail::Outcome;

/// An answer on its way.
pub(crate) type Reply = hyper::Response<Body>;

/// The bytes of an answer. Its line in the log is written when it is dropped.
#[derive(Debug)]
pub(crate) struct Body {
    bytes: Source,
    entry: Option<Entry>,
    /// How a stream ends.
    outcome: Option<Arc<Outcome>>,
    /// Its connection is not idle.
    _busy: Option<Busy>,
}

#[derive(Debug)]
enum Source {
    Ready(Option<Bytes>),
    /// An error breaks the connection off: the client sees that the answer is not whole.
    Stream(Receiver<io::Result<Bytes>>),
}

impl Body {
    pub(crate) fn text(text: impl Into<Bytes>) -> Self {
        let bytes = Source::Ready(Some(text.into()));
        Self { bytes, entry: None, outcome: None, _busy: None }
    }

    pub(crate) fn stream(receiver: Receiver<io::Result<Bytes>>, outcome: Arc<Outcome>) -> Self {
        let bytes = Source::Stream(receiver);
        Self { bytes, entry: None, outcome: Some(outcome), _busy: None }
    }

    /// The same, with a line in the log at its end.
    pub(crate) fn logged(mut self, mut entry: Entry) -> Self {
        self.outcome.take().into_iter().for_each(|outcome| entry.ends_as(outcome));
        Self { entry: Some(entry), ..self }
    }

    /// How many bytes it has, where that is known.
    pub(crate) fn ready_bytes(&self) -> Option<u64> {
        match &self.bytes {
            Source::Ready(bytes) => {
                Some(units::number::to_u64(bytes.as_ref().map_or(0, Bytes::len)))
            }
            Source::Stream(_) => None,
        }
    }

    pub(crate) fn keeping(self, busy: Busy) -> Self {
        Self { _busy: Some(busy), ..self }
    }
}

/// An answer of this type.
pub(crate) fn reply(media_type: &'static str, body: Body) -> Reply {
    let mut reply = hyper::Response::new(body);
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    reply
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let body = self.get_mut();
        let next = match &mut body.bytes {
            Source::Ready(bytes) => bytes.take().map(Ok),
            Source::Stream(receiver) => match receiver.poll_recv(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(next) => next,
            },
        };
        if let Some(entry) = &mut body.entry {
            match &next {
                Some(Ok(bytes)) => entry.add_bytes(bytes.len()),
                Some(Err(_)) => {}
                None => entry.end(),
            }
            // Of what was ready no end is asked for.
            if matches!(body.bytes, Source::Ready(None)) {
                entry.end();
            }
        }
        Poll::Ready(next.map(|bytes| bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.bytes, Source::Ready(None))
    }

    fn size_hint(&self) -> SizeHint {
        self.ready_bytes().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
