//! What a person types at a question, and what it means.

use trace::{Answer, Grant};

/// Whether an answer can be kept for always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// It can: the workspace is trusted.
    Kept,
    /// It cannot.
    None,
}

impl Rules {
    /// Whether rules are kept, where `kept` are those of a trusted workspace.
    pub fn of(kept: Option<&Grant>) -> Rules {
        if kept.is_some() { Rules::Kept } else { Rules::None }
    }
}

/// What was typed at a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// One of the answers.
    Answer(Answer),
    /// Yes, for this run, and in later ones without a question.
    Always,
    /// Words for the agent, which say no as well.
    NoAnd(String),
    /// No answer: it has to be asked again.
    Again,
}

/// What may be typed.
pub fn choices(rules: Rules) -> &'static str {
    match rules {
        Rules::Kept => "once, run (until the run ends), always (in this workspace), no, or say what to do instead",
        Rules::None => "once, run (until the run ends), no, or say what to do instead",
    }
}

/// What begins a sentence that rather agrees: it is no answer of those that are offered, and no refusal either.
const AGREEING: [&str; 7] = ["y", "yes", "ok", "okay", "sure", "once", "always"];

/// What `text` means. Its first letter is enough; a single other word may be a slip, and a sentence that agrees does not say
/// to what, so both are asked again.
pub fn read(text: &str, rules: Rules) -> Reply {
    let text = text.trim();
    match (text.to_lowercase().as_str(), rules) {
        ("o" | "once" | "y" | "yes", _) => Reply::Answer(Answer::Once),
        ("r" | "run", _) => Reply::Answer(Answer::Run),
        ("a" | "always", Rules::Kept) => Reply::Always,
        ("n" | "no", _) => Reply::Answer(Answer::No),
        (words, _) => match words.split_once(|c: char| c.is_whitespace() || c == ',') {
            Some((first, _)) if !AGREEING.contains(&first) => Reply::NoAnd(text.to_owned()),
            _ => Reply::Again,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_a_word_or_a_sentence() {
        let is = |text: &str, expected: Reply| assert_eq!(read(text, Rules::Kept), expected, "{text:?}");
        for text in ["o", "once", "Y", " yes\n"] {
            is(text, Reply::Answer(Answer::Once));
        }
        is("r", Reply::Answer(Answer::Run));
        is("No", Reply::Answer(Answer::No));
        is("a", Reply::Always);
        is("use the mirror instead", Reply::NoAnd("use the mirror instead".into()));
        is("run the tests first", Reply::NoAnd("run the tests first".into()));
        for text in ["", "yse", "ok", "nope", "yes please", "OK, go on"] {
            is(text, Reply::Again);
        }
        assert_eq!(read("always", Rules::None), Reply::Again, "what is not offered is not taken");
    }
}
