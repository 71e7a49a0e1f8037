//! Encrypted credentials of systemd, by how they begin. What is in one only the machine that made
//! it can open: with its TPM, with a key of its own, or with both (systemd-creds(1)).

/// Characters of the id that a credential begins with, in base64: 126 of its 128 bits.
const ID_CHARS: usize = 21;
/// The ids of systemd's `creds-util.h`. Without that of credentials that nothing seals.
const IDS: [&str; 8] = [
    // By a key of the host, and for one user.
    "Whxqht+dQJax1aZeCGLxm",
    "VbntHThZTUOoMZ0uuzMqx",
    // By the TPM, and by it for signed policies.
    "DHzAexF2RZGcSwvqCLwg/",
    "+vfrk0HjQSyhpDb5Wik2L",
    // By both, for one user, for signed policies, and for both of that.
    "k6iUCUh0RJCQyvL8k8q1U",
    "70rBNnmpSA6n22iJf58WX",
    "r0lQqEkTTrGnOEYwT/MMB",
    "rbxMo++2QgG6iBtvLkCV6",
];

/// Whether the content of a file is an encrypted credential of systemd.
pub fn is_credential(content: &[u8]) -> bool {
    let begin = content.trim_ascii_start().get(..ID_CHARS);
    begin.is_some_and(|begin| IDS.iter().any(|id| id.as_bytes() == begin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identities;
    use crate::wrap::WrapError;

    #[test]
    fn a_credential_is_known_by_its_begin_and_is_no_identity_by_itself() {
        // As systemd's documentation shows one.
        let shown = b"\n  k6iUCUh0RJCQyvL8k8q1UyAAAAABAAAADAAAABAAAAC1lFmbWAqWZ8dCCQkAAAAA";
        assert!(is_credential(shown));
        let refused = Identities::parse(shown, &|| None).unwrap_err();
        assert_eq!(refused, WrapError::Credential);
        for other in ["", "k6iUCUh0RJCQyvL8k8q1", "AGE-SECRET-KEY-1", "age-encryption.org/v1\n"] {
            assert!(!is_credential(other.as_bytes()), "{other}");
        }
    }
}
