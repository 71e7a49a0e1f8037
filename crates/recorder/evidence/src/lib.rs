//! What makes extracts and volumes checkable later: keys and signatures, seals, anchors of volumes
//! and the stripes that they list, witness files, and time stamps of a third party (RFC 3161).
//!
//! Everything here is bytes in, bytes out: no file is opened, no clock read, nothing printed. The
//! forms are drawn in docs/evidence.md. Called by `extract` (manifests), `upkeep` (anchors) and the
//! binary.

mod anchor;
mod approval;
mod attested;
mod case;
mod clock_use;
mod coverage;
mod der;
mod form;
mod hashing;
mod key;
mod listed;
mod maker;
mod output;
mod receipt;
mod seal;
mod ssh;
mod stamp;
mod trusted;
mod witness;

pub use anchor::{
    ANCHOR_VERSION, AnchorError, AnchorForm, CheckedAnchor, PreviousForm, ReadAnchor, parse_anchor,
};
pub use approval::{
    APPROVAL_SUFFIX, APPROVAL_VERSION, ApprovalError, ApprovalForm, Approved, ApprovedForm,
    RequestForm, check_approval, check_request,
};
pub use attested::{
    Attested, Distrust, LIST_SUFFIX, SIGNATURE_SUFFIX, STAMP_REQUEST_SUFFIX, STAMP_SUFFIX, Trust,
    Vouched,
};
pub use case::CaseInfo;
pub use clock_use::{ClockSteps, ClockUse, TimesBy};
pub use coverage::{Coverage, NamedPiece, coverage};
pub use form::hex_digits;
pub use hashing::{Hasher, Hashes, Hashing};
pub use key::{AskPassphrase, KeyError, NAMESPACE, PublicKey, SigningKey};
pub use listed::{Body, LISTED_BYTES, ListError, Listed, ListedStripes, list_header};
pub use maker::Maker;
pub use output::OutputSummary;
pub use receipt::{RECEIPT_VERSION, ReceiptError, ReceiptForm, parse_receipt};
pub use seal::{
    AFTER_SEAL, BEFORE_SEAL, Seal, SealError, SealForm, SealTextError, Signer, split_sealed,
};
pub use ssh::{SshSignatureError, check_ssh_signature};
pub use stamp::{Authorities, Stamp, StampError, check_stamp, sha256, stamp_request};
pub use trusted::{Trusted, TrustedKeys};
pub use witness::{WITNESS_BEGINS, WitnessError, WitnessForm, Witnessed, witness_lines};
