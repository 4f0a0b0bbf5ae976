//! A run as a person reads it: from events to lines of text. The live view, the plain progress lines and `show` share it.

mod calls;
mod denied;
mod pictures;
mod room;
mod waits;

use self::calls::Texts;
use self::denied::Denied;
use self::pictures::Refusal;
pub use self::waits::left;
use super::bill::spent;
use super::inline::Inline;
use super::plan;
use super::prose::{clean, columns, counted, cut_to, grouped, length, told, wrapped};
use engine::{Ledger, Questions};
use serde_json::Value;
use std::collections::BTreeMap;
use tools::{Plan, Stage};
use trace::{
    ApprovalAsked, Attempt, Called, Delivery, Event, Finished, Folded, Granted, Method, Recovered, Replied, RunId, Said, Seq,
    Started, Stop, Switched, Verdict, Verified, What,
};

/// Lines of an observation that are shown.
const OUTPUT_LINES: usize = 6;
/// Lines of a command or of a task that are shown.
const COMMAND_LINES: usize = 8;
/// Lines of an agent's reason for wanting more that are shown.
const WHY_LINES: usize = 4;
/// The most columns of prose: longer lines are hard to read.
const PROSE: usize = 100;

/// Whether colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// ANSI colours.
    On,
    /// None: for files, pipes and `NO_COLOR`.
    Off,
}

/// Turns the events of one run into text, one after another.
#[derive(Debug)]
pub struct Story {
    colour: Colour,
    width: usize,
    /// What a person types to call the program.
    name: String,
    run: Option<RunId>,
    questions: Questions,
    /// Calls that were begun and have no observation yet.
    open: BTreeMap<Seq, Called>,
    /// Whether a provider left out what it used, so that we estimated it.
    estimated: bool,
    /// Tokens of the window that the run began with, and of these what is kept for a reply.
    window: (u64, u64),
    /// The model that was asked last.
    asked: String,
    /// Whether the attempts of the request that goes on were told as they failed.
    waits_told: bool,
    /// What the agent is about to do, by its own list.
    plan: Plan,
    /// Whether it was changed since it was last told whole.
    plan_changed: bool,
    /// Whether it stands beside the story all the time, so that its changes are not told.
    plan_apart: bool,
    texts: Texts,
    denied: Denied,
    /// Whether the last line that was told is no blank one.
    is_amid: bool,
    refusal: Refusal,
    ledger: Ledger,
    /// How pictures are shown besides being named.
    inline: Option<Inline>,
}

/// How a piece of text looks.
#[derive(Clone, Copy)]
enum Look {
    Dim,
    Bold,
    Command,
    Good,
    Bad,
}

impl Story {
    /// A story for lines of `width` columns.
    pub fn new(colour: Colour, width: usize, name: &str) -> Story {
        let (name, questions, open) = (name.to_owned(), Questions::default(), BTreeMap::new());
        let mut story = Story {
            colour,
            width,
            name,
            run: None,
            questions,
            open,
            estimated: false,
            window: (0, 0),
            asked: String::new(),
            waits_told: false,
            plan: Plan::default(),
            plan_changed: false,
            plan_apart: false,
            texts: Texts::default(),
            denied: Denied::default(),
            is_amid: false,
            refusal: Refusal::default(),
            ledger: Ledger::default(),
            inline: None,
        };
        story.fit(width);
        story
    }

    /// What was spent so far is what `events` say, whichever of them were told.
    pub fn account(&mut self, events: &[Event]) {
        self.ledger = Ledger::default();
        events.iter().for_each(|event| self.ledger.fold(event));
    }

    /// The plan stands beside the story, by whoever shows [`Story::plan`]: its changes are not told one by one.
    pub fn set_plan_apart(&mut self) {
        self.plan_apart = true;
    }

    /// What the agent is about to do, as far as something of it is left: at most `most` lines.
    pub fn plan(&self, most: usize) -> String {
        match self.plan.items.iter().all(|step| step.status == Stage::Done) {
            true => String::new(),
            false => self.steps(most),
        }
    }

    fn steps(&self, most: usize) -> String {
        let width = self.width.saturating_sub(1);
        let line = |(stage, line): (Stage, String)| {
            let look = if stage == Stage::Doing { Look::Bold } else { Look::Dim };
            self.paint(look, &format!("{}\n", cut_to(&line, width)))
        };
        plan::steps(&self.plan, most).into_iter().map(line).collect()
    }

