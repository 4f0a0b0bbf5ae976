//! A fresh `bash` per command, and what it carries on to the next: directory, exported variables, functions.
//!
//! The script reaches the shell as a descriptor, never by argument or environment. A prelude, read through `BASH_ENV`,
//! restores the functions and saves the state at the end, also after `exit N`. A script that sets an EXIT trap of its own is
//! saved where it runs to its end; one that ends in `exec` leaves no state.

use crate::declarations;
use crate::spec::Command;
use crate::wire::{contents, memory_file};
use rustix::fd::{OwnedFd, RawFd};
use std::collections::BTreeMap;
use std::io;

/// The descriptors that the shell is started with. High, so that scripts which number their own do not meet them.
pub(crate) const PRELUDE_FD: RawFd = 197;
pub(crate) const SCRIPT_FD: RawFd = 198;
pub(crate) const STATE_FD: RawFd = 199;

/// The whole of the text that the shell gets as an argument.
pub(crate) const ARGUMENT: &str = r#"eval "$_autosage_script"; { _autosage_save; } 2>/dev/null"#;

/// The most bytes of state that are carried: more would not fit a record.
const MOST_STATE: usize = 256 * 1024;
/// The most bytes of state that are looked at.
const MOST_READ: u64 = 8 << 20;
/// From this many bytes of `NAME=VALUE` on, the kernel starts no program with a variable.
const TOO_LARGE: usize = 128 * 1024;

