//! Commands with `{NAME}` in them, once for each value.

use std::ffi::OsString;

use ::runs::{Command, Parameter};

use crate::failure::Usage;

/// A name and its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct List {
    name: String,
    values: Vec<String>,
}

impl List {
    /// From pairs of words: a name, and values with commas between them.
    pub(super) fn all(words: &[String]) -> Result<Vec<Self>, Usage> {
        let pairs = words.as_chunks::<2>().0;
        let list = |[name, values]: &[String; 2]| {
            let is_name = !name.is_empty() && !name.contains(['{', '}']);
            if !is_name || values.is_empty() {
                let what = format!("--parameter-list {name:?} {values:?}: a name and values");
                return Err(Usage(what));
            }
            let values = values.split(',').map(str::to_owned).collect();
            Ok(Self { name: name.clone(), values })
        };
        pairs.iter().map(list).collect()
    }
}

/// Every command with every value of each list, in the order given.
pub(super) fn expanded(commands: Vec<Command>, lists: &[List]) -> Vec<Command> {
    lists.iter().fold(commands, |commands, list| {
        let with_each = |command: Command| {
            let with = move |value: &String| filled(&command, &list.name, value);
            list.values.iter().map(with).collect::<Vec<_>>()
        };
        commands.into_iter().flat_map(with_each).collect()
    })
}

fn filled(command: &Command, name: &str, value: &str) -> Command {
    let place = format!("{{{name}}}");
    let text = |text: &String| text.replace(&place, value);
    // What is no text has no place for a value.
    let word = |word: &OsString| {
        word.to_str().map_or_else(|| word.clone(), |word| word.replace(&place, value).into())
    };
    let parameter = Parameter { name: name.to_owned(), value: value.to_owned() };
    Command {
        name: text(&command.name),
        words: command.words.iter().map(word).collect(),
        prepare: command.prepare.as_ref().map(text),
        parameters: command.parameters.iter().cloned().chain([parameter]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_makes_a_command() {
        let command = Command {
            name: "sort {n} {way}".to_owned(),
            words: vec!["sort".into(), "{n}".into(), "--{way}".into()],
            prepare: Some("make {n}".to_owned()),
            parameters: Vec::new(),
        };
        let words = ["n", "1,2", "way", "a,b"].map(str::to_owned);
        let found = expanded(vec![command], &List::all(&words).unwrap());
        let names: Vec<&str> = found.iter().map(|command| command.name.as_str()).collect();
        assert_eq!(names, ["sort 1 a", "sort 1 b", "sort 2 a", "sort 2 b"]);
        let last = found.last().unwrap();
        assert_eq!(last.words, ["sort", "2", "--b"].map(OsString::from));
        assert_eq!(last.prepare.as_deref(), Some("make 2"));
        let values: Vec<&str> = last.parameters.iter().map(|it| it.value.as_str()).collect();
        assert_eq!(values, ["2", "b"]);
        assert!(List::all(&[String::new(), "1".to_owned()]).is_err());
    }
}
