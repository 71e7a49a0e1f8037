//! The parameters of a request.

use interface::Endpoint;

use crate::problem::Problem;

/// The parameters of a request, each once and each known to its endpoint.
pub(crate) struct Given(Vec<(&'static str, String)>);

impl Given {
    pub(crate) fn read(endpoint: &Endpoint, query: &str) -> Result<Self, Problem> {
        let mut given: Vec<(&'static str, String)> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name)?, decoded(value)?);
            let known = endpoint.parameters.iter().find(|parameter| parameter.name == name);
            let Some(known) = known else {
                let names = endpoint.parameters.iter().map(|parameter| parameter.name);
                let meant = query::did_you_mean(query::nearest(&name, names));
                let why = format!("{name:?} is no parameter of {}{meant}", endpoint.path);
                return Err(Problem::wrong_parameter(why));
            };
            if given.iter().any(|(other, _)| *other == known.name) {
                return Err(Problem::wrong_parameter(format!("{name} is given twice")));
            }
            given.push((known.name, value));
        }
        Ok(Self(given))
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, value)| &**value)
    }

    /// The query of what changes something. It has to be written, and an empty one is of all
    /// sessions: who forgets it has not asked for everything.
    pub(crate) fn written_query(&self) -> Result<&str, Problem> {
        let why = "which sessions? Give a query ('' for all)";
        self.text("query").ok_or_else(|| Problem::wrong_parameter(why))
    }

    /// A text that narrows what is asked for. An empty one would narrow nothing, and is refused.
    pub(crate) fn filled(&self, name: &str) -> Result<Option<&str>, Problem> {
        self.unless(name, |text| text.trim().is_empty())
    }

    /// The same of a text whose blanks count, too.
    pub(crate) fn pattern(&self, name: &str) -> Result<Option<&str>, Problem> {
        self.unless(name, str::is_empty)
    }

    fn unless(&self, name: &str, is_empty: fn(&str) -> bool) -> Result<Option<&str>, Problem> {
        let why = || format!("{name} is empty: give it a value, or leave it out");
        match self.text(name) {
            Some(text) if is_empty(text) => Err(Problem::wrong_parameter(why())),
            text => Ok(text),
        }
    }

    /// The query that is asked; all sessions without it.
    pub(crate) fn query(&self) -> String {
        self.text("query").unwrap_or_default().to_owned()
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| *number > 0);
        let why = || Problem::wrong_parameter(format!("{name} is no whole number above 0"));
        number.map(Some).ok_or_else(why)
    }

    /// A number of this name, `usual` without it.
    pub(crate) fn at_most(&self, name: &str, usual: u64, most: u64) -> Result<u64, Problem> {
        Ok(self.number_to(name, most)?.unwrap_or(usual))
    }

    /// A number of this name that is not larger.
    pub(crate) fn number_to(&self, name: &str, most: u64) -> Result<Option<u64>, Problem> {
        match self.number(name)? {
            Some(number) if number > most => {
                Err(Problem::wrong_parameter(format!("{name} is at most {most}")))
            }
            number => Ok(number),
        }
    }

    /// One of these by its word, `usual` without it.
    pub(crate) fn choice<T: Copy>(
        &self,
        name: &str,
        (all, usual): (&[T], T),
        word: fn(T) -> &'static str,
    ) -> Result<T, Problem> {
        let Some(text) = self.text(name) else { return Ok(usual) };
        let words: Vec<&str> = all.iter().copied().map(word).collect();
        let why = || Problem::wrong_parameter(format!("{name} is {}", words.join(" or ")));
        all.iter().copied().find(|one| word(*one) == text).ok_or_else(why)
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.text(name) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1" | "") => Ok(true),
            Some(_) => Err(Problem::wrong_parameter(format!("{name} is true or false"))),
        }
    }
}

/// A name or a value as forms write it. Bytes that are no text are refused: another text in their
/// place would be searched for, and not be found.
fn decoded(text: &str) -> Result<String, Problem> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let escaped = behind.first_chunk().filter(|_| *first == b'%').and_then(|two| of_hex(*two));
        let (byte, used) = match (escaped, first) {
            (Some(byte), _) => (byte, 3),
            (None, b'+') => (b' ', 1),
            (None, byte) => (*byte, 1),
        };
        bytes.push(byte);
        rest = rest.get(used..).unwrap_or_default();
    }
    let why = format!("{text:?} is no UTF-8: bytes that are no text are written as hex:DIGITS");
    String::from_utf8(bytes).map_err(|_| Problem::wrong_parameter(why))
}

fn of_hex(digits: [u8; 2]) -> Option<u8> {
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? * 16 + low?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use interface::{ENDPOINTS, Matter};

    #[test]
    fn each_parameter_is_known_and_given_once() {
        let sessions = ENDPOINTS.iter().find(|it| it.what == Matter::Sessions).unwrap();
        let given = Given::read(sessions, "query=port+53%20and%20tcp&limit=7").unwrap();
        assert_eq!(given.text("query"), Some("port 53 and tcp"));
        assert_eq!(given.number("limit").unwrap(), Some(7));
        for wrong in ["limits=7", "limit=7&limit=8"] {
            assert!(Given::read(sessions, wrong).is_err(), "{wrong}");
        }
        assert!(Given::read(sessions, "limit=-1").unwrap().number("limit").is_err());
    }

    #[test]
    fn parameters_are_decoded_as_forms_are_and_what_is_no_text_is_refused() {
        let sessions = ENDPOINTS.iter().find(|it| it.what == Matter::Sessions).unwrap();
        for (written, said) in [
            ("query=", ""),
            ("query", ""),
            ("&&query=a%2Bb+c&", "a+b c"),
            ("query=a=b", "a=b"),
            ("%71uery=%e2%82%ac", "\u{20ac}"),
            // A text has this character, too.
            ("query=%EF%BF%BD", "\u{fffd}"),
            ("query=100%", "100%"),
            ("query=%4", "%4"),
            ("query=%zz%2", "%zz%2"),
        ] {
            let given = Given::read(sessions, written).unwrap();
            assert_eq!(given.text("query"), Some(said), "{written}");
        }
        for wrong in ["query=%80", "query=%01%ff", "%ff=1", "query=%c3("] {
            assert!(Given::read(sessions, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_changes_something_has_a_query_and_what_narrows_has_a_value() {
        let hold = ENDPOINTS.iter().find(|it| it.what == Matter::Hold).unwrap();
        assert!(Given::read(hold, "").unwrap().written_query().is_err());
        assert_eq!(Given::read(hold, "query=").unwrap().written_query().unwrap(), "");
        let extract = ENDPOINTS.iter().find(|it| it.what == Matter::Extract).unwrap();
        let given = |text| Given::read(extract, text).unwrap();
        for (text, is_payload, is_filter) in [
            ("", true, true),
            ("payload=", false, true),
            ("payload=+", true, true),
            ("packet_filter=", true, false),
            ("packet_filter=+", true, false),
            ("payload=x&packet_filter=y", true, true),
        ] {
            assert_eq!(given(text).pattern("payload").is_ok(), is_payload, "{text}");
            assert_eq!(given(text).filled("packet_filter").is_ok(), is_filter, "{text}");
        }
    }
}
