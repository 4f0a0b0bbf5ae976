//! What the engine wants to know of a workspace before a run begins: its instructions and its repository. It looks as a
//! command would, inside the walls: nothing here opens a path of the workspace in the engine's own process.

use sandbox::{Command, Environment, file};
use std::path::Path;
use std::time::Duration;
use trace::{ProjectFile, Secrets, Unread};

/// Instructions that are read, in this order.
const INSTRUCTIONS: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// The most that is read of one file, in bytes.
pub const MOST: u64 = 64 * 1024;

/// How long one look may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the repository stands: branch and short commit.
const GIT: &str = "git rev-parse --abbrev-ref HEAD && git rev-parse --short HEAD";

/// What was found in a workspace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// Its instructions, as read.
    pub files: Vec<ProjectFile>,
    /// Instructions that could not be read.
    pub unread: Vec<Unread>,
    /// Its repository's branch and commit.
    pub git: Option<String>,
}

/// Looks at the workspace. Instructions that cannot be read are named: they are words, and a run needs none.
pub(crate) async fn look(environment: &Environment, workspace: &Path, secrets: &Secrets) -> Found {
    let mut found = Found { git: git(environment, workspace).await, ..Found::default() };
    for name in INSTRUCTIONS {
        match read(environment, workspace, name).await {
            Err(reason) => found.unread.push(Unread { path: name.to_owned(), reason }),
            // A copy, or a link of one to the other, is read once.
            Ok(content) => found.files.extend(
                content
                    .and_then(|content| instructions(name, &content, secrets))
                    .filter(|file| found.files.iter().all(|other| other.text != file.text)),
            ),
        }
    }
    found
}

fn instructions(name: &str, content: &file::Content, secrets: &Secrets) -> Option<ProjectFile> {
    let text = String::from_utf8_lossy(&content.bytes);
    // The record would hide secrets all the same, but not one that was cut in two.
    let mut text = if content.size > MOST { secrets.hide_cut(&text) } else { secrets.hide(&text).into_owned() };
    if content.size > MOST {
        text.push_str("\n[the rest of this file is not shown]");
    }
    (!text.trim().is_empty()).then(|| ProjectFile { path: name.to_owned(), text })
}

/// Reads a file of a workspace as the engine does: a regular file that lies in it, links followed, at most [`MOST`] bytes.
/// `None` where there is nothing of that name.
///
/// # Errors
/// Why it is not read, for a person: it is a pipe, it leads out of the workspace, it may not be read.
pub async fn read(environment: &Environment, workspace: &Path, name: &str) -> Result<Option<file::Content>, String> {
    let path = workspace.join(name).to_str().ok_or("the path of the workspace is not UTF-8")?.to_owned();
    let answer = file::read(environment, &file::Read { path, offset: 0, most: MOST }, PATIENCE).await;
    match answer.map_err(|error| error.to_string())? {
        Err(file::Refusal::Missing(_)) => Ok(None),
        Err(refusal) => Err(refusal.to_string()),
        Ok(content) if Path::new(&content.path).starts_with(workspace) => Ok(Some(content)),
        Ok(_) => Err(format!("{} leads out of the workspace", workspace.join(name).display())),
    }
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
