//! What a person types, as it is drawn: the line that is being typed, and the messages that wait to be taken in.

use crate::cli::prose::{clean, columns, cut_to, end_of, wrapped};
use crate::cli::typed::keys;
use trace::{Event, What};

/// Columns below which a line of one's own is better for what is typed.
const ROOM: usize = 32;
/// The most lines for messages that wait.
const WAITING: usize = 3;
/// A terminal that obeys says where what is pasted begins and ends.
const MARK_PASTED: &str = "\x1b[?2004h";
const MARK_NO_MORE: &str = "\x1b[?2004l";

/// What is typed, and what was sent.
#[derive(Debug, Default)]
pub struct Typing {
    /// Whether it is drawn here, and not by the terminal itself.
    drawn: bool,
    /// Whether nothing goes on until something is typed.
    pub rests: bool,
    words: String,
    /// The names and words of messages that are not taken in yet.
    sent: Vec<(String, String)>,
}

impl Typing {
    /// From here on it is drawn here. Answers with what the terminal is to be told.
    pub fn begin(&mut self) -> &'static str {
        self.drawn = true;
        self.enter()
    }

    /// What the terminal is told where the program goes on.
    pub fn enter(&self) -> &'static str {
        if self.drawn { MARK_PASTED } else { "" }
    }

    /// What the terminal is told before others use it.
    pub fn leave(&self) -> &'static str {
        if self.drawn { MARK_NO_MORE } else { "" }
    }

    /// Whether the terminal is not ours at the moment.
    pub fn is_aside(&self) -> bool {
        self.drawn && !keys::is_ours()
    }

    /// These are the words so far.
    pub fn change(&mut self, words: &str) {
        words.clone_into(&mut self.words);
    }

    /// The message `name` waits to be taken in.
    pub fn send(&mut self, name: String, words: &str) {
        self.sent.push((name, words.to_owned()));
    }

    /// A message that was taken in waits no longer.
    pub fn take_in(&mut self, event: &Event) {
        if let What::Delivered(delivered) = &event.what {
            self.sent.retain(|(name, _)| *name != delivered.name);
        }
    }

    /// The messages that wait, in at most `width` columns.
    pub fn waiting(&self, width: usize) -> impl Iterator<Item = String> {
        let more = self.sent.len().saturating_sub(WAITING);
        let above = (more > 0).then(|| cut_to(&format!("… {more} more wait"), width));
        let line = move |(_, words): &(String, String)| {
            const WAITS: &str = " · waits its turn";
            format!("{}{WAITS}", cut_to(&format!("› {}", on_a_line(words)), width.saturating_sub(columns(WAITS))))
        };
        above.into_iter().chain(self.sent[more..].iter().map(line))
    }

    /// The line that is being typed, in at most `width` columns, behind the `choices` that wait for an answer: their own lines
    /// come first where there is too little room. Nothing where nothing is typed, unless something is waited for.
    pub fn lines(&self, choices: Option<&str>, width: usize) -> Vec<String> {
        let (mut lines, mut head) = (Vec::new(), "› ".to_owned());
        match choices.map(|choices| format!("  {choices}")) {
            Some(choices) if columns(&choices) + ROOM > width => {
                lines = wrapped(&choices, width);
                head.insert_str(0, "  ");
            }
            Some(choices) => head = format!("{choices} › "),
            None if self.words.is_empty() && !self.rests => return lines,
            None => {}
        }
        // What is left of the end cannot be seen, however much was pasted.
        let from = self.words.char_indices().rev().nth(width).map_or(0, |(at, _)| at);
        lines.push(format!("{head}{}", end_of(&on_a_line(&self.words[from..]), width.saturating_sub(columns(&head)))));
        lines
    }
}

/// `words` on one line, where they may have several.
fn on_a_line(words: &str) -> String {
    clean(&words.replace('\n', "↵"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::{AgentPath, Delivered, Delivery, Seq, Timestamp};

    fn lines(words: &str, choices: Option<&str>, width: usize) -> String {
        let mut typing = Typing::default();
        typing.change(words);
        typing.lines(choices, width).join("|")
    }

    #[test]
    fn the_end_of_what_is_typed_is_seen() {
        assert_eq!(lines("", None, 10), "");
        assert_eq!(lines("mend it", None, 10), "› mend it");
        assert_eq!(lines("mend it now", None, 10), "› … it now");
        assert_eq!(lines("日本語です", None, 10), "› …語です");
        assert_eq!(lines("a\nb\tc\u{1b}", None, 20), "› a↵b    c\u{fffd}");
        assert_eq!(lines(&"x".repeat(1 << 20), None, 10), "› …xxxxxxx");
        assert_eq!(lines("ab", None, 0), "› …");
    }

    #[test]
    fn choices_stand_before_it_or_above_it() {
        assert_eq!(lines("o", Some("once, no"), 60), "  once, no › o");
        assert_eq!(lines("o", Some("once, run (until the run ends), no"), 30), "  once, run (until the run|  ends), no|  › o");
    }

    #[test]
    fn what_was_sent_is_seen_until_it_is_taken_in() {
        let mut typing = Typing::default();
        for name in 1..6 {
            typing.send(name.to_string(), &format!("message {name}\nand more of it"));
        }
        let waiting: Vec<String> = typing.waiting(36).collect();
        assert_eq!(waiting[..2], ["… 2 more wait", "› message 3↵and mo… · waits its turn"]);
        assert_eq!(waiting.len(), 4);
        let what = Delivery::Message { parts: Vec::new() };
        for name in ["2", "3", "4", "from elsewhere"] {
            let what = What::Delivered(Delivered { name: name.to_owned(), what: what.clone() });
            let at = Timestamp::from_unix_millis(0);
            typing.take_in(&Event { seq: Seq(0), at, ms: 0, agent: AgentPath::root(), cause: None, what });
        }
        let waiting: Vec<String> = typing.waiting(60).collect();
        let line = |name| format!("› message {name}↵and more of it · waits its turn");
        assert_eq!(waiting, [line(1), line(5)]);
    }
}
