//! Benchmarks of sessions and questions: making them, finding them, their packets.

use anyhow::Result;
use clap::Subcommand;

use crate::outcome::Outcome;
use crate::{extract, find, index_size, sessions, top};

#[derive(Debug, Subcommand)]
pub(crate) enum Benchmark {
    /// Decoding and the session table, nanoseconds a packet
    Sessions(sessions::Options),
    /// Bytes of index a session, by column
    Index(index_size::Options),
    /// Finding one session among millions, against another engine over the same files
    Find(find::Options),
    /// Getting one session out of a volume, against tcpdump over the same packets
    Extract(extract::Options),
    /// `top` beside a recorder, against iftop and bandwhich; needs root
    Top(top::Options),
}

pub(crate) fn run(benchmark: &Benchmark) -> Result<Outcome> {
    match benchmark {
        Benchmark::Sessions(options) => sessions::run(options),
        Benchmark::Index(options) => index_size::run(options),
        Benchmark::Find(options) => find::run(options),
        Benchmark::Extract(options) => extract::run(options),
        Benchmark::Top(options) => top::run(options),
    }
}
