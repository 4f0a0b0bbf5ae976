//! What the engine wants to know of a workspace before a run begins: its instructions and its repository. It looks as a
//! command would, inside the walls: nothing here opens a path of the workspace in the engine's own process.

use sandbox::{Command, Environment, file};
use std::path::Path;
use std::time::Duration;
use trace::ProjectFile;

/// Instructions that are read, in this order.
const INSTRUCTIONS: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// The most that is read of one file, in bytes.
const MOST: u64 = 64 * 1024;

/// How long one look may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the repository stands: branch and short commit.
const GIT: &str = "git rev-parse --abbrev-ref HEAD && git rev-parse --short HEAD";

/// What was found in a workspace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// Its instructions, as read.
    pub files: Vec<ProjectFile>,
    /// Its repository's branch and commit.
    pub git: Option<String>,
}

/// Looks at the workspace. What cannot be read is not there: instructions are words, and a run needs none.
pub(crate) async fn look(environment: &Environment, workspace: &Path) -> Found {
    let mut found = Found { files: Vec::new(), git: git(environment, workspace).await };
    for name in INSTRUCTIONS {
        if let Some(text) = read(environment, workspace, name).await {
            // A copy, or a link of one to the other, is read once.
            if found.files.iter().all(|file| file.text != text) {
                found.files.push(ProjectFile { path: name.to_owned(), text });
            }
        }
    }
    found
}

/// The text of a regular file that lies in the workspace, links followed, at most [`MOST`] bytes of it.
async fn read(environment: &Environment, workspace: &Path, name: &str) -> Option<String> {
    let wanted = file::Read { path: workspace.join(name).to_str()?.to_owned(), offset: 0, most: MOST };
    let content = file::read(environment, &wanted, PATIENCE).await.ok()?.ok()?;
    if !Path::new(&content.path).starts_with(workspace) {
        return None;
    }
    let mut text = String::from_utf8_lossy(&content.bytes).into_owned();
    if content.size > MOST {
        text.push_str("\n[the rest of this file is not shown]");
    }
    (!text.trim().is_empty()).then_some(text)
}

async fn git(environment: &Environment, workspace: &Path) -> Option<String> {
    let command =
        Command { script: GIT.to_owned(), cwd: Some(workspace.to_owned()), shell: None, timeout: PATIENCE, env: Vec::new() };
    let mut output = Vec::new();
    let exit = environment.run(&command, &mut |bytes| output.extend_from_slice(bytes)).await.ok()?;
    let text = String::from_utf8(output).ok().filter(|_| exit.code == Some(0))?;
    let words: Vec<&str> = text.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}
