//! The little of git's configuration format that the walls need: single values, and who the person is.

use std::path::Path;

/// The name and address that the person's own git configuration gives, nothing else of it.
pub(crate) fn identity(home: &Path) -> Option<(String, String)> {
    [".gitconfig", ".config/git/config"].iter().find_map(|path| {
        let text = std::fs::read_to_string(home.join(path)).ok()?;
        Some((values(&text, "user", "name").pop()?, values(&text, "user", "email").pop()?))
    })
}

/// The values of a key in the sections of a name (whatever their subsection) of a git configuration.
pub(crate) fn values(text: &str, section: &str, key: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    let joined = text.replace("\\\r\n", "").replace("\\\n", "");
    for mut line in joined.lines().map(str::trim) {
        while let Some((header, rest)) = header(line) {
            let name = header.split([' ', '\t', '.', '"']).next().unwrap_or_default();
            inside = name.eq_ignore_ascii_case(section);
            line = rest.trim_start();
        }
        if inside
            && let Some((name, value)) = line.split_once('=')
            && name.trim().eq_ignore_ascii_case(key)
        {
            found.push(unquoted(value.trim()));
        }
    }
    found
}

/// The inside of a section's header that a line begins with, and what follows it: a variable may stand on the same line.
fn header(line: &str) -> Option<(&str, &str)> {
    let inside = line.strip_prefix('[')?;
    let (mut quoted, mut escaped) = (false, false);
    let end = inside.find(|letter| {
        let ends = letter == ']' && !quoted;
        quoted ^= letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        ends
    })?;
    Some((&inside[..end], &inside[end + 1..]))
}

/// A value without its quotes, escapes and comment.
fn unquoted(value: &str) -> String {
    let mut plain = String::new();
    let mut quoted = false;
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => quoted = !quoted,
            '\\' => plain.extend(letters.next()),
            '#' | ';' if !quoted => break,
            other => plain.push(other),
        }
    }
    plain.trim_end().to_owned()
}

pub(crate) fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn values_are_found_in_their_section_only() {
        let text =
            "[user]\n\tname = \"A \\\"B\\\" C\" ; who\n[other]\nname = no\n[submodule \"x y\"]\n\tpath = vendor/x # here\n";
        expect![[r#"["A \"B\" C"]"#]].assert_eq(&format!("{:?}", values(text, "user", "name")));
        expect![[r#"["vendor/x"]"#]].assert_eq(&format!("{:?}", values(text, "submodule", "path")));
    }

    #[test]
    fn a_variable_may_stand_behind_its_header_and_go_on_in_the_next_line() {
        let text = "[includeIf \"gitdir:[a]/\"] path = x\n[core][include]path=\\\n y\n";
        expect![[r#"["x"]"#]].assert_eq(&format!("{:?}", values(text, "includeif", "path")));
        expect![[r#"["y"]"#]].assert_eq(&format!("{:?}", values(text, "include", "path")));
    }

    #[test]
    fn quoting_is_undone_by_unquoting() {
        for name in ["plain", "a \"b\" \\c; #d"] {
            assert_eq!(unquoted(&quoted(name)), name);
        }
    }
}
