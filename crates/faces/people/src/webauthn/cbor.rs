//! CBOR as authenticators write it, read with bounds.

use ciborium::value::{Integer, Value};

use super::party::WrongKey;

/// Statements of attestations have the most levels: fewer than this.
const DEPTH_MAX: usize = 8;

/// A map, in which no key is twice.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Map(Vec<(Value, Value)>);

impl Map {
    /// Reads a map from the beginning of bytes, which are left behind it.
    pub(crate) fn read(bytes: &mut &[u8]) -> Result<Self, WrongKey> {
        let read = ciborium::de::from_reader_with_recursion_limit(bytes, DEPTH_MAX);
        let value: Value = read.map_err(|_| WrongKey::Form)?;
        Self::of(value)
    }

    fn of(value: Value) -> Result<Self, WrongKey> {
        let Value::Map(members) = value else { return Err(WrongKey::Form) };
        let is_twice = |(at, (key, _)): (usize, &(Value, Value))| {
            members.iter().take(at).any(|(other, _)| other == key)
        };
        if members.iter().enumerate().any(is_twice) {
            return Err(WrongKey::Form);
        }
        Ok(Self(members))
    }

    fn find(&self, key: &Value) -> Option<&Value> {
        self.0.iter().find(|(other, _)| other == key).map(|(_, value)| value)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.find(&Value::Text(name.to_owned())).is_some()
    }

    pub(crate) fn text(&self, name: &str) -> Result<&str, WrongKey> {
        let value = self.find(&Value::Text(name.to_owned()));
        value.and_then(Value::as_text).ok_or(WrongKey::Form)
    }

    pub(crate) fn bytes(&self, name: &str) -> Result<&[u8], WrongKey> {
        let value = self.find(&Value::Text(name.to_owned())).and_then(Value::as_bytes);
        value.map(Vec::as_slice).ok_or(WrongKey::Form)
    }

    pub(crate) fn map(&self, name: &str) -> Result<Self, WrongKey> {
        let value = self.find(&Value::Text(name.to_owned())).ok_or(WrongKey::Form)?;
        Self::of(value.clone())
    }

    pub(crate) fn number(&self, name: &str) -> Result<i64, WrongKey> {
        number(self.find(&Value::Text(name.to_owned())))
    }

    /// Of a COSE key, whose names are numbers.
    pub(crate) fn number_at(&self, label: i64) -> Result<i64, WrongKey> {
        number(self.find(&Value::Integer(Integer::from(label))))
    }

    /// The same of bytes.
    pub(crate) fn bytes_at(&self, label: i64) -> Result<&[u8], WrongKey> {
        let value = self.find(&Value::Integer(Integer::from(label))).and_then(Value::as_bytes);
        value.map(Vec::as_slice).ok_or(WrongKey::Form)
    }
}

fn number(value: Option<&Value>) -> Result<i64, WrongKey> {
    let number = value.and_then(Value::as_integer).ok_or(WrongKey::Form)?;
    i64::try_from(number).map_err(|_| WrongKey::Form)
}
