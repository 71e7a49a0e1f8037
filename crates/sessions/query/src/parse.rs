//! Tokens to terms: groups, negation, fields and times here; pcap-filter's words in `primitive`.
//!
//! Recursive descent, one token ahead, linear in the text. `and` and `or` bind alike, from left to
//! right, and `not` binds tighter (pcap-filter(7), "Primitives may be combined"; Stenographer's
//! grammar agrees).

mod foreign;
mod head;
mod parser;
mod primitive;
mod words;

use units::Timestamp;
use wire::Protocol;

use format::kind::Kind;

use crate::error::{Error, Problem};
use crate::field::Field;
use crate::number::number;
use crate::operator::{Comparison, Join, MENTIONS};
use crate::parse::parser::Parser;
use crate::parse::words::PACKET_WORDS;
use crate::term::{MAXIMUM_DEPTH, Term, Test};
use crate::token::{Token, TokenKind};
use crate::value::{Value, duration, time};
use crate::zone;

pub(crate) use words::WORDS;

/// Reads a whole text; `None` if it is blank.
pub(crate) fn parse(text: &str, now: Timestamp) -> Result<Option<Term>, Error> {
    let mut parser = Parser::new(text, now)?;
    if parser.peek().kind == TokenKind::End {
        return Ok(None);
    }
    let term = parser.chain()?;
    let Token { at, kind } = parser.peek();
    let mut error = parser.expected("\"and\", \"or\" or the end");
    match kind {
        TokenKind::End => return Ok(Some(term)),
        TokenKind::Word(word) => {
            match not_of_sessions(word, at).or_else(|| foreign::hint(word, at)) {
                Some(better) => error = better,
                None => {
                    error.suggestion = Error::unknown(at, word).suggestion.map(|meant| {
                        // What could begin a condition begins one.
                        let is_known = meant.eq_ignore_ascii_case(word);
                        if is_known { format!("and {word}") } else { meant }
                    });
                }
            }
        }
        _ => {}
    }
    Err(error)
}

impl<'a> Parser<'a> {
    /// Terms combined from left to right.
    fn chain(&mut self) -> Result<Term, Error> {
        let mut left = self.term()?;
        loop {
            let Token { kind: TokenKind::Join(join), at } = self.peek() else { return Ok(left) };
            self.next += 1;
            self.is_joined = join == Join::And;
            left = left.join(join, self.term()?);
            if left.depth() > MAXIMUM_DEPTH {
                return Err(Error::new(at, Problem::TooDeep));
            }
        }
    }

    fn term(&mut self) -> Result<Term, Error> {
        let mut negated = false;
        while self.take_if(TokenKind::Not) {
            negated = !negated;
        }
        let term = match self.peek().kind {
            TokenKind::Open => self.group()?,
            TokenKind::Word(word) => self.condition(word)?,
            _ => return Err(self.expected("a condition such as \"host 10.0.0.1\"")),
        };
        Ok(if negated { term.negate() } else { term })
    }

    fn group(&mut self) -> Result<Term, Error> {
        let Token { at, .. } = self.peek();
        if self.open == MAXIMUM_DEPTH {
            return Err(Error::new(at, Problem::TooDeep));
        }
        self.expect(TokenKind::Open, "\"(\"")?;
        self.open += 1;
        let term = self.chain()?;
        self.open -= 1;
        self.expect(TokenKind::Close, "\"and\", \"or\" or \")\"")?;
        Ok(term)
    }

