//! The guest lab: the recorder on disks that fail, stall, lie, vanish and lose power, under a real
//! kernel in a virtual machine.
//!
//! On the host it fetches Debian's kernel, builds an initial file system out of programs of this
//! machine, boots it under QEMU once for each case, and judges. In the guest the same program sends
//! numbered packets and checks extracts for them. What a case does stands in its script, `lab/`.
//!
//! [`faults`] plants causes of slowness on this very machine instead, and judges a diagnosis.
#![expect(clippy::print_stdout, reason = "a tool for the terminal: what it prints is its result")]

mod case;
mod cpio;
mod faults;
mod guest;
mod image;
mod kernel;
mod log;
mod machine;
mod packets;
mod pcap;
mod replay;
mod run;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Run the recorder on failing disks in a virtual machine
#[derive(Debug, Parser)]
#[command(name = "lab")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run cases, each in a machine of its own
    Run(run::Flags),
    /// Plant causes of slowness on this machine, and judge what `wirespool diagnose` says of them
    Faults(faults::Flags),
    /// In the guest: send numbered packets
    Send {
        /// The interface
        interface: String,
        #[command(flatten)]
        packets: guest::Packets,
    },
    /// In the guest: write numbered packets to standard output as pcap
    Make {
        #[command(flatten)]
        packets: guest::Packets,
    },
    /// In the guest: look for the first packets in a pcap file
    Check {
        /// The file
        file: PathBuf,
        /// How many were sent
        #[arg(long)]
        sent: u64,
        /// Packets that follow these are as good
        #[arg(long)]
        or_more: bool,
    },
    /// In the guest: record standard input, and mark what is acknowledged
    Record {
        /// The volume
        volume: PathBuf,
        /// Where to write marks
        #[arg(long)]
        marks: PathBuf,
    },
}

fn work(verb: Verb) -> Result<bool> {
    match verb {
        Verb::Run(flags) => run::run(&flags),
        Verb::Faults(flags) => faults::run(&flags),
        Verb::Send { interface, packets } => guest::send(&interface, packets).map(|()| true),
        Verb::Make { packets } => {
            guest::make(&mut std::io::stdout().lock(), packets).map(|()| true)
        }
        Verb::Check { file, sent, or_more } => {
            let found = guest::check(&file, sent, or_more)?;
            match &found {
                Ok(count) => println!("{count} found, each byte for byte"),
                Err(fault) => println!("{fault}"),
            }
            Ok(found.is_ok())
        }
        Verb::Record { volume, marks } => guest::record(volume, &marks).map(|()| true),
    }
}

fn main() -> ExitCode {
    match work(Cli::parse().verb) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            println!("{error:#}");
            ExitCode::from(3)
        }
    }
}
