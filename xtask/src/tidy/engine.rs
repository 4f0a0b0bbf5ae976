//! Rules for what the architecture promises about single files: the core is pure, the story is short, words are harness text.

use super::source::{Source, item_after};
use super::{Tree, Violation};

/// State is the fold of the record, and what comes next is decided by it alone: no clock, file, environment or chance
/// (ARCHITECTURE.md, invariant 2).
const PURE: [&str; 6] = [
    "engine/src/approval",
    "engine/src/decide",
    "engine/src/fold",
    "engine/src/progress",
    "engine/src/prompt",
    "engine/src/ledger",
];
const IMPURE: [&str; 9] = ["time", "fs", "env", "process", "net", "thread", "tokio", "rand", "getrandom"];

/// Functions that tell the story of a run, and the lines that a reader can hold at once.
const STORIES: [(&str, &str); 1] = [("engine/src/run.rs", "pub async fn run")];
const LONGEST_STORY: usize = 60;

/// Whatever a model reads stands in `harness/`, where it can be changed without a build. A literal above this many
/// characters is taken for prose.
const SPEAKING: [&str; 2] = ["engine/src/", "tools/src/"];
const LONGEST_WORDS: usize = 80;

pub fn check(source: &Source) -> Vec<Violation> {
    let mut violations = purity(source);
    violations.extend(stories(source));
    violations.extend(prose(source));
    violations
}

/// A rule about a file that was moved would hold for nothing.
pub fn all_there(tree: &Tree) -> Vec<Violation> {
    let files = PURE.iter().map(|name| format!("{name}.rs")).chain(STORIES.iter().map(|(path, _)| (*path).to_owned()));
    let gone = files.filter(|path| !tree.contains_key(path));
    gone.map(|path| Violation {
        path,
        line: 1,
        rule: "moved",
        advice: "xtask/src/tidy/engine.rs has a rule for it: name its new place".into(),
    })
    .collect()
}

fn violation(source: &Source, offset: usize, rule: &'static str, advice: String) -> Violation {
    Violation { path: source.path.clone(), line: source.line(offset), rule, advice }
}

fn purity(source: &Source) -> Vec<Violation> {
    let module = source.path.trim_end_matches(".rs");
    if !PURE.iter().any(|pure| module == *pure || module.starts_with(&format!("{pure}/"))) {
        return Vec::new();
    }
    let impure = IMPURE.iter().flat_map(|word| source.words(word).map(move |at| (*word, at)));
    let reached =
        impure.filter(|&(word, at)| !source.in_tests(at) && (is_path(&source.code, word, at) || in_group(&source.code, at)));
    reached
        .map(|(word, at)| {
            violation(source, at, "pure", format!("`{word}`: take the value as an argument; nothing here asks the world"))
        })
        .collect()
}

/// `std::time`, `tokio::…`, `use tokio;`: the word begins or continues a path.
fn is_path(code: &str, word: &str, at: usize) -> bool {
    code[..at].ends_with("std::") || code[at + word.len()..].starts_with("::") || code[..at].ends_with("use ")
}

/// `use std::{time, fs}`.
fn in_group(code: &str, at: usize) -> bool {
    let statement = &code[code[..at].rfind(';').map_or(0, |end| end + 1)..at];
    statement.trim_start().starts_with("use std::{")
}

fn stories(source: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (_, head) in STORIES.iter().filter(|(path, _)| *path == source.path) {
        let mut found = source.words(head).peekable();
        if found.peek().is_none() {
            violations.push(violation(
                source,
                0,
                "story",
                format!("`{head}` is gone: xtask/src/tidy/engine.rs has a rule for it"),
            ));
        }
        for at in found {
            let lines = source.code[item_after(&source.code, at)].lines().count();
            if lines > LONGEST_STORY {
                let advice =
                    format!("`{head}` has {lines} lines, {LONGEST_STORY} at most: it tells the story, others do the work");
                violations.push(violation(source, at, "story", advice));
            }
        }
    }
    violations
}

