//! A fresh `bash` per command, and what it carries on to the next: directory, exported variables, functions.
//!
//! The script reaches the shell as a descriptor, never by argument or environment. A prelude, read through `BASH_ENV`,
//! restores the functions and saves the state at the end, also after `exit N`. A script that sets an EXIT trap of its own is
//! saved where it runs to its end; one that ends in `exec` leaves no state.

use crate::plan::Command;
use crate::wire::{contents, memory_file};
use rustix::fd::{OwnedFd, RawFd};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The descriptors that the shell is started with. High, so that scripts which number their own do not meet them.
pub(crate) const PRELUDE_FD: RawFd = 197;
pub(crate) const SCRIPT_FD: RawFd = 198;
pub(crate) const STATE_FD: RawFd = 199;

/// The whole of the text that the shell gets as an argument.
pub(crate) const ARGUMENT: &str = r#"eval "$_autosage_script"; { _autosage_save; } 2>/dev/null"#;

/// The most bytes of state that are carried.
pub(crate) const MOST_STATE: u64 = 256 * 1024;

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
    local IFS=$' \t\n' _autosage_name
    local -a _autosage_names
    { builtin compgen -e; builtin echo; builtin compgen -A function; } >&199
    builtin mapfile -t _autosage_names </proc/self/fd/199
    builtin printf '\0d%s\0' "$PWD" >&199
    local _autosage_kind=v
    for _autosage_name in "${_autosage_names[@]}"; do
      if [[ -z $_autosage_name ]]; then
        _autosage_kind=f
      elif [[ $_autosage_name == _autosage_* ]]; then
        :
      elif [[ $_autosage_kind == v ]]; then
        builtin printf 'v%s=%s\0' "$_autosage_name" "${!_autosage_name}"
      else
        builtin printf 'f%s=' "$_autosage_name"
        builtin declare -f -- "$_autosage_name"
        builtin printf '\0'
      fi
    done >&199
    builtin printf 'e\0' >&199
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
    for (name, value) in command.shell.iter().flatten() {
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
}

/// Reads what a shell left in its state file. A shell that was killed or replaced left nothing, or a part that ends early.
pub(crate) fn left(state: OwnedFd, base: &BTreeMap<String, String>) -> Left {
    contents(state, MOST_STATE).map(|bytes| parse(&bytes, base)).unwrap_or_default()
}

impl Shell {
    /// The state that this shell left.
    pub fn left(self) -> Left {
        left(self.state, &self.base)
    }
}

/// The format is the prelude's: a header of names, then records that end in NUL, the last of them `e`.
fn parse(bytes: &[u8], base: &BTreeMap<String, String>) -> Left {
    let mut left = Left::default();
    let mut seen = BTreeSet::new();
    let mut shell = BTreeMap::new();
    let mut records = bytes.split(|byte| *byte == 0).skip(1);
    let complete = loop {
        let Some(record) = records.next() else { break false };
        // What is not UTF-8 cannot be carried in a record; the shell's next fresh value stands.
        let Ok(text) = std::str::from_utf8(record) else { continue };
        let (kind, rest) = text.split_at_checked(1).unwrap_or_default();
        match (kind, rest.split_once('=')) {
            ("d", _) => left.cwd = Some(rest.to_owned()),
            ("v", Some((name, value))) if !NOT_CARRIED.contains(&name) => {
                seen.insert(name.to_owned());
                if base.get(name).map(String::as_str) != Some(value) {
                    shell.insert(name.to_owned(), Some(value.to_owned()));
                }
            }
            ("f", Some((name, text))) => drop(shell.insert(format!("{name}()"), Some(text.trim_end().to_owned()))),
            ("e", _) => break true,
            _ => {}
        }
    };
    if complete {
        let unset = base.keys().filter(|name| !seen.contains(*name) && !NOT_CARRIED.contains(&name.as_str()));
        shell.extend(unset.map(|name| (name.clone(), None)));
        left.shell = Some(shell);
    }
    left
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
            b"KEPT\nCHANGED\nNEW\n\nf\n\0d/work\0vKEPT=1\0vCHANGED=a=b\nc\0vNEW=\0vPWD=/work\0ff=f () \n{ \n    :\n}\n\0e\0",
            expect![[
                r#"Left { cwd: Some("/work"), shell: Some({"CHANGED": Some("a=b\nc"), "GONE": None, "NEW": Some(""), "f()": Some("f () \n{ \n    :\n}")}) }"#
            ]],
        );
    }

    #[test]
    fn a_state_that_ends_early_keeps_the_directory_only() {
        check(b"KEPT\n\0d/work\0vKEPT=1\0vCHAN", expect![[r#"Left { cwd: Some("/work"), shell: None }"#]]);
        check(b"", expect!["Left { cwd: None, shell: None }"]);
    }
}
