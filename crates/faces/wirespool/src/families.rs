//! The verbs in families, as the help of the program lists them.

use core::fmt::Write;

use clap::Command;

/// Commands by purpose. Every command in the help is in one of these groups.
const FAMILIES: [(&str, &[&str]); 7] = [
    ("Record packets", &["create", "record", "demo"]),
    (
        "Find sessions and their packets",
        &[
            "find",
            "extract",
            "fleet",
            "request",
            "approve",
            "decrypt",
            "reveal",
            "sql",
            "fields",
            "tag",
            "hold",
            "archive",
            "keygen",
            "verify-extract",
        ],
    ),
    (
        "Care for volumes",
        &[
            "status", "inspect", "verify", "anchor", "scrub", "resilver", "replace", "grow",
            "keys", "erase", "forget", "salvage",
        ],
    ),
    ("Choose disks", &["qualify"]),
    ("Find out why something is slow", &["diagnose", "top", "trace"]),
    ("Measure", &["prove", "replay", "bench"]),
    (
        "Serve others",
        &["setup", "serve", "audit", "config", "extcap", "stenoread", "stenocurl", "completions"],
    ),
];

/// Around the families: they stand in the place of clap's list.
const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

{before-help}Options:
{options}{after-help}";

/// The program, with its verbs in families: `-h` has a line for each, `--help` an example too.
pub(crate) fn grouped(program: Command) -> Command {
    let (short, long) = (list(&program, false), list(&program, true));
    program.before_help(short).before_long_help(long).help_template(TEMPLATE)
}

fn list(program: &Command, has_examples: bool) -> String {
    let mut text = String::new();
    for (wish, verbs) in FAMILIES {
        let gap = if text.is_empty() { "" } else { "\n" };
        // Writing to a string does not fail.
        let _infallible = writeln!(text, "{gap}{wish}:");
        let verbs = verbs.iter().filter_map(|verb| program.find_subcommand(verb));
        for verb in verbs.filter(|verb| !verb.is_hide_set()) {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            let _infallible = writeln!(text, "  {:<15} {about}", verb.get_name());
            if let Some(example) = example(verb).filter(|_| has_examples) {
                let _infallible = writeln!(text, "                    {example}");
            }
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// The first example of a verb's help, without what is said about it.
fn example(verb: &Command) -> Option<String> {
    let help = verb.get_after_help()?.to_string();
    let (_, examples) = help.split_once("Examples:\n")?;
    let line = examples.lines().next()?.trim();
    Some(line.split("  ").next().unwrap_or(line).to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_verb_is_in_one_family_and_has_an_example() {
        let program = crate::Cli::command();
        let shown = program.get_subcommands().filter(|verb| !verb.is_hide_set());
        let mut shown: Vec<&str> = shown.map(Command::get_name).collect();
        let mut listed: Vec<&str> =
            FAMILIES.iter().flat_map(|(_, verbs)| *verbs).copied().collect();
        if cfg!(not(feature = "sql")) {
            listed.retain(|verb| *verb != "sql");
        }
        shown.sort_unstable();
        listed.sort_unstable();
        assert_eq!(shown, listed);
        for verb in program.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let example = example(verb).expect("an example for each");
            let about = verb.get_about().expect("a line for each").to_string();
            // Terminals have 80 columns, of which 18 and 20 lie before these.
            assert!(about.len() <= 62, "{about}");
            assert!(example.len() <= 80, "{example}");
        }
    }

    #[test]
    fn a_verb_that_this_build_hides_is_not_listed() {
        let hidden = crate::Cli::command().mut_subcommand("sql", |sql| sql.hide(true));
        let listed = |program: &Command| list(program, false).contains("\n  sql ");
        assert_eq!(listed(&crate::Cli::command()), cfg!(feature = "sql"));
        assert!(!listed(&hidden));
    }
}
