//! Small crates that break each rule, and their likes that do not.

use super::rule::Rule;
use super::*;

/// A crate of these files below `crates/base/x/src`.
fn survey(files: &[(&str, &str)]) -> Survey {
    let folder = "crates/base/x";
    let files: Vec<(String, &str)> =
        files.iter().map(|(path, text)| (format!("{folder}/src/{path}"), *text)).collect();
    let manifest = format!("{folder}/Cargo.toml");
    let texts = files.iter().map(|(path, text)| (path.as_str(), *text));
    Survey::of(&texts.chain([(manifest.as_str(), "")]).collect())
}

fn figure(rule: Rule, files: &[(&str, &str)]) -> usize {
    let figures = survey(files).figures();
    figures.iter().filter(|figure| figure.rule == rule).map(|figure| figure.value).max().unwrap()
}

fn in_circles(files: &[(&str, &str)]) -> usize {
    figure(Rule::FilesInCircles, files)
}

const USES_B: &str = "use crate::b::B; pub struct A(B);";

#[test]
fn two_files_that_use_items_of_each_other_are_a_circle() {
    let root = ("lib.rs", "mod a; mod b;");
    let a = ("a.rs", USES_B);
    assert_eq!(in_circles(&[root, a, ("b.rs", "pub struct B;")]), 0);
    let files = [root, a, ("b.rs", "pub struct B; fn f(_: &crate::a::A) {}")];
    assert_eq!(in_circles(&files), 2, "a path in the code is a use as well as an import");
    let findings = over_limits(&survey(&files).figures());
    assert_eq!(
        findings,
        ["crates/base/x: 2 files in circles; at most 0: a.rs -> b.rs (B), b.rs -> a.rs (A)"]
    );
    let edges: Vec<String> = survey(&files).edges().map(str::to_owned).collect();
    assert_eq!(edges, ["crates/base/x: a.rs -> b.rs (B)", "crates/base/x: b.rs -> a.rs (A)"]);
}

#[test]
fn a_circle_may_be_long() {
    let root = ("lib.rs", "mod a; mod b; mod c; mod d;");
    let b = ("b.rs", "use super::c::{self}; pub struct B; fn f() { c::g() }");
    let c = |back: &'static str| ("c.rs", back);
    assert_eq!(in_circles(&[root, ("a.rs", USES_B), b, c("pub fn g() { crate::a::f() }")]), 0);
    let a = ("a.rs", "use crate::b::B; pub fn f() { B; }");
    let d = ("d.rs", "use crate::a::f; fn g() { f() }");
    assert_eq!(in_circles(&[root, a, b, c("pub fn g() { crate::a::f() }"), d]), 3);
}

#[test]
fn re_exports_lead_to_the_file_that_declares() {
    let root = ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B as Other;");
    let a = ("a.rs", "use crate::Other; pub struct A(Other);");
    assert_eq!(in_circles(&[root, a, ("b.rs", "pub struct B;")]), 0, "lib.rs only hands on");
    assert_eq!(in_circles(&[root, a, ("b.rs", "pub struct B; use crate::A; fn f(_: A) {}")]), 2);
}

#[test]
fn a_root_that_declares_what_its_children_use_is_in_their_circle() {
    let child = ("a.rs", "pub struct A; fn f() -> super::Error { super::Error }");
    let hands_on = ("lib.rs", "mod a; pub use a::A; pub struct Error;");
    assert_eq!(in_circles(&[hands_on, child]), 0);
    let uses = ("lib.rs", "mod a; pub use a::A; pub struct Error; fn g(_: A) {}");
    assert_eq!(in_circles(&[uses, child]), 2);
}