fn prose(source: &Source) -> Vec<Violation> {
    if !SPEAKING.iter().any(|folder| source.path.starts_with(folder)) {
        return Vec::new();
    }
    let long = source.literals.iter().filter(|words| words.text.contains(' ') && words.text.chars().count() > LONGEST_WORDS);
    let spoken = long.filter(|words| !source.in_tests(words.start) && !is_for_people(&source.code, words.start));
    spoken
        .map(|words| {
            let advice =
                format!("a literal of {} characters: what a model reads belongs into harness/", words.text.chars().count());
            violation(source, words.start, "harness words", advice)
        })
        .collect()
}

/// Errors in `#[error("…")]` and reasons in `expect("…")` are read by people only.
fn is_for_people(code: &str, start: usize) -> bool {
    let before = code[..start].trim_end_matches(['"', '#', 'r']).trim_end();
    before.ends_with("#[error(") || before.ends_with("expect(") || before.ends_with("reason =")
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
    fn the_core_asks_nobody() {
        say("engine/src/act.rs", "use tokio::sync::mpsc;", expect![""]);
        say(
            "engine/src/decide.rs",
            "fn a(time: u8) { env(time) } // std::time\n#[cfg(test)]\nmod tests { use std::fs; }",
            expect![""],
        );
        say(
            "engine/src/decide.rs",
            "use std::{collections::HashMap, fs};\nuse tokio::time;\nfn a() { std::env::args(); }",
            expect![[r#"
                engine/src/decide.rs:1: pure: `fs`: take the value as an argument; nothing here asks the world
                engine/src/decide.rs:3: pure: `env`: take the value as an argument; nothing here asks the world
                engine/src/decide.rs:2: pure: `tokio`: take the value as an argument; nothing here asks the world
            "#]],
        );
        say(
            "engine/src/ledger/cells.rs",
            "use std::time::Instant;",
            expect![[r#"
            engine/src/ledger/cells.rs:1: pure: `time`: take the value as an argument; nothing here asks the world
        "#]],
        );
    }

    #[test]
    fn a_story_fits_one_screen() {
        let story = |lines: usize| format!("pub async fn run() {{\n{}}}\nfn more() {{}}\n", "    a();\n".repeat(lines - 2));
        say("engine/src/run.rs", &story(60), expect![""]);
        say(
            "engine/src/run.rs",
            &story(61),
            expect![[r#"
            engine/src/run.rs:1: story: `pub async fn run` has 61 lines, 60 at most: it tells the story, others do the work
        "#]],
        );
        say(
            "engine/src/run.rs",
            "fn walk() {}",
            expect![[r#"
            engine/src/run.rs:1: story: `pub async fn run` is gone: xtask/src/tidy/engine.rs has a rule for it
        "#]],
        );
    }

    #[test]
    fn a_file_with_a_rule_is_there() {
        let tree: Tree = PURE.iter().map(|name| (format!("{name}.rs"), String::new())).collect();
        expect![[r#"
            engine/src/run.rs:1: moved: xtask/src/tidy/engine.rs has a rule for it: name its new place
        "#]]
        .assert_eq(&said(all_there(&tree)));
    }

    #[test]
    fn words_for_a_model_are_harness_text() {
        let long = "many words ".repeat(8);
        say("model/src/a.rs", &format!("const A: &str = \"{long}\";"), expect![""]);
        say("tools/src/a.rs", &format!("#[error(\"{long}\")]\nfn a() {{ b.expect(\"{long}\") }} // \"{long}\""), expect![""]);
        say("tools/src/a.rs", &format!("const A: &str = \"{}\";", "a".repeat(90)), expect![""]);
        say(
            "tools/src/a.rs",
            &format!("const A: &str = \"many words \\\n   {long}\";\nconst B: &str = r#\"{long}\"#;"),
            expect![[r#"
            tools/src/a.rs:1: harness words: a literal of 99 characters: what a model reads belongs into harness/
            tools/src/a.rs:3: harness words: a literal of 88 characters: what a model reads belongs into harness/
        "#]],
        );
    }
}