    /// From here on lines have `width` columns.
    pub fn fit(&mut self, width: usize) {
        self.width = width.max(20);
    }

    /// What the call that goes on at the moment is, in one line.
    pub fn going_on(&self) -> Option<String> {
        self.open.values().next().map(|called| {
            headline(&called.tool, called.arguments.as_ref(), &called.raw).lines().next().unwrap_or_default().to_owned()
        })
    }

    /// The calls that were begun and have no observation, as far as the story was told.
    pub fn left_open(&self) -> String {
        let headlines = self.open.values().filter(|called| called.tool != "submit").map(|called| {
            let headline = self.paint(
                Look::Command,
                &self.lines(
                    &headline(&called.tool, called.arguments.as_ref(), &called.raw).replace('\n', "\n> "),
                    COMMAND_LINES,
                    "",
                ),
            );
            format!("{headline}{}", self.paint(Look::Dim, "  begun, and not answered yet\n"))
        });
        self.more_denied(self.denied.more()) + &headlines.collect::<String>() + &self.how_to_answer()
    }

    /// The question that waits for an answer.
    pub fn question(&self) -> Option<(Seq, &ApprovalAsked)> {
        self.questions.open().map(|(seq, question)| (seq, &question.asked))
    }

    /// How the question that waits is answered from elsewhere; nothing where none does.
    pub fn how_to_answer(&self) -> String {
        let (Some((seq, _)), Some(run)) = (self.question(), &self.run) else { return String::new() };
        self.paint(Look::Bold, &format!("  waits for an answer: {}\n", answer_line(&self.name, run.as_str(), seq)))
    }

    /// The text that `event` adds: whole lines, or nothing.
    pub fn tell(&mut self, event: &Event) -> String {
        self.questions.fold(event);
        self.ledger.fold(event);
        let refusal = self.refusal.fold(event);
        let denied = self.denied.fold(event);
        let more = self.more_denied(denied);
        let told = more + &self.told(event, refusal);
        // The end of a turn stands by itself.
        let told = if self.is_amid && matches!(event.what, What::Finished(_)) { format!("\n{told}") } else { told };
        self.is_amid = if told.is_empty() { self.is_amid } else { !told.ends_with("\n\n") };
        told
    }

    fn told(&mut self, event: &Event, refusal: Option<String>) -> String {
        match &event.what {
            What::Started(started) => {
                self.run = Some(started.run.clone());
                self.window = (started.model.window(), engine::reply_room(&started.model, started.model.window()));
                self.started(started)
            }
            What::ApprovalAsked(asked) => self.asked(asked),
            What::Delivered(delivered) => self.delivered(&delivered.what),
            What::Replied(replied) => {
                self.estimated |= replied.estimated;
                let attempts = if std::mem::take(&mut self.waits_told) { &[] } else { replied.attempts.as_slice() };
                self.replied(replied, attempts)
            }
            What::Switched(Switched { model, why }) => {
                let told = format!("now asks {} instead: {why}", model.id);
                self.paint(Look::Bad, &self.prose(&told, OUTPUT_LINES, "! ")) + "\n"
            }
            What::Called(called) => {
                self.open.insert(event.seq, called.clone());
                self.claim(called)
            }
            What::Observed(observed) => {
                let called = event.cause.and_then(|call| self.open.remove(&call));
                called.filter(|_| self.denied.more() == 0).map(|called| self.observed(&called, observed)).unwrap_or_default()
            }
            What::Verified(verified) => {
                // What its call is told of the verdict would be the same once more.
                event.cause.and_then(|claim| self.open.remove(&claim));
                self.verified(verified)
            }
            What::Folded(folded) => self.paint(Look::Dim, &format!("{}\n", folding(folded))),
            What::Granted(Granted { grant, .. }) if grant.is_empty() => self.paint(Look::Dim, "there are new limits\n"),
            What::Granted(Granted { grant, .. }) => {
                self.paint(Look::Dim, &format!("commands have {}\n", clean(&grant.to_string())))
            }
            What::Recovered(recovered) => {
                let Recovered { reason, bytes, .. } = recovered;
                let text = match &recovered.run {
                    None => format!("the record's end was damaged ({reason}); {bytes} bytes were put aside"),
                    Some(run) => {
                        format!("the record was damaged behind this ({reason}; {bytes} bytes); run {run} goes on from here")
                    }
                };
                // The reason of an imported record is anybody's text.
                self.paint(Look::Dim, &format!("{}\n", clean(&text)))
            }
            What::Finished(finished) => self.finished(finished),
            What::Asked(asked) => {
                self.asked.clone_from(&asked.model);
                self.little_room(asked) + &refusal.map(|why| self.without_pictures(&why)).unwrap_or_default()
            }
            What::Unknown { .. } => String::new(),
        }
    }

