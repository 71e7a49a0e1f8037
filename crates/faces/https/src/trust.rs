//! Which certificates are believed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};

/// A file of certificates that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Untrusted {
    /// It cannot be read.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// It is none.
    #[error("{}: {why}", path.to_string_lossy())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl Untrusted {
    fn of(path: &Path, why: &dyn core::fmt::Display) -> Self {
        Self::File { path: path.to_path_buf(), why: why.to_string() }
    }
}

/// The certificates of a file in PEM: one at least.
///
/// # Errors
/// When the file cannot be read, or has none.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Untrusted> {
    let text = host::read_input(path)?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(Untrusted::of(path, &"there is no certificate in it")),
        Err(error) => Err(Untrusted::of(path, &error)),
    }
}

/// The certificates to believe: those of a file, or else of the system, which may have none.
///
/// # Errors
/// When the file cannot be used.
pub fn roots(ca: Option<&Path>) -> Result<RootCertStore, Untrusted> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca else {
        // A store has old certificates that are none any more: the others count.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    };
    for root in certificates(path)? {
        roots.add(root).map_err(|error| Untrusted::of(path, &error))?;
    }
    Ok(roots)
}

/// A client that believes these, up to the certificate that it shows.
///
/// # Panics
/// Never: the provider has suites of both versions.
pub fn client(roots: RootCertStore) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has suites of both versions")
        .with_root_certificates(roots)
}
