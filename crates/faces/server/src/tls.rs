//! TLS, and what a client's certificate says of its owner.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::Error;

/// Where the certificates are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tls {
    /// The server's certificate, with those between it and its CA, in PEM.
    pub certificate: PathBuf,
    /// Its key, in PEM.
    pub key: PathBuf,
}

/// Whether a client has to show a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Clients {
    /// It may have a token instead.
    May,
    Must,
}

pub(crate) fn acceptor(
    tls: &Tls,
    client_ca: Option<&Path>,
    clients: Clients,
) -> Result<TlsAcceptor, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(&tls.certificate, &error))?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let mut roots = RootCertStore::empty();
            for root in certificates(ca)? {
                roots.add(root).map_err(|error| refused(ca, &error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            let verifier = match clients {
                Clients::May => verifier.allow_unauthenticated(),
                Clients::Must => verifier,
            };
            let verifier = verifier.build().map_err(|error| refused(ca, &error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let key = PrivateKeyDer::from_pem_slice(host::read_key(&tls.key)?.as_bytes())
        .map_err(|error| refused(&tls.key, &error))?;
    let mut config = builder
        .with_single_cert(certificates(&tls.certificate)?, key)
        .map_err(|error| refused(&tls.certificate, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = host::read_text(path)?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(refused(path, &"there is no certificate in it")),
        Err(error) => Err(refused(path, &error)),
    }
}

fn refused(path: &Path, why: &dyn core::fmt::Display) -> Error {
    Error::Tls { path: path.to_path_buf(), why: why.to_string() }
}

/// The common name of a certificate, which the CA has vouched for.
pub(crate) fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let name = certificate.subject().iter_common_name().next()?.as_str().ok()?.to_owned();
    Some(name)
}
