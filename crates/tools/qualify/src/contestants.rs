//! The words of `--compare`: which targets are opened, and which of them make a contestant.

use std::path::{Path, PathBuf};

use host::Target;

use crate::compare::Contest;
use crate::error::Error;
use crate::members::Protection;
use crate::number::to_u64;
use crate::plan::Part;
use crate::sizing::MEMBERS_MAX;

/// Columns of a volume, in bytes: a head and a row, to the longest.
const COLUMN_BYTES_MIN: u64 = 8 << 10;
const COLUMN_BYTES_MAX: u64 = 2 << 20;

/// What is behind the last colon of a contestant.
const PROTECTIONS: [(&str, Protection); 3] = [
    ("checksums", Protection::Checksums),
    ("parity", Protection::Parity),
    ("double-parity", Protection::DoubleParity),
];

/// One word of `--compare`: members, and what is computed for them.
#[derive(Debug, PartialEq, Eq)]
struct Word {
    members: Vec<PathBuf>,
    protection: Protection,
}

impl Word {
    /// `A`, `A+B+C`, `A:checksums`, `A+B:parity`; what is there under the whole text is that.
    fn parse(text: &Path) -> Result<Self, Error> {
        let plain =
            |path: &Path| Self { members: vec![path.to_path_buf()], protection: Protection::None };
        let Some(words) = text.to_str().filter(|_| !text.exists()) else { return Ok(plain(text)) };
        let (targets, protection) = match words.rsplit_once(':') {
            Some((targets, word)) => match PROTECTIONS.iter().find(|(name, _)| *name == word) {
                Some((_, protection)) => (targets, *protection),
                None if members(targets).iter().any(|path| path.exists()) => {
                    let known = "checksums, parity or double-parity";
                    return Err(refused(words, &format!("behind the colon comes {known}")));
                }
                None => (words, Protection::None),
            },
            None => (words, Protection::None),
        };
        let members = members(targets);
        if members.iter().any(|path| path.as_os_str().is_empty()) {
            return Err(refused(words, "a target on either side of each +"));
        }
        let least = protection.parity_columns() + 1;
        if members.len() < least {
            let text = format!("at least {least} targets, joined by +: the last have the parity");
            return Err(refused(words, &text));
        }
        if u32::try_from(members.len()).is_ok_and(|count| count > MEMBERS_MAX) {
            return Err(refused(words, &format!("at most {MEMBERS_MAX} members")));
        }
        Ok(Self { members, protection })
    }

    fn columns(&self) -> usize {
        self.members.len() - self.protection.parity_columns()
    }

    /// Only writing shows what several members, checksums and parity cost.
    fn is_plain(&self) -> bool {
        self.members.len() == 1 && self.protection == Protection::None
    }
}

fn members(targets: &str) -> Vec<PathBuf> {
    if Path::new(targets).exists() {
        return vec![targets.into()];
    }
    targets.split('+').map(PathBuf::from).collect()
}

fn refused(word: &str, why: &str) -> Error {
    Error::Words(format!("--compare {word}: {why}"))
}

/// A target that is opened once, for all its users.
#[derive(Debug)]
pub struct Site {
    /// Where it is.
    pub path: PathBuf,
    /// It is a block device.
    pub is_device: bool,
    /// Of a file that is made.
    pub size_bytes: u64,
    /// By which it is known again; `None` of a directory, where each use has a file of its own.
    key: Option<PathBuf>,
    is_only_read: bool,
}

/// One of those that are compared.
#[derive(Debug)]
pub struct Entry {
    /// As it was typed.
    pub name: String,
    /// Places among the sites.
    pub members: Vec<usize>,
    /// What is computed for them.
    pub protection: Protection,
    /// Members that hold data.
    pub columns: usize,
}

/// All that is compared.
#[derive(Debug, Default)]
pub struct Field {
    /// In the order in which they are named first.
    pub sites: Vec<Site>,
    /// In the order in which they are named.
    pub entries: Vec<Entry>,
}

impl Field {
    /// `size_bytes` are those of all members of a contestant that hold data; `names` say how many
    /// devices may be written to. Nothing is opened yet.
    pub fn plan(
        words: &[(String, PathBuf)],
        (contest, size_bytes): (&Contest, u64),
        names: usize,
    ) -> Result<Self, Error> {
        let mut field = Self::default();
        let mut are_plain = true;
        for (name, text) in words {
            let (name, word) = (name.clone(), Word::parse(text)?);
            are_plain &= word.is_plain();
            check_block(&name, &word, contest.block_bytes)?;
            let columns = word.columns();
            let member_bytes = if columns == 1 {
                size_bytes
            } else {
                let share = size_bytes.div_ceil(to_u64(columns));
                share.next_multiple_of(contest.block_bytes)
            };
            let mut members = Vec::new();
            for path in &word.members {
                let at = field.site(path, member_bytes)?;
                if members.contains(&at) {
                    let text = format!("{} is in it twice", path.display());
                    return Err(refused(&name, &text));
                }
                members.push(at);
            }
            field.entries.push(Entry { name, members, protection: word.protection, columns });
        }
        field.consent(names)?;
        match field.sites.iter().find(|site| site.is_only_read) {
            Some(site) if !are_plain => {
                let (part, path) = (Part::Fill, site.path.clone());
                Err(Error::ReadOnly { part, path, is_device: site.is_device })
            }
            _ => Ok(field),
        }
    }

