//! Keys and jobs for people: explained, as a file, and as the table of a document.

use core::fmt::Write as _;

use page::safe::printable;

use crate::config::{Job, Key, Table};
use crate::value::Shape;

/// What keys mean, of those of this name, of a table or of all; `None` where there is no such key.
pub fn explain(tables: &[Table], wanted: Option<&str>) -> Option<String> {
    let mut text = String::new();
    for (table, key) in all(tables) {
        let whole = format!("{}.{}", table.name, key.name);
        let is_named = |wanted: &str| {
            // As a file has it, with the name of a table between.
            let rest = wanted.strip_prefix(table.name).and_then(|rest| rest.strip_prefix('.'));
            let own = rest.and_then(|rest| rest.rsplit_once('.')).map(|(_, own)| own);
            wanted == table.name
                || wanted == whole
                || wanted == key.name
                || (table.is_named && own == Some(&*key.name))
        };
        if !wanted.is_none_or(is_named) {
            continue;
        }
        let default = default_of(key).map_or_else(String::new, |default| format!(" ({default})"));
        writeln!(text, "{whole} = {}{default}\n    {}", value_of(key), key.meaning)
            .expect("a string takes all text");
    }
    (!text.is_empty()).then_some(text)
}

/// The name of a key that was probably meant.
pub fn meant_by(tables: &[Table], name: &str) -> Option<String> {
    let own = name.rsplit('.').next().unwrap_or(name);
    query::nearest(own, all(tables).map(|(_, key)| &*key.name)).map(str::to_owned)
}

/// Every table as a file has it, with the defaults of keys that are not there, and the command line
/// that it stands for, as remarks.
pub fn show(jobs: &[Job], tables: &[Table]) -> String {
    let mut text = String::new();
    for job in jobs {
        writeln!(text, "[{}]", job.name).expect("a string takes all text");
        let keys = tables.iter().filter(|table| table.name == job.table);
        for key in keys.flat_map(|table| &table.keys) {
            let line = match (job.values(&key.name), &key.default) {
                ([], None) => continue,
                ([], Some(default)) => format!("# {} = {default:?}", key.name),
                (given, _) => format!("{} = {}", key.name, in_toml(key.shape, given)),
            };
            writeln!(text, "{line}").expect("a string takes all text");
        }
        let words: Vec<String> = job.words().iter().map(|word| printable(word)).collect();
        writeln!(text, "# wirespool {}\n", words.join(" ")).expect("a string takes all text");
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// The keys of all tables in Markdown, for the documentation.
pub fn reference(tables: &[Table]) -> String {
    let mut text = String::new();
    for table in tables {
        let name = if table.is_named { ".NAME" } else { "" };
        write!(
            text,
            "\n### `[{}{name}]`\n\n| key | value | meaning |\n|---|---|---|\n",
            table.name
        )
        .expect("a string takes all text");
        for key in &table.keys {
            let default = default_of(key).map_or_else(String::new, |it| format!("; {it}"));
            let cell = |text: &str| text.replace('|', "\\|");
            let (value, meaning) = (cell(&value_of(key)), cell(&key.meaning));
            writeln!(text, "| `{}` | {value}{default} | {meaning} |", key.name)
                .expect("a string takes all text");
        }
    }
    text
}

fn all(tables: &[Table]) -> impl Iterator<Item = (&Table, &Key)> {
    tables.iter().flat_map(|table| table.keys.iter().map(move |key| (table, key)))
}

fn value_of(key: &Key) -> String {
    match key.shape {
        Shape::Switch => "true or false".to_owned(),
        Shape::One => key.value.clone(),
        Shape::Many => format!("{}, or a list", key.value),
    }
}

fn default_of(key: &Key) -> Option<String> {
    if key.is_required {
        return Some("required".to_owned());
    }
    key.default.as_ref().map(|default| format!("default {default}"))
}

fn in_toml(shape: Shape, words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    match shape {
        Shape::Switch => "true".to_owned(),
        Shape::One => quoted.concat(),
        Shape::Many => format!("[{}]", quoted.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::read;
    use crate::config::tests::tables;

    #[test]
    fn what_is_shown_is_read_again_as_the_same_jobs() {
        let text = "[recorder.a]\nvolume = '/a \"b\"'\ninterface = ['x', 'y']\nno_index = true\n";
        let jobs = read(text, &tables()).unwrap();
        let shown = show(&jobs, &tables());
        let again = read(&shown, &tables()).unwrap();
        assert_eq!(again[0].words(), jobs[0].words(), "{shown}");
    }

    #[test]
    fn a_key_is_explained_by_its_name_or_its_whole_name() {
        let tables = tables();
        let one = explain(&tables, Some("recorder.max_age")).unwrap();
        assert_eq!(explain(&tables, Some("max_age")).unwrap(), one);
        assert!(one.starts_with("recorder.max_age = "), "{one}");
        assert_eq!(explain(&tables, Some("recorder.office.max_age")).unwrap(), one);
        let table = explain(&tables, Some("recorder")).unwrap();
        assert!(table.contains(&one) && table.len() > one.len(), "{table}");
        assert_eq!(explain(&tables, Some("max_agee")), None);
        assert_eq!(meant_by(&tables, "recorder.max_agee").as_deref(), Some("max_age"));
        let all = explain(&tables, None).unwrap();
        assert_eq!(reference(&tables).matches("\n| `").count(), all.lines().count() / 2);
    }
}
