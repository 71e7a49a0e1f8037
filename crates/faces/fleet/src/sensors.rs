//! The file of sensors: who is asked, and what is shown to them.

use core::fmt;
use core::ops::Range;
use std::borrow::Cow;

use page::safe::printable;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A file names so many at most: each is asked in threads of its own.
pub const SENSORS_MAX: usize = 1024;
/// Longest name of one: it stands in names of interfaces and in a column.
const NAME_LEN_MAX: usize = 40;

/// A recorder that is asked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sensor {
    /// What it is called in answers.
    pub name: String,
    /// Where its service is.
    pub url: String,
    /// Which of its volumes is meant, where it has several.
    pub volume: Option<String>,
    /// The token's file.
    pub token_file: Option<String>,
    /// The certificates to believe, in PEM.
    pub ca: Option<String>,
    /// A certificate to show, in PEM.
    pub certificate: Option<String>,
    /// Its key.
    pub key: Option<String>,
}

/// A key that a sensor may have.
struct Key {
    name: &'static str,
    meaning: &'static str,
    set: fn(&mut Sensor, String),
}

const KEYS: [Key; 6] = [
    Key {
        name: "url",
        meaning: "Where its service is: https://HOST[:PORT]; http on this machine only",
        set: |sensor, value| sensor.url = value,
    },
    Key {
        name: "volume",
        meaning: "Which of its volumes is meant, by name or id; may be left out where it has one",
        set: |sensor, value| sensor.volume = Some(value),
    },
    Key {
        name: "token_file",
        meaning: "The token to show, in a file that only its owner may read",
        set: |sensor, value| sensor.token_file = Some(value),
    },
    Key {
        name: "ca",
        meaning: "The certificates to believe, in PEM, instead of the system's",
        set: |sensor, value| sensor.ca = Some(value),
    },
    Key {
        name: "certificate",
        meaning: "A certificate to show, in PEM; needs key",
        set: |sensor, value| sensor.certificate = Some(value),
    },
    Key {
        name: "key",
        meaning: "Its key, in a file that only its owner may read; needs certificate",
        set: |sensor, value| sensor.key = Some(value),
    },
];

/// The keys of a sensor with what they mean.
pub fn keys() -> impl Iterator<Item = (&'static str, &'static str)> {
    KEYS.iter().map(|key| (key.name, key.meaning))
}

/// What is wrong in a file of sensors: each with its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoSensors(Vec<(usize, String)>);

impl fmt::Display for NoSensors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (line, why)) in self.0.iter().enumerate() {
            let gap = if place == 0 { "" } else { "\n" };
            write!(f, "{gap}line {line}: {}", printable(why))?;
        }
        Ok(())
    }
}

impl core::error::Error for NoSensors {}

/// Reads a file of sensors; they come in the order in which they stand there.
///
/// # Errors
/// With everything that is wrong.
pub fn read(text: &str) -> Result<Vec<Sensor>, NoSensors> {
    let mut reading = Reading { text, faults: Vec::new() };
    let mut sensors: Vec<(usize, Sensor)> = Vec::new();
    match DeTable::parse(text) {
        Err(error) => {
            reading.fault(&error.span().unwrap_or(0..0), error.message().to_owned());
        }
        Ok(whole) => {
            for (name, value) in whole.get_ref() {
                reading.table(name, value, &mut sensors);
            }
            if whole.get_ref().is_empty() {
                let why = "no sensor is named: write [sensor.NAME] with a url".to_owned();
                reading.fault(&(0..0), why);
            }
        }
    }
    if sensors.len() > SENSORS_MAX {
        let why = format!("{} sensors are named, {SENSORS_MAX} are the most", sensors.len());
        reading.fault(&(0..0), why);
    }
    sensors.sort_by_key(|(line, _)| *line);
    reading.faults.sort_by_key(|(line, _)| *line);
    if reading.faults.is_empty() {
        Ok(sensors.into_iter().map(|(_, sensor)| sensor).collect())
    } else {
        Err(NoSensors(reading.faults))
    }
}

/// What was probably meant by a name, as the end of a sentence.
fn meant<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> String {
    query::did_you_mean(query::nearest(name, names))
}

type Name<'t> = Spanned<Cow<'t, str>>;
type Value<'t> = Spanned<DeValue<'t>>;

struct Reading<'t> {
    text: &'t str,
    faults: Vec<(usize, String)>,
}

impl<'t> Reading<'t> {
    fn line(&self, place: &Range<usize>) -> usize {
        let before = self.text.get(..place.start.min(self.text.len())).unwrap_or(self.text);
        before.matches('\n').count() + 1
    }

    fn fault(&mut self, place: &Range<usize>, why: String) {
        self.faults.push((self.line(place), why));
    }

