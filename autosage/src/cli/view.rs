//! What a person or a program sees while a run goes on: the record's lines, or the story with a quiet line below it.

use super::args::Output;
use super::failure::Failure;
use super::print;
use super::prose::{clean, columns, counted, cut_to, end_of, grouped, length};
use super::story::{Colour, Story};
use crate::{Parts, Person, Printer};
use engine::{Ledger, Questions};
use model::Heard;
use std::sync::{Arc, Mutex, PoisonError};
use trace::{ApprovalAsked, Clock, Event, Finished, Millis, NanoUsd, Outcome, Seq, Timestamp, What};

/// How a run is shown. Shared by the record (events), the model (words) and the ticker.
#[derive(Clone)]
pub struct View(Arc<Mutex<Shown>>);

enum Shown {
    /// The record's lines, to standard output; and what they add up to.
    Lines { printer: Printer, ledger: Ledger },
    /// The story, to standard error.
    Story { story: Story, printer: Printer, status: Option<Box<Live>>, answers: Option<Answers> },
}

/// The questions of a run are answered here.
struct Answers {
    /// What may be typed.
    choices: &'static str,
    /// The question that was answered last.
    given: Option<Seq>,
}

/// The line below the story, redrawn while something goes on.
struct Live {
    clock: Arc<dyn Clock>,
    ledger: Ledger,
    /// The last words that were heard of the reply that is coming.
    words: String,
    /// What those words are.
    voice: Option<Voice>,
    /// Until when the model's server lets us wait.
    waiting: Option<Timestamp>,
    since: Millis,
    frame: usize,
    width: usize,
    running: bool,
    drawn: bool,
    /// Whether the next event is what a person has just typed, which stands on the screen already.
    typed: bool,
}

/// Which words of a model are heard.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Voice {
    /// What the model says.
    Text,
    /// What it thinks.
    Reasoning,
}

/// Columns below which words tell nothing.
const SOME_WORDS: usize = 16;

const FRAMES: [char; 4] = ['·', '•', '●', '•'];

impl View {
    /// The view for `--json`, for a person at a terminal, or for a log.
    pub fn new(output: Output, parts: &Parts) -> View {
        let shown = match output {
            Output::Lines => Shown::Lines { printer: parts.out.clone(), ledger: Ledger::default() },
            Output::Answer => {
                let (colour, width) = look(parts);
                let story = Story::new(colour, width, &parts.name);
                let live = || Live {
                    clock: parts.clock.clone(),
                    ledger: Ledger::default(),
                    words: String::new(),
                    voice: None,
                    waiting: None,
                    since: parts.clock.elapsed(),
                    frame: 0,
                    width,
                    running: true,
                    drawn: false,
                    typed: false,
                };
                let status =
                    (parts.person == Person::AtTerminal && parts.variable("TERM") != Some("dumb")).then(|| Box::new(live()));
                Shown::Story { story, printer: parts.err.clone(), status, answers: None }
            }
        };
        View(Arc::new(Mutex::new(shown)))
    }

    /// An event was written.
    pub fn event(&self, event: &Event, line: &str) {
        match &mut *self.lock() {
            Shown::Lines { printer, ledger } => {
                ledger.fold(event);
                print(printer, &format!("{line}\n"));
            }
            Shown::Story { story, printer, status, answers } => {
                let text = story.tell(event);
                let asks = match (&event.what, answers) {
                    (What::ApprovalAsked(_), Some(answers)) => answers.prompt(),
                    (What::ApprovalAsked(_), None) => story.how_to_answer(),
                    _ => String::new(),
                };
                match status {
                    None => print(printer, &(text + &asks)),
                    Some(live) => {
                        let cleared = live.clear();
                        let text = if std::mem::take(&mut live.typed) { "\n".to_owned() } else { text };
                        live.take_in(event);
                        let drawn = if live.running { live.draw(story) } else { asks };
                        print(printer, &format!("{cleared}{text}{drawn}"));
                    }
                }
            }
        }
    }

