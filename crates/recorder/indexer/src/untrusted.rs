//! Entry points for what one process sends the other, as fuzz targets and their replay call them.

use crate::message::{Answer, Begin, FRAME_BYTES, Request, frame_head};

/// Reads frames one behind the other, as either side does; gives how many were read.
///
/// # Panics
/// When a frame that was read says something else once it is written again.
pub fn frames(mut bytes: &[u8]) -> usize {
    let mut read = 0;
    while let Some((head, rest)) = bytes.split_first_chunk::<FRAME_BYTES>() {
        let (length, kind) = frame_head(*head);
        let Some((content, behind)) = rest.split_at_checked(length) else { break };
        bytes = behind;
        let mut again = Vec::new();
        if let Ok(begin) = Begin::decode(kind, content) {
            begin.encode(&mut again);
        } else if let Ok(request) = Request::decode(kind, content) {
            request.encode(&mut again);
        } else if let Ok(answer) = Answer::decode(kind, content) {
            answer.encode(&mut again);
            let content = again.get(FRAME_BYTES..).unwrap_or_default();
            assert_eq!(Answer::decode(kind, content), Ok(answer), "an answer survives");
        } else {
            continue;
        }
        assert!(!again.is_empty(), "what was read can be written");
        read += 1;
    }
    read
}

#[cfg(test)]
mod tests;
