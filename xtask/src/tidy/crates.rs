//! The crates are as ARCHITECTURE.md says: each has its row, uses no other than its row allows, and describes itself.

use super::source::line_of;
use super::{Tree, Violation};
use std::collections::{BTreeMap, BTreeSet};
use toml::Table;

const PAGE: &str = "ARCHITECTURE.md";
const COLUMNS: [&str; 3] = ["crate", "purpose", "may depend on"];
/// Members of the workspace that are no part of the program: they have no row and use no crate of the project.
const BESIDE: [&str; 1] = ["xtask"];

/// A row of the table.
struct Row {
    name: String,
    line: usize,
    may_use: Allowed,
}

enum Allowed {
    Every,
    These(BTreeSet<String>),
}

/// A member of the workspace.
struct Member {
    folder: String,
    manifest: Table,
    text: String,
}

pub fn check(tree: &Tree) -> Vec<Violation> {
    let Some(page) = tree.get(PAGE) else {
        return vec![at(PAGE, 1, "the page with the table of crates is missing".into())];
    };
    match (rows(page), members(tree)) {
        (Some(rows), Ok((root, members))) => {
            let mut violations = table(&rows, &members);
            violations.extend(manifests(&root, &members));
            violations
        }
        (None, _) => vec![at(PAGE, 1, format!("no table with the columns {}", COLUMNS.join(" | ")))],
        (_, Err(violation)) => vec![violation],
    }
}

fn at(path: &str, line: usize, advice: String) -> Violation {
    Violation { path: path.to_owned(), line, rule: "crates", advice }
}

/// The rows of the table of crates; none if the page has no such table.
fn rows(page: &str) -> Option<Vec<Row>> {
    let mut lines = page.lines().enumerate().skip_while(|(_, line)| cells(line) != COLUMNS);
    lines.next()?;
    let rows = lines.skip(1).map_while(|(index, line)| match cells(line)[..] {
        [name, _, may_use] => Some(Row { name: plain(name), line: index + 1, may_use: allowed(may_use) }),
        _ => None,
    });
    Some(rows.collect())
}

fn cells(line: &str) -> Vec<&str> {
    let inside = line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|'));
    inside.map_or_else(Vec::new, |inside| inside.split('|').map(str::trim).collect())
}

fn plain(cell: &str) -> String {
    cell.trim().trim_matches('`').to_owned()
}

fn allowed(cell: &str) -> Allowed {
    match plain(cell).as_str() {
        "–" => Allowed::These(BTreeSet::new()),
        names if names.split([',', ' ']).next() == Some("all") => Allowed::Every,
        names => Allowed::These(names.split(',').map(plain).collect()),
    }
}

/// The root's manifest, and the members'.
fn members(tree: &Tree) -> Result<(Table, Vec<Member>), Violation> {
    let read = |path: &str| {
        let text = tree.get(path).ok_or_else(|| at(path, 1, "a member of the workspace without a manifest".into()))?;
        let manifest = text.parse::<Table>().map_err(|error| at(path, 1, error.message().to_owned()))?;
        Ok((manifest, text.clone()))
    };
    let (root, _) = read("Cargo.toml")?;
    let listed = root.get("workspace").and_then(|workspace| workspace.get("members")).and_then(toml::Value::as_array);
    let folders = listed.into_iter().flatten().filter_map(toml::Value::as_str);
    let members = folders.map(|folder| {
        let (manifest, text) = read(&format!("{folder}/Cargo.toml"))?;
        Ok(Member { folder: folder.to_owned(), manifest, text })
    });
    let members = members.collect::<Result<_, _>>()?;
    Ok((root, members))
}

impl Member {
    fn path(&self) -> String {
        format!("{}/Cargo.toml", self.folder)
    }

    fn line(&self, of: &str) -> usize {
        self.text.find(of).map_or(1, |offset| line_of(&self.text, offset))
    }

    fn package(&self, key: &str) -> Option<&toml::Value> {
        self.manifest.get("package")?.get(key)
    }

    /// Names of everything that it depends on, in whichever section.
    fn uses(&self) -> BTreeSet<&str> {
        let plain = std::iter::once(&self.manifest);
        let by_target = self
            .manifest
            .get("target")
            .and_then(toml::Value::as_table)
            .into_iter()
            .flat_map(Table::values)
            .filter_map(toml::Value::as_table);
        let sections = plain.chain(by_target).flat_map(|table| {
            ["dependencies", "dev-dependencies", "build-dependencies"]
                .into_iter()
                .filter_map(|section| table.get(section)?.as_table())
        });
        sections.flat_map(|section| section.keys().map(String::as_str)).collect()
    }
}

