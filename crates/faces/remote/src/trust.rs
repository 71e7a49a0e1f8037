//! Whom a client believes, and what it shows of itself: certificates and a token.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper::header::HeaderValue;
use rustls::RootCertStore;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

use crate::Error;

/// Where certificates and credentials are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trust {
    /// The certificates to believe, in PEM; those of the system without it.
    pub ca: Option<PathBuf>,
    /// The client's certificate and its key, in PEM.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The token's file, which only its owner may read.
    pub token_file: Option<PathBuf>,
    /// The token, where no file is named.
    pub token: Option<Zeroizing<String>>,
}

impl Trust {
    /// What a request shows.
    pub(crate) fn bearer(&self) -> Result<Option<HeaderValue>, Error> {
        let token = match (&self.token_file, &self.token) {
            (Some(path), _) => Zeroizing::new(host::read_key(path)?),
            (None, Some(token)) => token.clone(),
            (None, None) => return Ok(None),
        };
        let token = token.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::Token);
        }
        let bearer = Zeroizing::new(format!("Bearer {token}"));
        let mut value = HeaderValue::from_str(&bearer).map_err(|_| Error::Token)?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    pub(crate) fn connector(&self) -> Result<TlsConnector, Error> {
        let builder = https::client(self.roots()?);
        let mut config = match &self.certificate {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let secret = Zeroizing::new(host::read_key(key)?);
                let secret = PrivateKeyDer::from_pem_slice(secret.as_bytes())
                    .map_err(|error| refused(key, &error))?;
                builder
                    .with_client_auth_cert(https::certificates(certificate)?, secret)
                    .map_err(|error| refused(certificate, &error))?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsConnector::from(Arc::new(config)))
    }

    fn roots(&self) -> Result<RootCertStore, Error> {
        let roots = https::roots(self.ca.as_deref())?;
        if roots.is_empty() { Err(Error::NoRoots) } else { Ok(roots) }
    }
}

fn refused(path: &Path, why: &dyn core::fmt::Display) -> Error {
    Error::File { path: path.to_path_buf(), why: why.to_string() }
}
