//! Calls in a story: what each was and what came of it. Changes of files are told as what went and what came.

use super::{COMMAND_LINES, Look, OUTPUT_LINES, Story, argument, capped, headline};
use crate::cli::hunk::{Mark, hunk};
use crate::cli::plan;
use crate::cli::prose::{clean, cut_to, length};
use std::collections::BTreeMap;
use trace::{Called, Digest, Observed, Status, text_of};

/// Lines of a change that are shown.
const CHANGE_LINES: usize = 16;
/// The most bytes of texts that are kept, to tell what a later change does to them.
const KEPT: usize = 4 << 20;

/// The files whose whole content is known, because the agent wrote it: the digest, and the text.
#[derive(Debug, Default)]
pub(super) struct Texts {
    known: BTreeMap<String, (Digest, String)>,
    bytes: usize,
}

impl Texts {
    /// The agent was shown or wrote files: what is known of others than these very contents holds no longer.
    fn see(&mut self, observed: &Observed) {
        for file in &observed.files {
            if self.known.get(&file.path).is_some_and(|(digest, _)| *digest != file.digest) {
                self.forget(&file.path);
            }
        }
    }

    /// What the file that the call wrote was before, as far as that is known. From here on it is `text`.
    fn replace(&mut self, observed: &Observed, text: String) -> Option<String> {
        let [file] = &observed.files[..] else { return None };
        let before = self.forget(&file.path);
        // Where line ends were kept, or a placeholder stands for a secret, the file holds other bytes than the call.
        let is_whole = Digest::of(text.as_bytes()) == file.digest && self.bytes + text.len() <= KEPT;
        if is_whole {
            self.bytes += text.len();
            self.known.insert(file.path.clone(), (file.digest, text));
        }
        before
    }

    fn of(&self, observed: &Observed) -> Option<&str> {
        let [file] = &observed.files[..] else { return None };
        self.known.get(&file.path).map(|(_, text)| text.as_str())
    }

    fn forget(&mut self, path: &str) -> Option<String> {
        let (_, text) = self.known.remove(path)?;
        self.bytes -= text.len();
        Some(text)
    }
}

impl Story {
    /// A claim is told when it is made: the checks speak next.
    pub(super) fn claim(&self, called: &Called) -> String {
        claimed(called).map_or_else(String::new, |answer| {
            format!("{}{}\n", self.paint(Look::Command, "submit\n"), self.prose(answer.trim(), usize::MAX, ""))
        })
    }

    pub(super) fn observed(&mut self, called: &Called, observed: &Observed) -> String {
        match (called.tool.as_str(), observed.status) {
            ("submit", Status::Ok) => return String::new(),
            ("edit", Status::Ok) => return self.edited(called, observed),
            ("write", Status::Ok) => return self.written(called, observed),
            ("plan", Status::Ok) => return self.planned(called),
            _ => self.texts.see(observed),
        }
        // As a shell shows it.
        let headline = headline(&called.tool, called.arguments.as_ref(), &called.raw).replace('\n', "\n> ");
        // A claim was told when it was made.
        let mut text = match claimed(called) {
            Some(_) => String::new(),
            None => self.paint(Look::Command, &self.lines(&headline, COMMAND_LINES, "")),
        };
        let words = text_of(&observed.content);
        let exit = observed.exit_code.filter(|code| *code != 0).map(|code| format!("exit code {code}"));
        // The agent is told the exit code in its own line; a person is told once, in red.
        let words = match &exit {
            Some(exit) => words.trim_end().strip_suffix(&format!("[{exit}]")).unwrap_or(&words).trim_end(),
            None => words.trim_end(),
        };
        // Why something is denied is a sentence of ours, not an output.
        let words = match observed.status {
            Status::Denied => self.prose(words, OUTPUT_LINES, "  "),
            _ => self.lines(words, OUTPUT_LINES, "  "),
        };
        text.push_str(&self.paint(Look::Dim, &words));
        text.push_str(&self.pictures(&observed.content));
        if observed.status != Status::Ok {
            // Where a call was cut off, its length says nothing.
            let took = if observed.took_ms > 0 { format!(" · {}", length(observed.took_ms)) } else { String::new() };
            let how = exit.unwrap_or_else(|| observed.status.word().replace('_', " "));
            text.push_str(&self.paint(Look::Bad, &format!("  {how}{took}\n")));
        }
        text.push('\n');
        text
    }

    /// An edit: the passage as it was and is.
    fn edited(&mut self, called: &Called, observed: &Observed) -> String {
        let (old, new) = (argument(called, "old").unwrap_or_default(), argument(called, "new").unwrap_or_default());
        let change = self.change(old, new);
        match self.texts.of(observed).filter(|text| text.contains(old)).map(|text| text.replace(old, new)) {
            Some(text) => drop(self.texts.replace(observed, text)),
            None => self.texts.see(observed),
        }
        self.changed(observed, &change)
    }

    /// A file as it was, where that is known, and is.
    fn written(&mut self, called: &Called, observed: &Observed) -> String {
        let text = argument(called, "content").unwrap_or_default();
        let before = self.texts.replace(observed, text.to_owned());
        let change = self.change(before.as_deref().unwrap_or_default(), text);
        self.changed(observed, &change)
    }

    fn changed(&self, observed: &Observed, change: &str) -> String {
        format!("{}{change}\n", self.paint(Look::Command, &self.lines(&text_of(&observed.content), 1, "")))
    }

    fn change(&self, old: &str, new: &str) -> String {
        let width = self.width.saturating_sub(4);
        let line = |(mark, line): (Mark, &str)| {
            let (look, sign) = match mark {
                Mark::Stays => (Look::Dim, ' '),
                Mark::Went => (Look::Bad, '-'),
                Mark::Came => (Look::Good, '+'),
                Mark::Gap => (Look::Dim, '…'),
            };
            self.paint(look, format!("{sign} {}", cut_to(&clean(line), width)).trim_end())
        };
        capped(hunk(old, new).into_iter().map(line), CHANGE_LINES, "  ")
    }

    fn planned(&mut self, called: &Called) -> String {
        let Some(plan) = tools::plan(&called.tool, &called.raw) else { return String::new() };
        if plan == self.plan {
            return String::new();
        }
        self.plan = plan;
        self.plan_changed = true;
        match self.plan_apart {
            true => String::new(),
            false => self.paint(Look::Dim, &self.lines(&plan::line(&self.plan), 1, "")) + "\n",
        }
    }
}

/// The answer that a call claims to be the right one.
pub(super) fn claimed(called: &Called) -> Option<&str> {
    argument(called, "answer").filter(|_| called.tool == "submit")
}