    /// The place of a target, which is added when it is new.
    fn site(&mut self, path: &Path, size_bytes: u64) -> Result<usize, Error> {
        let found = host::target(path)?;
        let is_shared = !path.is_dir();
        let key = is_shared.then(|| path.canonicalize().unwrap_or_else(|_| path.to_path_buf()));
        let known = self.sites.iter().position(|site| key.is_some() && site.key == key);
        if let Some(site) = known.and_then(|at| self.sites.get_mut(at)) {
            site.size_bytes = site.size_bytes.max(size_bytes);
        }
        Ok(known.unwrap_or_else(|| {
            let (is_device, is_only_read) =
                (found == Target::BlockDevice, matches!(found, Target::File { .. }));
            let path = path.to_path_buf();
            self.sites.push(Site { path, is_device, size_bytes, key, is_only_read });
            self.sites.len() - 1
        }))
    }

    /// The first devices are written to, by the names that were typed.
    fn consent(&mut self, names: usize) -> Result<(), Error> {
        let mut devices = 0;
        for site in self.sites.iter_mut().filter(|site| site.is_device) {
            site.is_only_read = devices >= names;
            devices += 1;
        }
        if names > devices {
            return Err(Error::Words("--destroy: more names than devices".to_owned()));
        }
        Ok(())
    }

    /// The contest with runs of whole stripes of all targets.
    pub fn fitted(&self, contest: Contest) -> Result<Contest, Error> {
        let stripe = contest.stripe_bytes(self.entries.iter().map(|entry| entry.columns));
        if contest.run_bytes < stripe {
            let (run, text) = (contest.run_bytes, "whole stripes of all targets");
            return Err(Error::Words(format!("--run-size {run}: at least {stripe}, {text}")));
        }
        Ok(Contest { run_bytes: contest.run_bytes / stripe * stripe, ..contest })
    }
}

/// A column that is protected has to be one of a volume.
fn check_block(name: &str, word: &Word, block_bytes: u64) -> Result<(), Error> {
    let is_column = (COLUMN_BYTES_MIN..=COLUMN_BYTES_MAX).contains(&block_bytes);
    if word.protection == Protection::None || is_column {
        return Ok(());
    }
    Err(refused(name, &format!("--block {block_bytes}: a column of a volume has 8K to 2M")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Result<(Vec<String>, Protection), String> {
        let word = Word::parse(Path::new(text)).map_err(|error| error.to_string())?;
        let names = word.members.iter().map(|path| path.display().to_string());
        Ok((names.collect(), word.protection))
    }

    #[test]
    fn a_word_is_members_and_what_is_computed_for_them() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        for (text, members, protection) in [
            ("/a", &["/a"][..], Protection::None),
            ("/a:checksums", &["/a"], Protection::Checksums),
            ("/a+/b+/c", &["/a", "/b", "/c"], Protection::None),
            ("/a+/b:parity", &["/a", "/b"], Protection::Parity),
            ("a+b+c:double-parity", &["a", "b", "c"], Protection::DoubleParity),
            ("/absent:else", &["/absent:else"], Protection::None),
        ] {
            assert_eq!(word(text), Ok((names(members), protection)), "{text}");
        }
        for (text, said) in [
            ("/a+", "on either side"),
            ("/a++/b", "on either side"),
            ("/a:parity", "at least 2 targets"),
            ("/a+/b:double-parity", "at least 3 targets"),
            ("/:checksum", "behind the colon comes checksums, parity or double-parity"),
            (&["/a"; 25].join("+"), "at most 24 members"),
        ] {
            assert!(word(text).unwrap_err().contains(said), "{text}: {:?}", word(text));
        }
    }

    #[test]
    fn what_is_there_under_the_whole_text_is_taken_literally() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        for name in ["a+b", "c:parity", "d"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        assert_eq!(word(&path("a+b")), Ok((vec![path("a+b")], Protection::None)));
        assert_eq!(word(&path("c:parity")), Ok((vec![path("c:parity")], Protection::None)));
        let checked = Ok((vec![path("a+b")], Protection::Checksums));
        assert_eq!(word(&format!("{}:checksums", path("a+b"))), checked);
    }

    #[test]
    fn a_directory_has_a_file_for_each_use_and_anything_else_is_shared() {
        let folder = tempfile::tempdir().unwrap();
        let (own, absent) = (folder.path().to_path_buf(), folder.path().join("x"));
        let both = format!("{}+{}", own.display(), absent.display());
        let named = |path: PathBuf| (path.display().to_string(), path);
        let words = [own.clone(), absent.clone(), both.into()].map(named);
        let contest = Contest {
            rounds: 1,
            run_bytes: 8 << 20,
            block_bytes: 2 << 20,
            pool_bytes: 0,
            verifies: true,
        };
        let field = Field::plan(&words, (&contest, 32 << 20), 0).unwrap();
        let members: Vec<&[usize]> = field.entries.iter().map(|entry| &entry.members[..]).collect();
        assert_eq!(members, [&[0][..], &[1], &[2, 1]]);
        let sizes: Vec<u64> = field.sites.iter().map(|site| site.size_bytes >> 20).collect();
        assert_eq!(sizes, [32, 32, 16], "the shares of a stripe, or what one alone needs");
        let twice = [own, format!("{0}+{0}", absent.display()).into()].map(named);
        let error = Field::plan(&twice, (&contest, 32 << 20), 0).unwrap_err().to_string();
        assert!(error.ends_with("is in it twice"), "{error}");
        assert!(Field::plan(&words, (&contest, 32 << 20), 1).is_err(), "no device, no name");
    }
}
