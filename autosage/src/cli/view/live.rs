//! What stands below the story and is redrawn: while something goes on the plan and a quiet line, then what is being typed.

use super::bell::Bell;
use super::typing::Typing;
use crate::cli::bill::spent;
use crate::cli::prose::{clean, columns, counted, cut_to, end_of, grouped, length, size};
use crate::cli::story::{Story, left};
use engine::Ledger;
use model::Heard;
use std::sync::Arc;
use trace::{Clock, Event, Millis, NanoUsd, Timestamp, What};

/// Columns below which words tell nothing.
const SOME_WORDS: usize = 16;
/// The most lines of the plan, and the rows of a terminal that has room for them.
const PLAN_LINES: usize = 6;
const ROWS_FOR_PLAN: usize = 16;
/// The most bytes that are kept of what is heard.
const HEARD: usize = 400;

const FRAMES: [char; 4] = ['·', '•', '●', '•'];

/// How large a terminal is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

impl Size {
    /// The size of the terminal now; it may be resized at any time.
    pub fn of_terminal() -> Size {
        let or = |value: u16, usual: usize| if value == 0 { usual } else { usize::from(value) };
        let size = rustix::termios::tcgetwinsize(std::io::stderr());
        size.map_or(Size { columns: 80, rows: 24 }, |size| Size { columns: or(size.ws_col, 80), rows: or(size.ws_row, 24) })
    }
}

/// Which words of a model are heard.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Voice {
    /// What the model says.
    Text,
    /// What it thinks.
    Reasoning,
}

/// What is drawn below the story.
pub struct Live {
    clock: Arc<dyn Clock>,
    ledger: Ledger,
    /// The last words that were heard of the reply that is coming.
    words: String,
    /// How long the arguments of the call are that is coming, in bytes.
    arguments: u64,
    /// What those words are.
    voice: Option<Voice>,
    /// Until when the model's server lets us wait.
    waiting: Option<Timestamp>,
    /// Since when what goes on does so.
    since: Millis,
    /// When the turn of the user began.
    began: Millis,
    frame: usize,
    size: Size,
    pub running: bool,
    /// Lines that stand.
    drawn: usize,
    /// What a person types.
    pub typing: Typing,
    /// What calls a person who looks elsewhere; none where that is not wanted.
    pub bell: Option<Bell>,
}

impl Live {
    pub fn new(clock: Arc<dyn Clock>, size: Size, bell: Option<Bell>) -> Live {
        let now = clock.elapsed();
        Live {
            clock,
            ledger: Ledger::default(),
            words: String::new(),
            arguments: 0,
            voice: None,
            waiting: None,
            since: now,
            began: now,
            frame: 0,
            size,
            running: true,
            drawn: 0,
            typing: Typing::default(),
            bell,
        }
    }

    /// Words came from the model.
    pub fn hear(&mut self, heard: Heard<'_>) {
        self.arguments = if let Heard::Arguments { bytes } = heard { self.arguments + bytes as u64 } else { 0 };
        match heard {
            Heard::Text(words) | Heard::Reasoning(words) => {
                self.waiting = None;
                let voice = if matches!(heard, Heard::Text(_)) { Voice::Text } else { Voice::Reasoning };
                if self.voice.replace(voice) != Some(voice) {
                    self.words.clear();
                }
                self.words.push_str(words);
                let start = self.words.ceil_char_boundary(self.words.len().saturating_sub(HEARD));
                self.words.drain(..start);
            }
            Heard::Call { name } => {
                self.voice = None;
                self.words = format!("calls {name}");
            }
            // Why it failed is told with the wait, or by the reply.
            Heard::Failed(_) | Heard::Arguments { .. } => {}
            Heard::Waiting { until, reason } => {
                self.waiting = Some(until);
                self.voice = None;
                self.words = reason.to_owned();
            }
        }
    }

    /// Time has passed.
    pub fn tick(&mut self) {
        self.frame += 1;
    }

    /// The terminal may have another size.
    pub fn fit(&mut self, size: Size) {
        self.size = size;
    }

    /// A turn of the user begins, or goes on with a question that `asks`.
    pub fn work(&mut self, asks: bool) {
        self.running = !asks;
        self.since = self.clock.elapsed();
        self.began = self.since;
    }

    /// What leaves the terminal as it was found.
    pub fn leave(&mut self) -> String {
        self.clear() + self.typing.leave() + &self.bell.as_mut().map(Bell::leave).unwrap_or_default()
    }

    /// An event was written. Answers with what tells a person who looks elsewhere of it.
    pub fn take_in(&mut self, event: &Event) -> String {
        self.ledger.fold(event);
        self.typing.take_in(event);
        match &event.what {
            What::Asked(_) | What::Called(_) => {
                self.words.clear();
                self.arguments = 0;
                self.waiting = None;
                self.since = self.clock.elapsed();
                self.running = true;
            }
            What::Finished(_) | What::ApprovalAsked(_) => self.running = false,
            What::Started(_)
            | What::Delivered(_)
            | What::Replied(_)
            | What::Folded(_)
            | What::Switched(_)
            | What::Observed(_)
            | What::Verified(_)
            | What::Granted(_)
            | What::Recovered(_)
            | What::Unknown { .. } => {}
        }
        let lasted = self.clock.elapsed().saturating_sub(self.began);
        self.bell.as_mut().map(|bell| bell.of(event, lasted)).unwrap_or_default()
    }

