//! The account of a history: what an agent is told in its place. Made from events, without any model.

use crate::harness::{Notes, fill};
use std::collections::{BTreeMap, BTreeSet};
use tools::{Plan, Stage, Step};
use trace::{Called, Delivery, Event, FileSeen, Observed, Part, Seq, Sight, Status, Verdict, Verified, What};

/// The most characters of a call or a check that its line shows.
const SHOWN: usize = 160;

/// What happened in a run, as far as an account tells it: grown event by event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    deeds: Vec<Deed>,
    /// Calls that were begun, in words, until they are observed.
    open: BTreeMap<Seq, (String, String)>,
}

/// One thing that happened.
#[derive(Clone, Debug)]
struct Deed {
    /// The event: of a call, its beginning, by which its output is asked for.
    at: Seq,
    what: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// The person said this.
    Said(String),
    /// A file was shown.
    Read(FileSeen),
    /// A file was written.
    Changed(FileSeen),
    /// A call was served, and ended so.
    Ran { call: String, ending: String },
    /// A call was denied, or a check failed.
    Refused { what: String, ending: String },
}

impl Account {
    /// Takes in one more event.
    pub fn fold(&mut self, event: &Event) {
        match &event.what {
            What::Delivered(delivered) => {
                if let Delivery::Message { parts } = &delivered.what {
                    self.add(event.seq, Kind::Said(words(parts, event.seq)));
                }
            }
            What::Called(called) => _ = self.open.insert(event.seq, (called.tool.clone(), in_words(called))),
            What::Observed(observed) => {
                if let Some((at, (tool, call))) = event.cause.and_then(|at| Some((at, self.open.remove(&at)?))) {
                    self.observe(at, &tool, call, observed);
                }
            }
            What::Verified(verified) => self.verify(event.seq, verified),
            What::Started(_) | What::Asked(_) | What::Replied(_) | What::ApprovalAsked(_) => {}
            What::Switched(_) | What::Folded(_) | What::Granted(_) => {}
            What::Recovered(_) | What::Finished(_) | What::Unknown { .. } => {}
        }
    }

    fn add(&mut self, at: Seq, what: Kind) {
        self.deeds.push(Deed { at, what });
    }

    fn observe(&mut self, at: Seq, tool: &str, call: String, observed: &Observed) {
        for file in &observed.files {
            self.add(at, if file.sight == Sight::Written { Kind::Changed(file.clone()) } else { Kind::Read(file.clone()) });
        }
        // What was claimed is told by what the checks said, and a plan by its last state.
        if !observed.files.is_empty() || matches!(tool, "submit" | "plan") {
            return;
        }
        let ending = match (observed.status, observed.exit_code, observed.signal) {
            (Status::Ok | Status::Failed, Some(code), _) => format!("exit code {code}"),
            (Status::Ok | Status::Failed, None, Some(signal)) => format!("signal {signal}"),
            (status, ..) => status.word().replace('_', " "),
        };
        let is_refused = observed.status == Status::Denied;
        self.add(at, if is_refused { Kind::Refused { what: call, ending } } else { Kind::Ran { call, ending } });
    }

    fn verify(&mut self, at: Seq, verified: &Verified) {
        if verified.verdict != Verdict::Fail {
            return;
        }
        for check in verified.checks.iter().filter(|check| !check.passed) {
            let ending = check.exit_code.map_or("killed".to_owned(), |code| format!("exit code {code}"));
            let ending = if check.timed_out { "timed out".to_owned() } else { ending };
            self.add(at, Kind::Refused { what: one_line(&check.command), ending });
        }
    }

    /// The account of what happened from `first` up to, and without, `end`, with the plan as it stands now.
    pub fn between<'a>(&'a self, first: Seq, end: Seq, plan: &'a Plan, notes: &'a Notes) -> Told<'a> {
        let deeds = self.deeds.iter().filter(|deed| deed.at >= first && deed.at < end);
        // Of a file the last that is known of it says all.
        let mut known = BTreeSet::new();
        let is_last = |deed: &&'a Deed| match &deed.what {
            Kind::Read(file) => known.insert((Section::Read, file.path.as_str())),
            Kind::Changed(file) => known.insert((Section::Changed, file.path.as_str())),
            Kind::Said(_) | Kind::Ran { .. } | Kind::Refused { .. } => true,
        };
        let mut lines: Vec<Line<'_>> = deeds.rev().filter(is_last).map(Line::Deed).collect();
        lines.reverse();
        lines.extend(plan.items.iter().map(Line::Step));
        Told { notes, lines }
    }
}

/// Under which heading a line of an account stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Said,
    Read,
    Changed,
    Ran,
    Refused,
    Plan,
}