    fn table(&mut self, name: &Name<'t>, value: &Value<'t>, sensors: &mut Vec<(usize, Sensor)>) {
        let table = name.get_ref();
        if table != "sensor" {
            let meant = meant(table, ["sensor"].into_iter());
            return self.fault(&name.span(), format!("[{table}] is no table{meant}"));
        }
        let DeValue::Table(named) = value.get_ref() else {
            return self.fault(&name.span(), "write [sensor.NAME] before its keys".to_owned());
        };
        for (own, value) in named {
            let DeValue::Table(keys) = value.get_ref() else {
                self.fault(&own.span(), "write [sensor.NAME] before its keys".to_owned());
                continue;
            };
            let place = (own.span(), own.get_ref().as_ref());
            sensors.extend(self.sensor(place, keys));
        }
    }

    fn sensor(
        &mut self,
        (place, name): (Range<usize>, &str),
        given: &DeTable<'t>,
    ) -> Option<(usize, Sensor)> {
        let before = self.faults.len();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.is_empty() || name.len() > NAME_LEN_MAX || !name.bytes().all(is_name) {
            let are = format!("letters, digits, - _ and . are, {NAME_LEN_MAX} at most");
            self.fault(&place, format!("{name:?} is no name of a sensor: {are}"));
        }
        let mut sensor = Sensor { name: name.to_owned(), ..Sensor::default() };
        for (key, value) in given {
            let key_name = key.get_ref();
            let Some(known) = KEYS.iter().find(|known| known.name == key_name) else {
                let meant = meant(key_name, KEYS.iter().map(|key| key.name));
                self.fault(&key.span(), format!("{key_name} is no key of [sensor]{meant}"));
                continue;
            };
            match value.get_ref() {
                DeValue::String(text) if !text.is_empty() => {
                    (known.set)(&mut sensor, text.to_string());
                }
                _ => self.fault(&key.span(), format!("{key_name} is a text in quotes")),
            }
        }
        if sensor.url.is_empty() && self.faults.len() == before {
            self.fault(&place, format!("[sensor.{name}] lacks url"));
        }
        let lacks = match (&sensor.certificate, &sensor.key) {
            (Some(_), None) => Some("a certificate without its key"),
            (None, Some(_)) => Some("a key without its certificate"),
            _ => None,
        };
        if let Some(lacks) = lacks {
            self.fault(&place, format!("[sensor.{name}] has {lacks}"));
        }
        (self.faults.len() == before).then(|| (self.line(&place), sensor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        read(text).unwrap_err().to_string().lines().map(str::to_owned).collect()
    }

    #[test]
    fn sensors_come_in_the_order_of_the_file_with_what_is_shown_to_them() {
        let text = "[sensor.west]\nurl = 'https://w'\ntoken_file = '/t'\n\n[sensor.\"a.b-1_\"]\n\
                    url = 'https://e:1'\nca = '/ca'\ncertificate = '/c'\nkey = '/k'\n\
                    volume = 'v'\n";
        let sensors = read(text).unwrap();
        let text = |text: &str| Some(text.to_owned());
        let west = Sensor {
            name: "west".to_owned(),
            url: "https://w".to_owned(),
            token_file: text("/t"),
            ..Sensor::default()
        };
        let east = Sensor {
            name: "a.b-1_".to_owned(),
            url: "https://e:1".to_owned(),
            volume: text("v"),
            token_file: None,
            ca: text("/ca"),
            certificate: text("/c"),
            key: text("/k"),
        };
        assert_eq!(sensors, [west, east]);
    }

    #[test]
    fn everything_that_is_wrong_is_said_with_its_line_and_what_was_meant() {
        let text = "[sensor.a]\nurll = 'https://a'\n[sensors.b]\nurl = 'https://b'\n\
                    [sensor.c]\nurl = 5\n[sensor.'d e']\nurl = 'https://d'\n[sensor.f]\n\
                    url = 'https://f'\nkey = '/k'\n[sensor.g]\n";
        assert_eq!(
            said(text),
            [
                "line 2: urll is no key of [sensor]; did you mean url?",
                "line 3: [sensors] is no table; did you mean sensor?",
                "line 6: url is a text in quotes",
                "line 7: \"d e\" is no name of a sensor: letters, digits, - _ and . are, 40 at \
                 most",
                "line 9: [sensor.f] has a key without its certificate",
                "line 12: [sensor.g] lacks url",
            ]
        );
        assert_eq!(said(""), ["line 1: no sensor is named: write [sensor.NAME] with a url"]);
        assert_eq!(said("sensor = 1"), ["line 1: write [sensor.NAME] before its keys"]);
        assert_eq!(said("[sensor]\nurl = 'x'")[0], "line 2: write [sensor.NAME] before its keys");
        assert!(said("a = 1\n[sensor.a\n")[0].starts_with("line 2: "));
        assert_eq!(said("[sensor.a]\nurl='x'\n[sensor.a]\nurl='y'\n").len(), 1);
    }

    #[test]
    fn a_file_names_so_many_sensors_at_most() {
        let table = |at: usize| format!("[sensor.s{at}]\nurl = 'https://s'\n");
        let text = (0..=SENSORS_MAX).map(table).collect::<Vec<String>>().concat();
        assert_eq!(said(&text), ["line 1: 1025 sensors are named, 1024 are the most"]);
    }
}
