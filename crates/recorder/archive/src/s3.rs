//! A store that is a bucket of an S3-compatible server.
//!
//! The client is asynchronous and used one call at a time: a call waits on the caller's thread, and
//! is given up as soon as it is to stop.

use core::fmt;
use core::future::Future;
use core::pin::pin;
use core::time::Duration;
use std::env;
use std::sync::Arc;

use futures::TryStreamExt as _;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{
    ClientOptions, ObjectStore as _, ObjectStoreExt as _, PutMode, PutPayload, RetryConfig,
};
use tokio::runtime::{Builder, Runtime};

use crate::store::{Access, Listed, Store, StoreError};

/// A server that does not take a connection for so long is away.
const CONNECT: Duration = Duration::from_secs(5);
/// For an object of some dozen megabytes on a slow line.
const REQUEST: Duration = Duration::from_secs(120);
/// How soon a call hears that it is to stop.
const SLICE: Duration = Duration::from_millis(50);
/// Letters of what a server says.
const WHY_LEN_MAX: usize = 300;

/// What the environment may call the server's address, the most special first.
const ENDPOINTS: [&str; 3] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
/// One of these says where credentials are from.
const CREDENTIALS: [&str; 4] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
];

/// Objects of a bucket below a prefix.
pub(crate) struct BucketStore {
    url: String,
    prefix: Path,
    bucket: AmazonS3,
    runtime: Runtime,
    is_to_stop: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl fmt::Debug for BucketStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketStore").field("url", &self.url).finish_non_exhaustive()
    }
}

impl BucketStore {
    /// With credentials and region of the environment. Nothing is sent before the first call.
    pub(crate) fn open(
        (bucket, prefix): (&str, &str),
        access: &Access,
    ) -> Result<Self, StoreError> {
        let endpoint = access.endpoint.clone();
        let endpoint = endpoint.or_else(|| ENDPOINTS.iter().find_map(|name| env::var(name).ok()));
        let slash = if prefix.is_empty() { "" } else { "/" };
        let at = endpoint.as_deref().map(|at| format!(" at {}", page::safe::printable(at)));
        let url = format!("s3://{bucket}{slash}{}", page::safe::printable(prefix));
        let url = url + at.as_deref().unwrap_or_default();
        let refused = |why: String| StoreError::Refused { url: url.clone(), why };
        if let Some(why) = endpoint.as_deref().and_then(|at| unfit(at, access.allow_http)) {
            return Err(refused(why.to_owned()));
        }
        let client = ClientOptions::new()
            .with_connect_timeout(CONNECT)
            .with_timeout(REQUEST)
            .with_allow_http(endpoint.as_deref().is_some_and(|at| at.starts_with("http://")));
        // Who calls is patient, and says so.
        let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let mut builder = AmazonS3Builder::from_env()
            .with_client_options(client)
            .with_retry(retry)
            .with_bucket_name(bucket);
        if let Some(endpoint) = endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        let bucket = builder.build().map_err(|error| refused(text_of(&error)))?;
        let prefix = Path::parse(prefix).map_err(|error| refused(error.to_string()))?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| refused(error.to_string()))?;
        Ok(Self { url, prefix, bucket, runtime, is_to_stop: Arc::clone(&access.is_to_stop) })
    }

    fn path(&self, name: &str) -> Path {
        let names = name.split('/').filter(|part| !part.is_empty());
        names.fold(self.prefix.clone(), |path, name| path.join(name))
    }

    /// Waits for a call, unless it is to stop.
    fn wait<T>(
        &self,
        call: impl Future<Output = object_store::Result<T>>,
    ) -> Result<object_store::Result<T>, StoreError> {
        self.runtime.block_on(async {
            let mut call = pin!(call);
            loop {
                match tokio::time::timeout(SLICE, &mut call).await {
                    Ok(answer) => return Ok(answer),
                    Err(_) if (self.is_to_stop)() => return Err(StoreError::Stopped),
                    Err(_) => {}
                }
            }
        })
    }

    fn failed(&self, error: &object_store::Error) -> StoreError {
        let (url, mut why) = (self.url.clone(), text_of(error));
        let has_credentials = CREDENTIALS.iter().any(|name| env::var_os(name).is_some());
        if !has_credentials {
            why.push_str(
                "; no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this \
                 machine a role",
            );
        }
        match error {
            object_store::Error::PermissionDenied { .. }
            | object_store::Error::Unauthenticated { .. } => {
                StoreError::Refused { url, why: format!("{why}; look at the credentials") }
            }
            object_store::Error::NotFound { .. } => {
                let why = format!("{why}; is there such a bucket?");
                StoreError::Refused { url, why }
            }
            _ if !has_credentials => StoreError::Refused { url, why },
            _ => StoreError::Away { url, why },
        }
    }

    fn put_with(&self, name: &str, bytes: &[u8], mode: PutMode) -> Result<bool, StoreError> {
        let payload = PutPayload::from(bytes.to_vec());
        let path = self.path(name);
        match self.wait(self.bucket.put_opts(&path, payload, mode.into()))? {
            Ok(_) => Ok(true),
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => Ok(false),
            Err(error) => Err(self.failed(&error)),
        }
    }
}

