//! What an edit changes, and what it leaves alone.

use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;

fn one(text: &str, old: &str, new: &str) -> Result<Edited, Refusal> {
    edit(text, old, new, Occurrences::One)
}

fn check(text: &str, old: &str, new: &str, expected: Expect) {
    expected.assert_eq(&match one(text, old, new) {
        Ok(edited) => format!("{:?} {:?} {:?}", edited.text, edited.lines, edited.how),
        Err(refusal) => refusal.to_string(),
    });
}

#[test]
fn line_ends_follow_the_file() {
    check("foo\r\nbar\r\n", "foo", "FOO", expect![[r#""FOO\r\nbar\r\n" [(1, 1)] Exactly"#]]);
    check("foo\r\nbar\r\n", "foo\nbar\n", "foo\nnew\nbar\n", expect![[r#""foo\r\nnew\r\nbar\r\n" [(2, 3)] Exactly"#]]);
    check("a\r\nb\nc\r\n", "a\nb\nc", "a\nB\nc", expect![[r#""a\r\nB\nc\r\n" [(2, 2)] Exactly"#]]);
    check("a\nb\n", "a\r\nb", "a\r\nB", expect![[r#""a\nB\n" [(2, 2)] Exactly"#]]);
    check("x\ry\nfoo\n", "foo", "FOO", expect![[r#""x\ry\nFOO\n" [(2, 2)] Exactly"#]]);
    check("foo\ny\r", "foo", "FOO", expect![[r#""FOO\ny\r" [(1, 1)] Exactly"#]]);
}

#[test]
fn the_last_line_keeps_or_lacks_its_end() {
    check("a\nb", "b\n", "B\n", expect![[r#""a\nB" [(2, 2)] Exactly"#]]);
    check("a\nb", "b\n", "B\nC\n", expect![[r#""a\nB\nC" [(2, 3)] Exactly"#]]);
    check("a\nb", "b\n", "", expect![[r#""a" [(2, 2)] Exactly"#]]);
    check("a\r\nb", "b\n", "", expect![[r#""a" [(2, 2)] Exactly"#]]);
    check("a\nb", "b", "b\n", expect![[r#""a\nb\n" [(2, 3)] Exactly"#]]);
    check("a\nb\n", "b\n", "B\n", expect![[r#""a\nB\n" [(2, 2)] Exactly"#]]);
    check("a\nb", "\n", " ", expect![[r#""a b" [(1, 1)] Exactly"#]]);
}

#[test]
fn each_occurrence_when_asked() {
    let all = edit("x\nb x\nx", "x", "y\nz", Occurrences::All).unwrap();
    expect![[r#""y\nz\nb y\nz\ny\nz" [(1, 2), (3, 4), (5, 6)]"#]].assert_eq(&format!("{:?} {:?}", all.text, all.lines));
}

#[test]
fn whitespace_may_differ_where_only_one_place_fits() {
    let file = "fn a() {\n    if x {\n        one();  \n    }\n}\n";
    check(
        file,
        "if x {\n    one();\n}",
        "if x {\n    one();\n    two();\n}",
        expect![[r#""fn a() {\n    if x {\n        one();  \n        two();\n    }\n}\n" [(4, 5)] IgnoringWhitespace"#]],
    );
    check(
        "if x:\n\tif y:\n\t\tz()\nend\n",
        "    if y:\n        z()\n",
        "    if y:\n        w()\n        if v:\n            z()\n",
        expect![[r#""if x:\n\tif y:\n\t\tw()\n\t\tif v:\n\t\t\tz()\nend\n" [(3, 5)] IgnoringWhitespace"#]],
    );
    check("a\r\n  b  c\r\n", "b c\n", "", expect![[r#""a\r\n" [(2, 2)] IgnoringWhitespace"#]]);
    check("a\n  b  c", "b c\n", "d\ne\n", expect![[r#""a\n  d\n  e" [(2, 3)] IgnoringWhitespace"#]]);
}

#[test]
fn what_is_not_clear_is_refused() {
    check("a\na\nb\na", "a", "c", expect!["`old` is there 3 times, at lines 1, 2, 4: add lines around it, or set all"]);
    check("a\na\n", "a\n", "c\n", expect!["`old` is there 2 times, at lines 1, 2: add lines around it, or set all"]);
    let twins = "if a {\n    x();\n}\nif b {\n        x();\n}\n";
    check(twins, "  x();\n}", "  y();\n}", expect!["`old` is there 2 times, at lines 2, 5: add lines around it, or set all"]);
    check(twins, "\tx();\n}", "\ty();\n}", expect!["`old` fits only if whitespace is ignored, at lines 2, 5: copy it exactly"]);
    check(
        "\ta\n  b\n",
        "a\nb\n",
        "a\nc\nb\n",
        expect!["`old` fits line 1 only with other indentation, not uniformly: copy it exactly"],
    );
    check("one\ntwo\n", "two\nthree", "x", expect!["`old` is not in the file; its first line is like line 2: read there again"]);
    check("one\ntwo\n", "zero", "x", expect!["`old` is not in the file: read the file again"]);
    check("one\ntwo\n", "1\tone\n2\ttwo\n", "x", expect!["`old` is not in the file: leave out the line numbers that read shows"]);
    check("a", "", "x", expect!["`old` is empty; to make a new file, use write"]);
    check("a\r\nb", "a\r\nb", "a\nb", expect!["`old` and `new` are the same"]);
    check("a\n\n\nb", " \n ", "x", expect!["`old` is not in the file: read the file again"]);
    check("", "a", "x", expect!["`old` is not in the file: read the file again"]);
}

/// A text of short lines whose ends are mixed, and with or without an end of the last line.
fn text() -> impl Strategy<Value = String> {
    let line = ("[ab \té]{0,4}", prop::sample::select(vec!["\n", "\r\n", "\r\r\n"]));
    (prop::collection::vec(line, 0..12), "[ab]{0,2}\r?")
        .prop_map(|(lines, last)| lines.into_iter().map(|(line, end)| line + end).collect::<String>() + &last)
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof!["[ab \té\n]{0,6}", "[ab\r\n]{0,5}"]
}

/// Lines with their ends.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn lines_outside_the_place_stay_byte_for_byte(text in text(), old in words(), new in words()) {
        if let Ok(edited) = one(&text, &old, &new) {
            let (first, last) = edited.lines[0];
            let (was, is) = (lines(&text), lines(&edited.text));
            let before = was[..first - 1].concat();
            // Where the last lines are taken from a text whose last line has no end, the new last line has none.
            let ended = before.strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text));
            prop_assert!(edited.text.starts_with(&before) || ended == Some(&edited.text), "before line {}", first);
            let kept = is.len().saturating_sub(last);
            let tail = |lines: &[&str]| lines[lines.len() - kept..].concat();
            prop_assert_eq!(tail(&was), tail(&is), "after line {}", last);
        }
    }

    #[test]
    fn in_a_text_of_plain_lines_it_is_replacement(text in "[ab\n]{0,20}\n", old in "[ab\n]{1,4}", new in "[abc\n]{0,4}") {
        prop_assume!(old != new);
        match text.matches(&old).count() {
            0 => prop_assert_ne!(one(&text, &old, &new).map(|edited| edited.how), Ok(How::Exactly)),
            1 => prop_assert_eq!(one(&text, &old, &new).unwrap().text, text.replacen(&old, &new, 1)),
            many => {
                let Err(Refusal::Ambiguous { lines }) = one(&text, &old, &new) else { panic!("not refused") };
                prop_assert_eq!(lines.len(), many);
                let all = edit(&text, &old, &new, Occurrences::All).unwrap();
                prop_assert_eq!(all.text, text.replace(&old, &new));
                prop_assert_eq!(all.lines.len(), many);
            }
        }
    }

    #[test]
    fn crlf_and_lf_are_edited_alike(text in "[ab \n]{0,9}\n[ab \n]{0,9}", old in "[ab \n]{1,4}", new in "[abc \n]{0,4}") {
        let crlf = |text: &str| text.replace('\n', "\r\n");
        let expected = one(&text, &old, &new).map(|edited| Edited { text: crlf(&edited.text), ..edited });
        prop_assert_eq!(one(&crlf(&text), &old, &new), expected);
    }

    #[test]
    fn the_end_of_the_last_line_stays_as_it_was(text in "([ab]{0,2}\n){0,3}[ab]{1,2}", old in "[ab\n]{0,3}\n", new in "[abc\n]{0,3}[abc]\n") {
        if let Ok(edited) = one(&text, &old, &new) {
            prop_assert!(!edited.text.ends_with('\n'), "{:?}", edited.text);
        }
    }

    #[test]
    fn nothing_panics(text in "\\PC{0,30}|[ \t\r\na]{0,20}", old in "\\PC{0,6}|[ \t\r\na]{0,6}", new in "\\PC{0,6}|[ \t\r\na]{0,6}") {
        let _ = one(&text, &old, &new);
        let _ = edit(&text, &old, &new, Occurrences::All);
    }
}
