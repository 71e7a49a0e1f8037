//! What is about to be forgotten, in words.

use ::forget::Plan;
use page::text::plural;
use units::ByteSize;

/// A plan: all that matches could be looked at or not, and it is carried out or not.
pub fn plan_to_forget(plan: &Plan, (is_whole, is_wanted): (bool, bool)) -> String {
    if plan.is_empty() {
        let text = match (is_whole, is_wanted) {
            (true, true) => "no answer gives out a packet or row of these sessions",
            (true, false) => {
                "no answer gives out a packet or row of these sessions; what is hidden from \
                 answers (beyond the maximum age, or about to be overwritten) cannot be searched: \
                 --yes takes it off the disks"
            }
            (false, _) => {
                "no packet of these sessions is in what could be looked at; there may be some in \
                 the rest: nothing was changed"
            }
        };
        return format!("{text}\n");
    }
    let times = plan.times.map_or_else(String::new, |(from, to)| format!(", of {from} to {to}"));
    let todo = match (is_whole, is_wanted) {
        (false, _) => "\nnothing was changed: not all that matches could be looked at",
        (true, false) => "\nnothing was changed: --yes does it",
        (true, true) => "",
    };
    let forgotten = format!(
        "to be forgotten:  {} of {}",
        plural(plan.packets, "packet"),
        plural(plan.rows, "session row")
    );
    let lost = format!("lost with them:   {}{times}", plural(plan.other_packets, "other packet"));
    let over = format!(
        "overwritten:      {} with packets, {} with an index, {}",
        plural(plan.packet_slots, "slot"),
        plan.index_slots,
        ByteSize(plan.bytes)
    );
    let kept = if plan.kept_rows + plan.other_kept_rows > 0 {
        format!(
            "\nkept rows:        {} of overwritten packets among them; {} of the same index files \
             cannot be made again and are lost",
            plan.kept_rows,
            plural(plan.other_kept_rows, "other"),
        )
    } else {
        String::new()
    };
    let begun = match plan.begun_slots {
        0 => String::new(),
        slots => format!(
            "\nbegun before:     {}, which a call that was broken off has made unreadable",
            plural(slots, "slot")
        ),
    };
    let index_dir = page::safe::path(&plan.index_dir);
    let index = format!(
        "index files:      of {index_dir}; a recorder with another --index-dir has its own"
    );
    let hidden = "hidden:           what is beyond the maximum age or of an older lap goes, too";
    format!("{forgotten}\n{lost}\n{over}{begun}{kept}\n{hidden}\n{index}{todo}\n")
}
