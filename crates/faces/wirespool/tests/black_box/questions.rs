//! docs/questions.md: every command that it names answers as it says, over the demo's captures.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use crate::machine::{BINARY, Ran, Volume};

const DOCUMENT: &str = include_str!("../../../../../docs/questions.md");
/// The volume in the document.
const VOLUME: &str = "/data/spool";

/// A line of a table: question, command, and what its answer has.
#[derive(Debug)]
struct Question {
    text: String,
    command: String,
    answer: Option<String>,
}

fn questions() -> Vec<Question> {
    let code = |cell: &str| {
        let code = cell.trim().strip_prefix('`')?.strip_suffix('`')?;
        Some(code.replace("\\|", "|"))
    };
    let question = |line: &str| {
        let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix('|')?.split(" | ").collect();
        let [text, command, answer] = cells[..] else { return None };
        let (text, answer) = (text.to_owned(), code(answer));
        Some(Question { text, command: code(command)?, answer })
    };
    DOCUMENT.lines().filter_map(question).collect()
}

#[test]
fn every_question_is_answered() {
    let questions = questions();
    assert!(questions.len() >= 60, "{} questions", questions.len());
    let distinct: BTreeSet<&str> = questions.iter().map(|one| one.command.as_str()).collect();
    assert_eq!(distinct.len(), questions.len(), "no command stands twice");
    let answered = questions.iter().filter(|one| one.answer.is_some()).count();
    assert!(answered * 4 >= questions.len() * 3, "{answered} answers are looked at");

    let volume = Volume::recorded();
    let folder = volume.folder.path();
    std::fs::create_dir(folder.join("bin")).unwrap();
    symlink(BINARY, folder.join("bin/wirespool")).unwrap();
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
    let place = format!("{} --index-dir {}", volume.path, volume.index);
    for Question { text, command, answer } in questions {
        let place = if command.starts_with("wirespool verify") { &volume.path } else { &place };
        let command = command.replace(VOLUME, place);
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", &command]).current_dir(folder).stdin(Stdio::null());
        let ran = Ran::new(&shell.env("PATH", &path).output().unwrap());
        assert_eq!(ran.code, Some(0), "{text}\n{command}\n{ran:?}");
        match answer {
            Some(answer) => {
                assert!(ran.out.contains(&answer), "{text}\n{command}\n{answer:?} in {ran:#?}");
            }
            None if command.contains(" find ") => {
                // A table of nothing has its heading.
                let is_none = ran.out.lines().count() <= 1;
                assert!(is_none, "{text}\n{command}: nothing of the kind is there: {ran:?}");
            }
            None => {}
        }
    }
}
