//! Rust source as the rules see it: without comments, literals and test code.
//!
//! A lexer of thirty lines, not a parser: it knows where comments and literals begin and end, and
//! which item a `#[cfg(test)]` covers. Line numbers stay those of the file.

use std::collections::BTreeSet;

const TEST_ATTRIBUTE: &str = "#[cfg(test)]";
const FILE_LINES_MAX: usize = 800;

/// One Rust file.
pub(crate) struct Source {
    pub(crate) path: String,
    /// Production code, line for line; comments, literals and test items are blank.
    pub(crate) code: String,
    lines: usize,
    test_module_names: Vec<String>,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Source {
        let mut code = without_comments_and_literals(text);
        let mut lines = text.lines().count();
        let mut test_module_names = Vec::new();
        while let Some(start) = code.find(TEST_ATTRIBUTE) {
            let (before, rest) = code.split_at(start);
            let (item, after) = rest.split_at(item_len(rest));
            test_module_names.extend(module_elsewhere(item));
            lines -= item.lines().count();
            code = format!("{before}{}{after}", blank(item));
        }
        Source { path: path.to_owned(), code, lines, test_module_names }
    }

    /// Paths of the files and folders (with a slash at the end) of `#[cfg(test)] mod name;` in this
    /// file.
    pub(crate) fn test_modules(&self) -> Vec<String> {
        let (folder, file) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let stem = file.trim_end_matches(".rs");
        let is_root = matches!(stem, "lib" | "main" | "mod");
        let folder = if is_root { folder.to_owned() } else { format!("{folder}/{stem}") };
        let names = self.test_module_names.iter();
        names
            .flat_map(|name| [format!("{folder}/{name}.rs"), format!("{folder}/{name}/")])
            .collect()
    }

    /// Whether the whole file is test code: an integration test, or a module that only tests
    /// compile.
    pub(crate) fn is_test(&self, test_modules: &BTreeSet<String>) -> bool {
        let in_test_folder = self.path.split('/').any(|part| part == "tests" || part == "tests.rs");
        let in_module = |module: &String| module.ends_with('/') && self.path.starts_with(module);
        in_test_folder || test_modules.contains(&self.path) || test_modules.iter().any(in_module)
    }

    /// Lines with comments and empty lines, without tests.
    pub(crate) fn lines(&self) -> usize {
        self.lines
    }

    /// Files aim at 400 lines and have 800 at most, tests apart.
    pub(crate) fn length(&self) -> Option<String> {
        let too_long = self.lines > FILE_LINES_MAX;
        too_long.then(|| {
            format!("{}: {} lines without tests; at most {FILE_LINES_MAX}", self.path, self.lines)
        })
    }
}

/// The name in `#[cfg(test)] mod name;`.
fn module_elsewhere(item: &str) -> Option<String> {
    let (_, declaration) = item.strip_suffix(';')?.rsplit_once("mod ")?;
    Some(declaration.trim().to_owned())
}

/// How long an item with its attributes is: to its semicolon or its closing brace.
fn item_len(rest: &str) -> usize {
    let mut depth = 0_usize;
    for (offset, character) in rest.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth <= 1 => return offset + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return offset + 1,
            _ => {}
        }
    }
    rest.len()
}

fn without_comments_and_literals(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let len = blank_len(rest);
        let (piece, after) = rest.split_at(len.max(character.len_utf8()));
        code.push_str(&if len > 0 { blank(piece) } else { piece.to_owned() });
        rest = after;
    }
    code
}

/// Spaces in place of every character but the line ends.
fn blank(text: &str) -> String {
    text.chars().map(|character| if character == '\n' { '\n' } else { ' ' }).collect()
}

/// The length of the comment or literal at the start of the text; 0 if there is none.
fn blank_len(rest: &str) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment_len(rest);
    }
    if let Some(body) = rest.strip_prefix('"') {
        return 1 + quoted_len(body, '"');
    }
    if let Some(body) = rest.strip_prefix('\'') {
        // A lifetime has no closing quote two characters on.
        let is_character = body.starts_with('\\') || body.chars().nth(1) == Some('\'');
        return if is_character { 1 + quoted_len(body, '\'') } else { 0 };
    }
    raw_string_len(rest)
}

fn block_comment_len(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut offset = 0;
    while let Some(tail) = rest.get(offset..).filter(|tail| !tail.is_empty()) {
        if tail.starts_with("/*") {
            depth += 1;
            offset += 2;
        } else if tail.starts_with("*/") {
            depth -= 1;
            offset += 2;
            if depth == 0 {
                break;
            }
        } else {
            offset += tail.chars().next().map_or(1, char::len_utf8);
        }
    }
    offset
}

fn quoted_len(body: &str, quote: char) -> usize {
    let mut escaped = false;
    for (offset, character) in body.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return offset + 1,
            _ => {}
        }
    }
    body.len()
}

fn raw_string_len(rest: &str) -> usize {
    let Some(after) = rest.strip_prefix('r') else { return 0 };
    let body = after.trim_start_matches('#');
    if !body.starts_with('"') {
        return 0;
    }
    let hashes = after.len() - body.len();
    let end = format!("\"{}", "#".repeat(hashes));
    let opening = 1 + end.len();
    let closing = rest.get(opening..).and_then(|tail| tail.find(&end));
    closing.map_or(rest.len(), |offset| opening + offset + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_literals_and_tests_are_blank_and_lines_stay() {
        let text = r##"let a = "unsafe\""; // unsafe
/* unsafe /* */
 */ let b = r#"unsafe"#;
let c: &'a u8 = &b'\''; let d = '"'; keep();
#[cfg(test)]
mod tests {
    fn f() { gone(); }
}
fn last() {}
"##;
        let source = Source::new("crates/x/src/lib.rs", text);
        assert!(!source.code.contains("unsafe") && !source.code.contains("gone"));
        assert!(source.code.contains("keep();"));
        assert_eq!(source.code.lines().count(), text.lines().count());
        assert_eq!(source.code.lines().last(), Some("fn last() {}"));
        assert_eq!(source.lines, text.lines().count() - 4);
    }

    #[test]
    fn a_test_module_in_its_own_file_is_test_code() {
        let parent = Source::new("crates/x/src/ring.rs", "#[cfg(test)]\nmod model;\n");
        let modules: BTreeSet<String> = parent.test_modules().into_iter().collect();
        let is_test = |path: &str| Source::new(path, "").is_test(&modules);
        assert!(is_test("crates/x/src/ring/model.rs"));
        assert!(is_test("crates/x/src/ring/model/naive.rs"));
        assert!(is_test("crates/x/tests/crash.rs"));
        assert!(!is_test("crates/x/src/ring.rs"));
        assert!(!is_test("crates/x/src/ring/window.rs"));
    }

    #[test]
    fn a_file_of_801_production_lines_is_too_long() {
        let at_limit = "fn f() {}\n".repeat(FILE_LINES_MAX);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "fn f() {}\n".repeat(500));
        assert_eq!(Source::new("a.rs", &format!("{at_limit}{tests}")).length(), None);
        assert!(Source::new("a.rs", &format!("{at_limit}fn g() {{}}\n")).length().is_some());
    }
}
