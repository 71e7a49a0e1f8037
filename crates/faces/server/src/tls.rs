//! TLS, and what a client's certificate says of its owner.
//!
//! The files are looked at again each second in which somebody connects or asks: a certificate that
//! was renewed, or revoked, needs no restart. While they cannot be used the last ones that could
//! count; a list of revocations counts until its own end.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::Error;
use crate::reread::Reread;

const LIST: &str = "list of revoked certificates";

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

/// The files of one entrance.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub(crate) tls: Tls,
    /// Who signs certificates of clients, in PEM.
    pub(crate) client_ca: Option<PathBuf>,
    /// Which of them are revoked, in PEM.
    pub(crate) client_crl: Option<PathBuf>,
}

/// What the files said.
#[derive(Clone, PartialEq, Eq)]
struct Texts {
    certificate: String,
    key: String,
    client_ca: Option<String>,
    client_crl: Option<String>,
}

impl Texts {
    /// What says whose certificates count.
    fn of_clients(&self) -> [Option<&String>; 2] {
        [self.client_ca.as_ref(), self.client_crl.as_ref()]
    }
}

/// TLS as the files say.
pub(crate) struct Certificates {
    files: Files,
    clients: Clients,
    known: Reread<Known>,
}

struct Known {
    texts: Texts,
    current: Current,
    has_told: bool,
}

/// What counts at a moment.
#[derive(Clone)]
pub(crate) struct Current {
    pub(crate) acceptor: TlsAcceptor,
    /// Changes with the files that say which clients count.
    version: u64,
}

impl Current {
    /// Whether the same clients count as then: else a certificate is to be shown again.
    pub(crate) fn is_as(&self, then: &Self) -> bool {
        self.version == then.version
    }
}

impl Certificates {
    /// # Errors
    /// When the files cannot be used.
    pub(crate) fn new(files: Files, clients: Clients) -> Result<Self, Error> {
        let texts = files.read()?;
        let current = Current { acceptor: files.acceptor(&texts, clients)?, version: 0 };
        let known = Reread::new(Known { texts, current, has_told: false });
        Ok(Self { files, clients, known })
    }

    /// What counts now; and what is wrong with the files, once.
    pub(crate) fn now(&self) -> (Current, Option<Error>) {
        let wrong = self.known.look(|known| {
            let wrong = self.renew(known).err();
            let has_told = core::mem::replace(&mut known.has_told, wrong.is_some());
            wrong.filter(|_| !has_told)
        });
        (self.known.with(|known| known.current.clone()), wrong.flatten())
    }

    fn renew(&self, known: &mut Known) -> Result<(), Error> {
        let texts = self.files.read()?;
        if texts != known.texts {
            let acceptor = self.files.acceptor(&texts, self.clients)?;
            let is_same = texts.of_clients() == known.texts.of_clients();
            let version = known.current.version + u64::from(!is_same);
            known.current = Current { acceptor, version };
            known.texts = texts;
        }
        Ok(())
    }
}

impl Files {
    fn read(&self) -> Result<Texts, Error> {
        let text = |path: Option<&PathBuf>| path.map(|path| host::read_input(path)).transpose();
        Ok(Texts {
            certificate: host::read_input(&self.tls.certificate)?,
            key: host::read_key(&self.tls.key)?,
            client_ca: text(self.client_ca.as_ref())?,
            client_crl: text(self.client_crl.as_ref())?,
        })
    }

    fn acceptor(&self, texts: &Texts, clients: Clients) -> Result<TlsAcceptor, Error> {
        let Tls { certificate, key } = &self.tls;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(certificate, &error))?;
        let builder = match self.client_ca.as_deref().zip(texts.client_ca.as_deref()) {
            None => builder.with_no_client_auth(),
            Some((ca, text)) => {
                let mut roots = RootCertStore::empty();
                for root in all_of(ca, text, "certificate")? {
                    roots.add(root).map_err(|error| refused(ca, &error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
                let verifier = match clients {
                    Clients::May => verifier.allow_unauthenticated(),
                    Clients::Must => verifier,
                };
                let crl = self.client_crl.as_deref().zip(texts.client_crl.as_deref());
                let verifier = match crl {
                    None => verifier,
                    Some((crl, text)) => verifier
                        .with_crls(all_of::<CertificateRevocationListDer<'static>>(
                            crl, text, LIST,
                        )?)
                        .only_check_end_entity_revocation()
                        .enforce_revocation_expiration(),
                };
                let verifier = verifier.build().map_err(|error| refused(ca, &error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let read = PrivateKeyDer::from_pem_slice(texts.key.as_bytes());
        let read = read.map_err(|error| refused(key, &error))?;
        let chain = all_of(certificate, &texts.certificate, "certificate")?;
        let config = builder.with_single_cert(chain, read);
        let mut config = config.map_err(|error| refused(certificate, &error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// All of a kind in a text, of which there has to be one.
fn all_of<T: PemObject>(path: &Path, text: &str, what: &str) -> Result<Vec<T>, Error> {
    let read: Result<Vec<T>, _> = T::pem_slice_iter(text.as_bytes()).collect();
    match read {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(refused(path, &format_args!("there is no {what} in it"))),
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
