//! The configuration: tables of keys, each a flag of a command line.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::fault::Fault;
use crate::value::{Shape, words};

/// A key that a table may have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    /// The flag's name, with `_` for `-`.
    pub name: String,
    /// How it takes values.
    pub shape: Shape,
    /// A word without a flag before it: what the program works on.
    pub is_positional: bool,
    /// The program cannot do without it.
    pub is_required: bool,
    /// What a value stands for, such as `SIZE`; empty for a switch.
    pub value: String,
    /// What holds without it.
    pub default: Option<String>,
    /// What it means.
    pub meaning: String,
}

/// A table of the configuration: the flags of a verb.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// Its name in the file.
    pub name: &'static str,
    /// There may be several, each with a name of its own behind this one's.
    pub is_named: bool,
    /// The verb that is run.
    pub verb: &'static str,
    /// A key that has the name of the table where it is not given.
    pub takes_name: Option<&'static str>,
    /// The keys that it may have.
    pub keys: Vec<Key>,
}

/// A program that is to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    /// The table, such as `recorder.office`.
    pub name: String,
    /// Name of the table without that of this one.
    pub table: &'static str,
    /// Line of the table.
    pub line: usize,
    /// The keys that were given, with their words; empty for a switch.
    pub keys: Vec<(Key, Vec<String>)>,
    /// Lines of those that stand in the file.
    lines: Vec<(String, usize)>,
    verb: &'static str,
}

impl Job {
    /// The command line behind the program's name.
    pub fn words(&self) -> Vec<String> {
        self.words_of(&|_| true)
    }

    /// The command line of one key, and of what the program cannot do without.
    pub fn words_of_key(&self, name: &str) -> Vec<String> {
        self.words_of(&|key| key.is_required || key.name == name)
    }

    fn words_of(&self, is_wanted: &dyn Fn(&Key) -> bool) -> Vec<String> {
        let mut words = vec![self.verb.to_owned()];
        let mut named = vec!["--".to_owned()];
        for (key, values) in self.keys.iter().filter(|(key, _)| is_wanted(key)) {
            let flag = key.name.replace('_', "-");
            for value in values {
                match (key.is_positional, key.shape) {
                    (true, _) => named.push(value.clone()),
                    (false, Shape::Switch) => words.push(format!("--{flag}")),
                    (false, _) => words.push(format!("--{flag}={value}")),
                }
            }
        }
        words.append(&mut named);
        words
    }