/// What a line of an account tells.
#[derive(Clone, Copy, Debug)]
enum Line<'a> {
    Deed(&'a Deed),
    Step(&'a Step),
}

impl Line<'_> {
    fn section(self) -> Section {
        match self {
            Line::Deed(Deed { what, .. }) => match what {
                Kind::Said(_) => Section::Said,
                Kind::Read(_) => Section::Read,
                Kind::Changed(_) => Section::Changed,
                Kind::Ran { .. } => Section::Ran,
                Kind::Refused { .. } => Section::Refused,
            },
            Line::Step(_) => Section::Plan,
        }
    }

    fn words(self, notes: &Notes) -> String {
        let (at, what) = match self {
            Line::Deed(Deed { at, what }) => (at.to_string(), what),
            Line::Step(Step { text, status }) => {
                let stage = match status {
                    Stage::Pending => "to do",
                    Stage::Doing => "under way",
                    Stage::Done => "done",
                };
                return fill(&notes.account_step, &[("text", text), ("stage", stage)]);
            }
        };
        match what {
            Kind::Said(words) => fill(&notes.account_words, &[("words", words.trim())]),
            Kind::Read(file) | Kind::Changed(file) => {
                fill(&notes.account_file, &[("path", &file.path), ("hash", &file.digest.short()), ("at", &at)])
            }
            Kind::Ran { call: what, ending } | Kind::Refused { what, ending } => {
                fill(&notes.account_call, &[("call", what), ("ending", ending), ("at", &at)])
            }
        }
    }
}

/// An account: lines in the order in which they happened, each put into words where it is shown.
#[derive(Clone, Debug)]
pub(crate) struct Told<'a> {
    notes: &'a Notes,
    lines: Vec<Line<'a>>,
}

impl Told<'_> {
    /// All of it.
    pub fn whole(&self) -> String {
        let lines: Vec<_> = self.lines.iter().map(|line| (line.section(), line.words(self.notes))).collect();
        self.sections(&lines)
    }

    /// As much of it as has about `most` bytes, with as many more for the words of the person, and where all of it is to be
    /// had: under `at`. The plan has half of them at most, and older lines go first.
    pub fn within(&self, most: usize, at: Seq) -> String {
        let (mut left, mut said, mut plan) = (most, most, most / 2);
        let mut kept = Vec::new();
        for line in self.lines.iter().rev() {
            let section = line.section();
            let pot = match section {
                Section::Said => &mut said,
                Section::Plan => &mut plan,
                Section::Read | Section::Changed | Section::Ran | Section::Refused => &mut left,
            };
            if *pot == 0 {
                continue;
            }
            let words = line.words(self.notes);
            // A long message of the person keeps its beginning and its end.
            let is_long = section == Section::Said && words.len() > most / 2;
            let words = if is_long { cut(&words, most / 4, self.notes) } else { words };
            let Some(rest) = pot.checked_sub(words.len() + 1) else {
                *pot = 0;
                continue;
            };
            *pot = rest;
            if section == Section::Plan {
                left -= words.len() + 1;
            }
            kept.push((section, words));
        }
        kept.reverse();
        let gone = self.lines.len() - kept.len();
        let mut sections = self.sections(&kept);
        if gone > 0 {
            let left_out = fill(&self.notes.account_left_out, &[("lines", &gone.to_string())]);
            sections = format!("{left_out}\n{sections}");
        }
        fill(&self.notes.account, &[("at", &at.to_string()), ("account", &sections)])
    }

    fn sections(&self, lines: &[(Section, String)]) -> String {
        let heads = [
            (Section::Said, &self.notes.account_said),
            (Section::Read, &self.notes.account_read),
            (Section::Changed, &self.notes.account_changed),
            (Section::Ran, &self.notes.account_ran),
            (Section::Refused, &self.notes.account_refused),
            (Section::Plan, &self.notes.account_plan),
        ];
        let mut text = Vec::new();
        for (section, head) in heads {
            let mut lines = lines.iter().filter(|(of, _)| *of == section).map(|(_, line)| line.as_str()).peekable();
            if lines.peek().is_some() {
                text.push(head.as_str());
                text.extend(lines);
            }
        }
        text.join("\n")
    }
}

/// What a person said at `at`, with words for what is none.
fn words(parts: &[Part], at: Seq) -> String {
    let word = |part: &Part| match part {
        Part::Text { text } => text.clone(),
        Part::Image { picture, .. } => format!("[{picture}, output:{at}]"),
        Part::File { name, .. } => format!("[{name}]"),
    };
    parts.iter().map(word).collect::<Vec<_>>().join("\n")
}

/// A call in words, for its line: what it was to do, never in a form in which calls are made.
fn in_words(called: &Called) -> String {
    let argument = |name: &str| called.arguments.as_ref()?.get(name)?.as_str().map(one_line);
    if let Some(command) = argument("command") {
        return command;
    }
    let words: Vec<String> = match called.arguments.as_ref().and_then(serde_json::Value::as_object) {
        Some(arguments) => arguments.values().filter_map(serde_json::Value::as_str).map(one_line).collect(),
        None => Vec::new(),
    };
    one_line(&format!("{} {}", called.tool, words.join(" ")))
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The first and the last `each` bytes of a message.
fn cut(text: &str, each: usize, notes: &Notes) -> String {
    let (end, start) = (text.floor_char_boundary(each), text.ceil_char_boundary(text.len() - each));
    format!("{}\n{}\n{}", &text[..end], notes.account_cut, &text[start..])
}
