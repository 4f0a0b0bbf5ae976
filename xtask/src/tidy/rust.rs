//! Rules for every Rust file: how it opens, how long it is, what is named how, what is never written.

use super::Violation;
use super::source::{Source, name_at};

/// Lines of a file without its tests.
const LONGEST: usize = 500;
/// Files that may be longer, since they are lists and nothing else.
const LISTS: [&str; 0] = [];

/// Names that say nothing about what a type is for.
const EMPTY_NAMES: [&str; 11] =
    ["Manager", "Service", "Handler", "Helper", "Util", "Utils", "Base", "Impl", "Info", "Data", "Processor"];

/// Never in code, with what to do instead.
const NEVER: [(&str, &str); 6] = [
    ("todo!", "build it, or leave the whole thing out"),
    ("unimplemented!", "build it, or leave the whole thing out"),
    ("#[ignore", "a test that cannot run here prints `skipped: no X`; assert a wrong behaviour as it is, with a note"),
    ("allow(dead_code", "delete what nothing uses"),
    ("allow(clippy::all", "allow one lint, with a reason"),
    ("dbg!", "delete it"),
];

/// Never in comments: what is left to do belongs into an issue.
const LEFT_OVER: [&str; 3] = ["TODO", "FIXME", "XXX"];

pub fn check(source: &Source) -> Vec<Violation> {
    let mut violations: Vec<Violation> = opening(source).into_iter().chain(length(source)).collect();
    violations.extend(names(source));
    violations.extend(never(source));
    violations.extend(sleeps(source));
    violations
}

fn violation(source: &Source, offset: usize, rule: &'static str, advice: impl Into<String>) -> Violation {
    Violation { path: source.path.clone(), line: source.line(offset), rule, advice: advice.into() }
}

fn opening(source: &Source) -> Option<Violation> {
    let opens = source.text.lines().next().is_some_and(|line| line.starts_with("//! ") && line.len() > 8);
    (!opens).then(|| violation(source, 0, "opening", "begin the file with a `//!` sentence that says what it is for"))
}

fn length(source: &Source) -> Option<Violation> {
    let lines = source.lines();
    let too_long = lines > LONGEST && !LISTS.contains(&source.path.as_str());
    too_long.then(|| {
        violation(source, 0, "length", format!("{lines} lines without tests, {LONGEST} at most: find the two things in it"))
    })
}

fn names(source: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    for keyword in ["struct", "enum", "trait", "type", "union"] {
        for at in source.words(keyword) {
            let Some(name) = name_at(&source.code[at + keyword.len()..]) else { continue };
            if let Some(suffix) = EMPTY_NAMES.iter().find(|suffix| name.ends_with(*suffix)) {
                let advice =
                    format!("`{name}`: `{suffix}` says nothing; name the thing after what it is (the nouns of ARCHITECTURE.md)");
                violations.push(violation(source, at, "names", advice));
            }
        }
    }
    violations
}

fn never(source: &Source) -> Vec<Violation> {
    let in_code = NEVER.iter().flat_map(|(phrase, advice)| {
        source.code.match_indices(phrase).map(move |(at, _)| violation(source, at, "never", format!("`{phrase}`: {advice}")))
    });
    let in_comments = source.comments.iter().filter_map(|comment| {
        let word = LEFT_OVER.iter().find(|word| comment.text.contains(*word))?;
        Some(violation(source, comment.start, "never", format!("`{word}`: do it now, or file it as an issue")))
    });
    in_code.chain(in_comments).collect()
}

/// A test that sleeps is slow when all is well and fails when the machine is busy. What has to be waited for is asked for
/// until a deadline, in a function whose name begins with `until`.
fn sleeps(source: &Source) -> Vec<Violation> {
    let in_tests = source.words("sleep").filter(|&at| source.in_tests(at) && source.code[at + 5..].starts_with('('));
    let bare = in_tests.filter(|&at| !source.function_before(at).is_some_and(|name| name.starts_with("until")));
    bare.map(|at| violation(source, at, "sleeps", "wait for the thing itself, in a function `until…` that asks until a deadline"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use expect_test::{Expect, expect};

    fn say(path: &str, text: &str, expected: Expect) {
        expected.assert_eq(&said(check(&Source::new(path, text))));
    }

    #[test]
    fn a_file_opens_with_a_sentence() {
        say("a.rs", "//! What a file is for.\n", expect![""]);
        say(
            "a.rs",
            "//! A.\n",
            expect![[r#"
            a.rs:1: opening: begin the file with a `//!` sentence that says what it is for
        "#]],
        );
        say(
            "a.rs",
            "",
            expect![[r#"
            a.rs:1: opening: begin the file with a `//!` sentence that says what it is for
        "#]],
        );
    }

    #[test]
    fn tests_do_not_count_as_length() {
        let long = format!("//! A long file.\n{}", "const A: u8 = 0;\n".repeat(LONGEST));
        say(
            "a.rs",
            &long,
            expect![[r#"
            a.rs:1: length: 501 lines without tests, 500 at most: find the two things in it
        "#]],
        );
        say("a/tests/b.rs", &long, expect![""]);
        let tested = format!("//! A long file.\n#[cfg(test)]\nmod tests {{\n{}}}\n", "const A: u8 = 0;\n".repeat(LONGEST));
        say("a.rs", &tested, expect![""]);
    }

    #[test]
    fn names_say_something() {
        say("a.rs", "//! Names of types.\nstruct Database;\nfn handler() {}\n// struct FooManager\n", expect![""]);
        say(
            "a.rs",
            "//! Names of types.\npub(crate) struct ToolManager<'a>;\ntrait Data {}\ntype StringUtils = ();\n",
            expect![[r#"
            a.rs:2: names: `ToolManager`: `Manager` says nothing; name the thing after what it is (the nouns of ARCHITECTURE.md)
            a.rs:3: names: `Data`: `Data` says nothing; name the thing after what it is (the nouns of ARCHITECTURE.md)
            a.rs:4: names: `StringUtils`: `Utils` says nothing; name the thing after what it is (the nouns of ARCHITECTURE.md)
        "#]],
        );
    }

    #[test]
    fn some_things_are_never_written() {
        say("a.rs", "//! Nothing wrong.\nconst A: &str = \"todo!() TODO\";\n", expect![""]);
        say(
            "a.rs",
            "//! All wrong.\n#[ignore = \"slow\"]\nfn a() { todo!() } // FIXME\n#![allow(dead_code)]\n",
            expect![[r#"
            a.rs:3: never: `todo!`: build it, or leave the whole thing out
            a.rs:2: never: `#[ignore`: a test that cannot run here prints `skipped: no X`; assert a wrong behaviour as it is, with a note
            a.rs:4: never: `allow(dead_code`: delete what nothing uses
            a.rs:3: never: `FIXME`: do it now, or file it as an issue
        "#]],
        );
    }

    #[test]
    fn tests_do_not_sleep() {
        say("src/a.rs", "//! Not a test.\nfn a() { sleep(B) }\n", expect![""]);
        say(
            "tests/a.rs",
            "//! A poll.\nfn until_there() { loop { thread::sleep(B) } }\nconst A: &str = \"sleep(1)\";\n",
            expect![""],
        );
        say(
            "tests/a.rs",
            "//! A sleep.\nfn until() {}\nfn there() { thread::sleep(B) }\n",
            expect![[r#"
            tests/a.rs:3: sleeps: wait for the thing itself, in a function `until…` that asks until a deadline
        "#]],
        );
    }
}
