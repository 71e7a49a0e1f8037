//! The parameters of a request.

use interface::Endpoint;

use crate::problem::Problem;

/// The parameters of a request, each once and each known to its endpoint.
pub(crate) struct Given(Vec<(&'static str, String)>);

impl Given {
    pub(crate) fn read(endpoint: &Endpoint, query: &str) -> Result<Self, Problem> {
        let mut given: Vec<(&'static str, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let known = endpoint.parameters.iter().find(|parameter| parameter.name == name);
            let Some(known) = known else {
                let names = endpoint.parameters.iter().map(|parameter| parameter.name);
                let meant = query::nearest(&name, names);
                let meant =
                    meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
                let why = format!("{name:?} is no parameter of {}{meant}", endpoint.path);
                return Err(Problem::wrong_parameter(why));
            };
            if given.iter().any(|(other, _)| *other == known.name) {
                return Err(Problem::wrong_parameter(format!("{name} is given twice")));
            }
            given.push((known.name, value.into_owned()));
        }
        Ok(Self(given))
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, value)| &**value)
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
        let number = self.number(name)?.unwrap_or(usual);
        let why = || Problem::wrong_parameter(format!("{name} is at most {most}"));
        Some(number).filter(|number| *number <= most).ok_or_else(why)
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
}
