//! `wirespool fleet enrol`.

use std::path::{Path, PathBuf};

use ::authority::{Authority, Kind, Wanted};
use clap::{Args, Subcommand};
use host::SystemClock;
use units::{Clock as _, Timestamp};

use crate::failure::{Outcome, Usage, Verdict};
use crate::stdout;

/// Make and revoke certificates for sensors and for who asks them.
///
/// A small certificate authority in a folder. The same command that made a certificate renews it,
/// for the key that is there. `serve` takes the authority's certificate (--client-ca) and its list
/// of revocations (--client-crl), which counts for --list-days: after that a service refuses
/// everybody, so that the list has to be written and handed out again before.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool fleet enrol init ca
  wirespool fleet enrol server ca west --address west.example --days 30
  wirespool fleet enrol client ca alice --days 7
  wirespool fleet enrol revoke ca alice
  wirespool fleet enrol list ca")]
pub(super) struct Flags {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Init(InitFlags),
    Server(ServerFlags),
    Client(ClientFlags),
    Revoke(RevokeFlags),
    List(ListFlags),
}

/// How long a list of revocations counts.
#[derive(Debug, Args)]
struct ListDays {
    /// The list of revocations that is written counts for so many days
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = days())]
    list_days: u32,
}

fn days() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=36_500)
}

/// Make an authority in a new folder.
///
/// Writes its private key (ca.key), its certificate (ca.pem), an empty list of revocations
/// (crl.pem) and a list of what is issued. Whoever reads ca.key can enrol anybody: keep the folder
/// off the sensors.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool fleet enrol init ca
  wirespool fleet enrol init ca --days 1825")]
struct InitFlags {
    /// The folder; nothing may be in it
    folder: PathBuf,
    /// The authority's own certificate counts for so many days
    #[arg(long, value_name = "DAYS", default_value_t = 3650, value_parser = days())]
    days: u32,
    #[command(flatten)]
    list: ListDays,
}

/// Make or renew the certificate of a sensor's service.
///
/// Writes server-NAME.pem and, the first time, server-NAME.key, for serve --tls-cert and --tls-key.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool fleet enrol server ca west --address west.example --address 192.0.2.7")]
struct ServerFlags {
    /// The authority's folder
    folder: PathBuf,
    /// Name of the sensor
    name: String,
    /// Name or number of its host, as clients ask for it; may be given several times
    #[arg(long = "address", value_name = "HOST", required = true)]
    addresses: Vec<String>,
    /// The certificate counts for so many days
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = days())]
    days: u32,
    #[command(flatten)]
    list: ListDays,
}

/// Make or renew the certificate of somebody who asks sensors.
///
/// Writes client-NAME.pem and, the first time, client-NAME.key. A service gives it the scopes of
/// the line NAME:SCOPES:certificate, or *:SCOPES:certificate, in its token file; without such a
/// file sessions and extract.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool fleet enrol client ca alice --days 7")]
struct ClientFlags {
    /// The authority's folder
    folder: PathBuf,
    /// Whose it is
    name: String,
    /// The certificate counts for so many days
    #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = days())]
    days: u32,
    #[command(flatten)]
    list: ListDays,
}

/// Revoke all certificates with a name, and write the list of revocations.
///
/// Without a name the list is written again as it is, to count for longer. Services look for a new
/// list each second.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool fleet enrol revoke ca alice
  wirespool fleet enrol revoke ca --list-days 60")]
struct RevokeFlags {
    /// The authority's folder
    folder: PathBuf,
    /// Whose certificates
    names: Vec<String>,
    #[command(flatten)]
    list: ListDays,
}

/// List what was issued.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool fleet enrol list ca")]
struct ListFlags {
    /// The authority's folder
    folder: PathBuf,
}

pub(super) fn run(flags: &Flags) -> Outcome {
    let now_s = SystemClock.realtime().unix_seconds();
    let text = match &flags.verb {
        Verb::Init(InitFlags { folder, days, list }) => {
            Authority::init(folder, (*days, list.list_days), now_s).map_err(failed)?;
            format!("authority: {}\n", page::safe::path(folder.join("ca.pem")))
        }
        Verb::Server(ServerFlags { folder, name, addresses, days, list }) => {
            let (kind, name, addresses) = (Kind::Server, name.clone(), addresses.clone());
            enrol((folder, list), &Wanted { kind, name, addresses, days: *days }, now_s)?
        }
        Verb::Client(ClientFlags { folder, name, days, list }) => {
            let (kind, name, addresses) = (Kind::Client, name.clone(), Vec::new());
            enrol((folder, list), &Wanted { kind, name, addresses, days: *days }, now_s)?
        }
        Verb::Revoke(RevokeFlags { folder, names, list }) => {
            let mut authority = Authority::open(folder, list.list_days).map_err(failed)?;
            let revoked = authority.revoke(names, now_s).map_err(failed)?;
            let lines = names.iter().zip(revoked).map(|(name, count)| {
                let count = u64::try_from(count).unwrap_or(u64::MAX);
                format!("{name}: {} revoked\n", page::text::plural(count, "certificate"))
            });
            let text: String = lines.collect();
            format!("{text}list: {}\n", page::safe::path(authority.list()))
        }
        Verb::List(ListFlags { folder }) => {
            listed(&Authority::open(folder, 1).map_err(failed)?, now_s)
        }
    };
    stdout::print(&text)?;
    Ok(Verdict::Clean)
}

fn failed(error: ::authority::Error) -> anyhow::Error {
    if error.is_usage() { Usage(error.to_string()).into() } else { error.into() }
}

fn enrol(
    (folder, list): (&Path, &ListDays),
    wanted: &Wanted,
    now_s: i64,
) -> anyhow::Result<String> {
    let mut authority = Authority::open(folder, list.list_days).map_err(failed)?;
    let enrolled = authority.enrol(wanted, now_s).map_err(failed)?;
    let [certificate, key] = [&enrolled.certificate, &enrolled.key].map(page::safe::path);
    let kept = if enrolled.is_renewed { ", as it was" } else { "" };
    let until = until(enrolled.until_s);
    Ok(format!("certificate: {certificate}\nkey: {key}{kept}\nuntil: {until} UTC\n"))
}

fn listed(authority: &Authority, now_s: i64) -> String {
    let lines = authority.ledger().issued.iter().map(|issued| {
        let state = match issued.revoked_s {
            Some(_) => "revoked",
            None if issued.counts(now_s) => "counts",
            None => "over",
        };
        let until = until(issued.until_s);
        format!("{} {}: {state}, until {until} UTC\n", issued.kind.name(), issued.name)
    });
    lines.collect()
}

fn until(seconds: i64) -> String {
    page::text::time(Timestamp(seconds.saturating_mul(units::NANOS_PER_SECOND)))
}
