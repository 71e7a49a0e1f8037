//! The configuration file of `serve --config`, as a setup writes it.

use core::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What stands in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Config {
    pub(crate) name: String,
    pub(crate) volume: PathBuf,
    /// None where nothing may be recorded: the API is all then.
    pub(crate) interfaces: Vec<String>,
    pub(crate) listen: SocketAddr,
    pub(crate) token_file: PathBuf,
}

impl Config {
    /// The file.
    pub(crate) fn text(&self) -> String {
        let volume = quoted_path(&self.volume);
        let recorder = if self.interfaces.is_empty() {
            String::new()
        } else {
            let names: Vec<String> = self.interfaces.iter().map(|name| quoted(name)).collect();
            let names = names.join(", ");
            format!("[recorder.{}]\nvolume = {volume}\ninterface = [{names}]\n\n", self.name)
        };
        let volumes = if self.interfaces.is_empty() {
            format!("volumes = [{volume}]\n")
        } else {
            String::new()
        };
        format!(
            "# Written by wirespool setup. Every key: wirespool config explain\n\n{recorder}[api]\n\
             {volumes}listen = {}\ntoken_file = {}\n",
            quoted(&self.listen.to_string()),
            quoted_path(&self.token_file)
        )
    }
}

/// A name of a recorder stands without quotes in the heading of its table.
pub(crate) fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !name.is_empty() && name.bytes().all(is_part)
}

fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                quoted.extend(format!("\\u{:04X}", u32::from(letter)).chars());
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// The lines that go and come, between those that both have at their begin and end.
pub(crate) fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let begin = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let (old, new) = (old.get(begin..).unwrap_or_default(), new.get(begin..).unwrap_or_default());
    let ends = old.iter().rev().zip(new.iter().rev());
    let end = ends.take_while(|(one, other)| one == other).count();
    let cut = |lines: &[&str], sign: char| -> Vec<String> {
        let lines = lines.get(..lines.len() - end).unwrap_or_default();
        lines.iter().map(|line| format!("  {sign} {line}")).collect()
    };
    [cut(old, '-'), cut(new, '+')].concat().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(interfaces: &[&str]) -> Config {
        Config {
            name: "main".to_owned(),
            volume: "/data/volume".into(),
            interfaces: interfaces.iter().map(|name| (*name).to_owned()).collect(),
            listen: "127.0.0.1:8420".parse().unwrap(),
            token_file: "/etc/wirespool/tokens".into(),
        }
    }

    #[test]
    fn a_recorder_and_the_api_stand_in_it() {
        let text = config(&["eth1", "eth2"]).text();
        let expected = "[recorder.main]\nvolume = \"/data/volume\"\n\
                        interface = [\"eth1\", \"eth2\"]\n\n[api]\nlisten = \"127.0.0.1:8420\"\n\
                        token_file = \"/etc/wirespool/tokens\"\n";
        assert!(text.ends_with(expected), "{text}");
        let text = config(&[]).text();
        assert!(text.contains("[api]\nvolumes = [\"/data/volume\"]\nlisten"), "{text}");
    }

    #[test]
    fn strings_are_quoted_and_names_are_plain() {
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000A\"");
        assert!(is_name("office-1") && !is_name("") && !is_name("a b") && !is_name("a.b"));
    }

    #[test]
    fn a_difference_has_the_lines_that_differ() {
        let (old, new) = (config(&["eth0"]).text(), config(&["eth1"]).text());
        let shown = difference(&old, &new);
        assert_eq!(shown, "  - interface = [\"eth0\"]\n  + interface = [\"eth1\"]");
        assert_eq!(difference(&old, &old), "");
    }
}
