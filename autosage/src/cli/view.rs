//! What a person or a program sees while a run goes on: the record's lines, or the story with a quiet line below it.

mod bell;
mod live;
mod typing;

use self::bell::Bell;
use self::live::{Live, Size};
use super::args::Output;
use super::failure::Failure;
use super::inline::{Inline, Protocol};
use super::print;
use super::story::{Colour, Story, left};
use crate::{Parts, Person, Printer};
use engine::{Ledger, Questions};
use model::Heard;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use trace::{ApprovalAsked, Clock, Event, Finished, Outcome, Seq, What};

/// How a run is shown. Shared by the record (events), the model (words) and the ticker.
#[derive(Clone)]
pub struct View(Arc<Mutex<Shown>>);

enum Shown {
    /// The record's lines, to standard output; and what they add up to.
    Lines { printer: Printer, ledger: Ledger },
    /// The story, to standard error.
    Story { story: Box<Story>, printer: Printer, status: Option<Box<Live>>, answers: Option<Answers>, clock: Arc<dyn Clock> },
}

/// The questions of a run are answered here.
struct Answers {
    /// What may be typed.
    choices: &'static str,
    /// The question that was answered last.
    given: Option<Seq>,
}

impl View {
    /// The view for `--json`, for a person at a terminal, or for a log.
    pub fn new(output: Output, parts: &Parts) -> View {
        let shown = match output {
            Output::Lines => Shown::Lines { printer: parts.out.clone(), ledger: Ledger::default() },
            Output::Answer => {
                let (colour, width) = look(parts);
                let mut story = Box::new(Story::new(colour, width, &parts.name));
                let status = (parts.person == Person::AtTerminal && parts.variable("TERM") != Some("dumb")).then(|| {
                    story.set_plan_apart();
                    let bell = (colour == Colour::On).then(Bell::default);
                    Box::new(Live::new(parts.clock.clone(), Size::of_terminal(), bell))
                });
                Shown::Story { story, printer: parts.err.clone(), status, answers: None, clock: parts.clock.clone() }
            }
        };
        View(Arc::new(Mutex::new(shown)))
    }

    /// The same, which neither rings nor titles the window where the person's configuration says so.
    pub fn ringing(self, bell: Option<bool>) -> View {
        if let (Some(false), Shown::Story { status: Some(live), .. }) = (bell, &mut *self.lock()) {
            live.bell = None;
        }
        self
    }

    /// The run lies in `folder`, and so do its pictures: they are shown where the terminal can.
    pub fn lies_in(&self, folder: &Path, parts: &Parts) {
        if let Shown::Story { story, status: Some(_), .. } = &mut *self.lock() {
            story.show_pictures(pictures(folder, parts));
        }
    }

    /// An event was written.
    pub fn event(&self, event: &Event, line: &str) {
        match &mut *self.lock() {
            Shown::Lines { printer, ledger } => {
                ledger.fold(event);
                print(printer, &format!("{line}\n"));
            }
            Shown::Story { story, printer, status, answers, .. } => {
                let text = story.tell(event);
                let asks = match (&event.what, &*answers, &*status) {
                    (What::ApprovalAsked(_), Some(answers), None) => answers.prompt(),
                    (What::ApprovalAsked(_), None, _) => story.how_to_answer(),
                    _ => String::new(),
                };
                match status {
                    None => print(printer, &(text + &asks)),
                    Some(live) => {
                        let cleared = live.clear();
                        let rings = live.take_in(event);
                        let drawn = live.draw(story, choices(answers, story));
                        print(printer, &format!("{cleared}{text}{asks}{drawn}{rings}"));
                    }
                }
            }
        }
    }

    /// Words came from the model.
    pub fn heard(&self, heard: Heard<'_>) {
        match &mut *self.lock() {
            Shown::Lines { .. } => {}
            Shown::Story { story, printer, status: None, clock, .. } => {
                if let Heard::Waiting { until, reason } = heard {
                    print(printer, &story.wait(left(until, clock.as_ref()), reason));
                }
            }
            Shown::Story { status: Some(live), .. } => live.hear(heard),
        }
    }

    /// Time has passed: what stands below the story is drawn anew.
    pub fn tick(&self) {
        let mut shown = self.lock();
        if let Shown::Story { status: Some(live), .. } = &mut *shown
            && live.running
        {
            live.tick();
            shown.redraw(|_| String::new());
        }
    }

    /// Nothing goes on: the line below the story goes.
    pub fn rest(&self) {
        self.change(|live| live.running = false);
    }

    /// A person is to say what comes next.
    pub fn wait(&self) {
        if self.is_redrawn() {
            self.lock().redraw(|live| {
                live.typing.rests = true;
                "\n".to_owned()
            });
        } else {
            self.say("\n› ");
        }
    }

    /// A person has said it, or says nothing any more.
    pub fn wait_no_more(&self, message: Option<&str>) {
        self.change(|live| live.typing.rests = false);
        if message.is_none() && !self.is_redrawn() {
            self.say("\n");
        }
    }

    /// Whether something below the story is drawn anew, so that what is typed has to be drawn with it.
    pub fn is_redrawn(&self) -> bool {
        matches!(&*self.lock(), Shown::Story { status: Some(_), .. })
    }

    /// What is typed is drawn here from now on.
    pub fn draw_typing(&self) {
        if let Shown::Story { printer, status: Some(live), .. } = &mut *self.lock() {
            print(printer, live.typing.begin());
        }
    }

    /// These are the words that are being typed.
    pub fn typing(&self, words: &str) {
        self.change(|live| live.typing.change(words));
    }

