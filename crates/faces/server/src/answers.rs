//! What is known of the newest answers after they were sent: the statement of what is missing, and
//! the manifest of an extract. The stream itself has no place for them.

use std::collections::VecDeque;
use std::sync::Mutex;

use questions::Statement;
use schemars::JsonSchema;
use serde::Serialize;

/// So many answers are remembered, and so many bytes of their manifests.
const ANSWERS_MAX: usize = 256;
const BYTES_MAX: usize = 64 << 20;

/// An answer that was begun.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    pub(crate) id: String,
    #[serde(skip)]
    pub(crate) owner: String,
    pub(crate) query: String,
    pub(crate) state: Progress,
    /// Sessions or packets that were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) statement: Option<Statement>,
    /// Where to go on after an answer of sessions that was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
    #[serde(skip)]
    pub(crate) manifest: Option<String>,
}

/// How far an answer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Progress {
    Going,
    Done,
    /// It has no end: its client left, its time was over, or its worker ended.
    BrokenOff,
}

/// The newest answers.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    newest: Mutex<VecDeque<Answer>>,
}

impl Answers {
    /// Remembers one that begins.
    pub(crate) fn begin(&self, owner: &str, query: &str) -> Option<String> {
        let id = units::hex(&host::random_bytes::<16>().ok()?);
        let mut newest = stage::lock(&self.newest);
        newest.push_back(Answer {
            id: id.clone(),
            owner: owner.to_owned(),
            query: query.to_owned(),
            state: Progress::Going,
            count: None,
            statement: None,
            next_cursor: None,
            manifest: None,
        });
        while newest.len() > ANSWERS_MAX {
            newest.pop_front();
        }
        Some(id)
    }

    /// Changes what is known of one.
    pub(crate) fn change(&self, id: &str, change: impl FnOnce(&mut Answer)) {
        let mut newest = stage::lock(&self.newest);
        if let Some(answer) = newest.iter_mut().rev().find(|answer| answer.id == id) {
            change(answer);
        }
        let bytes = |answer: &Answer| answer.manifest.as_ref().map_or(0, String::len);
        while newest.iter().map(bytes).sum::<usize>() > BYTES_MAX {
            newest.pop_front();
        }
    }

    /// One that this owner has asked for.
    pub(crate) fn of(&self, id: &str, owner: &str) -> Option<Answer> {
        let newest = stage::lock(&self.newest);
        newest.iter().find(|answer| answer.id == id && answer.owner == owner).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_answers_are_known_to_who_asked() {
        let answers = Answers::default();
        let ids: Vec<String> =
            (0..=ANSWERS_MAX).map(|_| answers.begin("a", "port 53").unwrap()).collect();
        let (oldest, newest) = (ids.first().unwrap(), ids.last().unwrap());
        assert!(answers.of(oldest, "a").is_none() && answers.of(newest, "b").is_none());
        assert_eq!(answers.of(newest, "a").unwrap().state, Progress::Going);
    }

    #[test]
    fn manifests_take_so_many_bytes_together() {
        let answers = Answers::default();
        let ids = [(); 9].map(|()| answers.begin("a", "").unwrap());
        for id in &ids {
            answers.change(id, |answer| answer.manifest = Some("x".repeat(8 << 20)));
        }
        assert!(answers.of(&ids[0], "a").is_none());
        assert!(answers.of(&ids[1], "a").is_some_and(|answer| answer.manifest.is_some()));
    }
}