#[test]
fn names_come_through_globs_folders_and_modules_within_a_file() {
    let root = ("lib.rs", "mod a; mod b;");
    let a = ("a/mod.rs", "mod inner; pub use inner::*;");
    let inner = ("a/inner.rs", "pub struct A; fn f() { crate::b::deep::g() }");
    let b = ("b.rs", "pub mod deep { pub fn g() {} fn h(_: super::super::a::A) {} }");
    assert_eq!(in_circles(&[root, a, inner, b]), 2);
    let globbed = ("b.rs", "use crate::a::*; pub mod deep { pub fn g() {} } fn h(_: A) {}");
    assert_eq!(in_circles(&[root, a, inner, globbed]), 2);
    let of_path = ("lib.rs", "#[path = \"elsewhere.rs\"] mod a; mod b;");
    let elsewhere = ("elsewhere.rs", "pub struct A; fn f() { crate::b::deep::g() }");
    assert_eq!(in_circles(&[of_path, elsewhere, b]), 2);
}

#[test]
fn macros_are_followed_in_calls_arguments_and_bodies() {
    let root = ("lib.rs", "mod a; mod b;");
    let a = ("a.rs", USES_B);
    let argument = "pub struct B; fn f() { assert!(x.A || crate::a::A::new() == 1) }";
    assert_eq!(in_circles(&[root, a, ("b.rs", argument)]), 2);
    let body = "pub struct B; macro_rules! m { () => { $crate::a::A } }";
    assert_eq!(in_circles(&[root, a, ("b.rs", body)]), 2);
    let field = "pub struct B; fn f() { assert!(x.a::<A>) }";
    assert_eq!(in_circles(&[root, a, ("b.rs", field)]), 0, "names of another");
    let makes = ("lib.rs", "#[macro_use] mod a; mod b;");
    let defines = ("a.rs", "macro_rules! m { () => { 1 } } fn f() { crate::b::g() }");
    let calls = ("b.rs", "pub fn g() { m!() }");
    assert_eq!(in_circles(&[makes, defines, calls]), 0, "the name is not in sight of b.rs");
    let root = ("lib.rs", "macro_rules! m { () => { 1 } } mod b; fn f() { b::g() }");
    assert_eq!(in_circles(&[root, calls]), 2, "seen in the modules below");
}

#[test]
fn serde_names_functions_in_strings() {
    let root = ("lib.rs", "mod a; mod b;");
    let a = ("a.rs", "pub fn serialize(_: crate::b::B) {}");
    let b = ("b.rs", "pub struct B { #[serde(with = \"crate::a\")] time: u64 }");
    assert_eq!(in_circles(&[root, a, b]), 2);
}

#[test]
fn tests_are_no_use_and_no_lines() {
    let root = ("lib.rs", "mod a; mod b;\n#[cfg(test)]\nmod tests;");
    let b = "pub struct B;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n";
    let tests = ("tests.rs", "use crate::a::A;\n\n\n");
    let files = [root, ("a.rs", USES_B), ("b.rs", b), tests];
    assert_eq!(in_circles(&files), 0);
    let lines = |files| survey(files).summary();
    assert!(lines(&files).contains(" 3 lines without tests"), "{}", lines(&files));
    let all = ("b.rs", "pub struct B; #[cfg(all(test, unix))] fn f(_: crate::a::A) {}");
    assert_eq!(in_circles(&[root, ("a.rs", USES_B), all]), 0);
    let not = ("b.rs", "pub struct B; #[cfg(not(test))] fn f(_: crate::a::A) {}");
    assert_eq!(in_circles(&[root, ("a.rs", USES_B), not]), 2);
}

#[test]
fn a_binary_uses_the_library_beside_it() {
    let library = ("lib.rs", "pub mod a;");
    let a = ("a.rs", "pub fn f() {}");
    let main = ("main.rs", "fn main() { x::a::f() }");
    assert_eq!(figure(Rule::FilesUsed, &[library, a, main]), 1);
    assert_eq!(figure(Rule::FilesUsed, &[library, a, ("main.rs", "fn main() { y::a::f() }")]), 0);
}

