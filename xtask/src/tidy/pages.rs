//! Pages and files that point somewhere: links lead to files of the repository, and nothing leads out of it.

use super::source::line_of;
use super::{Tree, Violation};

/// Folders of single machines, which no reader of the repository has. Written in two parts, so that
/// this file is no finding of its own.
const OUTSIDE: [&str; 3] = [concat!("/root", "/.cargo"), concat!("/root", "/.rustup"), concat!("/root", "/.cache")];

pub fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in tree {
        violations.extend(outside(path, text));
        if path.ends_with(".md") {
            violations.extend(links(tree, path, text));
        }
    }
    violations
}

fn outside(path: &str, text: &str) -> Vec<Violation> {
    let found = OUTSIDE.iter().flat_map(|mark| text.match_indices(mark));
    found
        .map(|(at, mark)| {
            let advice = format!("`{mark}`: a reader of the repository does not have it; say it here");
            Violation { path: path.to_owned(), line: line_of(text, at), rule: "outside", advice }
        })
        .collect()
}

fn links(tree: &Tree, path: &str, text: &str) -> Vec<Violation> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let text = without_code(text);
    let broken = targets(&text).into_iter().filter(|(_, target)| {
        let file = target.split('#').next().unwrap_or_default();
        !file.is_empty() && !is_elsewhere(target) && !resolve(folder, file).is_some_and(|file| exists(tree, &file))
    });
    broken
        .map(|(at, target)| {
            let advice = format!("`{target}` leads to no tracked file");
            Violation { path: path.to_owned(), line: line_of(&text, at), rule: "links", advice }
        })
        .collect()
}

fn is_elsewhere(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// `[text](target)`, `![text](target)`, `[text]: target` and `src="target"`, with their offsets.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let until = |start: usize, ends: &[char]| text[start..].find(ends).map(|length| (start, &text[start..start + length]));
    let inline = text.match_indices("](").filter_map(|(at, mark)| until(at + mark.len(), &[')', ' ', '\n']));
    let pictures = text.match_indices("src=\"").filter_map(|(at, mark)| until(at + mark.len(), &['"', '\n']));
    let named = text.match_indices("]: ").filter_map(|(at, mark)| {
        let begins = text[..at].rsplit('\n').next().is_some_and(|line| line.starts_with('['));
        if begins { until(at + mark.len(), &['\n', ' ']) } else { None }
    });
    inline.chain(pictures).chain(named).collect()
}

/// The page with fenced blocks and inline code turned into spaces.
fn without_code(text: &str) -> String {
    let mut fenced = false;
    let lines = text.split_inclusive('\n').map(|line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        if fenced || fence {
            blank(line)
        } else {
            line.split('`')
                .enumerate()
                .map(|(i, part)| if i % 2 == 1 { format!(" {} ", blank(part)) } else { part.to_owned() })
                .collect()
        }
    });
    lines.collect()
}

fn blank(text: &str) -> String {
    text.chars().flat_map(|c| std::iter::repeat_n(if c == '\n' { '\n' } else { ' ' }, c.len_utf8())).collect()
}

/// The path from the root; none if it leads out of the repository.
fn resolve(folder: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> =
        if target.starts_with('/') { Vec::new() } else { folder.split('/').filter(|part| !part.is_empty()).collect() };
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

fn exists(tree: &Tree, path: &str) -> bool {
    path.is_empty() || tree.contains_key(path) || tree.keys().any(|file| file.starts_with(&format!("{path}/")))
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use expect_test::{Expect, expect};

    fn say(path: &str, text: &str, expected: Expect) {
        let files = [("README.md", ""), ("docs/a.md", ""), ("docs/demo.svg", ""), (path, text)];
        let tree: Tree = files.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        expected.assert_eq(&said(check(&tree)));
    }

    #[test]
    fn links_lead_to_tracked_files() {
        say("docs/b.md", "[a](a.md), [a](./a.md#b), [r](../README.md), [d](../docs/), [x](https://x.y/z), [h](#b)", expect![""]);
        say("docs/b.md", "```\n[a](x.md)\n```\n`[a](x.md)` <img src=\"demo.svg\">\n[n]: a.md", expect![""]);
        say(
            "docs/b.md",
            "[a](x.md)\n<img src=\"x.svg\">\n[o](../../a.md)\n[n]: n.md\n",
            expect![[r#"
            docs/b.md:1: links: `x.md` leads to no tracked file
            docs/b.md:3: links: `../../a.md` leads to no tracked file
            docs/b.md:2: links: `x.svg` leads to no tracked file
            docs/b.md:4: links: `n.md` leads to no tracked file
        "#]],
        );
    }

    #[test]
    fn nothing_leads_out_of_the_repository() {
        say("a.rs", "// /proc/1/root/.bashrc, ../sibling", expect![""]);
        let text = format!("\n// see {}/notes", OUTSIDE[0]);
        let tree = Tree::from([("a.rs".to_owned(), text)]);
        let said = said(check(&tree)).replace(OUTSIDE[0], "OUTSIDE");
        expect![[r#"
            a.rs:2: outside: `OUTSIDE`: a reader of the repository does not have it; say it here
        "#]]
        .assert_eq(&said);
    }
}
