//! Wider rights: how they are asked for, what was asked, and what was answered.

use crate::{CallId, Grant};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The terms on which the calls of a session are served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// What becomes of a call that wants more than is granted and than `allow` lists.
    #[serde(default)]
    pub approve: Approve,
    /// The ceiling: what a call may have beyond the grant without anybody being asked.
    #[serde(default, skip_serializing_if = "Grant::is_empty")]
    pub allow: Grant,
    /// Whether the workspace can only be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// What becomes of a call that wants more than is granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approve {
    /// Nobody is asked: what the ceiling lists is allowed, the rest is denied.
    Auto,
    /// A person at the terminal is asked, and may answer through the inbox as well.
    Ask,
    /// Somebody is asked through the inbox alone, and the run waits there.
    Wait,
    /// It is denied.
    #[default]
    Deny,
}

impl fmt::Display for Approve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Approve::Auto => "auto",
            Approve::Ask => "ask",
            Approve::Wait => "wait",
            Approve::Deny => "deny",
        })
    }
}

impl FromStr for Approve {
    type Err = UnknownWord;
    fn from_str(text: &str) -> Result<Approve, UnknownWord> {
        let all = [Approve::Auto, Approve::Ask, Approve::Wait, Approve::Deny];
        let found = all.into_iter().find(|one| one.to_string() == text);
        found.ok_or_else(|| UnknownWord { text: text.to_owned(), expected: "auto, ask, wait or deny" })
    }
}

/// A call wants more than is granted, and somebody is asked. The answer is a `Delivered` that names this event; until it is
/// there the run waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalAsked {
    /// Our name of the call.
    pub id: CallId,
    /// The tool's name.
    pub tool: String,
    /// The arguments as the model wrote them, so that the question can be judged by itself.
    pub raw: String,
    /// What it wants beyond the grant. Paths are those that its words lead to, links followed.
    pub wants: Grant,
    /// Why, in the agent's words.
    pub why: String,
}

/// What a person says to a call that wants more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// This call may.
    Once,
    /// This call may, and every later one of the run.
    Run,
    /// It may not.
    No,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Answer::Once => "once",
            Answer::Run => "run",
            Answer::No => "no",
        })
    }
}

impl FromStr for Answer {
    type Err = UnknownWord;
    fn from_str(text: &str) -> Result<Answer, UnknownWord> {
        let found = [Answer::Once, Answer::Run, Answer::No].into_iter().find(|one| one.to_string() == text);
        found.ok_or_else(|| UnknownWord { text: text.to_owned(), expected: "once, run or no" })
    }
}

/// A word that is none of those that are expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is unknown: {expected} is expected")]
pub struct UnknownWord {
    text: String,
    expected: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for word in ["auto", "ask", "wait", "deny"] {
            assert_eq!(word.parse::<Approve>().unwrap().to_string(), word);
        }
        for word in ["once", "run", "no"] {
            assert_eq!(word.parse::<Answer>().unwrap().to_string(), word);
        }
        assert_eq!("yes".parse::<Answer>().unwrap_err().to_string(), "`yes` is unknown: once, run or no is expected");
    }

    #[test]
    fn terms_of_a_record_without_any_allow_nothing() {
        let terms: Terms = serde_json::from_str("{}").unwrap();
        assert_eq!((terms.approve, terms.allow, terms.read_only), (Approve::Deny, Grant::default(), false));
    }
}
