//! What is issued is looked at with the library that verifies it in a service.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, ServerName, UnixTime};
use tempfile::TempDir;
use webpki::{
    BorrowedCertRevocationList, CertRevocationList, EndEntityCert, ExpirationPolicy, KeyUsage,
    RevocationCheckDepth, RevocationOptionsBuilder, anchor_from_trusted_cert,
};

use super::*;

const NOW_S: i64 = 1_800_000_000;

struct Made {
    _temporary: TempDir,
    folder: PathBuf,
}

impl Made {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("ca");
        Authority::init(&folder, (3650, 30), NOW_S).unwrap();
        Self { _temporary: temporary, folder }
    }

    fn open(&self) -> Authority {
        Authority::open(&self.folder, 30).unwrap()
    }

    fn enrol(&self, kind: Kind, name: &str, days: u32, now_s: i64) -> Enrolled {
        let addresses = match kind {
            Kind::Server => vec!["west.example".to_owned(), "192.0.2.7".to_owned()],
            Kind::Client => Vec::new(),
        };
        let wanted = Wanted { kind, name: name.to_owned(), addresses, days };
        self.open().enrol(&wanted, now_s).unwrap()
    }

    /// Whether a certificate counts at a time, for this, by the list of now.
    fn verify(&self, made: &Enrolled, usage: KeyUsage, now_s: i64) -> Result<(), webpki::Error> {
        let certificate = CertificateDer::from_pem_file(&made.certificate).unwrap();
        let root = CertificateDer::from_pem_file(self.folder.join("ca.pem")).unwrap();
        let roots = [anchor_from_trusted_cert(&root).unwrap()];
        let list =
            CertificateRevocationListDer::from_pem_file(self.folder.join("crl.pem")).unwrap();
        let list = BorrowedCertRevocationList::from_der(list.as_ref()).unwrap().to_owned().unwrap();
        let list = CertRevocationList::from(list);
        let lists = [&list];
        let options = RevocationOptionsBuilder::new(&lists).unwrap();
        let options = options
            .with_depth(RevocationCheckDepth::EndEntity)
            .with_expiration_policy(ExpirationPolicy::Enforce)
            .build();
        let entity = EndEntityCert::try_from(&certificate)?;
        let at = UnixTime::since_unix_epoch(Duration::from_secs(now_s.unsigned_abs()));
        let algorithms = webpki::ALL_VERIFICATION_ALGS;
        entity.verify_for_usage(algorithms, &roots, &[], at, usage, Some(options), None)?;
        if made.certificate.to_string_lossy().contains("server-") {
            for name in ["west.example", "192.0.2.7"] {
                entity.verify_is_valid_for_subject_name(&ServerName::try_from(name).unwrap())?;
            }
        }
        Ok(())
    }
}

/// Who looks up a serial from a log finds it.
#[test]
fn the_ledger_has_the_serials_of_the_certificates() {
    let made = Made::new();
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let enrolled = made.enrol(Kind::Client, name, 7, NOW_S);
        let certificate = CertificateDer::from_pem_file(&enrolled.certificate).unwrap();
        let issued = fs::read_to_string(made.folder.join("issued")).unwrap();
        let line = issued.lines().last().unwrap();
        let serial: [u8; 16] = units::unhex(line.split(' ').next().unwrap()).unwrap();
        let has_it = certificate.windows(16).any(|part| part == serial);
        assert!(line.contains(&format!(" {name} ")) && has_it, "{line}");
    }
}

#[test]
fn a_certificate_counts_for_what_and_as_long_as_it_was_made() {
    let made = Made::new();
    let server = made.enrol(Kind::Server, "west", 30, NOW_S);
    let client = made.enrol(Kind::Client, "alice", 7, NOW_S);
    made.verify(&server, KeyUsage::server_auth(), NOW_S).unwrap();
    made.verify(&client, KeyUsage::client_auth(), NOW_S).unwrap();
    assert!(made.verify(&server, KeyUsage::client_auth(), NOW_S).is_err());
    assert!(made.verify(&client, KeyUsage::server_auth(), NOW_S).is_err());
    assert!(made.verify(&client, KeyUsage::client_auth(), NOW_S + 6 * DAY_S).is_ok());
    assert!(made.verify(&client, KeyUsage::client_auth(), NOW_S + 7 * DAY_S + 1).is_err());
    // That of another authority of the same form is none of this one's.
    let other = Made::new();
    assert!(other.verify(&client, KeyUsage::client_auth(), NOW_S).is_err());
}