    /// One condition, whose first word is `word`.
    fn condition(&mut self, word: &'a str) -> Result<Term, Error> {
        let inherited = self.inherited.take();
        let at = self.peek().at;
        let after = self.peek_at(1).kind;
        if matches!(after, TokenKind::Compare(_) | TokenKind::NotEqual) || after.is_word("in") {
            self.next += 1;
            let (field, proto) = Self::field(word, at)?;
            return Ok(foreign::of_protocol(self.comparison(field)?, proto));
        }
        if let Some(term) = self.primitive(word)? {
            return Ok(term);
        }
        if let Some(test) = self.time_test(word)? {
            return Ok(test.into());
        }
        if matches!(word.to_ascii_lowercase().as_str(), "has" | "exists") {
            self.next += 1;
            return self.has();
        }
        if let Some((field, proto)) = foreign::known(word) {
            self.next += 1;
            return Ok(foreign::of_protocol(self.bare_field(field)?, proto));
        }
        if let Some(error) = not_of_sessions(word, at).or_else(|| foreign::hint(word, at)) {
            return Err(error);
        }
        let Some(application) = foreign::application(word) else {
            return self.bare_id(word, inherited);
        };
        // Behind "port 80 or" a name is that of another port.
        if inherited.is_some_and(|head| head.takes_names(word)) {
            return if self.is_joined {
                Err(self.ambiguous(word))
            } else {
                self.bare_id(word, inherited)
            };
        }
        self.next += 1;
        self.refuse_operator()?;
        Ok(application)
    }

    /// The field of this name, here or in another program, and the protocol that goes with it.
    fn field(word: &str, at: usize) -> Result<(&'static Field, Option<Protocol>), Error> {
        foreign::known(word)
            .ok_or_else(|| foreign::hint(word, at).unwrap_or_else(|| Error::unknown(at, word)))
    }

    /// `before`, `after` and `since` with their time.
    fn time_test(&mut self, word: &str) -> Result<Option<Test>, Error> {
        let test = match word.to_ascii_lowercase().as_str() {
            "before" => Test::Before,
            "after" | "since" => Test::After,
            _ => return Ok(None),
        };
        self.next += 1;
        Ok(Some(test(self.time()?)))
    }

    fn time(&mut self) -> Result<Timestamp, Error> {
        let what = Kind::Time.expected();
        let (TokenKind::Word(text) | TokenKind::Quoted(text)) = self.peek().kind else {
            return Err(self.expected(what));
        };
        let Token { at, .. } = self.take();
        let not_a_time = || {
            let mut error = Error::new(at, Problem::NotA { what, text: text.to_owned() });
            error.suggestion = zone::suggestion(text);
            error
        };
        if text.eq_ignore_ascii_case("now") {
            return Ok(self.now);
        }
        let Some(nanos) = duration(text) else {
            return time(text).ok_or_else(not_a_time);
        };
        if !self.take_word("ago") {
            return Err(self.expected("\"ago\""));
        }
        let earlier = i64::try_from(nanos).ok().and_then(|nanos| self.now.0.checked_sub(nanos));
        earlier.map(Timestamp).ok_or_else(not_a_time)
    }

    fn has(&mut self) -> Result<Term, Error> {
        let parenthesis = self.take_if(TokenKind::Open);
        let Token { kind: TokenKind::Word(name), at } = self.peek() else {
            return Err(self.expected("the name of a field"));
        };
        self.next += 1;
        let (field, proto) = Self::field(name, at)?;
        if parenthesis {
            self.expect(TokenKind::Close, "\")\"")?;
        }
        Ok(foreign::of_protocol(Test::Has(field).into(), proto))
    }

    /// A field without an operator: `sni a.example` means `=`, `sni` alone that there is one.
    fn bare_field(&mut self, field: &'static Field) -> Result<Term, Error> {
        self.refuse_operator()?;
        if let Some(term) = self.mention(field)? {
            return Ok(term);
        }
        let field = self.field_of_value(field);
        match self.peek() {
            Token { kind: TokenKind::Word(word), at } if word.starts_with('~') => {
                let remedy = "compare with *, as in \"sni = *.example.com\"";
                Err(Error::new(at, Problem::NotOfSessions { word: "~".to_owned(), remedy }))
            }
            Token { kind: TokenKind::Word(_) | TokenKind::Quoted(_), .. } => {
                Ok(Term::equals(field, self.value(field)?))
            }
            _ if field.kind == Kind::Flag => Ok(Term::equals(field, Value::Flag(true))),
            _ => Ok(Test::Has(field).into()),
        }
    }

