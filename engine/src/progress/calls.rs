//! The whole calls of a reply, under names of our own, and what of them is sent back.

use model::SentCall;
use trace::{CallId, Part, Said, Seq, Status};

/// The most calls of one reply that are sent back, each with its result: OpenAI's chat refuses a message with more
/// (`array_above_max_length`, 128).
pub(crate) const MOST_SENT: usize = 128;
/// The longest name of a tool that is sent back: what OpenAI's wires take, and no other less.
const LONGEST_NAME: usize = 64;

/// A whole call of the last reply.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenCall {
    /// Our name of it.
    pub id: CallId,
    /// The reply that makes it.
    pub reply: Seq,
    /// The provider's id.
    pub provider_id: String,
    /// The tool's name as the model wrote it.
    pub tool: String,
    /// The arguments as the model wrote them.
    pub raw: String,
    /// An earlier call of the same reply with the same provider's id and bytes, whose answer this one repeats.
    pub same_as: Option<CallId>,
    /// Whether it is not served because its reply makes too many: it stands beyond those that are, or claims that all is done
    /// though there are such.
    pub is_surplus: bool,
    /// Where it was written down that it is about to be served.
    pub called: Option<Seq>,
    /// What came of it, once its observation is written.
    pub result: Option<(Status, Vec<Part>)>,
}

/// The whole calls among `parts`, under our own ids; the first `most` of them are served.
pub(super) fn calls_of(reply: Seq, parts: &[Said], most: usize) -> Vec<OpenCall> {
    let mut calls: Vec<OpenCall> = Vec::new();
    let are_too_many = parts.iter().filter(|part| matches!(part, Said::Call { .. })).count() > most;
    for part in parts {
        let Said::Call { id, name, arguments } = part else { continue };
        let twin =
            calls.iter().find(|call| !id.is_empty() && call.provider_id == *id && call.tool == *name && call.raw == *arguments);
        let same_as = twin.map(|twin| twin.same_as.clone().unwrap_or_else(|| twin.id.clone()));
        calls.push(OpenCall {
            id: CallId::new(reply, calls.len()),
            reply,
            provider_id: id.clone(),
            tool: name.clone(),
            raw: arguments.clone(),
            same_as,
            is_surplus: calls.len() >= most || (are_too_many && name == "submit"),
            called: None,
            result: None,
        });
    }
    calls
}

/// The parts of a reply up to its last call that is sent back.
pub(super) fn sent_parts(parts: &[Said]) -> Vec<Said> {
    let mut calls = parts.iter().enumerate().filter(|(_, part)| matches!(part, Said::Call { .. }));
    let end = calls.nth(MOST_SENT).map_or(parts.len(), |(at, _)| at);
    parts[..end].to_vec()
}

/// A call as it is sent back: a name that no provider takes would make every later request one that is refused.
pub(super) fn sent(call: &OpenCall) -> SentCall {
    SentCall { id: call.id.clone(), name: sent_name(&call.tool), arguments: call.raw.clone() }
}

/// The name of a tool as it is sent back: letters, digits, `_` and `-`; the first is a letter or `_`.
pub(crate) fn sent_name(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let begin = if begins { "" } else { "_" };
    begin.chars().chain(name.chars().map(|c| if fits(c) { c } else { '_' })).take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_provider_takes_is_sent_back_as_one_that_all_take() {
        let long = "n".repeat(70);
        let cases = [
            ("bash", "bash"),
            ("", "_"),
            ("-x", "_-x"),
            ("7z", "_7z"),
            ("bash.run now!", "bash_run_now_"),
            ("löschen", "l_schen"),
        ];
        cases.into_iter().for_each(|(name, sent)| assert_eq!(sent_name(name), sent));
        assert_eq!(sent_name(&long), long[..64]);
    }
}
