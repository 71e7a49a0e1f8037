//! The file of tags.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use page::safe::json_line;
use units::number::to_u64;

use crate::tag::Tag;

/// So many tags are kept, and so many bytes of them.
const TAGS_MAX: usize = 65_536;
const BYTES_MAX: u64 = 32 << 20;

/// Why tags cannot be had or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// A line of it is no tag.
    #[error("{}: line {line} is no tag", page::safe::path(path))]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
    /// There is no room for more.
    #[error("the file of tags has {0} already, and room for {TAGS_MAX}: remove some")]
    Full(usize),
}

/// Which tags are wanted, of those that may be seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// Of this session.
    pub session: Option<&'a str>,
    /// With this in the tag.
    pub text: Option<&'a str>,
    /// At most so many.
    pub limit: usize,
}

/// Tags that are wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// The newest first, at most as many as were wanted.
    pub tags: Vec<Tag>,
    /// How many there are.
    pub count: u64,
}

/// The tags of a service.
#[derive(Debug)]
pub struct Tags {
    path: PathBuf,
    /// As the file has them: the oldest first.
    known: Mutex<Vec<Tag>>,
}

impl Tags {
    /// How many are kept at most.
    pub const MOST: usize = TAGS_MAX;

    /// The tags in a file, which is made when the first one comes.
    ///
    /// # Errors
    /// When it cannot be read, others may read it, or a line of it is no tag.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let is_there = host::target(path)? != host::Target::Absent;
        let text = if is_there { host::read_private(path, BYTES_MAX)? } else { String::new() };
        Ok(Self { path: path.to_owned(), known: Mutex::new(parse(path, &text)?) })
    }

    /// Those that are wanted, and that `may_see` lets through.
    pub fn list(&self, wanted: Wanted<'_>, may_see: &dyn Fn(&Tag) -> bool) -> Listed {
        let known = stage::lock(&self.known);
        let is_wanted = |tag: &&Tag| {
            let is_of = wanted.session.is_none_or(|session| tag.of.session_id == session);
            is_of && wanted.text.is_none_or(|text| tag.of.tag.contains(text)) && may_see(tag)
        };
        let count = known.iter().filter(is_wanted).count();
        let tags = known.iter().rev().filter(is_wanted).take(wanted.limit).cloned().collect();
        Listed { tags, count: to_u64(count) }
    }

    /// Keeps more tags: all of them, or none.
    ///
    /// # Errors
    /// When there is no room for them, or the file cannot be changed.
    pub fn add(&self, tags: &[Tag]) -> Result<(), Error> {
        self.change(&mut |known| {
            if known.len().saturating_add(tags.len()) > TAGS_MAX {
                return Err(Error::Full(known.len()));
            }
            known.extend_from_slice(tags);
            Ok(())
        })
    }

    /// Takes a tag out that `may_see` lets through; `None` where there is no such tag.
    ///
    /// # Errors
    /// When the file cannot be changed.
    pub fn remove(&self, id: &str, may_see: &dyn Fn(&Tag) -> bool) -> Result<Option<Tag>, Error> {
        let mut removed = None;
        self.change(&mut |known| {
            let at = known.iter().position(|tag| tag.id == id && may_see(tag));
            removed = at.map(|at| known.remove(at));
            Ok(())
        })?;
        Ok(removed)
    }

    /// What the file does not take is not known either.
    fn change(
        &self,
        change: &mut dyn FnMut(&mut Vec<Tag>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut known = stage::lock(&self.known);
        let mut changed = None;
        host::change_private(&self.path, BYTES_MAX, &mut |text| {
            let mut tags = parse(&self.path, text)?;
            change(&mut tags)?;
            let text: String = tags.iter().map(json_line).collect();
            if to_u64(text.len()) > BYTES_MAX {
                return Err(Error::Full(tags.len()));
            }
            changed = Some(tags);
            Ok(text)
        })?;
        if let Some(tags) = changed {
            *known = tags;
        }
        Ok(())
    }
}

fn parse(path: &Path, text: &str) -> Result<Vec<Tag>, Error> {
    let lines = (1..).zip(text.lines());
    let tag = |(line, text): (usize, &str)| {
        let wrong = |_| Error::Line { path: path.to_owned(), line };
        serde_json::from_str(text).map_err(wrong)
    };
    lines.map(tag).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag::OfSession;

    fn tag(id: &str, session: &str, text: &str, filter: Option<&str>) -> Tag {
        Tag {
            id: id.to_owned(),
            of: OfSession {
                session_id: session.to_owned(),
                community_id: None,
                tag: text.to_owned(),
                severity: Some(1),
                event_ns: 5,
                start_ns: 4,
                provisional: false,
            },
            volume_id: "v".to_owned(),
            by: "anna".to_owned(),
            made_ns: 6,
            filter: filter.map(str::to_owned),
        }
    }

    fn everything(_: &Tag) -> bool {
        true
    }

    fn ids(listed: &Listed) -> Vec<&str> {
        listed.tags.iter().map(|tag| &*tag.id).collect()
    }

    #[test]
    fn tags_are_kept_listed_and_removed_by_who_may_see_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tags");
        let tags = Tags::open(&path).unwrap();
        tags.add(&[tag("a", "7.0-1", "ET SCAN", None), tag("b", "7.0-1", "mine", Some("port 1"))])
            .unwrap();
        tags.add(&[tag("c", "8.0-0", "line\nfeed \u{1b}", None)]).unwrap();
        for tags in [&tags, &Tags::open(&path).unwrap()] {
            let all = Wanted { limit: 9, ..Wanted::default() };
            assert_eq!(ids(&tags.list(all, &everything)), ["c", "b", "a"]);
            let of = Wanted { session: Some("7.0-1"), text: Some("SCAN"), limit: 9 };
            assert_eq!(ids(&tags.list(of, &everything)), ["a"]);
            let few = tags.list(Wanted { limit: 1, ..all }, &everything);
            assert_eq!((ids(&few), few.count), (vec!["c"], 3));
        }
        let own = |tag: &Tag| tag.filter.as_deref() == Some("port 1");
        assert_eq!(tags.remove("a", &own).unwrap(), None);
        assert_eq!(tags.remove("b", &own).unwrap().unwrap().id, "b");
        assert_eq!(
            Tags::open(&path)
                .unwrap()
                .list(Wanted { limit: 9, ..Wanted::default() }, &everything)
                .count,
            2
        );
    }

    #[test]
    fn a_file_that_is_none_and_one_that_is_full_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tags");
        let tags = Tags::open(&path).unwrap();
        tags.add(&[tag("a", "7.0-1", "x", None)]).unwrap();
        let many = vec![tag("b", "7.0-1", "x", None); TAGS_MAX];
        assert!(matches!(tags.add(&many), Err(Error::Full(1))));
        assert_eq!(tags.list(Wanted { limit: 9, ..Wanted::default() }, &everything).count, 1);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}{{}}\n")).unwrap();
        assert!(matches!(Tags::open(&path), Err(Error::Line { line: 2, .. })));
        assert!(tags.remove("a", &everything).is_err(), "what is not understood is not written");
    }
}
