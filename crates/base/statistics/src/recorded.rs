//! What was recorded with each value, as numbers and words, and which of it separates two modes.

use core::fmt;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use units::Random;
use units::number::real_usize;

use crate::factor::{Explanation, Factor, Levels, explain};

/// A number, or a word.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Cell {
    /// It is cut where that separates best.
    Number(f64),
    /// One of a few.
    Word(String),
}

impl Cell {
    /// Text that is a finite number is one.
    pub fn read(text: &str) -> Self {
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.map_or_else(|| Self::Word(text.to_owned()), Self::Number)
    }
}

/// Something that was recorded with every value.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// What it is called.
    pub name: String,
    /// One for each value.
    pub cells: Vec<Cell>,
}

/// A column that separates two modes.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Separation {
    /// What it is called.
    pub name: String,
    /// How much of the modes it says, 1 for all: [`Explanation::share`].
    pub share: f64,
    /// The chance that one of the columns says as much by accident.
    #[serde(rename = "chance")]
    pub p: f64,
    /// What the lower mode goes with.
    pub lower: Level,
    /// What the upper mode goes with.
    pub upper: Level,
}

/// Values of a column that belong together.
#[derive(Clone, PartialEq, Debug, JsonSchema)]
#[schemars(with = "String", inline)]
pub enum Level {
    /// Numbers below this one.
    Below(f64),
    /// This number and those above.
    From(f64),
    /// This word, or number among words.
    Is(String),
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Below(cut) => write!(f, "below {cut}"),
            Self::From(cut) => write!(f, "from {cut}"),
            Self::Is(word) => f.write_str(word),
        }
    }
}

/// In words.
impl Serialize for Level {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// The columns that separate the modes, the best first, as [`explain`] finds them. A column with
/// numbers alone is cut; one that never changes explains nothing, and makes no other less likely.
///
/// # Panics
/// If a column has not one cell for each value.
pub fn separations(is_upper: &[bool], columns: &[Column], random: &mut Random) -> Vec<Separation> {
    let columns: Vec<&Column> = columns.iter().filter(|column| column.has_two()).collect();
    let kinds: Vec<Vec<u32>> = columns.iter().map(|column| column.kinds()).collect();
    let numbers: Vec<Option<Vec<f64>>> = columns.iter().map(|column| column.numbers()).collect();
    let levels = kinds.iter().zip(&numbers).map(|(kinds, numbers)| match numbers {
        Some(numbers) => Levels::Numbers(numbers),
        None => Levels::Kinds(kinds),
    });
    let factors: Vec<Factor<'_>> = columns
        .iter()
        .zip(levels)
        .map(|(column, levels)| Factor { name: &column.name, levels })
        .collect();
    let told = |found: Explanation| {
        let column = columns.iter().find(|column| column.name == found.name)?;
        Some(column.told(found, is_upper))
    };
    explain(is_upper, &factors, random).into_iter().filter_map(told).collect()
}

impl Column {
    fn has_two(&self) -> bool {
        self.cells.iter().any(|cell| self.cells.first() != Some(cell))
    }

    /// Each different cell gets a number.
    fn kinds(&self) -> Vec<u32> {
        let mut seen: Vec<&Cell> = Vec::new();
        let mut kind = |cell| {
            let at = seen.iter().position(|other| *other == cell).unwrap_or_else(|| {
                seen.push(cell);
                seen.len() - 1
            });
            u32::try_from(at).expect("few kinds")
        };
        self.cells.iter().map(&mut kind).collect()
    }

    fn numbers(&self) -> Option<Vec<f64>> {
        let number = |cell: &Cell| match cell {
            Cell::Number(number) => Some(*number),
            Cell::Word(_) => None,
        };
        self.cells.iter().map(number).collect()
    }

    fn told(&self, found: Explanation, is_upper: &[bool]) -> Separation {
        let Explanation { name, share, p, cut } = found;
        let [lower, upper] = match cut {
            Some(cut) => self.sides(cut, is_upper),
            None => [false, true].map(|mode| Level::Is(self.typical(is_upper, mode))),
        };
        Separation { name, share, p, lower, upper }
    }

    /// On which side of a cut most of the lower mode lies; the upper one is on the other.
    fn sides(&self, cut: f64, is_upper: &[bool]) -> [Level; 2] {
        let lower = || self.cells.iter().zip(is_upper).filter(|(_, upper)| !**upper);
        let below = lower().filter(|(cell, _)| matches!(cell, Cell::Number(n) if *n < cut));
        if below.count() * 2 > lower().count() {
            [Level::Below(cut), Level::From(cut)]
        } else {
            [Level::From(cut), Level::Below(cut)]
        }
    }

    /// The cell that a mode has most beyond its share of all of that kind.
    fn typical(&self, is_upper: &[bool], mode: bool) -> String {
        let of_mode = is_upper.iter().filter(|upper| **upper == mode).count();
        let share = real_usize(of_mode) / real_usize(is_upper.len()).max(1.0);
        let beyond = |cell: &Cell| {
            let alike = || self.cells.iter().zip(is_upper).filter(|(other, _)| *other == cell);
            let here = alike().filter(|(_, upper)| **upper == mode).count();
            real_usize(here) - share * real_usize(alike().count())
        };
        let most = self.cells.iter().max_by(|a, b| beyond(a).total_cmp(&beyond(b)));
        match most {
            Some(Cell::Word(word)) => word.clone(),
            Some(Cell::Number(number)) => number.to_string(),
            None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, of: impl Fn(u32) -> Cell) -> Column {
        Column { name: name.to_owned(), cells: (0..40).map(of).collect() }
    }

    #[test]
    fn both_sides_of_what_separates_are_told() {
        let is_upper: Vec<bool> = (0..40).map(|at| at % 4 == 0).collect();
        let columns = [
            column("same everywhere", |_| Cell::Word("x".into())),
            column("heat", |at| Cell::Number(if at % 4 == 0 { 80.0 } else { 40.0 })),
            column("processor", |at| Cell::Word(if at % 4 == 0 { "1" } else { "0" }.into())),
            column("run", |at| Cell::Number(f64::from(at))),
        ];
        let found = separations(&is_upper, &columns, &mut Random::new(1));
        let told: Vec<String> = found
            .iter()
            .map(|one| format!("{}: {} | {}", one.name, one.lower, one.upper))
            .collect();
        assert_eq!(told, ["heat: below 80 | from 80", "processor: 0 | 1"]);
        assert!(found.iter().all(|one| one.share > 0.999 && one.p < 0.01), "{found:?}");
    }

    /// Most runs are on processor 0 in either mode; those on 1 are all in the upper one.
    #[test]
    fn a_mode_is_told_by_what_it_has_beyond_its_share() {
        let is_upper: Vec<bool> = (0..40).map(|at| at % 2 == 0).collect();
        let of = |at: u32| Cell::Word(if at.is_multiple_of(4) { "1" } else { "0" }.into());
        let found = separations(&is_upper, &[column("processor", of)], &mut Random::new(1));
        let one = found.first().unwrap();
        assert_eq!((one.lower.to_string(), one.upper.to_string()), ("0".into(), "1".into()));
    }

    #[test]
    fn text_is_a_number_where_it_is_a_finite_one() {
        assert_eq!(Cell::read("38.5"), Cell::Number(38.5));
        assert_eq!(Cell::read("performance"), Cell::Word("performance".into()));
        assert_eq!(Cell::read("nan"), Cell::Word("nan".into()));
    }
}