    /// Words came from the model.
    pub fn heard(&self, heard: Heard<'_>) {
        match &mut *self.lock() {
            Shown::Lines { .. } => {}
            Shown::Story { story, printer, status: None, .. } => {
                if let Heard::Waiting { until, reason } = heard {
                    print(printer, &story.wait(until, reason));
                }
            }
            Shown::Story { status: Some(live), .. } => match heard {
                Heard::Text(words) | Heard::Reasoning(words) => {
                    live.waiting = None;
                    let voice = if matches!(heard, Heard::Text(_)) { Voice::Text } else { Voice::Reasoning };
                    if live.voice.replace(voice) != Some(voice) {
                        live.words.clear();
                    }
                    live.words.push_str(words);
                    let start = live.words.len().saturating_sub(400);
                    let start = (start..live.words.len()).find(|at| live.words.is_char_boundary(*at)).unwrap_or(0);
                    live.words.drain(..start);
                }
                Heard::Call { name } => {
                    live.voice = None;
                    live.words = format!("calls {name}");
                }
                Heard::Waiting { until, reason } => {
                    live.waiting = Some(until);
                    live.voice = None;
                    live.words = reason.to_owned();
                }
            },
        }
    }

    /// Time has passed: the line below the story is drawn anew.
    pub fn tick(&self) {
        if let Shown::Story { story, printer, status: Some(live), .. } = &mut *self.lock()
            && live.running
        {
            live.frame += 1;
            live.width = columns_of_terminal();
            story.fit(live.width);
            let text = format!("{}{}", live.clear(), live.draw(story));
            print(printer, &text);
        }
    }

    /// The line below the story goes, so that a person can type.
    pub fn rest(&self) {
        if let Shown::Story { printer, status: Some(live), .. } = &mut *self.lock() {
            live.running = false;
            let text = live.clear();
            print(printer, &text);
        }
    }

    /// The next event is what a person has just typed.
    pub fn typed(&self) {
        if let Shown::Story { status: Some(live), .. } = &mut *self.lock() {
            live.typed = true;
        }
    }

    /// From here on questions are answered here, with one of `choices`.
    pub fn take_answers(&self, choices: &'static str) {
        if let Shown::Story { answers, .. } = &mut *self.lock() {
            *answers = Some(Answers { choices, given: None });
        }
    }

    /// The question that waits for what is typed next.
    pub fn question(&self) -> Option<(Seq, ApprovalAsked)> {
        match &*self.lock() {
            Shown::Story { story, answers: Some(answers), .. } => {
                let (seq, asked) = story.question().filter(|(seq, _)| answers.given != Some(*seq))?;
                Some((seq, asked.clone()))
            }
            Shown::Story { answers: None, .. } | Shown::Lines { .. } => None,
        }
    }

    /// Asks again, where no answer was understood.
    pub fn ask(&self) {
        if let Shown::Story { printer, answers: Some(answers), .. } = &*self.lock() {
            print(printer, &answers.prompt());
        }
    }

    /// The question `asked` was answered here.
    pub fn answered(&self, asked: Seq) {
        if let Shown::Story { answers: Some(answers), .. } = &mut *self.lock() {
            answers.given = Some(asked);
        }
    }

    /// Something goes on again, or a question stands that was asked in an earlier session.
    pub fn work(&self) {
        if let Shown::Story { story, printer, status, answers } = &mut *self.lock() {
            let asks = story.question().is_some();
            if let Some(live) = status {
                live.running = !asks;
                live.since = live.clock.elapsed();
            }
            if asks {
                print(printer, &answers.as_ref().map_or_else(|| story.how_to_answer(), Answers::prompt));
            }
        }
    }

    /// Says something beside the story; nothing where standard output is the event stream and so is standard error's.
    pub fn say(&self, text: &str) {
        match &mut *self.lock() {
            Shown::Lines { .. } => {}
            Shown::Story { printer, status, .. } => {
                let cleared = status.as_mut().map(|live| live.clear()).unwrap_or_default();
                print(printer, &format!("{cleared}{text}"));
            }
        }
    }

    /// The turn ended because a part that it stands on is gone, and the record cannot say so: a program that reads the lines
    /// is told all the same, in a last line that is marked as unrecorded.
    pub fn end_unrecorded(&self, run: &str, failure: &Failure) {
        let (Shown::Lines { printer, ledger }, Some(what), Ok(run)) = (&*self.lock(), failure.unavailable(), run.parse()) else {
            return;
        };
        let finished = Finished {
            run,
            outcome: Outcome::Infrastructure { what, reason: failure.to_string() },
            answer: None,
            usage: ledger.usage,
            cost_nano_usd: ledger.cost(),
            turns: ledger.turns,
            active_ms: ledger.active_ms,
        };
        #[derive(serde::Serialize)]
        struct Unrecorded {
            v: u32,
            kind: &'static str,
            recorded: bool,
            #[serde(flatten)]
            finished: Finished,
        }
        let line = Unrecorded { v: trace::VERSION, kind: "Finished", recorded: false, finished };
        // Plain texts and numbers always become JSON.
        print(printer, &format!("{}\n", serde_json::to_string(&line).unwrap_or_default()));
    }