    /// `text` as what stands beside the story.
    pub fn quiet(&self, text: &str) -> String {
        self.paint(Look::Dim, text)
    }

    fn started(&self, started: &Started) -> String {
        let head = clean(&format!("run {} · {} · sandbox {}", started.run, started.model.id, started.facts.backend));
        let place = format!("{}\n", clean(&started.task.workspace.display().to_string()));
        let task = self.prose(&told(&started.task.parts), COMMAND_LINES, "") + &self.pictures(&started.task.parts);
        let checks = started.task.checks.iter().map(|check| self.lines(&format!("check: {}", check.command), 1, ""));
        let checks = self.paint(Look::Dim, &checks.collect::<String>());
        let fallback: Vec<&str> = started.fallback.iter().map(|model| model.id.as_str()).collect();
        let fallback = if fallback.is_empty() {
            String::new()
        } else {
            self.lines(&format!("falls back on {}", fallback.join(", ")), 2, "")
        };
        let checks = self.paint(Look::Dim, &fallback) + &checks;
        let unread = started.unread.iter().map(|file| self.lines(&format!("{} is not read: {}", file.path, file.reason), 1, ""));
        let unread = self.paint(Look::Dim, &unread.collect::<String>());
        format!("{}\n{}\n{task}{checks}{unread}\n", self.paint(Look::Bold, &head), self.paint(Look::Dim, &place))
    }

    fn delivered(&self, what: &Delivery) -> String {
        match what {
            Delivery::Message { parts } => {
                let words = self.paint(Look::Bold, &self.prose(&told(parts), COMMAND_LINES, "› "));
                format!("{words}{}\n", self.pictures(parts))
            }
            // The outcome says so.
            Delivery::Interrupt => String::new(),
            Delivery::Approval { answer, by, .. } => {
                self.paint(Look::Dim, &self.lines(&format!("answered: {answer} ({by})"), 1, "  "))
            }
            Delivery::Session { .. } => self.paint(Look::Dim, "a new session goes on\n\n"),
        }
    }

    /// A call that wants more: what, for which command, and why, in the agent's words.
    fn asked(&self, asked: &ApprovalAsked) -> String {
        let mut text = self.paint(Look::Bold, &format!("? {} asks for more rights\n", clean(&asked.tool)));
        if asked.wants.network {
            text.push_str(&self.prose("the host's network, with loopback and everything that it reaches", usize::MAX, "  - "));
        }
        for (what, paths) in [("read", &asked.wants.read), ("write", &asked.wants.write)] {
            for path in paths {
                // A path is one line, whatever is in its name.
                let path = path.display().to_string().replace('\n', "\u{fffd}");
                text.push_str(&self.prose(&format!("{what} {path}"), usize::MAX, "  - "));
            }
        }
        let arguments = serde_json::from_str(&asked.raw).ok();
        let command = headline(&asked.tool, arguments.as_ref(), &asked.raw).replace('\n', "\n> ");
        text.push_str(&self.paint(Look::Command, &self.lines(&command, COMMAND_LINES, "  ")));
        // One paragraph: lines of its own could look like rights that are asked for, or like what may be typed.
        let why = asked.why.split_whitespace().collect::<Vec<_>>().join(" ");
        text.push_str(&self.paint(Look::Dim, &self.prose(&format!("why, the agent says: {why}"), WHY_LINES, "  ")));
        text
    }