    /// The same without a key.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut other = self.clone();
        other.keys.retain(|(key, _)| key.name != name);
        other
    }

    /// The words of a key.
    pub fn values(&self, name: &str) -> &[String] {
        let found = self.keys.iter().find(|(key, _)| key.name == name);
        found.map_or(&[], |(_, values)| values)
    }

    /// The line of a key, or of the table where it is not given.
    pub fn line_of(&self, name: &str) -> usize {
        let found = self.lines.iter().find(|(known, _)| known == name);
        found.map_or(self.line, |&(_, line)| line)
    }

    /// Gives a key words where it has none.
    pub fn give(&mut self, key: &Key, values: Vec<String>) {
        if self.values(&key.name).is_empty() && !values.is_empty() {
            self.keys.push((key.clone(), values));
            // As those of a file stand, so that the same keys are the same words.
            self.keys.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        }
    }

    /// Names of the keys that differ in another job.
    pub fn changes(&self, other: &Self) -> Vec<String> {
        let both = self.keys.iter().chain(&other.keys).map(|(key, _)| &key.name);
        let mut names: Vec<String> =
            both.filter(|name| self.values(name) != other.values(name)).cloned().collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Reads a configuration.
///
/// # Errors
/// With everything that is wrong.
pub fn read(text: &str, tables: &[Table]) -> Result<Vec<Job>, Vec<Fault>> {
    let whole = DeTable::parse(text).map_err(|error| {
        let place = error.span().unwrap_or(0..0);
        vec![Fault::at(text, &place, error.message().to_owned())]
    })?;
    let mut reading = Reading { text, jobs: Vec::new(), faults: Vec::new() };
    for (name, value) in whole.get_ref() {
        let found = tables.iter().find(|table| table.name == &**name.get_ref());
        match (found, value.get_ref()) {
            (None, _) => {
                let names = tables.iter().map(|table| table.name);
                let meant = meant(name.get_ref(), names);
                reading.fault(name, format!("[{}] is no table{meant}", name.get_ref()));
            }
            (Some(table), DeValue::Table(named)) if table.is_named => {
                for (own, value) in named {
                    let DeValue::Table(keys) = value.get_ref() else {
                        let why = format!("write [{}.NAME] before its keys", table.name);
                        reading.fault(own, why);
                        continue;
                    };
                    reading.job(table, Some(own), keys);
                }
            }
            (Some(table), DeValue::Table(keys)) => reading.job(table, None, keys),
            (Some(table), _) => {
                reading.fault(name, format!("{} is a table: write [{0}]", table.name));
            }
        }
    }
    reading.faults.sort_by_key(|fault| fault.line);
    reading.jobs.sort_by_key(|job| job.line);
    if reading.faults.is_empty() { Ok(reading.jobs) } else { Err(reading.faults) }
}

/// Faults of tables of this name that have the value of another one under this key, where only one
/// may have it.
pub fn given_twice(
    jobs: &[Job],
    (table, key): (&str, &str),
    is_one: &dyn Fn(&str, &str) -> bool,
) -> Vec<Fault> {
    let of_table = jobs.iter().filter(|job| job.table == table);
    let given: Vec<(&str, &Job)> =
        of_table.flat_map(|job| job.values(key).iter().map(move |it| (&**it, job))).collect();
    let twice = given.iter().enumerate().filter_map(|(at, &(value, job))| {
        let earlier = given.get(..at).unwrap_or_default();
        let (_, first) = earlier.iter().find(|(known, _)| is_one(known, value))?;
        let why = format!("{key}: {value} is that of [{}] already", first.name);
        Some(Fault { line: job.line_of(key), why })
    });
    twice.collect()
}

/// What was probably meant by a name, as the end of a sentence.
fn meant<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> String {
    query::did_you_mean(query::nearest(name, names))
}

struct Reading<'t> {
    text: &'t str,
    jobs: Vec<Job>,
    faults: Vec<Fault>,
}

type Name<'t> = Spanned<std::borrow::Cow<'t, str>>;

impl<'t> Reading<'t> {
    fn fault(&mut self, at: &Name<'t>, why: String) {
        self.faults.push(Fault::at(self.text, &at.span(), why));
    }

