//! A value of TOML as the words of a flag.

use toml::de::DeValue;

/// How a flag takes values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// None: it is there or not.
    Switch,
    /// One.
    One,
    /// One, or a list.
    Many,
}

/// The words that stand for a value: none for a switch that is off.
///
/// # Errors
/// With what should be there.
pub(crate) fn words(value: &DeValue<'_>, shape: Shape) -> Result<Vec<String>, &'static str> {
    match (shape, value) {
        (Shape::Switch, DeValue::Boolean(is_on)) => {
            Ok(is_on.then(String::new).into_iter().collect())
        }
        (Shape::Switch, _) => Err("true or false"),
        (Shape::Many, DeValue::Array(values)) => {
            let words = values.iter().map(|value| word(value.get_ref()));
            words.collect::<Option<_>>().ok_or("a list of texts or numbers")
        }
        (_, value) => {
            let word = word(value).map(|word| vec![word]);
            let is_list = shape == Shape::Many;
            let wanted = if is_list { "a text, a number, or a list of them" } else { "one value" };
            word.ok_or(wanted)
        }
    }
}

/// Flags that can be `on` or `off` have true and false for it.
fn word(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Boolean(is_on) => Some(if *is_on { "on" } else { "off" }.to_owned()),
        _ => None,
    }
}
