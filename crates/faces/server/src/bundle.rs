//! The files of the page, which are built in `web/` and held in the program.

use std::sync::OnceLock;

use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH,
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
    tag: OnceLock<HeaderValue>,
}

const fn built(path: &'static str, media_type: &'static str, bytes: &'static [u8]) -> File {
    File { path, media_type, bytes, tag: OnceLock::new() }
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
        let tag = self.tag.get_or_init(|| tag(self.bytes));
        let is_known = headers.get(IF_NONE_MATCH) == Some(tag);
        let bytes = if is_known { &[] } else { self.bytes };
        let mut reply = reply(self.media_type, Body::text(bytes));
        if is_known {
            *reply.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = reply.headers_mut();
        headers.insert(ETAG, tag.clone());
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        Ok(reply)
    }
}

fn tag(bytes: &[u8]) -> HeaderValue {
    let text = format!("\"{}\"", units::hex(&Sha256::digest(bytes)));
    HeaderValue::try_from(text).expect("hex digits and quotes")
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
