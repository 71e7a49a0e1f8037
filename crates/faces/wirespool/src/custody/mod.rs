//! Who may see what, for how long, and how it is proven: verbs for four eyes, raw extracts, other
//! addresses, forgetting, keys, anchors.

pub(crate) mod approval;
mod decrypt;
pub(crate) mod forget;
pub(crate) mod pseudonyms;

use clap::Subcommand;

use crate::evidence;
use crate::failure::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Request(approval::RequestFlags),
    Approve(approval::ApproveFlags),
    Decrypt(decrypt::Flags),
    Reveal(pseudonyms::Flags),
    Forget(forget::Flags),
    Anchor(Box<evidence::AnchorFlags>),
    VerifyExtract(evidence::VerifyFlags),
    Keygen(evidence::KeygenFlags),
}

pub(crate) fn run(verb: &Verb) -> Outcome {
    match verb {
        Verb::Request(flags) => approval::request(flags),
        Verb::Approve(flags) => approval::approve(flags),
        Verb::Decrypt(flags) => decrypt::run(flags),
        Verb::Reveal(flags) => pseudonyms::run(flags),
        Verb::Forget(flags) => forget::run(flags),
        Verb::Anchor(flags) => evidence::anchor(flags),
        Verb::VerifyExtract(flags) => evidence::verify(flags),
        Verb::Keygen(flags) => evidence::keygen(flags),
    }
}
