//! `wirespool fleet`: many recorders asked at once.

mod asked;
mod enrol;
mod extract;
mod find;
mod status;

use clap::{Args, Subcommand};

use crate::failure::Outcome;

/// Ask many recorders at once.
///
/// A file lists the sensors: the services (wirespool serve) of recorders. All are asked at the same
/// time, and what they answer is one answer, in one order, with one statement: complete only where
/// every sensor said so, and else with the name of each that is down, slow or incomplete, and why.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool fleet find 'host 10.0.0.1 and port 443'
  wirespool fleet extract 'port 53 and after 1h ago' -w dns.pcapng
  wirespool fleet status
  wirespool fleet enrol init /etc/wirespool/ca

The file of sensors (--fleet, /etc/wirespool/fleet.toml):
  [sensor.west]
  url = \"https://west.example:8420\"
  ca = \"/etc/wirespool/ca/ca.pem\"
  certificate = \"/etc/wirespool/ca/client-me.pem\"
  key = \"/etc/wirespool/ca/client-me.key\"")]
pub(crate) struct Flags {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Find(Box<find::Flags>),
    Extract(Box<extract::Flags>),
    Status(status::Flags),
    Enrol(enrol::Flags),
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    match &flags.verb {
        Verb::Find(flags) => find::run(flags),
        Verb::Extract(flags) => extract::run(flags),
        Verb::Status(flags) => status::run(flags),
        Verb::Enrol(flags) => enrol::run(flags),
    }
}
