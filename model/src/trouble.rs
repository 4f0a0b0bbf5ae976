//! What can go wrong with one attempt, in the same words for every wire.

use std::time::Duration;

/// Why an attempt gave no usable answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// What kind it is: decides whether another attempt can help.
    pub kind: Kind,
    /// What happened, in words: the provider's where it said something.
    pub message: String,
    /// How long the provider asks to wait.
    pub told: Option<Duration>,
}

/// Kinds of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The prompt is longer than the model's window.
    ContextFull,
    /// The provider declines this content.
    Refused,
    /// The same request would fail again.
    Rejected,
    /// Nothing answers: the name, the connection or the server behind it.
    Unreachable,
    /// Another attempt may do better: overload, a limit of the rate, a broken stream.
    Passing,
    /// A reply that is of no use: without words and calls, with more than can be told of, or such that the server itself
    /// could make nothing of it. Another one costs as much.
    Void,
    /// The run's active time was over while the attempt went on.
    TimeOver,
}

impl Trouble {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Trouble {
        Trouble { kind, message: message.into(), told: None }
    }
}

/// What a server said, as one short line.
pub(crate) fn plain(text: &str) -> String {
    if text.trim_start().starts_with('<') {
        return "an HTML page".to_owned();
    }
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(500) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.is_empty() => "no words".to_owned(),
        None => line,
    }
}