    /// The message `name` was typed, and waits to be taken in.
    pub fn sent(&self, name: String, words: &str) {
        self.change(|live| live.typing.send(name, words));
    }

    /// The terminal is left to others `meanwhile`.
    pub fn aside(&self, meanwhile: impl FnOnce()) {
        let mut shown = self.lock();
        if let Shown::Story { printer, status: Some(live), .. } = &mut *shown {
            let left = live.clear() + live.typing.leave();
            print(printer, &left);
        }
        meanwhile();
        shown.redraw(|live| live.typing.enter().to_owned());
    }

    /// The terminal may be ours again.
    pub fn draw_anew(&self) {
        self.lock().redraw(|live| live.typing.enter().to_owned());
    }

    /// The session ends: the terminal is left as it was found, and nothing is redrawn any more.
    pub fn leave(&self) {
        if let Shown::Story { printer, status, .. } = &mut *self.lock()
            && let Some(mut live) = status.take()
        {
            print(printer, &live.leave());
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

    /// Asks again, where `words` were understood as no answer.
    pub fn ask(&self, words: &str) {
        match &mut *self.lock() {
            Shown::Story { printer, status: None, answers: Some(answers), .. } => print(printer, &answers.prompt()),
            Shown::Story { story, printer, status: Some(live), answers, .. } => {
                let text = live.clear() + &live.not_understood(story, words) + &live.draw(story, choices(answers, story));
                print(printer, &text);
            }
            Shown::Story { status: None, answers: None, .. } | Shown::Lines { .. } => {}
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
        if let Shown::Story { story, printer, status, answers, .. } = &mut *self.lock() {
            let asks = story.question().is_some();
            let how = match (&*answers, &*status) {
                _ if !asks => String::new(),
                (None, _) => story.how_to_answer(),
                (Some(answers), None) => answers.prompt(),
                (Some(_), Some(_)) => String::new(),
            };
            match status {
                None => print(printer, &how),
                Some(live) => {
                    live.work(asks);
                    let text = live.clear() + &how + &live.draw(story, choices(answers, story));
                    print(printer, &text);
                }
            }
        }
    }

    /// Says something beside the story; nothing where standard output is the event stream and so is standard error's.
    pub fn say(&self, text: &str) {
        match &mut *self.lock() {
            Shown::Lines { .. } => {}
            Shown::Story { printer, status: None, .. } => print(printer, text),
            Shown::Story { story, printer, status: Some(live), answers, .. } => {
                let stands = live.stands();
                let cleared = live.clear();
                let drawn = if stands { live.draw(story, choices(answers, story)) } else { String::new() };
                print(printer, &format!("{cleared}{text}{drawn}"));
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
        if let Shown::Story { story, printer, status, .. } = &mut *self.lock() {
            let shown = events.iter().enumerate().filter(|(index, event)| *index == 0 || Some(event.seq) == open);
            let told: String = shown.map(|(_, event)| story.tell(event)).collect();
            story.account(events);
            let rings = status.as_mut().map(|live| events.iter().take(1).map(|event| live.take_in(event)).collect());
            print(printer, &(told + &rings.unwrap_or_else(String::new)));
        }
    }

    /// Whether standard output carries the record's lines, and so nothing else.
    pub fn is_lines(&self) -> bool {
        matches!(*self.lock(), Shown::Lines { .. })
    }

    /// Draws what stands below the story anew after a `change`.
    fn change(&self, change: impl FnOnce(&mut Live)) {
        self.lock().redraw(|live| {
            change(live);
            String::new()
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown {
    /// Draws what stands below the story anew after a `change`, behind the text that it gives.
    fn redraw(&mut self, change: impl FnOnce(&mut Live) -> String) {
        if let Shown::Story { story, printer, status: Some(live), answers, .. } = self {
            let text = change(live);
            let size = Size::of_terminal();
            story.fit(size.columns);
            live.fit(size);
            let text = live.clear() + &text + &live.draw(story, choices(answers, story));
            print(printer, &text);
        }
    }
}

/// What may be typed at the question that waits to be answered here.
fn choices(answers: &Option<Answers>, story: &Story) -> Option<&'static str> {
    let answers = answers.as_ref()?;
    let (seq, _) = story.question()?;
    (answers.given != Some(seq)).then_some(answers.choices)
}

impl Answers {
    fn prompt(&self) -> String {
        format!("  {} › ", self.choices)
    }
}

/// How the pictures of the run in `folder` are shown at this terminal, if they are.
pub fn pictures(folder: &Path, parts: &Parts) -> Option<Inline> {
    let protocol = Protocol::of(parts).filter(|_| look(parts).0 == Colour::On)?;
    Some(Inline { protocol, blobs: trace::blobs(folder) })
}

/// The columns of the terminal; `None` where there is none, and nothing has to be cut or broken.
pub fn room(parts: &Parts) -> Option<usize> {
    (parts.person == Person::AtTerminal).then(|| Size::of_terminal().columns)
}

/// Whether standard error takes colours, and how wide it is.
pub fn look(parts: &Parts) -> (Colour, usize) {
    let colour = match (parts.person, parts.variable("NO_COLOR"), parts.variable("TERM")) {
        (Person::Absent, ..) | (_, Some(_), _) | (_, _, Some("dumb")) => Colour::Off,
        (Person::AtTerminal, None, _) => Colour::On,
    };
    let width = match parts.person {
        Person::AtTerminal => Size::of_terminal().columns,
        Person::Absent => 120,
    };
    (colour, width)
}
