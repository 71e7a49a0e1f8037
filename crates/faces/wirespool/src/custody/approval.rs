//! `wirespool request`, `wirespool approve`, and extracts that need both.

use core::time::Duration;
use std::path::{Path, PathBuf};

use ::evidence::{
    APPROVAL_SUFFIX, APPROVAL_VERSION, ApprovalForm, Approved, ApprovedForm, RequestForm,
    check_approval, check_request,
};
use ::manifest::CaseInfo;
use anyhow::Context as _;
use attest::{Statement, Wanted, read_trust, with_suffix};
use clap::Args;
use host::SystemClock;
use units::{Clock as _, Timestamp, hex, nanos};

use crate::evidence::{maker, signing_key};
use crate::failure::{Outcome, Verdict, of_attest};
use crate::selection::CaseFlags;
use crate::{arguments, stdout};

/// Requests and approvals are small.
const BYTES_MAX: u64 = 1 << 20;

/// Ask for an extract that somebody else has to approve.
///
/// Writes the query, with absolute times, and what the extract is for, signed with a key of who
/// asks. `approve` adds the consent of another person, and `extract --approved` hands out what was
/// asked for, and nothing else, when both are signed by keys that count.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool request 'host 10.0.0.1' --sign alice.key --case 17 -w request.json
  wirespool approve request.json --sign bob.key
  wirespool extract /data/spool --approved request.json --approvers signers -w evidence.pcapng")]
pub(crate) struct RequestFlags {
    /// The sessions that are asked for
    #[arg(required = true)]
    query: Vec<String>,
    /// Write the request to this file
    #[arg(long, short, value_name = "FILE")]
    write: PathBuf,
    /// The key of who asks
    #[arg(long, value_name = "KEYFILE")]
    sign: PathBuf,
    /// So long something is handed out for it
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = arguments::duration)]
    valid_for: Duration,
    #[command(flatten)]
    case: CaseFlags,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

pub(crate) fn request(flags: &RequestFlags) -> Outcome {
    let query = arguments::query(&flags.query.join(" "))?;
    let key = signing_key(&flags.sign)?;
    let now = SystemClock.realtime();
    let request = RequestForm {
        request_version: APPROVAL_VERSION,
        made_ns: now.0,
        made_by: maker().clone(),
        query: query.to_string(),
        case: flags.case.info(),
        valid_until_ns: now.plus_nanos(nanos(flags.valid_for)).0,
    };
    let wanted = Wanted { key: Some(&key), has_request: false };
    let statement = Statement::begin(&flags.write, &wanted, flags.force).map_err(of_attest)?;
    let make = |key: Option<&_>| session_view::request_json(&request, key);
    statement.finish(&wanted, &make).map_err(of_attest)?;
    Ok(Verdict::Clean)
}

/// Approve a request of somebody else for an extract.
///
/// Shows what was asked for, and writes the consent beside it, to REQUEST.approved, signed with a
/// key of who approves. A request that was changed, has ended, or is signed by that very key or by
/// none is refused.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool approve request.json --sign bob.key
  wirespool approve request.json --sign bob.key --note 'only for case 2026/17'")]
pub(crate) struct ApproveFlags {
    /// The request
    request: PathBuf,
    /// The key of who approves
    #[arg(long, value_name = "KEYFILE")]
    sign: PathBuf,
    /// What there is to say of it
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Replace an approval that is there
    #[arg(long)]
    force: bool,
}

pub(crate) fn approve(flags: &ApproveFlags) -> Outcome {
    let text = read(&flags.request)?;
    let key = signing_key(&flags.sign)?;
    let request = check_request(&text, &key.public(), SystemClock.realtime())
        .with_context(|| page::safe::path(&flags.request))?;
    let approval = ApprovalForm {
        approval_version: APPROVAL_VERSION,
        made_ns: SystemClock.realtime().0,
        made_by: maker().clone(),
        request_blake3: hex(blake3::hash(text.as_bytes()).as_bytes()),
        note: flags.note.clone(),
    };
    let path = with_suffix(&flags.request, APPROVAL_SUFFIX);
    let wanted = Wanted { key: Some(&key), has_request: false };
    let statement = Statement::begin(&path, &wanted, flags.force).map_err(of_attest)?;
    let make = |key: Option<&_>| session_view::approval_json(&approval, key);
    statement.finish(&wanted, &make).map_err(of_attest)?;
    let mut said = format!("approved: {}\n", request.query);
    for (name, text) in request.case.lines() {
        said.extend([name, ": ", text, "\n"]);
    }
    said.extend(["until: ", &Timestamp(request.valid_until_ns).to_string(), "\n"]);
    stdout::print(&said)?;
    Ok(Verdict::Clean)
}

/// What an extract is made by besides a query.
#[derive(Debug, Args)]
pub(crate) struct ApprovedFlags {
    /// Hand out what this request asks for, in the place of a query, when FILE.approved beside it
    /// is signed by another person
    #[arg(long, value_name = "FILE", requires = "approvers",
        conflicts_with_all = ["query", "case", "purpose", "requester", "remote", "raw", "around",
            "tags", "mmdb"])]
    approved: Option<PathBuf>,
    /// Whose keys count, for asking and for approving: a list of allowed signers of OpenSSH
    #[arg(long, value_name = "FILE", requires = "approved")]
    approvers: Option<PathBuf>,
}

impl ApprovedFlags {
    /// What was approved, if that is asked for: the query, what it is for, and who said so.
    pub(crate) fn approved(&self) -> anyhow::Result<Option<(String, CaseInfo, ApprovedForm)>> {
        let (Some(request), Some(approvers)) = (&self.approved, &self.approvers) else {
            return Ok(None);
        };
        let keys = read_trust(Some(approvers), None).map_err(of_attest)?.keys;
        let (asked, said) = (read(request)?, read(&with_suffix(request, APPROVAL_SUFFIX))?);
        let checked = check_approval(&asked, &said, &keys, SystemClock.realtime());
        let Approved { request: form, named } =
            checked.with_context(|| page::safe::path(request))?;
        Ok(Some((form.query, form.case, named)))
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    Ok(host::read_input_text(path, BYTES_MAX)?)
}