#[test]
fn keys_are_private_and_a_renewed_certificate_is_of_the_same_one() {
    let made = Made::new();
    let first = made.enrol(Kind::Client, "alice", 7, NOW_S);
    let rights = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!([rights(&first.key), rights(&made.folder.join("ca.key"))], [0o600; 2]);
    assert_eq!(rights(&made.folder), 0o700);
    let read = |path: &Path| fs::read(path).unwrap();
    let (key, certificate) = (read(&first.key), read(&first.certificate));
    let again = made.enrol(Kind::Client, "alice", 7, NOW_S + 5 * DAY_S);
    assert!(!first.is_renewed && again.is_renewed);
    assert_eq!(read(&again.key), key);
    assert_ne!(read(&again.certificate), certificate);
    made.verify(&again, KeyUsage::client_auth(), NOW_S + 11 * DAY_S).unwrap();
    // A key that others may read is no key any more.
    fs::set_permissions(&again.key, fs::Permissions::from_mode(0o644)).unwrap();
    let wanted =
        Wanted { kind: Kind::Client, name: "alice".to_owned(), addresses: vec![], days: 7 };
    assert!(made.open().enrol(&wanted, NOW_S).is_err());
    let ended = Authority::init(&made.folder, (1, 1), NOW_S);
    assert!(matches!(ended, Err(Error::Exists { .. })));
}

#[test]
fn what_is_revoked_does_not_count_and_the_list_has_an_end() {
    let made = Made::new();
    let first = made.enrol(Kind::Client, "alice", 7, NOW_S);
    let other = made.enrol(Kind::Client, "bob", 7, NOW_S);
    let client = KeyUsage::client_auth;
    assert_eq!(made.open().revoke(&["alice".to_owned()], NOW_S + 5).unwrap(), [1]);
    let refused = made.verify(&first, client(), NOW_S + 5);
    assert_eq!(refused, Err(webpki::Error::CertRevoked));
    made.verify(&other, client(), NOW_S + 5).unwrap();
    // Its key is not renewed. It stays revoked when something else is made, and a certificate of
    // a new key counts.
    let alice = Wanted { kind: Kind::Client, name: "alice".to_owned(), addresses: vec![], days: 7 };
    let ledger = fs::read(made.folder.join("issued")).unwrap();
    let refused = made.open().enrol(&alice, NOW_S + 6);
    assert!(matches!(refused, Err(Error::Revoked { .. })), "{refused:?}");
    assert_eq!(fs::read(made.folder.join("issued")).unwrap(), ledger);
    fs::rename(&first.key, made.folder.join("old.key")).unwrap();
    let new = made.enrol(Kind::Client, "alice", 90, NOW_S + 6);
    made.verify(&new, client(), NOW_S + 6).unwrap();
    let text = fs::read_to_string(&new.certificate).unwrap();
    fs::write(&first.certificate, text).unwrap();
    assert_eq!(made.open().revoke(&["alice".to_owned()], NOW_S + 7).unwrap(), [1]);
    assert_eq!(made.verify(&new, client(), NOW_S + 7), Err(webpki::Error::CertRevoked));
    assert!(made.verify(&other, client(), NOW_S + 31 * DAY_S).is_err());
    // A name that nobody has changes nothing.
    let before = fs::read(made.folder.join("crl.pem")).unwrap();
    let names = ["bob".to_owned(), "carol".to_owned()];
    assert!(matches!(made.open().revoke(&names, NOW_S), Err(Error::Unknown(..))));
    assert_eq!(fs::read(made.folder.join("crl.pem")).unwrap(), before);
    made.verify(&other, client(), NOW_S + 8).unwrap();
}

#[test]
fn names_and_addresses_that_are_none_are_refused_and_nothing_is_written() {
    let made = Made::new();
    let count = || fs::read_dir(&made.folder).unwrap().count();
    let before = count();
    for (name, address) in [
        ("", "a"),
        ("../x", "a"),
        ("a b", "a"),
        ("a\n", "a"),
        ("west", ""),
        ("west", "a:8420"),
        ("west", "https://a"),
        ("west", "a\u{e9}"),
    ] {
        let addresses = vec![address.to_owned()];
        let wanted = Wanted { kind: Kind::Server, name: name.to_owned(), addresses, days: 1 };
        let ended = made.open().enrol(&wanted, NOW_S);
        assert!(ended.is_err_and(|error| error.is_usage()), "{name:?} {address:?}");
    }
    assert_eq!(count(), before);
    let absent = Authority::open(&made.folder.join("none"), 1);
    assert!(matches!(absent, Err(Error::Absent { .. })));
    fs::write(made.folder.join("issued"), "x\n").unwrap();
    assert!(Authority::open(&made.folder, 1).is_err());
}
