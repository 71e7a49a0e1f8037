//! Schemas of what is looked at of a volume besides its sessions.

use serde_json::{Map, Value, json};

use crate::form::{counts, form, list, of, optional, text, time};

/// By their names.
pub(crate) fn schemas() -> Map<String, Value> {
    let all = [
        ("Inspection", inspection()),
        ("Recording", recording()),
        ("Recordings", recordings()),
        ("Ring", ring()),
        ("RingMember", member()),
        ("RingCell", cell()),
        ("Gap", gap()),
        ("Gaps", gaps()),
        ("Qualified", qualified()),
        ("QualificationOfVolume", qualification()),
        ("Finding", finding()),
        ("Diagnosis", diagnosis()),
    ];
    all.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

fn inspection() -> Value {
    let member = form(
        &[("path", text()), ("state", state())],
        &optional(&[("stale_from", counts()), ("clean_from", counts())]),
    );
    form(
        &[
            ("path", text()),
            ("volume_id", text()),
            ("created_ns", time()),
            ("members", list(&member)),
            ("data_columns", counts()),
            ("parity_columns", counts()),
            ("piece_bytes", counts()),
            ("layout", json!({"type": "object"})),
            ("slots", counts()),
            ("slots_used", counts()),
            ("slots_written", counts()),
            ("window", counts()),
            ("epoch", counts()),
            ("clean_stop", json!({"type": "boolean"})),
            ("index", json!({"type": "object"})),
            ("recordings", list(&of("Recording"))),
        ],
        &optional(&[
            ("qualified", of("Qualified")),
            ("recipients", list(&text())),
            ("max_age_ns", time()),
            ("expired_through_ns", time()),
            ("erases", json!({"type": "boolean"})),
            ("tail_sequence", counts()),
            ("newest_sequence", counts()),
            ("acknowledged", text()),
            ("start_ns", time()),
            ("end_ns", time()),
            ("reach_full_ns", time()),
            ("map", json!({"type": "object"})),
        ]),
    )
}

fn recording() -> Value {
    form(
        &[("epoch", counts()), ("first_sequence", counts()), ("last_sequence", counts())],
        &[
            ("name", text(), "As given with `record --name`"),
            ("start_ns", time(), "Earliest packet left"),
            ("end_ns", time(), "Latest packet"),
            ("packets", counts(), "As far as they are indexed"),
            ("sessions", counts(), "Rows, as far as they are indexed"),
            ("share_left", json!({"type": "number"}), "That the ring has not taken"),
        ],
    )
}

fn recordings() -> Value {
    form(
        &[("recordings", list(&of("Recording"))), ("is_narrowed", json!({"type": "boolean"}))],
        &[],
    )
}

fn ring() -> Value {
    form(
        &[
            ("volume_id", text()),
            ("data_columns", counts()),
            ("parity_columns", counts()),
            ("zones", counts()),
            ("slots", counts()),
            ("piece_bytes", counts()),
            ("columns", counts()),
            ("slots_per_cell", counts()),
            ("sampled_every", counts()),
            ("segments", counts()),
            ("written_ns", list(&json!({"type": ["integer", "null"]}))),
            ("members", list(&of("RingMember"))),
            ("cells", list(&of("RingCell"))),
        ],
        &[
            ("tail_sequence", counts(), "Oldest sequence that is shown"),
            ("newest_sequence", counts(), "Newest sequence on the ring"),
            ("acknowledged", text(), "Newest stripe that is durable"),
        ],
    )
}

fn state() -> Value {
    json!({"enum": ["whole", "stale", "absent", "vacant"]})
}

fn member() -> Value {
    form(
        &[
            ("number", counts()),
            ("path", text()),
            ("state", state()),
            ("stale_bytes", counts()),
            ("damaged_cells", counts()),
        ],
        &[
            ("stale_from", counts(), "First sequence that it missed"),
            ("clean_from", counts(), "First sequence that is whole again"),
        ],
    )
}

fn cell() -> Value {
    let content = json!({"enum": ["unwritten", "written", "left_early", "opening",
        "ahead_of_head", "damaged"]});
    let flag = || json!({"type": "boolean"});
    form(
        &[("place", counts()), ("slots", counts()), ("content", content), ("zone", counts())],
        &[
            ("sequence", counts(), "Of its middle slot, if that was ever written"),
            ("unused_percent", counts(), "Of a slot that was left early"),
            ("head", flag(), "The newest stripe lies in it"),
            ("tail", flag(), "The oldest stripe that is shown lies in it"),
            ("index", flag(), "The index of a segment begins in it"),
            ("damaged_members", list(&counts()), "Members that do not show the middle slot"),
            ("age", counts(), "Tenth of what is held that it lies in: 0 is the newest"),
            ("holds", counts(), "Holds that have packets of it"),
        ],
    )
}

fn gap() -> Value {
    form(
        &[("cause", cause()), ("from_ns", time()), ("to_ns", time())],
        &[
            ("interface", counts(), "Where the loss can be laid to one"),
            ("packets", counts(), "Absent is unknown, not zero"),
            ("bytes", counts(), "Absent is unknown, not zero"),
        ],
    )
}

fn cause() -> Value {
    json!({"enum": ["interface_drops", "kernel_drops", "writer_drops", "crash", "damage"]})
}

fn gaps() -> Value {
    let lost = form(
        &[
            ("cause", cause()),
            ("gaps", counts()),
            ("packets", counts()),
            ("uncounted_gaps", counts()),
        ],
        &[],
    );
    form(
        &[
            ("gaps", list(&of("Gap"))),
            ("count", counts()),
            ("lost", list(&lost)),
            ("statement", of("Statement")),
        ],
        &[],
    )
}

fn qualified() -> Value {
    form(
        &[
            ("by", json!({"enum": ["writing", "places", "reading"]})),
            ("started_ns", time()),
            ("guaranteed_bytes_per_s", counts()),
            ("mean_bytes_per_s", counts()),
            ("pool_bytes", counts()),
            ("longest_write_ns", counts()),
            ("report", text()),
        ],
        &[],
    )
}

fn qualification() -> Value {
    let report = form(
        &[
            ("file", text()),
            ("id", text()),
            ("is_of_volume", json!({"type": "boolean"})),
            ("report", json!({"type": "object"})),
        ],
        &[],
    );
    form(
        &[("volume_id", text()), ("reports", list(&report))],
        &[
            ("qualified", of("Qualified"), "What the volume keeps of it, for each member"),
            ("headroom", json!({"type": "object"}), "What the disks are asked for now"),
            ("devices", list(&json!({"type": "object"})), "What each member does now"),
        ],
    )
}

fn finding() -> Value {
    let remedy =
        form(&[("what", text()), ("now", list(&text())), ("for_good", list(&text()))], &[]);
    form(
        &[
            ("kind", text()),
            ("severity", json!({"enum": ["note", "warning", "problem"]})),
            ("reach", counts()),
            ("what", text()),
            ("evidence", list(&text())),
            ("cause", text()),
            ("remedies", list(&remedy)),
        ],
        &[],
    )
}

fn diagnosis() -> Value {
    let unseen = form(&[("what", text()), ("needs", text())], &[]);
    let consequence = form(&[("finding", counts()), ("follows_from", counts())], &[]);
    form(
        &[
            ("version", counts()),
            ("looked_at", list(&text())),
            ("findings", list(&of("Finding"))),
            ("unseen", list(&unseen)),
        ],
        &[
            ("shares", list(&json!({"type": "object"})), "Who has the processors and disks"),
            ("consequences", list(&consequence), "Places of findings that follow from others"),
        ],
    )
}
