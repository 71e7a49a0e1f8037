//! The report on an extract for people: what was asked for, what came out, who vouches for it, and
//! what all of that proves.

use evidence::{Attested, Coverage, Maker, OutputSummary, SIGNATURE_SUFFIX, STAMP_SUFFIX};
use manifest::CaseInfo;
use page::text::grouped;
use page::{Cell, Document};
use serde::Deserialize;
use units::{ByteSize, Timestamp, hex};

use crate::compared::{covered, signer, stamped};

/// Long answers name many times; the manifest has them all.
const STATEMENT_LINES: usize = 60;

/// An extract that was checked.
#[derive(Debug)]
pub struct CheckedExtract<'a> {
    /// Name of the manifest.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
    /// Who vouches for it.
    pub attested: &'a Attested,
    /// What is wrong with the files, a line each.
    pub findings: &'a [String],
    /// Anchors that were given.
    pub anchors: &'a [CheckedAgainst],
    /// Everything that was checked is right.
    pub is_right: bool,
    /// When it was checked.
    pub checked: Timestamp,
    /// By which program.
    pub program: &'a str,
}

/// An extract beside an anchor.
#[derive(Clone, Debug)]
pub struct CheckedAgainst {
    /// Name of the anchor.
    pub name: String,
    /// What it covers; `None` where it is of another volume.
    pub coverage: Option<Coverage>,
    /// Who vouches for it, a line each.
    pub attested: Vec<String>,
    /// All of that is right.
    pub is_right: bool,
}

/// What a report says of a manifest. Older manifests lack some of it.
#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    made_ns: Option<i64>,
    #[serde(default)]
    made_by: Option<Maker>,
    #[serde(flatten)]
    case: CaseInfo,
    #[serde(default)]
    query: String,
    #[serde(default)]
    request: serde_json::Map<String, serde_json::Value>,
    #[serde(default)]
    volume_id: String,
    #[serde(default)]
    from_ns: Option<i64>,
    #[serde(default)]
    to_ns: Option<i64>,
    #[serde(default)]
    rows: u64,
    #[serde(default)]
    state: String,
    #[serde(default)]
    statement: Vec<String>,
    #[serde(default)]
    outputs: Vec<OutputSummary>,
    #[serde(default)]
    clocks: Vec<Clock>,
    #[serde(default)]
    pieces: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Clock {
    times_by: String,
    #[serde(default)]
    synchronised: Option<bool>,
    pieces: u64,
    #[serde(default)]
    estimated_error_us: Option<u64>,
    #[serde(default)]
    largest_error_us: Option<u64>,
    #[serde(default)]
    steps: Option<u16>,
    #[serde(default)]
    steps_between: Option<u16>,
}

/// The report as a page of HTML, which stands by itself and prints; `None` where the text is no
/// manifest.
pub fn extract_report(of: &CheckedExtract<'_>) -> Option<String> {
    let manifest: Manifest = serde_json::from_str(of.text).ok()?;
    let mut page = Document::new("Report on an extract of recorded traffic");
    page.heading("Report on an extract of recorded traffic");
    verdict(&mut page, of, &manifest);
    asked(&mut page, &manifest);
    came_out(&mut page, of, &manifest);
    complete(&mut page, &manifest);
    clocks(&mut page, &manifest);
    vouched(&mut page, of);
    anchors(&mut page, of);
    proves(&mut page, of, &manifest);
    again(&mut page, of);
    Some(page.finish(&format!("Checked on {} by {}.", seconds(of.checked), of.program)))
}

fn seconds(time: Timestamp) -> String {
    let text = time.to_string();
    let whole = text.split('.').next().unwrap_or_default();
    format!("{} UTC", whole.replace('T', " "))
}

fn verdict(page: &mut Document, of: &CheckedExtract<'_>, manifest: &Manifest) {
    let state = match manifest.state.as_str() {
        "complete" => "By its manifest the extract has everything that was asked for.",
        "unknown" => "Nothing is known to be missing, but for some times this cannot be known.",
        _ => "By its manifest something that was asked for is missing; it is listed below.",
    };
    let (tone, words) = if of.is_right {
        ("good", "Every check that was made is right")
    } else {
        ("bad", "Something is not as it was written")
    };
    page.verdict(tone, words, &[state.to_owned()]);
}

