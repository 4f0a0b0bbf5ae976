//! What calls a person who looks elsewhere: the bell, and the title of the window.

use crate::cli::prose::{clean, cut_to};
use trace::{Event, Millis, Part, What, text_of};

/// A turn that ends sooner than this was waited for.
const SOON: Millis = 5_000;
/// The most columns of a title.
const TITLE: usize = 60;

/// Keeps the terminal's title, and the bell, in step with a run.
#[derive(Debug, Default)]
pub struct Bell {
    /// The task, in a few words.
    task: String,
    /// The title that stands, if we have set one.
    title: Option<String>,
}

impl Bell {
    /// What to print with `event`, which comes `lasted` after the turn of the user began.
    pub fn of(&mut self, event: &Event, lasted: Millis) -> String {
        match &event.what {
            What::Started(started) => {
                self.task = first_line(&started.task.parts);
                String::new()
            }
            What::Asked(_) | What::Called(_) => self.entitled('●'),
            What::ApprovalAsked(_) => self.entitled('?') + "\x07",
            What::Finished(finished) => {
                let mark = if finished.outcome.exit_code() == 0 { '✓' } else { '✗' };
                let rings = if lasted >= SOON { "\x07" } else { "" };
                self.entitled(mark) + rings
            }
            What::Delivered(_)
            | What::Replied(_)
            | What::Folded(_)
            | What::Switched(_)
            | What::Observed(_)
            | What::Verified(_)
            | What::Granted(_)
            | What::Recovered(_)
            | What::Unknown { .. } => String::new(),
        }
    }

    /// Gives the window a title. The one that it had is laid aside before the first.
    fn entitled(&mut self, mark: char) -> String {
        let title = format!("{mark} {}", self.task);
        if self.title.as_ref() == Some(&title) {
            return String::new();
        }
        let aside = if self.title.is_none() { "\x1b[22;2t" } else { "" };
        let set = format!("{aside}\x1b]2;{title}\x1b\\");
        self.title = Some(title);
        set
    }

    /// Gives the window its own title back: none for terminals that lay none aside.
    pub fn leave(&mut self) -> String {
        self.title.take().map(|_| "\x1b]2;\x1b\\\x1b[23;2t".to_owned()).unwrap_or_default()
    }
}

fn first_line(parts: &[Part]) -> String {
    cut_to(&clean(text_of(parts).trim().lines().next().unwrap_or_default()), TITLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::{AgentPath, Delivered, Delivery, Finished, Outcome, Seq, Timestamp, Usage};

    fn event(what: What) -> Event {
        Event { seq: Seq(0), at: Timestamp::from_unix_millis(0), ms: 0, agent: AgentPath::root(), cause: None, what }
    }

    fn finished(outcome: Outcome) -> Event {
        let (usage, run) = (Usage::default(), "run".parse().unwrap());
        event(What::Finished(Finished { run, outcome, answer: None, usage, cost_nano_usd: None, turns: 0, active_ms: 0 }))
    }

    #[test]
    fn a_long_turn_rings_at_its_end_and_the_title_is_given_back() {
        let mut bell = Bell { task: "mend it".to_owned(), title: None };
        assert_eq!(bell.leave(), "", "nothing was set");
        assert_eq!(bell.of(&finished(Outcome::Done), 100), "\x1b[22;2t\x1b]2;✓ mend it\x1b\\");
        assert_eq!(bell.of(&finished(Outcome::Done), SOON), "\x07", "the title stands already");
        let failed = Outcome::Failed { reason: String::new() };
        assert_eq!(bell.of(&finished(failed), SOON), "\x1b]2;✗ mend it\x1b\\\x07");
        let heard = event(What::Delivered(Delivered { name: String::new(), what: Delivery::Interrupt }));
        assert_eq!(bell.of(&heard, SOON), "");
        assert_eq!(bell.leave(), "\x1b]2;\x1b\\\x1b[23;2t");
        assert_eq!(bell.leave(), "");
    }

    #[test]
    fn a_title_is_one_harmless_line() {
        let task = first_line(&[Part::text("\n do\x1b]2;gone\x07 it \nand more")]);
        assert_eq!(task, "do\u{fffd}]2;gone\u{fffd} it ");
    }
}
