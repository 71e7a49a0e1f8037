//! The files of the page, which are built in `web/` and held in the program.

use std::io::Write as _;
use std::sync::OnceLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, ETAG, HeaderMap,
    HeaderValue, IF_NONE_MATCH, VARY,
};
use hyper::{Method, StatusCode};
use sha2::{Digest as _, Sha256};

use crate::body::{Body, Reply, reply};
use crate::problem::Problem;

/// Nothing comes from elsewhere, nothing goes elsewhere, and no page of another origin frames this.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// A file of the page.
#[derive(Debug)]
pub(crate) struct File {
    path: &'static str,
    media_type: &'static str,
    bytes: &'static [u8],
    plain: OnceLock<Form>,
    /// By gzip: all text, so a third of it.
    compressed: OnceLock<Form>,
}

/// A file as it is sent.
#[derive(Debug)]
struct Form {
    bytes: Bytes,
    /// Another one for each form.
    tag: HeaderValue,
}

impl Form {
    fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let text = format!("\"{}\"", units::hex(&Sha256::digest(&bytes)));
        Self { tag: HeaderValue::try_from(text).expect("hex digits and quotes"), bytes }
    }
}

const fn built(path: &'static str, media_type: &'static str, bytes: &'static [u8]) -> File {
    File { path, media_type, bytes, plain: OnceLock::new(), compressed: OnceLock::new() }
}

static FILES: [File; 4] = [
    built("/", "text/html; charset=utf-8", include_bytes!("../../../../web/dist/index.html")),
    built("/app.js", "text/javascript", include_bytes!("../../../../web/dist/app.js")),
    built("/app.css", "text/css", include_bytes!("../../../../web/dist/app.css")),
    built("/favicon.svg", "image/svg+xml", include_bytes!("../../../../web/dist/favicon.svg")),
];

/// The file that stands at a path.
pub(crate) fn file(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

impl File {
    /// The file, or that the client has it: browsers keep it and ask each time.
    pub(crate) fn answer(&self, method: &Method, headers: &HeaderMap) -> Result<Reply, Problem> {
        if method != Method::GET {
            return Err(Problem::wrong_method(Method::GET.as_str()));
        }
        let is_compressed = takes_gzip(headers);
        let Form { bytes, tag } = self.form(is_compressed);
        let is_known = headers.get(IF_NONE_MATCH) == Some(tag);
        let bytes = if is_known { Bytes::new() } else { bytes.clone() };
        let mut reply = reply(self.media_type, Body::text(bytes));
        if is_known {
            *reply.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = reply.headers_mut();
        if is_compressed {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        headers.insert(ETAG, tag.clone());
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        Ok(reply)
    }

    fn form(&self, is_compressed: bool) -> &Form {
        if !is_compressed {
            return self.plain.get_or_init(|| Form::new(self.bytes));
        }
        self.compressed.get_or_init(|| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            let written = encoder.write_all(self.bytes).and_then(|()| encoder.finish());
            Form::new(written.expect("memory takes what is written"))
        })
    }
}

/// Whether the client names gzip, and does not refuse it (RFC 9110, 12.5.3).
fn takes_gzip(headers: &HeaderMap) -> bool {
    let values =
        headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().trim_start_matches(['q', 'Q']).trim_start_matches('=');
        name.trim().eq_ignore_ascii_case("gzip") && weight.parse() != Ok(0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_the_browser_has_is_not_sent_again() {
        let file = file("/app.js").unwrap();
        let first = file.answer(&Method::GET, &HeaderMap::new()).unwrap();
        assert_eq!(first.status(), StatusCode::OK);
        let mut headers = HeaderMap::new();
        headers.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
        let again = file.answer(&Method::GET, &headers).unwrap();
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert!(file.answer(&Method::POST, &headers).is_err());
    }

    #[test]
    fn a_file_is_compressed_for_who_takes_gzip() {
        use std::io::Read as _;

        let file = file("/app.js").unwrap();
        let answer = |accepted: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(accepted));
            file.answer(&Method::GET, &headers).unwrap()
        };
        for accepted in ["gzip", "br, GZIP;q=0.5", "deflate,gzip"] {
            assert_eq!(answer(accepted).headers()[CONTENT_ENCODING], "gzip", "{accepted}");
        }
        for accepted in ["", "identity", "gzip;q=0", "br, gzip; q=0.0", "xgzip"] {
            assert!(!answer(accepted).headers().contains_key(CONTENT_ENCODING), "{accepted}");
        }
        assert_ne!(answer("gzip").headers()[ETAG], answer("br").headers()[ETAG]);
        let Form { bytes, .. } = file.form(true);
        assert!(bytes.len() * 2 < file.bytes.len());
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
        assert!(plain == file.bytes, "it unpacks to the file");
    }

    #[test]
    fn the_page_needs_nothing_that_is_not_here() {
        let page = core::str::from_utf8(FILES[0].bytes).unwrap();
        for attribute in ["src=\"", "href=\""] {
            for (at, _) in page.match_indices(attribute) {
                let path = page.get(at + attribute.len()..).unwrap().split('"').next().unwrap();
                let path = format!("/{}", path.trim_start_matches("./").trim_start_matches('/'));
                assert!(file(&path).is_some(), "{path}");
            }
        }
        assert!(!page.contains("<style") && !page.contains("style="), "the policy refuses it");
    }
}