fn asked(page: &mut Document, manifest: &Manifest) {
    page.section("What was asked for, by whom and why");
    let mut rows = Vec::new();
    let mut row = |name: &str, text: String| rows.push(vec![Cell::text(name), Cell::long(text)]);
    let CaseInfo { case, purpose, requester } = &manifest.case;
    for (name, text) in [("Case", case), ("Purpose", purpose), ("Requested by", requester)] {
        row(name, text.clone().unwrap_or_else(|| "not stated".to_owned()));
    }
    let query = Some(manifest.query.as_str()).filter(|query| !query.is_empty());
    row("Query", query.unwrap_or("everything").to_owned());
    let options = manifest.request.iter().filter(|(name, _)| *name != "approved");
    let options: Vec<String> = options.map(|(name, value)| format!("{name}: {value}")).collect();
    row("Options", options.join(", "));
    let approved = manifest.request.get("approved");
    for (name, key) in [("Asked for by", "requested_by"), ("Approved by", "approved_by")] {
        let who = approved.and_then(|it| it.get(key)).and_then(serde_json::Value::as_str);
        if let Some(who) = who {
            row(name, who.to_owned());
        }
    }
    let bound =
        |ns: Option<i64>| ns.map_or_else(|| "no bound".to_owned(), |ns| Timestamp(ns).to_string());
    row("Packets from", bound(manifest.from_ns));
    row("Packets to", bound(manifest.to_ns));
    row("Volume", manifest.volume_id.clone());
    if let Some(Maker { program, host, user, called_by }) = &manifest.made_by {
        let called = called_by.as_ref().map_or_else(String::new, |by| format!(", called by {by}"));
        row("Made by", format!("{user} on {host}{called}, with {program}"));
    }
    let made = manifest.made_ns.map_or_else(|| "unknown".to_owned(), |ns| seconds(Timestamp(ns)));
    row("Made on", format!("{made}, by the clock of that machine"));
    page.table(
        "As the manifest says it; case, purpose and requester are not checked",
        &["", ""],
        &rows,
    );
}

fn came_out(page: &mut Document, of: &CheckedExtract<'_>, manifest: &Manifest) {
    page.section("What came out");
    let row = |output: &OutputSummary| {
        vec![
            Cell::long(output.file.clone().unwrap_or_else(|| "a pipe".to_owned())),
            Cell::number(grouped(output.packets)),
            Cell::number(ByteSize(output.bytes).to_string()),
            Cell::long(hex(&output.sha256)),
        ]
    };
    let rows: Vec<Vec<Cell>> = manifest.outputs.iter().map(row).collect();
    page.table("Files", &["File", "Packets", "Size", "SHA-256"], &rows);
    let pieces = units::number::to_u64(manifest.pieces.len());
    page.remark(&format!(
        "From {} and {} of the volume; the manifest names each piece with its checksum, the \
         identity of its stripe, and a hash of the packets that it gave.",
        page::text::plural(manifest.rows, "session row"),
        page::text::plural(pieces, "piece"),
    ));
    if of.findings.is_empty() {
        page.paragraph("Compared: each file has the length, SHA-256 and BLAKE3 of its manifest.");
    } else {
        page.label("Not as the manifest says");
        page.list(of.findings);
    }
}

fn complete(page: &mut Document, manifest: &Manifest) {
    page.section("What is complete, and what is missing");
    if manifest.statement.is_empty() {
        page.paragraph("The manifest has no statement in words; its part \"completeness\" has it.");
        return;
    }
    let shown = manifest.statement.iter().take(STATEMENT_LINES).cloned();
    let more = manifest.statement.len().saturating_sub(STATEMENT_LINES);
    let more = (more > 0).then(|| format!("and {more} more lines in the manifest"));
    page.list(&shown.chain(more).collect::<Vec<_>>());
}

fn clocks(page: &mut Document, manifest: &Manifest) {
    page.section("The clock");
    let micros = |us: Option<u64>| {
        us.map_or_else(|| "not said".to_owned(), |us| format!("{} us", grouped(us)))
    };
    let row = |clock: &Clock| {
        let kept = match clock.synchronised {
            Some(true) => "yes",
            Some(false) => "no",
            None => "not said",
        };
        let steps = match (clock.steps, clock.steps_between) {
            (Some(all), Some(between)) => format!("{all}, of these {between} in between"),
            _ => "not looked at".to_owned(),
        };
        vec![
            Cell::text(clock.times_by.clone()),
            Cell::number(grouped(clock.pieces)),
            Cell::text(kept),
            Cell::text(micros(clock.estimated_error_us)),
            Cell::text(micros(clock.largest_error_us)),
            Cell::text(steps),
        ]
    };
    let rows: Vec<Vec<Cell>> = manifest.clocks.iter().map(row).collect();
    if rows.is_empty() {
        page.paragraph(
            "The manifest says nothing of the clock that packets have their times from.",
        );
        return;
    }
    let headings =
        ["Times by", "Pieces", "Synchronised", "Estimated error", "Largest error", "Set so often"];
    page.table("What the recorders knew of it at the time", &headings, &rows);
    page.paragraph(
        "Synchronisation and errors are what the kernel of the recorder said of its own clock, by \
         the program that keeps it. They are no measurement, and say nothing of an adapter's \
         clock. Of packets that were read from files, whoever wrote the files stamped them. A \
         clock that was set by less than 50 ms was not noticed.",
    );
}