    /// What takes away what is drawn, if it stands.
    pub fn clear(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            lines => "\r\x1b[2K".to_owned() + &"\x1b[1A\x1b[2K".repeat(lines - 1),
        }
    }

    /// Whether something is drawn.
    pub fn stands(&self) -> bool {
        self.drawn > 0
    }

    /// The plan, as far as there is room, the line below it, and what is typed, where `choices` wait for an answer.
    pub fn draw(&mut self, story: &Story, choices: Option<&str>) -> String {
        // In the background the shell's words stand there.
        if self.typing.is_aside() {
            return String::new();
        }
        let mut lines = Vec::new();
        if self.running {
            let plan = if self.size.rows < ROWS_FOR_PLAN { String::new() } else { story.plan(PLAN_LINES) };
            lines.extend(plan.lines().map(str::to_owned));
            lines.push(self.line(story));
        }
        let width = self.size.columns.saturating_sub(1);
        lines.extend(self.typing.waiting(width).map(|line| story.quiet(&line)));
        lines.extend(self.typing.lines(choices, width));
        self.drawn = lines.len();
        lines.join("\n")
    }

    /// That `words` are no answer; nothing of none.
    pub fn not_understood(&self, story: &Story, words: &str) -> String {
        match words {
            "" => String::new(),
            words => story.quiet(&format!("{}\n", cut_to(&clean(&format!("  not understood: {words}")), self.size.columns))),
        }
    }

    fn line(&self, story: &Story) -> String {
        let frame = FRAMES[self.frame % FRAMES.len()];
        let waits = self.waiting.map(|until| left(until, self.clock.as_ref()));
        if let Some(left) = waits.filter(|left| *left > 0) {
            return story.quiet(&format!("{frame} {}", story.waiting(left, &self.words, 3)));
        }
        let doing = story.going_on().unwrap_or_else(|| "thinking".to_owned());
        let money = match self.ledger.cost() {
            Some(NanoUsd(0)) => String::new(),
            cost => format!(" · {}", spent(cost, self.ledger.known_part())),
        };
        let turns = counted(self.ledger.turns, "turn");
        let spent = format!("{turns} · {} tokens{money}", grouped(self.ledger.usage.total()));
        let seconds = self.clock.elapsed().saturating_sub(self.since) / 1000;
        let lasted = if seconds > 0 { format!(" · {}", length(seconds * 1000)) } else { String::new() };
        let head = format!("{frame} {}{lasted} · {spent}  ", cut_to(&clean(&doing), self.size.columns / 2));
        // Why something was waited for is told no longer than the wait.
        let words = if waits.is_some() { "" } else { self.words.lines().last().unwrap_or_default() };
        let came = if self.arguments > 0 { format!(" · {}", size(self.arguments)) } else { String::new() };
        let words = clean(words) + &came;
        // The end of what was heard stays in sight, so that it is seen to grow.
        let room = self.size.columns.saturating_sub(1 + columns(&head));
        let line = format!("{head}{}", if room < SOME_WORDS { String::new() } else { end_of(&words, room) });
        story.quiet(&cut_to(&line, self.size.columns.saturating_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::story::Colour;
    use std::time::Duration;
    use trace::{AgentPath, Asked, Digest, Pause, Seq};

    struct Still;

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp::from_unix_millis(0)
        }
        fn elapsed(&self) -> Millis {
            0
        }
        fn pause(&self, _: Duration) -> Pause {
            Box::pin(std::future::ready(()))
        }
        fn limit(&self, _: Duration) -> Pause {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn a_wait_is_told_as_in_the_story_and_counts_down() {
        let clock = Arc::new(Still);
        let mut story = Story::new(Colour::Off, 80, "autosage");
        let asked = Asked {
            model: "openai/m".to_owned(),
            max_output: 0,
            prompt: Digest::of(b""),
            bytes: 0,
            upto: Seq(1),
            epoch: 0,
            rules: 0,
            reserved_tokens: 0,
            reserved_nano_usd: None,
        };
        let (at, agent, what) = (clock.now(), AgentPath::root(), What::Asked(asked));
        story.tell(&Event { seq: Seq(2), at, ms: 0, agent, cause: None, what });
        let mut live = Live::new(clock.clone(), Size { columns: 80, rows: 24 }, None);
        let mut line = |left: u64| {
            live.hear(Heard::Waiting { until: clock.now().plus(left), reason: "529: Overloaded" });
            live.draw(&story, None)
        };
        assert_eq!(line(600_000 + 59_900), "· waiting 11 min 0 s to ask openai/m: 529: Overloaded");
        assert_eq!(line(600_000 + 1_900), "· waiting 10 min 2 s to ask openai/m: 529: Overloaded");
        let over = line(0);
        assert!(over.contains("thinking") && !over.contains("Overloaded"), "{over}");
    }

    #[test]
    fn a_call_is_seen_to_grow() {
        let mut live = Live::new(Arc::new(Still), Size { columns: 80, rows: 24 }, None);
        live.hear(Heard::Call { name: "write" });
        live.hear(Heard::Arguments { bytes: 900 });
        live.hear(Heard::Arguments { bytes: 600 });
        let line = live.draw(&Story::new(Colour::Off, 80, "autosage"), None);
        assert_eq!(line, "· thinking · 0 turns · 0 tokens  calls write · 1.5 kB");
        live.hear(Heard::Call { name: "bash" });
        assert!(live.draw(&Story::new(Colour::Off, 80, "autosage"), None).ends_with("calls bash"));
    }
}