    /// A run that was shown before goes on: what it is, in the words of its first event, and the question that stands.
    pub fn remind(&self, events: &[Event]) {
        let mut questions = Questions::default();
        events.iter().for_each(|event| questions.fold(event));
        let open = questions.open().map(|(seq, _)| seq);
        if let Shown::Story { story, printer, .. } = &mut *self.lock() {
            let shown = events.iter().enumerate().filter(|(index, event)| *index == 0 || Some(event.seq) == open);
            let told: String = shown.map(|(_, event)| story.tell(event)).collect();
            print(printer, &told);
        }
    }

    /// Whether standard output carries the record's lines, and so nothing else.
    pub fn is_lines(&self) -> bool {
        matches!(*self.lock(), Shown::Lines { .. })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answers {
    fn prompt(&self) -> String {
        format!("  {} › ", self.choices)
    }
}

impl Live {
    fn take_in(&mut self, event: &Event) {
        self.ledger.fold(event);
        match &event.what {
            What::Asked(_) | What::Called(_) => {
                self.words.clear();
                self.waiting = None;
                self.since = self.clock.elapsed();
                self.running = true;
            }
            What::Finished(_) | What::ApprovalAsked(_) => self.running = false,
            What::Started(_)
            | What::Delivered(_)
            | What::Replied(_)
            | What::Switched(_)
            | What::Observed(_)
            | What::Verified(_)
            | What::Granted(_)
            | What::Recovered(_)
            | What::Unknown { .. } => {}
        }
    }

    /// What takes the line away, if it stands.
    fn clear(&mut self) -> String {
        if std::mem::take(&mut self.drawn) { "\r\x1b[2K".to_owned() } else { String::new() }
    }

    fn draw(&mut self, story: &Story) -> String {
        self.drawn = true;
        let doing = match (self.waiting, story.going_on()) {
            (Some(until), _) => format!("waiting until {until}"),
            (None, Some(call)) => call,
            (None, None) => "thinking".to_owned(),
        };
        let money = match self.ledger.cost() {
            Some(NanoUsd(0)) => String::new(),
            Some(cost) => format!(" · {cost}"),
            None => " · unpriced".to_owned(),
        };
        let turns = counted(self.ledger.turns, "turn");
        let spent = format!("{turns} · {} tokens{money}", grouped(self.ledger.usage.total()));
        let seconds = self.clock.elapsed().saturating_sub(self.since) / 1000;
        let lasted = if seconds > 0 { format!(" · {}", length(seconds * 1000)) } else { String::new() };
        let head =
            format!("{} {}{lasted} · {spent}  ", FRAMES[self.frame % FRAMES.len()], cut_to(&clean(&doing), self.width / 2));
        let words = clean(self.words.lines().last().unwrap_or_default());
        // The end of what was heard stays in sight, so that it is seen to grow.
        let room = self.width.saturating_sub(1 + columns(&head));
        let line = format!("{head}{}", if room < SOME_WORDS { String::new() } else { end_of(&words, room) });
        story.quiet(&cut_to(&line, self.width.saturating_sub(1)))
    }
}

/// Whether standard error takes colours, and how wide it is.
pub fn look(parts: &Parts) -> (Colour, usize) {
    let colour = match (parts.person, parts.variable("NO_COLOR"), parts.variable("TERM")) {
        (Person::Absent, ..) | (_, Some(_), _) | (_, _, Some("dumb")) => Colour::Off,
        (Person::AtTerminal, None, _) => Colour::On,
    };
    let width = match parts.person {
        Person::AtTerminal => columns_of_terminal(),
        Person::Absent => 120,
    };
    (colour, width)
}

/// How wide the terminal is now; it may be resized at any time.
fn columns_of_terminal() -> usize {
    let width = rustix::termios::tcgetwinsize(std::io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    if width == 0 { 80 } else { width }
}
