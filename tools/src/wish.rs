//! What a call wants beyond what is granted, as its arguments say.

use crate::arguments::{Arguments, Builtin};
use crate::names;
use std::path::{Path, PathBuf};
use trace::Grant;

/// More rights than are granted, for one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The rights. Paths are as they were written: absolute or below `~`, links in them not followed.
    pub wants: Grant,
    /// Why, in the agent's words.
    pub why: String,
}

/// What the call of `tool` with the arguments `raw` wants, made in the directory `cwd`; nothing where its arguments are not
/// usable, for then it is not served at all.
pub fn wish(tool: &str, raw: &str, cwd: &Path) -> Option<Wish> {
    let builtin = Builtin::ALL.into_iter().find(|builtin| builtin.name() == tool)?;
    let Ok(Arguments::Bash(bash)) = builtin.parse(&serde_json::from_str(raw).ok()?) else { return None };
    let path = |text: &String| match text.as_str() {
        "~" => PathBuf::from(text),
        below if below.starts_with("~/") => names::meant(below),
        other => names::absolute(cwd, other),
    };
    let wants = Grant { write: bash.write.iter().map(path).collect(), network: bash.network, ..Grant::default() };
    bash.wants_more().then(|| Wish { wants, why: bash.why.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[test]
    fn only_commands_want_more() {
        let check = |tool: &str, raw: &str, expected: Expect| {
            let said = wish(tool, raw, Path::new("/w")).map_or("nothing".to_owned(), |wish| {
                format!("{} for {:?}", serde_json::to_string(&wish.wants).unwrap(), wish.why)
            });
            expected.assert_eq(&said);
        };
        check("bash", r#"{"command": "ls"}"#, expect!["nothing"]);
        check("bash", r#"{"command": "ls", "network": false, "write": null}"#, expect!["nothing"]);
        check(
            "bash",
            r#"{"command": "ls", "network": true, "why": " to look "}"#,
            expect![[r#"{"network":true} for "to look""#]],
        );
        check(
            "bash",
            r#"{"command": "ls", "write": ["a", "/b/../c", "~/d"], "why": "x"}"#,
            expect![[r#"{"write":["/w/a","/b/../c","~/d"]} for "x""#]],
        );
        check("bash", r#"{"command": "ls", "network": true}"#, expect!["nothing"]);
        check("bash", "{", expect!["nothing"]);
        check("read", r#"{"path": "a"}"#, expect!["nothing"]);
    }
}
