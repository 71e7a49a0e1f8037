//! Places of a disk over time, as a plot of characters: rows are stretches of the disk, columns of
//! time.

use core::fmt::Write as _;

use diagnose::io::Places;
use page::text::duration;
use units::ByteSize;

/// Lines of the plot.
const HEIGHT: u64 = 16;
/// Characters of the labels.
const AXIS: usize = 12;

/// The part of a disk that was used; empty where that is a single place or moment.
pub(super) fn plot(disk: &str, places: &Places, width: usize) -> String {
    let rows = places.cells.keys().map(|(_, row)| *row);
    let (Some(first), Some(last)) = (rows.clone().min(), rows.max()) else { return String::new() };
    let columns = places.cells.keys().map(|(column, _)| *column).max().unwrap_or(0) + 1;
    if first == last || columns < 2 {
        return String::new();
    }
    let room = u64::try_from(width.saturating_sub(AXIS + 2)).unwrap_or(0).max(10);
    let (per_line, per_mark) = ((last - first + 1).div_ceil(HEIGHT), columns.div_ceil(room));
    let lines = (last - first + 1).div_ceil(per_line);
    let marks = usize::try_from(columns.div_ceil(per_mark)).unwrap_or(0);
    let mut text = format!("{disk}, places over time (r read, w written, x both)\n");
    for line in (0..lines).rev() {
        let mut bytes = vec![[0_u64; 2]; marks];
        let begin = first + line * per_line;
        for ((column, row), [read, written]) in &places.cells {
            let at = usize::try_from(column / per_mark).unwrap_or(usize::MAX);
            if let Some([reads, writes]) = bytes.get_mut(at)
                && (begin..begin + per_line).contains(row)
            {
                *reads += read;
                *writes += written;
            }
        }
        let marks: String = bytes.iter().map(|[read, written]| mark(*read, *written)).collect();
        let place = ByteSize(begin * places.row_bytes).to_string();
        writeln!(text, "{place:>AXIS$} |{}", marks.trim_end()).expect("a string takes all text");
    }
    let column_ns = places.column_ns.saturating_mul(per_mark);
    let column = duration(i64::try_from(column_ns).unwrap_or(i64::MAX));
    let axis = "-".repeat(marks);
    writeln!(text, "{:AXIS$} +{axis}\n{:AXIS$}  a column is {column}\n", "", "")
        .expect("a string takes all text");
    text
}

fn mark(read: u64, written: u64) -> char {
    match (read > 0, written > 0) {
        (true, true) => 'x',
        (true, false) => 'r',
        (false, true) => 'w',
        (false, false) => ' ',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_and_what_is_written_stand_at_their_places() {
        let mut places = Places::default();
        for step in 0..16 {
            places.cells.insert((step, 100 + step), [4096, 0]);
        }
        places.cells.insert((0, 115), [0, 4096]);
        places.cells.insert((15, 115), [4096, 4096]);
        let text = plot("vda", &places, 100);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 20, "{text}");
        assert_eq!(lines[1], "     115 MiB |w              x");
        assert_eq!(lines[16], "     100 MiB |r");
        assert!(lines[18].ends_with("a column is 50.0 ms"), "{text}");
        assert_eq!(plot("vda", &Places::default(), 100), "");
    }
}
