//! `--anonymise` and `--escrow` of extract and hold, and `wirespool reveal`.

use std::path::{Path, PathBuf};

use ::extract::Anonymiser;
use ::manifest::NamedEscrow;
use ::pseudonyms::{Escrow, EscrowError, Reveal};
use anonymise::Met;
use clap::Args;
use encryption::Recipients;
use units::{hex, unhex};
use zeroize::Zeroizing;

use crate::arguments::{self, KeyFlags};
use crate::failure::{Outcome, Usage, Verdict, of_attest};
use crate::progress::say_lines;
use crate::{output_file, stdout};

/// An escrow with all the stations that are remembered has a few MiB.
const ESCROW_BYTES_MAX: u64 = 64 << 20;

/// Other addresses for packets.
#[derive(Debug, Args)]
pub(crate) struct PseudonymFlags {
    /// Exchange addresses by the key in this file, 64 hex digits: prefixes stay common
    #[arg(long, value_name = "KEYFILE")]
    anonymise: Option<PathBuf>,
    /// Let the owner of this public key (age1...) lead addresses back: FILE.escrow goes beside the
    /// extract, for `wirespool reveal`. Without --anonymise the key of the addresses is made for
    /// this extract, and is nowhere else; may be given several times
    #[arg(long, value_name = "RECIPIENT", value_parser = arguments::recipient)]
    escrow: Vec<String>,
}

impl PseudonymFlags {
    pub(crate) fn is_given(&self) -> bool {
        self.anonymise.is_some() || !self.escrow.is_empty()
    }

    /// What the flags ask for.
    pub(crate) fn pseudonyms(&self) -> anyhow::Result<Option<Pseudonyms>> {
        let key = match &self.anonymise {
            Some(path) => {
                let text = Zeroizing::new(host::read_key(path)?);
                let refused = |error| Usage(format!("{}: {error}", page::safe::path(path)));
                Anonymiser::from_text(&text).map_err(refused)?;
                unhex(text.trim()).expect("it was read as a key")
            }
            None if self.escrow.is_empty() => return Ok(None),
            None => host::random_bytes()?,
        };
        let recipients = match &*self.escrow {
            [] => None,
            texts => Some(Recipients::parse(texts).map_err(|error| Usage(error.to_string()))?),
        };
        Ok(Some(Pseudonyms { key: Zeroizing::new(key), met: Met::default(), recipients }))
    }
}

/// Other addresses, and who may lead them back.
pub(crate) struct Pseudonyms {
    key: Zeroizing<[u8; 32]>,
    met: Met,
    recipients: Option<Recipients>,
}

impl Pseudonyms {
    pub(crate) fn anonymiser(&self) -> Anonymiser {
        let anonymiser = Anonymiser::new(&self.key);
        if self.recipients.is_some() { anonymiser.noting(self.met.clone()) } else { anonymiser }
    }

    pub(crate) fn has_escrow(&self) -> bool {
        self.recipients.is_some()
    }

    /// The escrow of an extract, if there is to be one, and how its manifest names it.
    pub(crate) fn escrow(
        &self,
        name: &str,
        extract: &[u8],
    ) -> anyhow::Result<Option<(Vec<u8>, NamedEscrow)>> {
        let Some(recipients) = &self.recipients else { return Ok(None) };
        let escrow = Escrow {
            key: self.key.clone(),
            stations: self.met.stations(),
            of: name.to_owned(),
            sha256: hex(extract),
        };
        let sealed = escrow.seal(recipients)?;
        let sha256 = ::evidence::sha256(&sealed);
        Ok(Some((sealed, NamedEscrow { sha256, key_id: escrow.key_id() })))
    }
}

/// Restore the addresses that an anonymised extract replaced.
///
/// Opens the escrow that `extract --escrow` wrote beside it with the private key of one of its
/// recipients. Prints what each address stands for, or with --file gives a capture file its own
/// addresses back: the extract itself, or any part of it that another program has written as
/// pcapng. What was blanked stays blank, and stations that the extract did not meet stay as they
/// are.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool reveal shared.pcapng.escrow 151.140.114.167 --identity analyst.key
  wirespool reveal shared.pcapng.escrow --file shared.pcapng -w own.pcapng --identity analyst.key")]
pub(crate) struct Flags {
    /// The escrow
    escrow: PathBuf,
    /// Addresses of hosts or stations, as they are in the extract
    #[arg(required_unless_present = "file")]
    addresses: Vec<String>,
    /// A capture file whose addresses are to be restored
    #[arg(long, value_name = "FILE", requires = "write", conflicts_with = "addresses")]
    file: Option<PathBuf>,
    /// Write the file with its own addresses to this one
    #[arg(long, short, value_name = "FILE", requires = "file")]
    write: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "file")]
    force: bool,
    #[command(flatten)]
    keys: KeyFlags,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let name = page::safe::path(&flags.escrow);
    let Some(identities) = flags.keys.identities()? else {
        let text =
            format!("{name} is encrypted: name the file of a private key with --identity FILE");
        return Err(Usage(text).into());
    };
    let bytes = host::read_input_bytes(&flags.escrow, ESCROW_BYTES_MAX)?;
    let escrow = Escrow::open(&bytes, &identities);
    let escrow = escrow.map_err(|error: EscrowError| anyhow::anyhow!("{name}: {error}"))?;
    let mut reveal = Reveal::new(&escrow);
    if let (Some(file), Some(write)) = (&flags.file, &flags.write) {
        let doubt = attest::doubt_of_escrow(&escrow, file).map_err(of_attest)?;
        let done = of_file(&mut reveal, (file, write), flags.force)?;
        if let Some(line) = doubt {
            say_lines(&line);
        }
        return Ok(done);
    }
    let mut lines = String::new();
    for address in &flags.addresses {
        let old = reveal.address(address).map_err(|error| Usage(error.to_string()))?;
        lines.extend([address.clone(), format!(" {old}\n")]);
    }
    stdout::print(&lines)?;
    Ok(Verdict::Clean)
}

fn of_file(reveal: &mut Reveal, (file, write): (&Path, &Path), force: bool) -> Outcome {
    let mut output = output_file::create(write, force)?;
    let mut from = std::io::BufReader::new(host::open_input(file)?);
    let done = reveal.file(&mut from, &mut output);
    let done = done.map_err(|error| anyhow::anyhow!("{}: {error}", page::safe::path(file)))?;
    output.finish()?;
    let packets = page::text::plural(done.packets, "packet");
    stdout::print(&format!("{packets} have their own addresses\n"))?;
    Ok(Verdict::Clean)
}
