//! What a change does to a text, as lines that went, came and stayed.

use similar::{Algorithm, DiffTag, capture_diff_slices, group_diff_ops};

/// Lines that stay around a change.
const CONTEXT: usize = 2;
/// Texts with more lines than this are not compared.
const COMPARED: usize = 5_000;

/// What a line of a hunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It was there and is there.
    Stays,
    /// It is not there any more.
    Went,
    /// It was not there.
    Came,
    /// Lines that stay are left out here.
    Gap,
}

/// The lines in which `old` and `new` differ, with some around them.
pub fn hunk<'t>(old: &'t str, new: &'t str) -> Vec<(Mark, &'t str)> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let marked = |mark: Mark, lines: &[&'t str]| lines.iter().map(|line| (mark, *line)).collect::<Vec<_>>();
    if old.len().max(new.len()) > COMPARED {
        return [marked(Mark::Went, &old), marked(Mark::Came, &new)].concat();
    }
    let mut lines = Vec::new();
    for group in group_diff_ops(capture_diff_slices(Algorithm::Myers, &old, &new), CONTEXT) {
        if !lines.is_empty() {
            lines.push((Mark::Gap, ""));
        }
        for op in group {
            let (went, came) = (&old[op.old_range()], &new[op.new_range()]);
            match op.tag() {
                DiffTag::Equal => lines.extend(marked(Mark::Stays, went)),
                DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => {
                    lines.extend([marked(Mark::Went, went), marked(Mark::Came, came)].concat());
                }
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(old: &str, new: &str, expected: Expect) {
        let line = |(mark, line): (Mark, &str)| match mark {
            Mark::Stays => format!("  {line}\n"),
            Mark::Went => format!("- {line}\n"),
            Mark::Came => format!("+ {line}\n"),
            Mark::Gap => "…\n".to_owned(),
        };
        expected.assert_eq(&hunk(old, new).into_iter().map(line).collect::<String>());
    }

    #[test]
    fn a_change_stands_between_lines_that_stay() {
        check(
            "a\nb\nc\nd\ne\n",
            "a\nb\nC\nd\ne\n",
            expect![[r#"
              a
              b
            - c
            + C
              d
              e
        "#]],
        );
        check(
            "",
            "a\nb",
            expect![[r#"
            + a
            + b
        "#]],
        );
        check(
            "a\n",
            "",
            expect![[r#"
            - a
        "#]],
        );
        check("same\n", "same\n", expect![[""]]);
    }

    #[test]
    fn changes_that_lie_apart_are_shown_apart() {
        let old: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let new = old.replace("3\n", "three\n").replace("18\n", "");
        check(
            &old,
            &new,
            expect![[r#"
              1
              2
            - 3
            + three
              4
              5
            …
              11
              12
            - 13
            + 1three
              14
              15
              16
              17
            - 18
              19
              20
        "#]],
        );
    }

    #[test]
    fn very_long_texts_are_not_compared() {
        let (old, new) = ("a\n".repeat(COMPARED + 1), "a\n".repeat(2));
        assert_eq!(hunk(&old, &new).len(), COMPARED + 3);
    }
}