/// Variables that belong to one shell, or that would make the next one run something before its script.
const NOT_CARRIED: [&str; 8] = ["_", "PWD", "SHLVL", "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "BASH_LOADABLES_PATH"];

const PRELUDE: &str = r#"unset BASH_ENV
mapfile -u 198 _autosage_script
printf -v _autosage_script %s "${_autosage_script[@]}"
exec 197<&- 198<&-
_autosage_save() {
  local _autosage_code=$?
  set +eux
  if [[ -z ${_autosage_saved-} ]]; then
    _autosage_saved=1
    local _autosage_line _autosage_name
    local -a _autosage_names
    builtin declare -F >&199
    builtin mapfile -t _autosage_names </proc/self/fd/199
    {
      builtin printf '\0d%s\0' "$PWD"
      for _autosage_line in "${_autosage_names[@]}"; do
        _autosage_name=${_autosage_line##* }
        if [[ $_autosage_name != _autosage_* ]]; then
          builtin printf 'f%s=' "$_autosage_name"
          builtin declare -f -- "$_autosage_name"
          if [[ $_autosage_line == 'declare -fx '* ]]; then
            builtin printf '%s\n' "$_autosage_line"
          fi
          builtin printf '\0'
        fi
      done
      builtin printf v
      builtin declare -px
      builtin printf '\0e\0'
    } >&199
  fi
  return "$_autosage_code"
}
trap '{ _autosage_save; } 2>/dev/null' EXIT
"#;

/// What a shell is started with.
pub(crate) struct Shell {
    pub prelude: OwnedFd,
    pub script: OwnedFd,
    /// Where it leaves its state.
    pub state: OwnedFd,
    /// All of its variables.
    pub variables: Vec<(String, String)>,
    /// What a fresh environment has: state is the difference to it.
    base: BTreeMap<String, String>,
}

/// Prepares a shell for `command` in an environment whose variables are `fresh`.
pub(crate) fn prepare(command: &Command, fresh: &BTreeMap<String, String>) -> io::Result<Shell> {
    let mut base = fresh.clone();
    base.extend(command.env.iter().cloned());
    let mut variables = base.clone();
    let mut prelude = PRELUDE.to_owned();
    for (name, value) in command.shell.iter().flatten().filter(|(name, value)| size(name, value) < TOO_LARGE) {
        match (name.strip_suffix("()"), value) {
            (Some(_), Some(text)) => {
                prelude.push_str(text);
                prelude.push('\n');
            }
            (None, Some(value)) => drop(variables.insert(name.clone(), value.clone())),
            (None, None) => drop(variables.remove(name)),
            (Some(_), None) => {}
        }
    }
    variables.insert("BASH_ENV".to_owned(), format!("/proc/self/fd/{PRELUDE_FD}"));
    let script = command.script.replace('\0', "");
    Ok(Shell {
        prelude: memory_file("prelude", prelude.as_bytes())?,
        script: memory_file("script", script.as_bytes())?,
        state: memory_file("state", b"")?,
        variables: variables.into_iter().collect(),
        base,
    })
}

/// The state that a shell left.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    pub cwd: Option<String>,
    pub shell: Option<BTreeMap<String, Option<String>>>,
    /// What is too large to be carried, in words.
    pub dropped: Vec<String>,
}

impl Left {
    /// The lines for the command's output that say what is not carried.
    pub fn notice(&self) -> String {
        self.dropped.iter().map(|what| format!("[not carried to the next call: {what}]\n")).collect()
    }

    /// Leaves out what no program could be started with, or all of it if it is too much together.
    fn limit(&mut self) {
        let Some(shell) = &mut self.shell else { return };
        let large = shell.extract_if(.., |name, value| size(name, value) >= TOO_LARGE);
        self.dropped.extend(large.map(|(name, _)| format!("{name} is too large")));
        if shell.iter().map(|(name, value)| size(name, value)).sum::<usize>() > MOST_STATE {
            self.drop_all();
        }
    }

    fn drop_all(&mut self) {
        self.shell = None;
        self.dropped = vec!["exported variables and functions are too large together".to_owned()];
    }
}

/// The bytes of `NAME=VALUE`.
fn size(name: &str, value: &Option<String>) -> usize {
    name.len() + 1 + value.as_ref().map_or(0, String::len)
}

/// Reads what a shell left in its state file. A shell that was killed or replaced left nothing, or a part that ends early.
pub(crate) fn left(state: OwnedFd, base: &BTreeMap<String, String>) -> Left {
    let bytes = contents(state, MOST_READ).unwrap_or_default();
    let mut left = parse(&bytes, base);
    if bytes.len() as u64 == MOST_READ {
        left.drop_all();
    }
    left.limit();
    left
}

impl Shell {
    /// The state that this shell left.
    pub fn left(self) -> Left {
        left(self.state, &self.base)
    }
}

/// The format is the prelude's: a header, then records that end in NUL, the last of them `e`.
fn parse(bytes: &[u8], base: &BTreeMap<String, String>) -> Left {
    let mut left = Left::default();
    let mut shell = BTreeMap::new();
    let mut records = bytes.split(|byte| *byte == 0).skip(1);
    let complete = loop {
        let Some(record) = records.next() else { break false };
        match record.split_first() {
            Some((b'd', path)) => left.cwd = String::from_utf8(path.to_vec()).ok(),
            // What is not UTF-8 cannot be carried in a record.
            Some((b'f', rest)) => {
                if let Some((name, text)) = std::str::from_utf8(rest).ok().and_then(|rest| rest.split_once('=')) {
                    shell.insert(format!("{name}()"), Some(text.trim_end().to_owned()));
                }
            }
            Some((b'v', rest)) => match declarations::exported(rest) {
                Some(variables) => shell.extend(difference(variables, base)),
                None => break false,
            },
            Some((b'e', _)) => break true,
            _ => {}
        }
    };
    left.shell = complete.then_some(shell);
    left
}

/// What differs between a shell's exported variables and those of a fresh environment.
fn difference(variables: BTreeMap<String, Vec<u8>>, base: &BTreeMap<String, String>) -> BTreeMap<String, Option<String>> {
    let carried = |name: &str| !NOT_CARRIED.contains(&name);
    let unset = base.keys().filter(|name| carried(name) && !variables.contains_key(*name));
    let mut differing: BTreeMap<String, Option<String>> = unset.map(|name| (name.clone(), None)).collect();
    for (name, value) in variables.into_iter().filter(|(name, _)| carried(name)) {
        if let Ok(value) = String::from_utf8(value)
            && base.get(&name) != Some(&value)
        {
            differing.insert(name, Some(value));
        }
    }
    differing
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn check(bytes: &[u8], expected: expect_test::Expect) {
        let base = [("KEPT", "1"), ("CHANGED", "old"), ("GONE", "x")];
        let base = base.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        expected.assert_eq(&format!("{:?}", parse(bytes, &base)));
    }

    #[test]
    fn state_is_the_difference_to_a_fresh_environment() {
        check(
            b"declare -f f\n\0d/work\0ff=f () \n{ \n    :\n}\n\0vdeclare -x KEPT=\"1\"\ndeclare -x CHANGED=\"a=b\nc\"\ndeclare -x NEW=\"\"\ndeclare -x PWD=\"/work\"\n\0e\0",
            expect![[
                r#"Left { cwd: Some("/work"), shell: Some({"CHANGED": Some("a=b\nc"), "GONE": None, "NEW": Some(""), "f()": Some("f () \n{ \n    :\n}")}), dropped: [] }"#
            ]],
        );
    }

    #[test]
    fn a_state_that_ends_early_keeps_the_directory_only() {
        check(
            b"\0d/work\0vdeclare -x KEPT=\"1\"\ndeclare -x CHAN",
            expect![[r#"Left { cwd: Some("/work"), shell: None, dropped: [] }"#]],
        );
        check(b"", expect!["Left { cwd: None, shell: None, dropped: [] }"]);
    }
}
