//! What clap says of flags, for where they stand in a file.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use supervise::Key;

/// What is wrong with a value; nothing where something else is.
pub(super) fn why_of_value(error: &clap::Error) -> Option<String> {
    let words = |kind| error.get(kind).map(ToString::to_string);
    let why = match error.kind() {
        ErrorKind::ValueValidation => core::error::Error::source(error)?.to_string(),
        ErrorKind::InvalidValue => format!("one of {}", words(ContextKind::ValidValue)?),
        _ => return None,
    };
    let value = words(ContextKind::InvalidValue).unwrap_or_default();
    Some(format!("{value:?} is not right: {why}"))
}

/// The first part of what clap says; of flags that are missing the keys that they are.
pub(super) fn why_of(error: &clap::Error, keys: &[Key]) -> String {
    if let (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(missing))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    {
        let named: Vec<&str> = missing.iter().filter_map(|flag| key_of(flag, keys)).collect();
        if !named.is_empty() {
            return format!("lacks {}", named.join(", "));
        }
    }
    let error = error.to_string();
    let lines = error.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let why = lines.join(" ");
    why.strip_prefix("error: ").unwrap_or(&why).to_owned()
}

/// A sentence that names flags, with the keys that they are; a command in it stays as it is.
pub(super) fn in_keys(why: &str, keys: &[Key]) -> String {
    let word = |word: &str| {
        let start = word.trim_start_matches('(');
        let end = start.trim_end_matches([',', ':', ';', ')', '.']);
        let key = keys.iter().find(|key| format!("--{}", key.name.replace('_', "-")) == end);
        key.map_or_else(|| word.to_owned(), |key| word.replacen(end, &key.name, 1))
    };
    let part = |(at, part): (usize, &str)| match at % 2 {
        0 => part.split(' ').map(word).collect::<Vec<_>>().join(" "),
        _ => part.to_owned(),
    };
    why.split('`').enumerate().map(part).collect::<Vec<_>>().join("`")
}

/// The key of what clap calls `--hold-dir <DIR>`, `<VOLUME>...`, or the first one of several flags,
/// as in `<--interface <INTERFACE>|--read <FILE>>`.
fn key_of<'k>(flag: &str, keys: &'k [Key]) -> Option<&'k str> {
    let words: Vec<&str> = flag.split(['<', '>', '|', ' ']).collect();
    let is_it = |key: &&Key| {
        let long = format!("--{}", key.name.replace('_', "-"));
        words.contains(&&*long) || (key.is_positional && words.contains(&&*key.value))
    };
    keys.iter().find(is_it).map(|key| &*key.name)
}

#[cfg(test)]
mod tests {
    use supervise::Shape;

    use super::*;

    #[test]
    fn flags_in_a_sentence_become_keys_and_commands_stay() {
        let key = |name: &str| Key {
            name: name.to_owned(),
            shape: Shape::One,
            is_positional: false,
            is_required: false,
            value: String::new(),
            default: None,
            meaning: String::new(),
        };
        let keys = ["tls_cert", "tls_key", "audit"].map(key);
        let said = "no TLS (--tls-cert, --tls-key); `x --audit FILE` makes --audit, not --other";
        let meant = "no TLS (tls_cert, tls_key); `x --audit FILE` makes audit, not --other";
        assert_eq!(in_keys(said, &keys), meant);
    }
}
