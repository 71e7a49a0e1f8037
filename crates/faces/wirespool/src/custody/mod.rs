//! Who may see what, and for how long: verbs for four eyes, raw extracts, other addresses, and
//! forgetting.

pub(crate) mod approval;
mod decrypt;
pub(crate) mod forget;
pub(crate) mod pseudonyms;

use clap::Subcommand;

use crate::failure::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Request(approval::RequestFlags),
    Approve(approval::ApproveFlags),
    Decrypt(decrypt::Flags),
    Reveal(pseudonyms::Flags),
    Forget(forget::Flags),
}

pub(crate) fn run(verb: &Verb) -> Outcome {
    match verb {
        Verb::Request(flags) => approval::request(flags),
        Verb::Approve(flags) => approval::approve(flags),
        Verb::Decrypt(flags) => decrypt::run(flags),
        Verb::Reveal(flags) => pseudonyms::run(flags),
        Verb::Forget(flags) => forget::run(flags),
    }
}