fn table(rows: &[Row], members: &[Member]) -> Vec<Violation> {
    let folders: BTreeSet<&str> = members.iter().map(|member| member.folder.as_str()).collect();
    let by_name: BTreeMap<&str, &Row> = rows.iter().map(|row| (row.name.as_str(), row)).collect();
    let mut violations = Vec::new();
    for row in rows {
        let named = match &row.may_use {
            Allowed::Every => BTreeSet::new(),
            Allowed::These(names) => names.iter().map(String::as_str).collect(),
        };
        for name in named.into_iter().chain([row.name.as_str()]).filter(|name| !folders.contains(name)) {
            violations.push(at(PAGE, row.line, format!("`{name}` is no crate here: list only what exists")));
        }
    }
    for member in members {
        let may_use = match by_name.get(member.folder.as_str()) {
            Some(row) => &row.may_use,
            None if BESIDE.contains(&member.folder.as_str()) => &Allowed::These(BTreeSet::new()),
            None => {
                violations.push(at(PAGE, 1, format!("`{}` has no row in the table of crates", member.folder)));
                continue;
            }
        };
        let Allowed::These(may_use) = may_use else { continue };
        for used in member.uses() {
            if folders.contains(used) && used != member.folder && !may_use.contains(used) {
                let advice =
                    format!("`{}` may not use `{used}` (the table in {PAGE}): move the code, or the wall", member.folder);
                violations.push(at(&member.path(), member.line(&format!("\n{used}")) + 1, advice));
            }
        }
    }
    violations
}

fn manifests(root: &Table, members: &[Member]) -> Vec<Violation> {
    let inherited = |key: &str| root.get("workspace")?.get("package")?.get(key);
    let mut violations = Vec::new();
    let mut descriptions = BTreeMap::new();
    for member in members {
        let published = match member.package("publish") {
            Some(toml::Value::Table(_)) => inherited("publish"),
            own => own,
        };
        if published.and_then(toml::Value::as_bool) != Some(false) {
            violations.push(at(&member.path(), 1, "say `publish = false`: nothing of this is on a registry".into()));
        }
        if member.manifest.get("lints").and_then(|lints| lints.get("workspace")).is_none() {
            violations.push(at(&member.path(), 1, "say `[lints] workspace = true`".into()));
        }
        let line = member.line("description");
        match member.package("description").and_then(toml::Value::as_str) {
            None => violations.push(at(&member.path(), line, "give it a description: one sentence, its own".into())),
            Some(text) => {
                if let Some(other) = descriptions.insert(text, &member.folder) {
                    violations.push(at(
                        &member.path(),
                        line,
                        format!("the same description as `{other}`: say what this one is for"),
                    ));
                }
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use expect_test::{Expect, expect};

    const ROOT: &str = "[workspace]\nmembers = [\"trace\", \"engine\", \"xtask\"]\n[workspace.package]\npublish = false\n";
    const TABLE: &str =
        "# A\n\n| crate | purpose | may depend on |\n|---|---|---|\n| `trace` | words | – |\n| `engine` | loop | `trace` |\n";

    fn manifest(name: &str, rest: &str) -> String {
        format!("[package]\ndescription = \"{name}\"\npublish.workspace = true\n[lints]\nworkspace = true\n{rest}")
    }

    fn tree() -> Tree {
        let mut tree: Tree = [("Cargo.toml", ROOT), (PAGE, TABLE)].map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        for (folder, uses) in [("trace", ""), ("engine", "[dependencies]\ntrace.workspace = true\n"), ("xtask", "")] {
            tree.insert(format!("{folder}/Cargo.toml"), manifest(folder, uses));
        }
        tree
    }

    fn say(path: &str, text: String, expected: Expect) {
        let mut tree = tree();
        tree.insert(path.to_owned(), text);
        expected.assert_eq(&said(check(&tree)));
    }

    #[test]
    fn a_crate_uses_what_its_row_allows() {
        expect![""].assert_eq(&said(check(&tree())));
        say(
            "trace/Cargo.toml",
            manifest("trace", "[dev-dependencies]\nengine.workspace = true\n"),
            expect![[r#"
            trace/Cargo.toml:7: crates: `trace` may not use `engine` (the table in ARCHITECTURE.md): move the code, or the wall
        "#]],
        );
        say(
            "xtask/Cargo.toml",
            manifest("xtask", "[target.'cfg(unix)'.dependencies]\ntrace.workspace = true\n"),
            expect![[r#"
            xtask/Cargo.toml:7: crates: `xtask` may not use `trace` (the table in ARCHITECTURE.md): move the code, or the wall
        "#]],
        );
        let mut every = tree();
        every.insert(PAGE.into(), TABLE.replace("– |", "all, by feature |"));
        every.insert("trace/Cargo.toml".into(), manifest("trace", "[dependencies]\nengine.workspace = true\n"));
        expect![""].assert_eq(&said(check(&every)));
    }

    #[test]
    fn table_and_workspace_name_the_same_crates() {
        say(
            PAGE,
            TABLE.replace("| `trace` | words | – |\n", "| `memory` | facts | – |\n"),
            expect![[r#"
            ARCHITECTURE.md:5: crates: `memory` is no crate here: list only what exists
            ARCHITECTURE.md:1: crates: `trace` has no row in the table of crates
        "#]],
        );
        say(
            PAGE,
            "# A\n".into(),
            expect![[r#"
            ARCHITECTURE.md:1: crates: no table with the columns crate | purpose | may depend on
        "#]],
        );
    }

    #[test]
    fn a_manifest_says_what_the_crate_is() {
        let text = "[package]\ndescription = \"engine\"\npublish = true\n";
        say(
            "trace/Cargo.toml",
            text.into(),
            expect![[r#"
            trace/Cargo.toml:1: crates: say `publish = false`: nothing of this is on a registry
            trace/Cargo.toml:1: crates: say `[lints] workspace = true`
            engine/Cargo.toml:2: crates: the same description as `trace`: say what this one is for
        "#]],
        );
    }
}
