//! The verbs that make volumes, look into them and keep them whole.

use clap::Subcommand;

use crate::failure::Outcome;
use crate::{create, inspect, members, salvage, scrub};

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Create(create::Flags),
    Inspect(inspect::Flags),
    Status(members::StatusFlags),
    Verify(scrub::VerifyFlags),
    Scrub(scrub::Flags),
    Erase(members::EraseFlags),
    Keys(members::KeysFlags),
    Salvage(salvage::Flags),
    Resilver(members::ResilverFlags),
    Replace(members::ReplaceFlags),
    Grow(members::GrowFlags),
}

pub(crate) fn run(verb: Verb) -> Outcome {
    match verb {
        Verb::Create(flags) => create::run(&flags),
        Verb::Inspect(flags) => inspect::run(&flags),
        Verb::Status(flags) => members::status(&flags),
        Verb::Verify(flags) => scrub::verify(&flags),
        Verb::Scrub(flags) => scrub::run(&flags),
        Verb::Erase(flags) => members::erase(flags),
        Verb::Keys(flags) => members::keys(flags),
        Verb::Salvage(flags) => salvage::run(&flags),
        Verb::Resilver(flags) => members::resilver(&flags),
        Verb::Replace(flags) => members::replace(&flags),
        Verb::Grow(flags) => members::grow(&flags),
    }
}
