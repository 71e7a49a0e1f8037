//! The file of tokens, changed by one process at a time.

use std::path::Path;

use crate::Error;
use crate::access::NewToken;

/// As much as is read of it.
const BYTES_MAX: u64 = 64 << 10;

/// Adds the line of a token that `make` makes, given the file so far; the token.
pub(crate) fn add(
    path: &Path,
    make: &dyn Fn(&str) -> Result<NewToken, Error>,
) -> Result<String, Error> {
    let mut token = String::new();
    host::change_private(path, BYTES_MAX, &mut |others| {
        let new = make(others)?;
        token = new.token;
        let gap = if others.is_empty() || others.ends_with('\n') { "" } else { "\n" };
        Ok::<_, Error>(format!("{others}{gap}{}", new.line))
    })?;
    Ok(token)
}

/// Makes a token and adds its line to a file, which may be new; the token, which is kept nowhere.
///
/// # Errors
/// When the name or the filter is none, the file has the name already, or cannot be changed.
pub fn add_token(
    path: &Path,
    name: &str,
    scopes: &[people::Scope],
    bounds: (Option<units::Timestamp>, Option<&str>),
) -> Result<String, Error> {
    add(path, &|others| crate::access::new_token(name, scopes, bounds, others))
}

/// Takes the line of a name out: the token is revoked.
pub(crate) fn remove(path: &Path, name: &str) -> Result<(), Error> {
    host::change_private(path, BYTES_MAX, &mut |text| {
        let is_of = |line: &&str| line.split(':').next() == Some(name) && !line.starts_with('#');
        if !text.lines().any(|line| is_of(&line)) {
            return Err(Error::NoToken);
        }
        let left = text.lines().filter(|line| !is_of(line));
        Ok(left.flat_map(|line| [line, "\n"]).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_added_and_taken_out_and_the_others_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let token = add_token(&path, "anna", &[], (None, None)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("anna::") && !text.contains(&token));
        assert!(add_token(&path, "anna", &[], (None, None)).is_err());
        let others = "# anna: a remark\n\nbert:admin:certificate";
        let made = host::change_private(&path, 1 << 16, &mut |text| {
            Ok::<_, Error>(format!("{others}\n{text}"))
        });
        made.unwrap();
        remove(&path, "anna").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{others}\n"));
        assert!(matches!(remove(&path, "anna"), Err(Error::NoToken)));
    }
}
