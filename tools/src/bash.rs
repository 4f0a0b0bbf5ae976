//! `bash`: runs a command, shows what it printed, and says how it ended and what goes on.

use crate::arguments::{self, TIMEOUT};
use crate::names::{self, counted};
use crate::room::{Lasting, Room, Trouble};
use crate::spill::{Kept, MOST, Spill};
use sandbox::capture::{self, Capture, Ending, grouped};
use sandbox::{Command, Exit, Stopped};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use trace::{Child, Observed, Status};

/// Exported variables and functions, as a command leaves them.
type Shell = BTreeMap<String, Option<String>>;

/// Command lines of killed processes that are named.
const NAMED: usize = 5;
/// Running processes that are told after a command.
const TOLD: usize = 20;

/// Answers a call.
pub(crate) async fn serve(arguments: &arguments::Bash, room: &Room<'_>, observed: &mut Observed) -> Result<String, Trouble> {
    let command = arguments.command.trim();
    if command.is_empty() && arguments.stop.is_empty() {
        return Err(Trouble::failed("there is no `command`"));
    }
    let mut notes = Vec::new();
    for name in &arguments.stop {
        match room.stop(name).await {
            Ok(Stopped::Ended) => notes.push(format!("{name} was stopped")),
            Ok(Stopped::Killed) => notes.push(format!("{name} was killed")),
            Ok(Stopped::Gone) => notes.push(format!("{name} had ended before")),
            Err(trouble) if trouble.status != Status::Failed => return Err(trouble),
            Err(trouble) => {
                observed.status = Status::Failed;
                notes.push(trouble.words);
            }
        }
    }
    let mut text = String::new();
    if !command.is_empty() {
        text = run(arguments, room, observed, &mut notes).await?;
    }
    let told = |child: Child| Child { command: short(&child.command, room), ..child };
    let left: Vec<Child> = match room.environment.children().await {
        Ok(children) => children.into_iter().map(told).collect(),
        Err(error) => return Err(room.trouble(&error).await),
    };
    observed.children = room.children_beside().await.into_iter().map(told).collect();
    match room.lasting {
        Lasting::Session => observed.children.extend(left),
        Lasting::Call => notes.extend(left.iter().take(NAMED).map(|child| format!("ended with this call: {}", child.command))),
    }
    observed.children.sort_by_key(|child| (child.name.len(), child.name.clone()));
    notes.extend(observed.children.iter().take(TOLD).map(still_running));
    if observed.children.len() > TOLD {
        notes.push(format!("{} more are running", observed.children.len() - TOLD));
    }
    Ok(with_notes(text, &notes))
}

/// Runs the command and returns what it printed.
async fn run(
    arguments: &arguments::Bash,
    room: &Room<'_>,
    observed: &mut Observed,
    notes: &mut Vec<String>,
) -> Result<String, Trouble> {
    let caps = capture::Caps { head: room.caps.head_bytes, tail: room.caps.tail_bytes };
    let timeout = room.time(arguments.timeout.unwrap_or(TIMEOUT) * 1000);
    let command = Command {
        script: room.meant(&arguments.command)?.into_owned(),
        cwd: Some(room.cwd.to_owned()),
        shell: room.shell.map(|shell| restored(shell, room, notes)),
        timeout,
        env: room.secrets.variables(),
    };
    let mut capture = Capture::new(caps, room.secrets);
    let mut spill = Spill::new(room.blobs, caps.head + caps.tail, MOST);
    let mut sink = |bytes: &[u8]| capture.push(bytes, &mut |bytes| spill.push(bytes));
    let exit = match room.environment.run(&command, &mut sink).await {
        Ok(exit) => exit,
        Err(error) => return Err(room.trouble(&error).await),
    };
    let ending = if exit.code.is_some() { Ending::Whole } else { Ending::Cut };
    let captured = capture.finish(ending, &mut |bytes| spill.push(bytes));
    let kept = (captured.truncated() || captured.escaped > 0).then(|| spill.keep());
    let hint = hint(kept.as_ref(), room);
    observed.bytes = Some(captured.bytes);
    observed.truncated = captured.truncated();
    observed.blob = kept.and_then(Result::ok).map(|kept| kept.digest);
    let escaped = (captured.escaped > 0).then(|| format!("not text: {} shown as \\xNN", counted(captured.escaped, "byte")));
    notes.splice(0..0, escaped);
    let exit = without_secrets(exit, room);
    notes.extend(how_it_ended(&exit, timeout.as_secs_f64()));
    if let Some(cwd) = &exit.cwd
        && *cwd != names::shown(room.cwd)
    {
        notes.push(format!("now in {cwd}"));
    }
    record(&exit, room, observed);
    let text = captured.text(&hint);
    Ok(if text.trim().is_empty() { String::new() } else { text })
}

/// What an earlier command left, with the value for each placeholder. A variable or function whose value is not to be had
/// is left out, and that is said.
fn restored(shell: &Shell, room: &Room<'_>, notes: &mut Vec<String>) -> Shell {
    let mut restored = Shell::new();
    for (name, value) in shell {
        match value.as_deref().map(|value| room.meant(value)).transpose() {
            Ok(value) => drop(restored.insert(name.clone(), value.map(Cow::into_owned))),
            Err(trouble) => notes.push(format!("{name} is not restored: {}", trouble.words)),
        }
    }
    restored
}