    fn replied(&self, replied: &Replied, attempts: &[Attempt]) -> String {
        let mut text = String::new();
        // What ended the last attempt of a request without answer is told by the end of the turn.
        let failed = attempts.iter().filter_map(|attempt| attempt.error.as_deref());
        let told = attempts.len() - usize::from(matches!(replied.stop, Stop::Error(_)) && !attempts.is_empty());
        for error in failed.take(told) {
            text.push_str(&self.paint(Look::Dim, &self.lines(&format!("the model's server: {error}"), 2, "")));
        }
        for part in &replied.parts {
            match part {
                Said::Text { text: words } if !words.trim().is_empty() => {
                    text.push_str(&self.prose(words.trim(), usize::MAX, ""));
                    text.push('\n');
                }
                Said::Reasoning { text: words } if !words.trim().is_empty() => {
                    text.push_str(&self.paint(Look::Dim, &self.prose(words.trim(), 3, "")));
                }
                Said::Cut { name, .. } => {
                    text.push_str(
                        &self.paint(Look::Bad, &format!("a call of {} was cut off by the length limit\n", clean(name))),
                    );
                }
                Said::Text { .. } | Said::Reasoning { .. } | Said::Opaque { .. } | Said::Call { .. } => {}
            }
        }
        text
    }

    fn verified(&self, verified: &Verified) -> String {
        let mut text = String::new();
        for check in &verified.checks {
            let (look, mark, ending) = match (check.passed, check.timed_out, check.exit_code) {
                (true, ..) => (Look::Good, '✓', String::new()),
                (false, true, _) => (Look::Bad, '✗', " · timed out".to_owned()),
                (false, false, Some(code)) => (Look::Bad, '✗', format!(" · exit code {code}")),
                (false, false, None) => (Look::Bad, '✗', " · killed".to_owned()),
            };
            let command = clean(check.command.lines().next().unwrap_or_default());
            let command = cut_to(&command, self.width.saturating_sub(2 + columns(&ending)));
            text.push_str(&self.paint(look, &format!("{mark} {command}{ending}\n")));
            if !check.passed {
                text.push_str(&self.paint(Look::Dim, &self.lines(check.output.trim_end(), OUTPUT_LINES, "  ")));
            }
        }
        if let Some(misfit) = &verified.misfit {
            text.push_str(&self.paint(Look::Bad, "✗ the answer does not fit its schema\n"));
            text.push_str(&self.paint(Look::Dim, &self.lines(misfit, OUTPUT_LINES, "  ")));
        }
        match &verified.verdict {
            Verdict::Pass => {}
            Verdict::Fail => text.push_str(&self.paint(Look::Bad, "not accepted\n")),
            Verdict::Unjudged { reason } => {
                text.push_str(&self.paint(Look::Bad, &self.prose(&format!("not judged: {reason}"), 3, "")));
            }
        }
        text.push('\n');
        text
    }

    fn finished(&mut self, finished: &Finished) -> String {
        let look = if finished.outcome.exit_code() == 0 { Look::Good } else { Look::Bad };
        let money = spent(finished.cost_nano_usd, self.ledger.known_part());
        let tokens = format!("{} tokens{}", grouped(finished.usage.total()), if self.estimated { " (estimated)" } else { "" });
        let turns = counted(finished.turns, "turn");
        let head = format!("{} · {turns} · {tokens} · {money} · {}", finished.outcome.word(), length(finished.active_ms));
        let reason = finished.outcome.reason().map(|reason| self.prose(reason, usize::MAX, "")).unwrap_or_default();
        // A plan stands once more where it ends, if it was worked on.
        let plan = if std::mem::take(&mut self.plan_changed) { self.steps(usize::MAX) } else { String::new() };
        let plan = if plan.is_empty() { plan } else { plan + "\n" };
        format!("{plan}{}\n{reason}", self.paint(look, &head))
    }

    /// The first `most` lines of `text`, made harmless, cut to the width, each behind `margin`.
    fn lines(&self, text: &str, most: usize, margin: &str) -> String {
        let width = self.width.saturating_sub(columns(margin));
        capped(text.lines().map(|line| cut_to(&clean(line), width)), most, margin)
    }

    /// The same, but a long line is wrapped.
    fn prose(&self, text: &str, most: usize, margin: &str) -> String {
        let width = self.width.min(PROSE).saturating_sub(columns(margin));
        capped(text.lines().flat_map(|line| wrapped(&clean(line), width)), most, margin)
    }

