//! Tables as Markdown has them, and numbers as a reader likes them.

use units::number::whole;

/// A table with a title.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Table {
    title: String,
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(title: &str, heads: &[&str]) -> Self {
        let heads = heads.iter().map(|&head| head.to_owned()).collect();
        Self { title: title.to_owned(), heads, rows: Vec::new() }
    }

    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = String>) {
        let row: Vec<String> = row.into_iter().collect();
        assert_eq!(row.len(), self.heads.len(), "a cell for each column: {row:?}");
        self.rows.push(row);
    }

    pub(crate) fn text(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rules = vec!["---".to_owned(); self.heads.len()];
        let mut text = format!("### {}\n\n{}", self.title, line(&self.heads));
        text.push_str(&line(&rules));
        self.rows.iter().for_each(|row| text.push_str(&line(row)));
        text + "\n"
    }
}

/// Three digits, with a prefix where it is large.
pub(crate) fn number(value: f64) -> String {
    for (factor, prefix) in [(1e15, " P"), (1e12, " T"), (1e9, " G"), (1e6, " M"), (1e4, " k")] {
        if value.abs() >= factor {
            let factor = if prefix == " k" { 1e3 } else { factor };
            return format!("{}{prefix}", digits(value / factor));
        }
    }
    digits(value)
}

/// The same of what is counted.
pub(crate) fn count(value: f64) -> String {
    if value.abs() < 1e4 { whole(value).to_string() } else { number(value) }
}

fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        large if large >= 100.0 => format!("{}", whole(value)),
        medium if medium >= 10.0 => format!("{value:.1}"),
        small if small >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// A length of time.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        long if long >= 172_800.0 => format!("{} days", digits(long / 86_400.0)),
        long if long >= 7200.0 => format!("{} h", digits(long / 3600.0)),
        long if long >= 600.0 => format!("{} min", digits(long / 60.0)),
        short if short >= 1.0 => format!("{} s", digits(short)),
        short => format!("{} ms", digits(short * 1e3)),
    }
}

pub(crate) fn percent(share: f64) -> String {
    format!("{} %", digits(share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let numbers = [0.0, 0.0123, 1.5, 42.0, 999.0, 9999.0, 19_020_000.0, 1.35e12].map(number);
        let texts = ["0", "0.0123", "1.50", "42.0", "999", "9999", "19.0 M", "1.35 T"];
        assert_eq!(numbers, texts);
        let times = [0.05, 31.0, 1500.0, 9000.0, 1e6].map(time);
        assert_eq!(times, ["50.0 ms", "31.0 s", "25.0 min", "2.50 h", "11.6 days"]);
        assert_eq!(percent(0.123), "12.3 %");
        assert_eq!([7.0, 6299.0, 58_900.0].map(count), ["7", "6299", "58.9 k"]);
    }

    #[test]
    fn a_table_is_markdown() {
        let mut table = Table::new("What", &["a", "b"]);
        table.push(["1", "2"].map(str::to_owned));
        assert_eq!(table.text(), "### What\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n");
    }
}
