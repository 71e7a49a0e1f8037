//! `wirespool forget`, and the receipts of what was erased.

use std::path::PathBuf;

use ::evidence::{RECEIPT_VERSION, ReceiptForm};
use ::forget::Plan;
use anyhow::Context as _;
use attest::{Statement, Wanted};
use clap::Args;
use host::{StopFlag, SystemClock};
use units::Clock as _;
use upkeep::Target;

use crate::evidence::{maker, signing_key};
use crate::failure::{Outcome, Usage, Verdict, of_attest};
use crate::progress::{Progress, say_lines};
use crate::reading::ReadingFlags;
use crate::selection::NamingFlags;
use crate::{arguments, stdout};

/// Where the receipt of an erasure goes.
#[derive(Debug, Args)]
pub(crate) struct ReceiptFlags {
    /// Write a receipt to this file: what was erased, when, by whom
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    /// Sign the receipt with this key, as extract does
    #[arg(long, value_name = "KEYFILE", requires = "receipt")]
    sign: Option<PathBuf>,
    /// Why it is erased, for the receipt
    #[arg(long, value_name = "TEXT", requires = "receipt")]
    reason: Option<String>,
}

impl ReceiptFlags {
    /// Begins the files, before anything is erased, with space for a receipt that names `slots`;
    /// writes them with what the job says of it. A receipt that cannot be written all the same is
    /// printed: what happened cannot be asked for again.
    pub(crate) fn around(
        &self,
        slots: u64,
        job: impl FnOnce() -> anyhow::Result<ReceiptForm>,
    ) -> anyhow::Result<()> {
        let key = self.sign.as_deref().map(signing_key).transpose()?;
        let wanted = Wanted { key: key.as_ref(), has_request: false };
        let begin = |path: &PathBuf| Statement::begin_kept(path, &wanted).map_err(of_attest);
        let statement = self.receipt.as_ref().map(begin).transpose()?;
        let bytes = RECEIPT_BYTES.saturating_add(slots.saturating_mul(SLOT_BYTES));
        statement.iter().try_for_each(|it| it.reserve(bytes)).map_err(of_attest)?;
        let receipt = ReceiptForm {
            receipt_version: RECEIPT_VERSION,
            reason: self.reason.clone(),
            made_by: maker().clone(),
            ..job()?
        };
        let receipt = ReceiptForm { made_ns: SystemClock.realtime().0, ..receipt };
        if let Some(statement) = statement {
            let make = |key: Option<&_>| session_view::receipt_json(&receipt, key);
            if let Err(error) = statement.finish(&wanted, &make) {
                stdout::print(&make(wanted.key))?;
                let text =
                    "it is done, and the receipt, which stands on standard output, is in no file";
                return Err(of_attest(error).context(text));
            }
        }
        Ok(())
    }
}

/// Most of a receipt without slots, and what the number of one takes in it.
const RECEIPT_BYTES: u64 = 64 << 10;
const SLOT_BYTES: u64 = 32;

/// Erase the packets of somebody from a volume.
///
/// Says first what it would do: which slots hold packets of sessions that match, which indexes name
/// them, and how many other packets lie in the same slots and go with them, for a slot is
/// overwritten whole. With --yes it does it: the slots are overwritten with zeros on every member,
/// so that neither parity nor index has them any more, and the index files in the index directory
/// that name them are removed. What no query finds any more goes, too, whoever it is of, also where
/// nothing matches: what is beyond the maximum age, and what an older lap left before the head.
/// Rows that outlive their packets (--keep-sessions) go with the index file that has them, and with
/// them all others of overwritten packets in it. Later answers about these times say that packets
/// were erased on request. Not while a recorder runs, and only when every member is there and
/// whole. It may be broken off and done again. Copies elsewhere stay:
/// extracts, holds, archives, other index directories.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool forget /data/spool 'host 10.0.0.1'
  wirespool forget /data/spool --subject jones.example
  wirespool forget /data/spool 'host 10.0.0.1' --yes --receipt erased.json --sign signing.key

Exit code 1 when nothing matches, or what matches could not be looked at in full.")]
pub(crate) struct Flags {
    /// The volume: any of its members
    volume: PathBuf,
    /// Whose packets: a query, as for find
    query: Vec<String>,
    #[command(flatten)]
    naming: NamingFlags,
    /// Do it; without this nothing is changed
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    receipt: ReceiptFlags,
    #[command(flatten)]
    reading: ReadingFlags,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let text = flags.naming.query_text(&flags.query)?;
    let query = arguments::query(&text)?;
    if query == query::Query::all() {
        let text = "the query matches all packets: create a new volume, or say whose";
        return Err(Usage(text.to_owned()).into());
    }
    let mut options = flags.reading.options(flags.volume.clone())?;
    flags.reading.catch_up(&mut options);
    if options.is_recorded {
        // Which slots its packets will lie in is not known yet.
        let volume = page::safe::path(&flags.volume);
        anyhow::bail!(
            "{volume} is being recorded to: stop the recorder first; nothing was changed"
        );
    }
    let (volume, members) = (options.volume.clone(), options.members.clone());
    let target = Target { volume, members, without: Vec::new() };
    if flags.yes {
        upkeep::settle(&target, &SystemClock)?;
    }
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("forget");
    let plan = ::forget::plan(&options, &query, &SystemClock, &mut |done, of| {
        progress.text(&|| format!("{done} of {of} segments"));
        stop.flow()
    });
    progress.finish();
    let plan = plan.with_context(|| page::safe::path(&flags.volume))?;
    let is_whole = plan.completeness.damage.is_empty() && !plan.completeness.stopped;
    stdout::print(&verbs::forget::plan_to_forget(&plan, (is_whole, flags.yes)))?;
    if !is_whole {
        say_lines(&plan.completeness.to_string());
    }
    if flags.yes && is_whole {
        flags.receipt.around(plan.slots(), || {
            plan.carry_out(&target, options.index_dir.as_deref(), &SystemClock)?;
            Ok(receipt_of(&plan, &text))
        })?;
        stdout::print("erased on every member\n")?;
    }
    Ok(if plan.is_empty() { Verdict::Negative } else { Verdict::clean_if(is_whole) })
}

fn receipt_of(plan: &Plan, query: &str) -> ReceiptForm {
    ReceiptForm {
        action: "forget".to_owned(),
        volume_id: plan.volume.to_string(),
        query: Some(query.to_owned()),
        packets: Some(plan.packets),
        other_packets: Some(plan.other_packets),
        kept_rows: Some(plan.kept_rows),
        other_kept_rows: Some(plan.other_kept_rows),
        slots: plan.slots(),
        sequences: plan.sequences(),
        ..ReceiptForm::default()
    }
}