    /// `http_path mentions 10.0.0.1`.
    fn mention(&mut self, field: &'static Field) -> Result<Option<Term>, Error> {
        let is_text = matches!(field.kind, Kind::Name | Kind::Text);
        let before = self.next;
        if !is_text || !self.take_word(MENTIONS) {
            return Ok(None);
        }
        let (TokenKind::Word(_) | TokenKind::Quoted(_)) = self.peek().kind else {
            // A value that is called so.
            self.next = before;
            return Ok(None);
        };
        let at = self.peek().at;
        let Value::Text(pattern) = self.value(field)? else { return Ok(None) };
        let term = pattern.whole().filter(|term| !term.is_empty()).ok_or_else(|| {
            let found = pattern.to_string();
            Error::new(at, Problem::Expected { what: "a word without *", found })
        })?;
        let value = Value::Mention(term.to_owned());
        Ok(Some(Test::Compare(field, Comparison::Equal, value).into()))
    }

    fn comparison(&mut self, field: &'static Field) -> Result<Term, Error> {
        let Token { at, kind } = self.take();
        let is_equality =
            matches!(kind, TokenKind::NotEqual | TokenKind::Compare(Comparison::Equal));
        let field = if is_equality { self.field_of_value(field) } else { field };
        match kind {
            TokenKind::NotEqual => Ok(Term::equals(field, self.value(field)?).negate()),
            TokenKind::Compare(Comparison::Equal) => Ok(Term::equals(field, self.value(field)?)),
            TokenKind::Compare(comparison) if field.kind.is_ordered() => {
                Ok(Test::Compare(field, comparison, self.value(field)?).into())
            }
            TokenKind::Compare(_) => Err(Error::new(at, Problem::NoOrder { field: field.name })),
            _ => self.set(field),
        }
    }

    /// `{a, b}`; commas may be left out.
    fn set(&mut self, field: &'static Field) -> Result<Term, Error> {
        self.expect(TokenKind::BraceOpen, "\"{\"")?;
        let mut sets: Vec<(&'static Field, Vec<Value>)> = Vec::new();
        loop {
            let of_value = self.field_of_value(field);
            let value = self.value(of_value)?;
            match sets.iter_mut().find(|(known, _)| *known == of_value) {
                Some((_, values)) => values.push(value),
                None => sets.push((of_value, vec![value])),
            }
            let comma = self.take_if(TokenKind::Comma);
            if !comma && self.take_if(TokenKind::BraceClose) {
                let terms = sets.into_iter().map(|(field, values)| Test::In(field, values).into());
                let any = terms.reduce(|any: Term, term| any.join(Join::Or, term));
                return Ok(any.expect("a set has a value"));
            }
        }
    }

    /// The field that the value which comes next is one of: an interface is said by its number or
    /// its name.
    fn field_of_value(&self, field: &'static Field) -> &'static Field {
        match self.peek().kind {
            TokenKind::Word(text) | TokenKind::Quoted(text)
                if field.kind == Kind::Interface && number(text).is_none() =>
            {
                Field::find("interface_name").expect("there is such a field")
            }
            _ => field,
        }
    }

    fn value(&mut self, field: &'static Field) -> Result<Value, Error> {
        if field.kind == Kind::Time {
            return Ok(Value::Time(self.time()?));
        }
        let what = field.kind.expected();
        let (text, quoted) = match self.peek().kind {
            TokenKind::Word(text) => (text, false),
            TokenKind::Quoted(text) => (text, true),
            _ => return Err(self.expected(what)),
        };
        let Token { at, .. } = self.take();
        if matches!(self.peek().kind, TokenKind::Compare(_) | TokenKind::NotEqual) {
            return Err(
                self.expected("quotes around a value with such signs, as in \"ftp.user=*\"")
            );
        }
        Value::parse(field.kind, text, quoted)
            .ok_or_else(|| Error::new(at, Problem::NotA { what, text: text.to_owned() }))
    }
}

/// The error for a word of pcap-filter that only packets can answer.
fn not_of_sessions(word: &str, at: usize) -> Option<Error> {
    let remedy = if word.contains('[') {
        "bytes of packets are not in the index; filter the extract with tcpdump or Wireshark"
    } else {
        PACKET_WORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word))?.1
    };
    Some(Error::new(at, Problem::NotOfSessions { word: word.to_owned(), remedy }))
}