fn vouched(page: &mut Document, of: &CheckedExtract<'_>) {
    page.section("Who vouches for the manifest");
    let found = of.attested;
    let mut rows = Vec::new();
    let mut row = |what: &str, result: String, meaning: &str| {
        rows.push(vec![Cell::text(what), Cell::long(result), Cell::text(meaning)]);
    };
    match &found.seal {
        Err(error) => row("Seal", error.to_string(), "The text is not what was written."),
        Ok(None) => row(
            "Seal",
            "fits the text; there is no signature in it".to_owned(),
            "Finds accidents. Who can write the file can write the seal.",
        ),
        Ok(Some(by)) => row(
            "Seal and signature",
            format!("right; {}", signer(by)),
            "Who has the private key signed this text. Whose key it is, the key does not say.",
        ),
    }
    let beside = format!("{}{SIGNATURE_SUFFIX}", of.name);
    match &found.signature {
        None => {}
        Some(Ok(by)) => row(&beside, format!("right; {}", signer(by)), "As above, by OpenSSH."),
        Some(Err(error)) => row(&beside, error.to_string(), "It does not count."),
    }
    let beside = format!("{}{STAMP_SUFFIX}", of.name);
    match &found.stamp {
        None => row(
            "Time stamp",
            "none".to_owned(),
            "When the manifest was made is known by its own word only.",
        ),
        Some(Ok(stamp)) => row(
            &beside,
            stamped(stamp),
            "The text was there at that time at the latest. Whether the certificate was revoked \
             is not checked.",
        ),
        Some(Err(error)) => row(&beside, error.to_string(), "It does not count."),
    }
    if let Some(error) = found.distrust {
        row("Trust", error.to_string(), "None of the keys given signed it.");
    }
    page.table("Checks", &["What", "Result", "What it means"], &rows);
}

fn anchors(page: &mut Document, of: &CheckedExtract<'_>) {
    page.section("Anchors of the volume");
    if of.anchors.is_empty() {
        page.paragraph(
            "None was given. Nothing outside of the volume vouches for what it held when the \
             extract was made.",
        );
        return;
    }
    for anchor in of.anchors {
        let tone = if anchor.is_right { "good" } else { "bad" };
        page.panel(tone, &anchor.name, |page| {
            page.paragraph(&covered("It", anchor.coverage.as_ref()));
            page.list(&anchor.attested);
        });
    }
}

fn proves(page: &mut Document, of: &CheckedExtract<'_>, manifest: &Manifest) {
    page.section("What this proves");
    let mut proven = Vec::new();
    if of.findings.is_empty() && of.attested.seal.is_ok() {
        proven.push("The files are those that the manifest describes, byte for byte.".to_owned());
    }
    let trusted = of.attested.signers().find(|signer| signer.is_trusted());
    if let Some(by) = trusted.filter(|_| of.attested.distrust.is_none()) {
        proven.push(format!("The manifest was signed with {}.", signer(by)));
    }
    if let Some(Ok(stamp)) = &of.attested.stamp
        && stamp.is_trusted
    {
        proven.push(format!("It has not changed since {}.", seconds(stamp.at)));
    }
    let by_anchor = of.anchors.iter().filter(|anchor| anchor.is_right);
    for coverage in by_anchor.filter_map(|anchor| anchor.coverage) {
        let pieces = page::text::plural(coverage.covered, "piece");
        proven.push(match coverage.stamped {
            Some(at) => format!(
                "The stripes of {pieces} are those that the volume held on {} at the latest.",
                seconds(at)
            ),
            None => format!("The stripes of {pieces} are those that the anchor lists."),
        });
    }
    if proven.is_empty() {
        proven.push("Nothing: see the checks that failed.".to_owned());
    }
    page.list(&proven);
    page.section("What this does not prove");
    let mut open = vec![
        "That the recorder saw all traffic of the link: what the link or a tap lost in front of it \
         is not known to it."
            .to_owned(),
        "That packets are what their senders say: addresses and names in them can be forged."
            .to_owned(),
        "Who sat at a machine that an address belongs to.".to_owned(),
        "That nobody put packets into the volume, or took some out, before it was first anchored \
         or signed: who controls the recorder can do that."
            .to_owned(),
        "That case, purpose and requester are true: they are as the maker typed them.".to_owned(),
    ];
    if trusted.is_none() {
        open.push("Who made the manifest: no key was given that would say so.".to_owned());
    }
    if !manifest.clocks.iter().any(|clock| clock.synchronised == Some(true)) {
        open.push("That times are right: no synchronised clock is on record.".to_owned());
    }
    if manifest.state != "complete" {
        open.push("That nothing else was there: the answer is not complete.".to_owned());
    }
    page.list(&open);
}

fn again(page: &mut Document, of: &CheckedExtract<'_>) {
    page.section("How to check this again");
    page.commands(&[
        format!("wirespool verify-extract {} FILE --public-key KEY.pub", of.name),
        "sha256sum FILE".to_owned(),
        format!(
            "ssh-keygen -Y verify -f allowed_signers -I WHO -n wirespool -s {0}.sig < {0}",
            of.name
        ),
        format!("openssl ts -verify -data {0} -in {0}.tsr -CAfile AUTHORITY.pem", of.name),
    ]);
    page.remark(
        "The second line needs no wirespool; the third and fourth hold where the files with these \
         names are there.",
    );
}

/// What an extract gave: packets, and of how many session rows. No rows are read where all packets
/// are asked for.
pub fn counted(packets: u64, rows: u64) -> String {
    let packets = page::text::plural(packets, "packet");
    if rows == 0 {
        packets
    } else {
        format!("{packets} of {}", page::text::plural(rows, "session row"))
    }
}