    fn paint(&self, look: Look, text: &str) -> String {
        let code = match (self.colour, look) {
            (Colour::Off, _) => return text.to_owned(),
            (Colour::On, Look::Dim) => "2",
            (Colour::On, Look::Bold) => "1",
            (Colour::On, Look::Command) => "36",
            (Colour::On, Look::Good) => "32",
            (Colour::On, Look::Bad) => "31",
        };
        // The colour ends before the line does, so that a cut line never colours what follows.
        let painted = text.split_inclusive('\n').map(|line| match line.strip_suffix('\n') {
            Some("") => "\n".to_owned(),
            Some(line) => format!("\x1b[{code}m{line}\x1b[0m\n"),
            None => format!("\x1b[{code}m{line}\x1b[0m"),
        });
        painted.collect()
    }
}

/// The first `most` lines, each behind `margin`, and how many more there are.
fn capped(lines: impl Iterator<Item = String>, most: usize, margin: &str) -> String {
    let mut lines = lines.map(|line| format!("{}\n", format!("{margin}{line}").trim_end()));
    // One line more costs no more than the word that it was left out.
    let mut kept: Vec<String> = lines.by_ref().take(most.saturating_add(1)).collect();
    let more = lines.count() as u64;
    if more > 0 {
        kept.truncate(most);
        kept.push(format!("{margin}… {}\n", counted(more + 1, "more line")));
    }
    kept.concat()
}

/// A fold in one line.
pub fn folding(folded: &Folded) -> String {
    let shortened = match folded.shortened.len() as u64 {
        0 => String::new(),
        outputs => format!(", {} shortened", counted(outputs, "output")),
    };
    let account = match &folded.method {
        Method::Shorten => String::new(),
        Method::Ledger { replies, .. } => format!(", {} told in an account", counted(*replies, "turn")),
    };
    format!("folded: {} → {} tokens{shortened}{account}", grouped(folded.before), grouped(folded.after))
}

/// An argument of a call, where it is text.
fn argument<'a>(called: &'a Called, name: &str) -> Option<&'a str> {
    called.arguments.as_ref()?.get(name)?.as_str()
}

/// What is typed to answer the question `seq` of `run`.
pub fn answer_line(name: &str, run: &str, seq: Seq) -> String {
    format!("{name} send {run} --answer {seq}=once|run|no")
}

/// A call in a few words.
pub fn headline(tool: &str, arguments: Option<&Value>, raw: &str) -> String {
    let argument = |name: &str| arguments?.get(name)?.as_str();
    match (tool, argument("command"), argument("path"), argument("pattern"), argument("answer")) {
        ("bash", Some(command), ..) => format!("$ {command}"),
        ("submit", .., Some(answer)) => format!("submit\n{answer}"),
        ("plan", ..) => "plan".to_owned(),
        ("find", _, path, ..) => {
            let below = path.map(|path| format!(" in {path}")).unwrap_or_default();
            argument("glob").map_or_else(|| format!("find {raw}"), |glob| format!("find {glob}{below}"))
        }
        ("search", _, path, Some(pattern), _) => {
            format!("search {pattern}{}", path.map(|path| format!(" in {path}")).unwrap_or_default())
        }
        (tool, _, Some(path), ..) => format!("{tool} {path}"),
        (tool, ..) => format!("{tool} {raw}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::{AgentPath, Digest, Timestamp};

    #[test]
    fn why_a_record_was_mended_is_anybodys_text_and_made_harmless() {
        let check = |run: Option<&str>| {
            let run = run.map(|run| run.parse().unwrap());
            let recovered = Recovered { blob: Digest::of(b""), bytes: 0, reason: "\x1b]0;gone\x07\nDone.".to_owned(), run };
            let (at, agent, what) = (Timestamp::from_unix_millis(0), AgentPath::root(), What::Recovered(recovered));
            let event = Event { seq: Seq(1), at, ms: 0, agent, cause: None, what };
            let text = Story::new(Colour::Off, 80, "autosage").tell(&event);
            assert!(text.contains("gone") && !text.contains(['\x1b', '\x07']), "{text:?}");
            assert_eq!(text.lines().count(), 1, "{text:?}");
        };
        check(None);
        check(Some("20261130-012435-kiazgd"));
    }
}