/// What an agent may be told of how the command ended.
fn without_secrets(exit: Exit, room: &Room<'_>) -> Exit {
    let hidden = |text: String| room.secrets.hide(&text).into_owned();
    let shell = |shell: Shell| shell.into_iter().map(|(name, value)| (name, value.map(hidden))).collect();
    let killed = exit.killed.iter().map(|line| short(line, room)).collect();
    Exit { cwd: exit.cwd.map(hidden), shell: exit.shell.map(shell), killed, ..exit }
}

/// A command line that may have been cut to a readable length.
fn short(line: &str, room: &Room<'_>) -> String {
    match line.chars().count() < sandbox::READABLE {
        true => room.secrets.hide(line).into_owned(),
        false => room.secrets.hide_cut(line),
    }
}

/// Fills in how the command ended and what it left.
fn record(exit: &Exit, room: &Room<'_>, observed: &mut Observed) {
    observed.status = match (exit.timed_out, exit.code) {
        (true, _) => Status::TimedOut,
        (false, Some(0)) => observed.status,
        (false, _) => Status::Failed,
    };
    observed.exit_code = exit.code;
    observed.signal = exit.signal;
    observed.cwd = exit.cwd.clone().filter(|cwd| *cwd != names::shown(room.cwd));
    let unchanged = |shell: &Shell| match room.shell {
        Some(before) => before == shell,
        None => shell.is_empty(),
    };
    observed.shell = exit.shell.clone().filter(|shell| !unchanged(shell));
}

/// Where the rest of a long output is.
fn hint(kept: Option<&io::Result<Kept>>, room: &Room<'_>) -> String {
    match kept {
        None => String::new(),
        Some(Ok(Kept { missing: 0, .. })) => format!("; whole output: read output:{}", room.at),
        Some(Ok(Kept { missing, .. })) => {
            format!("; read output:{} shows it without {} in its middle", room.at, grouped(*missing))
        }
        Some(Err(error)) => format!("; the whole output could not be kept: {error}"),
    }
}

/// How the command ended, if not well.
fn how_it_ended(exit: &Exit, seconds: f64) -> Option<String> {
    match exit {
        Exit { timed_out: true, killed, .. } => {
            let named = killed.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
            let more = if killed.len() > NAMED { format!("; {} more", killed.len() - NAMED) } else { String::new() };
            let what = if killed.is_empty() { "all of it".to_owned() } else { named + &more };
            Some(format!("timed out after {seconds} s; killed: {what}"))
        }
        Exit { code: Some(0), .. } => None,
        Exit { code: Some(code), .. } => Some(format!("exit code {code}")),
        Exit { signal: Some(signal), .. } => Some(format!("killed by signal {signal}")),
        Exit { code: None, signal: None, .. } => Some("it ended without telling how".to_owned()),
    }
}

fn still_running(child: &Child) -> String {
    format!("still running: {} {} ({} s)", child.name, child.command, child.age_s)
}

/// The text, and each note on a line of its own after it.
fn with_notes(mut text: String, notes: &[String]) -> String {
    if text.is_empty() && notes.is_empty() {
        return "[no output]".to_owned();
    }
    for note in notes {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{note}]\n"));
    }
    if !notes.is_empty() {
        text.pop();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[test]
    fn endings() {
        let check = |exit: Exit, expected: Expect| expected.assert_eq(&how_it_ended(&exit, 2.0).unwrap_or_default());
        check(Exit { code: Some(0), ..Exit::default() }, expect![]);
        check(Exit { code: Some(3), ..Exit::default() }, expect!["exit code 3"]);
        check(Exit { signal: Some(9), ..Exit::default() }, expect!["killed by signal 9"]);
        check(Exit::default(), expect!["it ended without telling how"]);
        let killed = |count: usize| (1..=count).map(|n| format!("sleep {n}")).collect();
        check(
            Exit { timed_out: true, killed: killed(2), ..Exit::default() },
            expect!["timed out after 2 s; killed: sleep 1; sleep 2"],
        );
        check(
            Exit { timed_out: true, killed: killed(7), ..Exit::default() },
            expect!["timed out after 2 s; killed: sleep 1; sleep 2; sleep 3; sleep 4; sleep 5; 2 more"],
        );
        check(Exit { timed_out: true, ..Exit::default() }, expect!["timed out after 2 s; killed: all of it"]);
    }

    #[test]
    fn notes_stand_on_lines_of_their_own() {
        let check = |text: &str, notes: &[&str], expected: Expect| {
            let notes: Vec<String> = notes.iter().map(|note| (*note).to_owned()).collect();
            expected.assert_eq(&with_notes(text.to_owned(), &notes));
        };
        check("", &[], expect!["[no output]"]);
        check(
            "a\n",
            &[],
            expect![[r#"
            a
        "#]],
        );
        check(
            "a",
            &["exit code 1", "now in /x"],
            expect![[r#"
            a
            [exit code 1]
            [now in /x]"#]],
        );
        check("", &["exit code 1"], expect!["[exit code 1]"]);
    }
}