    fn job(&mut self, table: &Table, own: Option<&Name<'t>>, given: &DeTable<'t>) {
        let name = match own {
            Some(own) => format!("{}.{}", table.name, own.get_ref()),
            None => table.name.to_owned(),
        };
        let first = own.map_or(0, |own| own.span().start);
        let first = given.iter().map(|(key, _)| key.span().start).min().unwrap_or(first);
        let line = Fault::at(self.text, &(first..first), "").line;
        let (verb, table_name) = (table.verb, table.name);
        let (keys, lines) = (Vec::new(), Vec::new());
        let mut job = Job { name, table: table_name, line, keys, lines, verb };
        for (key, value) in given {
            let known = table.keys.iter().find(|known| known.name == **key.get_ref());
            let Some(known) = known else {
                let names = table.keys.iter().map(|key| &*key.name);
                let meant = meant(key.get_ref(), names);
                self.fault(key, format!("{} is no key of [{}]{meant}", key.get_ref(), table.name));
                continue;
            };
            match words(value.get_ref(), known.shape) {
                Ok(words) if words.is_empty() => {}
                Ok(words) => {
                    job.keys.push((known.clone(), words));
                    job.lines
                        .push((known.name.clone(), Fault::at(self.text, &key.span(), "").line));
                }
                Err(wanted) => self.fault(key, format!("{} is {wanted}", known.name)),
            }
        }
        if let (Some(own), Some(named)) = (own, table.takes_name)
            && let Some(key) = table.keys.iter().find(|key| key.name == named)
        {
            job.give(key, vec![own.get_ref().to_string()]);
        }
        let lacks = |key: &&Key| key.is_required && job.values(&key.name).is_empty();
        let lacking: Vec<&str> = table.keys.iter().filter(lacks).map(|key| &*key.name).collect();
        if !lacking.is_empty() {
            let why = format!("[{}] lacks {}", job.name, lacking.join(", "));
            self.faults.push(Fault { line, why });
        }
        self.jobs.push(job);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn key(name: &str, shape: Shape) -> Key {
        Key {
            name: name.to_owned(),
            shape,
            is_positional: name == "volume",
            is_required: name == "volume",
            value: String::new(),
            default: None,
            meaning: String::new(),
        }
    }

    pub(crate) fn tables() -> [Table; 2] {
        let keys = vec![
            key("volume", Shape::One),
            key("interface", Shape::Many),
            key("no_index", Shape::Switch),
            key("max_age", Shape::One),
            key("name", Shape::One),
        ];
        let recorder = Table {
            name: "recorder",
            is_named: true,
            verb: "record",
            takes_name: Some("name"),
            keys,
        };
        let keys = vec![key("listen", Shape::One), key("workers", Shape::One)];
        let api = Table { name: "api", is_named: false, verb: "serve", takes_name: None, keys };
        [recorder, api]
    }

    #[test]
    fn tables_become_command_lines() {
        let text = "[recorder.office]\nvolume = '-odd'\ninterface = ['eth0', \"eth1\"]\n\
                    no_index = true\nmax_age = false\n\n[recorder.lab]\nvolume = '/b'\n\
                    interface = 'eth2'\nno_index = false\nname = 'night'\n\n[api]\nworkers = 8\n";
        let jobs = read(text, &tables()).unwrap();
        let words: Vec<String> = jobs.iter().map(|job| job.words().join(" ")).collect();
        assert_eq!(
            words,
            [
                "record --interface=eth0 --interface=eth1 --max-age=off --name=office --no-index \
                 -- -odd",
                "record --interface=eth2 --name=night -- /b",
                "serve --workers=8 --",
            ]
        );
        let names: Vec<&str> = jobs.iter().map(|job| &*job.name).collect();
        assert_eq!(names, ["recorder.office", "recorder.lab", "api"]);
        assert_eq!(jobs[0].words_of_key("max_age").join(" "), "record --max-age=off -- -odd");
        let lines = ["interface", "max_age", "name"].map(|name| jobs[0].line_of(name));
        assert_eq!(lines, [3, 5, 2], "a key that is not given has the line of its table");
        let other = read(&text.replace("eth2", "eth3").replace('8', "9"), &tables()).unwrap();
        let changes: Vec<Vec<String>> =
            jobs.iter().zip(&other).map(|(job, other)| job.changes(other)).collect();
        assert_eq!(changes, [vec![], vec!["interface".to_owned()], vec!["workers".to_owned()]]);
    }

    #[test]
    fn everything_that_is_wrong_is_said_with_its_line_and_what_was_meant() {
        let text = "[recorder.office]\nvolum = '/a'\nno_index = 'yes'\nmax_age = [1]\n\
                    [apis]\nlisten = 'x'\n";
        let faults = read(text, &tables()).unwrap_err();
        let said: Vec<String> = faults.iter().map(Fault::to_string).collect();
        assert_eq!(
            said,
            [
                "line 2: volum is no key of [recorder]; did you mean volume?",
                "line 2: [recorder.office] lacks volume",
                "line 3: no_index is true or false",
                "line 4: max_age is one value",
                "line 5: [apis] is no table; did you mean api?",
            ]
        );
        let faults = read("[recorder]\nvolume = '/a'\n", &tables()).unwrap_err();
        assert_eq!(faults[0].to_string(), "line 2: write [recorder.NAME] before its keys");
        let faults = read("a = 1\n[api\n", &tables()).unwrap_err();
        assert_eq!(faults[0].line, 2, "{faults:?}");
    }
}
