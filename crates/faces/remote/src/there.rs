//! A volume of a service, and what is asked of it.

use serde::de::IgnoredAny;
use upkeep::Status;

use crate::answer::Answer;
use crate::documents::{Said, Volume};
use crate::service::Service;
use crate::{Error, JSON};

/// The longest text that is shown as it comes.
const TEXT_BYTES_MAX: usize = 32 << 20;

/// Which volume is meant is not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoVolume {
    /// The service does not say which it has.
    #[error(transparent)]
    Service(#[from] Error),
    /// The words name none, or several could be meant; in words.
    #[error("{0}")]
    Which(String),
}

/// A volume of a service.
#[derive(Debug)]
pub struct There {
    service: Service,
    volume: Volume,
    /// What is asked of it.
    query: String,
}

impl There {
    /// The volume that the first word names, or the only one: then the first word belongs to the
    /// others, which come back.
    ///
    /// # Errors
    /// When the service gives no answer, or it is not known which volume is meant.
    pub fn choose(
        service: Service,
        first: Option<&str>,
        words: &[String],
    ) -> Result<(Self, Vec<String>), NoVolume> {
        let volumes = service.whoami()?.volumes;
        let all = || {
            let first = first.map(str::to_owned);
            first.into_iter().chain(words.iter().cloned()).collect::<Vec<String>>()
        };
        let is_it = |it: &&Volume| Some(&*it.name) == first || Some(&*it.id) == first;
        let (volume, words) = match (volumes.iter().find(is_it), &*volumes) {
            (Some(named), _) => (named.clone(), words.to_vec()),
            (None, [only]) => (only.clone(), all()),
            (None, _) => return Err(which(&service, &volumes, first)),
        };
        Ok((Self { service, volume, query: String::new() }, words))
    }

    /// The same, which is asked this.
    #[must_use]
    pub fn with_query(self, query: String) -> Self {
        Self { query, ..self }
    }

    /// Asks another query of it from now on.
    pub fn ask(&mut self, query: String) {
        self.query = query;
    }

    /// Asks for what stands at a path.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn get(
        &self,
        path: &str,
        parameters: &[(&str, String)],
        media_type: &'static str,
    ) -> Result<Answer<'_>, Error> {
        let mut all = vec![("volume", self.volume.id.clone()), ("query", self.query.clone())];
        all.extend(parameters.iter().cloned());
        self.service.get(path, &all, media_type)
    }

    /// A text or JSON that stands at a path, without a query. What in it a terminal would obey is
    /// escaped: the service may be anybody's.
    ///
    /// # Errors
    /// When there is no answer, or it is no text.
    pub fn text(
        &self,
        path: &str,
        parameters: &[(&str, String)],
        media_type: &'static str,
    ) -> Result<String, Error> {
        let mut all = vec![("volume", self.volume.id.clone())];
        all.extend(parameters.iter().cloned());
        let bytes = self.service.get(path, &all, media_type)?.whole(TEXT_BYTES_MAX)?;
        let text = String::from_utf8(bytes).map_err(|_| self.unlike("the text is no UTF-8"))?;
        let is_json = media_type != JSON || serde_json::from_str::<IgnoredAny>(&text).is_ok();
        let why = "what it says is no JSON";
        is_json.then(|| page::safe::lines(&text).into_owned()).ok_or_else(|| self.unlike(why))
    }

    /// What the service says of an answer of which so many were received.
    ///
    /// # Errors
    /// When there is no answer, or it says that it sent another number.
    pub fn said(&self, answer: &str, count: Option<u64>) -> Result<Said, Error> {
        let said = self.service.said(answer)?;
        match count {
            Some(count) if said.count != Some(count) => Err(self.unlike(&format!(
                "{count} came, and it says that it sent {}",
                said.count.map_or_else(|| "an unknown number".to_owned(), |it| it.to_string())
            ))),
            _ => Ok(said),
        }
    }

    /// Where it is.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// An answer that is none of a service.
    pub fn unlike(&self, why: &str) -> Error {
        let why = page::safe::printable(why);
        Error::Unlike { origin: self.service.origin().clone(), why }
    }

    /// Refuses words behind the volume: of a service with one volume they are no name of it.
    ///
    /// # Errors
    /// When there are any.
    pub fn named_by_all(self, words: &[String]) -> Result<Self, NoVolume> {
        match words.first() {
            None => Ok(self),
            Some(word) => {
                Err(which(&self.service, core::slice::from_ref(&self.volume), Some(word)))
            }
        }
    }

    /// How the volume stands.
    ///
    /// # Errors
    /// When there is no answer, or it is none.
    pub fn status(&self) -> Result<(Status, Option<String>), Error> {
        let volume = self.service.status(&self.volume.id)?;
        let wrong = |error| self.unlike(&format!("what it says of its volume is none: {error}"));
        volume_view::read_status(volume).map_err(wrong)
    }
}

/// Which volume is meant is not said.
fn which(service: &Service, volumes: &[Volume], first: Option<&str>) -> NoVolume {
    let names: Vec<String> =
        volumes.iter().map(|volume| page::safe::printable(&volume.name)).collect();
    let has = match names.join(", ") {
        names if names.is_empty() => "none".to_owned(),
        names => names,
    };
    let origin = service.origin();
    NoVolume::Which(match first {
        Some(first) => {
            format!("{:?} is no volume of {origin}, which has: {has}", page::safe::printable(first))
        }
        None => format!("which volume? {origin} has: {has}"),
    })
}
