//! Which programs of tests there are, read from what cargo says while it builds them.

use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A program that runs tests.
pub struct Program {
    /// The crate's folder, which is its name in the project.
    pub package: String,
    pub target: String,
    pub path: PathBuf,
    /// Where cargo would start it.
    pub folder: PathBuf,
}

impl std::fmt::Display for Program {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        if self.target == self.package {
            write!(out, "{}", self.package)
        } else {
            write!(out, "{} {}", self.package, self.target)
        }
    }
}

/// One line of cargo's: <https://doc.rust-lang.org/cargo/reference/external-tools.html#json-messages>.
#[derive(Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum Message {
    CompilerArtifact {
        manifest_path: PathBuf,
        target: Target,
        profile: Profile,
        executable: Option<PathBuf>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// The programs that cargo's messages name, in a fixed order.
pub fn listed(messages: &str) -> anyhow::Result<Vec<Program>> {
    let mut programs = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let Message::CompilerArtifact { manifest_path, target, profile, executable: Some(path) } = serde_json::from_str(line)?
        else {
            continue;
        };
        if profile.test {
            let folder = manifest_path.parent().unwrap_or(Path::new("/")).to_owned();
            let package = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            programs.push(Program { package, target: target.name, path, folder });
        }
    }
    programs.sort_by(|a, b| (&a.package, &a.target).cmp(&(&b.package, &b.target)));
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_tests_are_found_among_all_that_is_built() {
        let messages = r#"
{"reason":"compiler-artifact","package_id":"a","manifest_path":"/p/trace/Cargo.toml","target":{"kind":["lib"],"name":"trace"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","package_id":"a","manifest_path":"/p/trace/Cargo.toml","target":{"kind":["test"],"name":"record"},"profile":{"test":true},"executable":"/t/record-1"}
{"reason":"compiler-artifact","package_id":"b","manifest_path":"/p/sandbox/Cargo.toml","target":{"kind":["bin"],"name":"walls"},"profile":{"test":false},"executable":"/t/walls"}
{"reason":"compiler-artifact","package_id":"a","manifest_path":"/p/sandbox/Cargo.toml","target":{"kind":["lib"],"name":"sandbox"},"profile":{"test":true},"executable":"/t/sandbox-1"}
{"reason":"build-finished","success":true}
"#;
        let programs = listed(messages).unwrap();
        let labels: Vec<String> = programs.iter().map(Program::to_string).collect();
        assert_eq!(labels, ["sandbox", "trace record"]);
        assert_eq!(programs[1].path, Path::new("/t/record-1"));
        assert_eq!(programs[1].folder, Path::new("/p/trace"));
    }
}