#[test]
fn a_file_uses_at_most_twelve_others() {
    let crate_of = |count: usize| {
        let range = || 0..count;
        let modules = range().map(|n| format!("mod m{n};")).collect::<Vec<String>>().concat();
        let uses = range().map(|n| format!("use crate::m{n}::{{f as f{n}, g}};"));
        let uses = uses.collect::<Vec<String>>().concat();
        let mut files = vec![("lib.rs".to_owned(), format!("{modules} mod a;"))];
        files.extend(range().map(|n| (format!("m{n}.rs"), "pub fn f() {} pub fn g() {}".into())));
        files.push(("a.rs".to_owned(), uses));
        files
    };
    let findings = |files: &[(String, String)]| {
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), &**t)).collect();
        over_limits(&survey(&files).figures())
    };
    assert!(findings(&crate_of(12)).is_empty());
    let expected = "crates/base/x/src/a.rs: 13 other files of the crate used; at most 12";
    assert_eq!(findings(&crate_of(13)), [expected]);
}

#[test]
fn a_crate_has_at_most_8000_lines_without_tests() {
    let of = |lines: usize| {
        let tests = "#[cfg(test)]\nmod tests {\n\n\n}\n";
        let half = "//\n".repeat(lines / 2);
        let rest = format!("mod a;\n{}{tests}", "\n".repeat(lines - lines / 2 - 1));
        over_limits(&survey(&[("lib.rs", &rest), ("a.rs", &half)]).figures())
    };
    assert!(of(8000).is_empty());
    let expected = "crates/base/x: 8001 lines without tests; at most 8000";
    assert_eq!(of(8001), [expected]);
}

/// A function of so many lines of code, with its signature and closing brace.
fn function(lines: usize) -> String {
    format!("fn f() {{\n{}// A comment.\n\n}}\n", "g();\n".repeat(lines - 2))
}

#[test]
fn a_function_has_at_most_70_lines_of_code() {
    // Enough short ones, so that the percentiles say nothing.
    let of = |lines: usize| format!("{}{}", "fn a() {}\n".repeat(20), function(lines));
    let findings = |text: &str| over_limits(&survey(&[("lib.rs", text)]).figures());
    assert!(findings(&of(70)).is_empty());
    assert_eq!(findings(&of(71)), ["crates/base/x/src/lib.rs: f: 71 lines of code; at most 70"]);
    let method = format!("struct S;\nimpl S {{\n{}}}\n", of(71).replace("fn f", "fn m"));
    assert_eq!(findings(&method).len(), 1);
    let provided = format!("trait T {{\n{}fn without_body();\n}}\n", of(71));
    assert_eq!(findings(&provided).len(), 1);
}

#[test]
fn half_of_the_functions_have_at_most_8_lines_and_nine_of_ten_25() {
    let of = |lines: [usize; 10]| {
        let text: String = lines.map(function).concat();
        let figures = survey(&[("lib.rs", &text)]).figures();
        over_limits(&figures).len()
    };
    assert_eq!(of([8, 8, 8, 8, 8, 25, 25, 25, 25, 70]), 0);
    assert_eq!(of([8, 8, 8, 8, 9, 9, 25, 25, 25, 70]), 1, "p50");
    assert_eq!(of([8, 8, 8, 8, 8, 25, 25, 25, 26, 26]), 1, "p90");
}

#[test]
fn nine_of_ten_functions_have_at_most_four_parameters() {
    let of = |count: usize| {
        let few = "fn f(a: u8, b: u8, c: u8, d: u8) {}\n".repeat(10 - count);
        let many = "fn m(&self, a: u8, b: u8, c: u8, d: u8) {}\n".repeat(count);
        let text = format!("struct S;\nimpl S {{\n{few}{many}}}\n");
        over_limits(&survey(&[("lib.rs", &text)]).figures())
    };
    assert!(of(1).is_empty());
    assert_eq!(of(2), ["all code: 5 parameters in 90 % of the functions; at most 4"]);
}

#[test]
fn the_figures_are_reported() {
    let summary = survey(&[("lib.rs", "mod a; fn f() { a::g() }"), ("a.rs", "pub fn g() {}")]);
    let summary = summary.summary();
    let expected = "shape: 1 crates, 2 lines without tests, the largest 2; 2 functions, lines p50 \
                    1, p90 1, max 1, parameters p90 0; 0 files in circles; a file uses at most 1 \
                    others";
    assert_eq!(summary, expected);
}