impl Store for BucketStore {
    fn url(&self) -> &str {
        &self.url
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.put_with(name, bytes, PutMode::Overwrite).map(|_| ())
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<bool, StoreError> {
        self.put_with(name, bytes, PutMode::Create)
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path(name);
        let bytes = self.wait(async { self.bucket.get(&path).await?.bytes().await })?;
        match bytes {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            // A bucket that is not there shows itself in a listing.
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn list(
        &self,
        folder: &str,
        after: Option<&str>,
        visit: &mut dyn FnMut(Listed),
    ) -> Result<(), StoreError> {
        let (folder, after) = (self.path(folder), after.map(|after| self.path(after)));
        let listed = self.wait(async {
            let mut objects = match &after {
                Some(after) => self.bucket.list_with_offset(Some(&folder), after),
                None => self.bucket.list(Some(&folder)),
            };
            while let Some(object) = objects.try_next().await? {
                if let Some(parts) = object.location.prefix_match(&self.prefix) {
                    let parts: Vec<String> = parts.map(|part| part.as_ref().to_owned()).collect();
                    visit(Listed { name: parts.join("/"), bytes: object.size });
                }
            }
            Ok(())
        })?;
        listed.map_err(|error| self.failed(&error))
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        match self.wait(self.bucket.delete(&self.path(name)))? {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(&error)),
        }
    }
}

/// Why the address of a server is not used.
fn unfit(endpoint: &str, allow_http: bool) -> Option<&'static str> {
    if endpoint.starts_with("https://") {
        return None;
    }
    let Some(rest) = endpoint.strip_prefix("http://") else {
        return Some("write the endpoint with https:// in front");
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(host) => host.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let address = host.parse::<core::net::IpAddr>();
    let is_loopback = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    (!is_loopback && !allow_http).then_some(
        "the endpoint is http, which everybody on the way can read and change: use https, or say \
         --allow-http",
    )
}

/// The innermost reason and what it was for, in one line.
fn text_of(error: &object_store::Error) -> String {
    let mut causes = Vec::new();
    let mut next: Option<&dyn core::error::Error> = Some(error);
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    let text = match error {
        object_store::Error::Generic { .. } => causes.pop().unwrap_or_default(),
        _ => causes.swap_remove(0),
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    page::safe::printable(&text.chars().take(WHY_LEN_MAX).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_encryption_only_to_this_machine_or_when_told() {
        for (endpoint, is_unfit) in [
            ("https://s3.example.org", false),
            ("http://127.0.0.1:7070", false),
            ("http://[::1]:7070/x", false),
            ("http://localhost", false),
            ("http://127.0.0.1.example.org", true),
            ("http://localhost@example.org", true),
            ("http://10.0.0.1:9000", true),
            ("s3.example.org", true),
        ] {
            assert_eq!(unfit(endpoint, false).is_some(), is_unfit, "{endpoint}");
        }
        assert!(unfit("http://10.0.0.1:9000", true).is_none());
    }
}
