//! A run as a person reads it: from events to lines of text. The live view, the plain progress lines and `show` share it.

use std::collections::BTreeMap;
use trace::{
    Called, Delivery, Event, Finished, Observed, Replied, Said, Seq, Started, Status, Stop, Verdict, Verified, What, text_of,
};
use unicode_width::UnicodeWidthChar;

/// Lines of an observation that are shown.
const OUTPUT_LINES: usize = 6;
/// Lines of a command that are shown.
const COMMAND_LINES: usize = 8;

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
    /// Calls that were begun and have no observation yet.
    open: BTreeMap<Seq, Called>,
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
    pub fn new(colour: Colour, width: usize) -> Story {
        Story { colour, width: width.max(20), open: BTreeMap::new() }
    }

    /// What the call that goes on at the moment is, in one line.
    pub fn going_on(&self) -> Option<String> {
        self.open.values().next().map(|called| headline(called).lines().next().unwrap_or_default().to_owned())
    }

    /// The text that `event` adds: whole lines, or nothing.
    pub fn tell(&mut self, event: &Event) -> String {
        match &event.what {
            What::Started(started) => self.started(started),
            What::Delivered(delivered) => self.delivered(&delivered.what),
            What::Replied(replied) => self.replied(replied),
            What::Called(called) => {
                self.open.insert(event.seq, called.clone());
                String::new()
            }
            What::Observed(observed) => {
                let called = event.cause.and_then(|call| self.open.remove(&call));
                called.map(|called| self.observed(&called, observed)).unwrap_or_default()
            }
            What::Verified(verified) => self.verified(verified),
            What::Granted(_) => self.paint(Look::Dim, "the limits were raised\n"),
            What::Recovered(recovered) => {
                let text =
                    format!("the record's end was damaged ({}); {} bytes were put aside\n", recovered.reason, recovered.bytes);
                self.paint(Look::Dim, &text)
            }
            What::Finished(finished) => self.finished(finished),
            What::Asked(_) | What::Unknown { .. } => String::new(),
        }
    }

    fn started(&self, started: &Started) -> String {
        let head = format!("run {} · {} · sandbox {}", started.run, started.model.id, started.facts.backend);
        let place = format!("{}\n", started.task.workspace.display());
        let task = self.lines(&text_of(&started.task.parts), COMMAND_LINES, "");
        format!("{}\n{}\n{task}\n", self.paint(Look::Bold, &head), self.paint(Look::Dim, &place))
    }

    fn delivered(&self, what: &Delivery) -> String {
        match what {
            Delivery::Message { parts } => {
                format!("{}\n", self.paint(Look::Bold, &self.lines(&text_of(parts), COMMAND_LINES, "› ")))
            }
            Delivery::Interrupt => self.paint(Look::Dim, "interrupted\n"),
            Delivery::Session { .. } => self.paint(Look::Dim, "a new session goes on\n"),
        }
    }

    fn replied(&self, replied: &Replied) -> String {
        let mut text = String::new();
        // What ended the last attempt of a request without answer is told by the end of the turn.
        let failed = replied.attempts.iter().filter_map(|attempt| attempt.error.as_deref());
        let told = replied.attempts.len() - usize::from(matches!(replied.stop, Stop::Error(_)) && !replied.attempts.is_empty());
        for error in failed.take(told) {
            text.push_str(&self.paint(Look::Dim, &self.lines(&format!("the model's server: {error}"), 2, "")));
        }
        for part in &replied.parts {
            match part {
                Said::Text { text: words } if !words.trim().is_empty() => {
                    text.push_str(&self.lines(words.trim(), usize::MAX, ""));
                    text.push('\n');
                }
                Said::Reasoning { text: words } if !words.trim().is_empty() => {
                    text.push_str(&self.paint(Look::Dim, &self.lines(words.trim(), 3, "")));
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

    fn observed(&self, called: &Called, observed: &Observed) -> String {
        let mut text = self.paint(Look::Command, &self.lines(&headline(called), COMMAND_LINES, ""));
        let words = text_of(&observed.content);
        let exit = observed.exit_code.filter(|code| *code != 0).map(|code| format!("exit code {code}"));
        // The agent is told the exit code in its own line; a person is told once, in red.
        let words = match &exit {
            Some(exit) => words.trim_end().strip_suffix(&format!("[{exit}]")).unwrap_or(&words).trim_end(),
            None => words.trim_end(),
        };
        if called.tool != "submit" || observed.status != Status::Ok {
            text.push_str(&self.paint(Look::Dim, &self.lines(words, OUTPUT_LINES, "  ")));
        }
        if observed.status != Status::Ok {
            let how = exit.unwrap_or_else(|| observed.status.word().replace('_', " "));
            text.push_str(&self.paint(Look::Bad, &format!("  {how} · {}\n", length(observed.took_ms))));
        }
        text.push('\n');
        text
    }

    fn verified(&self, verified: &Verified) -> String {
        let mut text = String::new();
        for check in &verified.checks {
            if check.passed {
                text.push_str(&self.paint(Look::Good, &self.lines(&format!("✓ {}", check.command), 1, "")));
            } else {
                let ending = if check.timed_out {
                    "timed out".to_owned()
                } else {
                    check.exit_code.map_or("killed".to_owned(), |code| format!("exit code {code}"))
                };
                text.push_str(&self.paint(Look::Bad, &self.lines(&format!("✗ {} · {ending}", check.command), 1, "")));
                text.push_str(&self.paint(Look::Dim, &self.lines(check.output.trim_end(), OUTPUT_LINES, "  ")));
            }
        }
        if let Verdict::Unjudged { reason } = &verified.verdict {
            text.push_str(&self.paint(Look::Bad, &self.lines(&format!("not judged: {reason}"), 3, "")));
        }
        text.push('\n');
        text
    }

    fn finished(&self, finished: &Finished) -> String {
        let look = if finished.outcome.exit_code() == 0 { Look::Good } else { Look::Bad };
        let money = finished.cost_nano_usd.map_or("unpriced".to_owned(), |cost| cost.to_string());
        let tokens = grouped(finished.usage.total());
        let turns = counted(finished.turns, "turn");
        let head = format!("{} · {turns} · {tokens} tokens · {money} · {}", finished.outcome.word(), length(finished.active_ms));
        let reason = finished.outcome.reason().map(|reason| self.lines(reason, usize::MAX, "")).unwrap_or_default();
        format!("{}\n{reason}", self.paint(look, &head))
    }

    /// The first `most` lines of `text`, made harmless, cut to the width, each behind `margin`.
    fn lines(&self, text: &str, most: usize, margin: &str) -> String {
        let cut = most < usize::MAX;
        let total = text.lines().count();
        // One line more costs no more than the word that it was left out.
        let most = if total == most.saturating_add(1) { total } else { most };
        let mut shown = String::new();
        for line in text.lines().take(most) {
            let line = clean(line);
            let line = if cut { cut_to(&line, self.width.saturating_sub(margin.len())) } else { line };
            shown.push_str(&format!("{margin}{line}\n"));
        }
        if total > most {
            shown.push_str(&format!("{margin}… {}\n", counted((total - most) as u64, "more line")));
        }
        shown
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

/// A call in a few words.
pub fn headline(called: &Called) -> String {
    let argument =
        |name: &str| called.arguments.as_ref().and_then(|arguments| arguments.get(name)).and_then(serde_json::Value::as_str);
    match (called.tool.as_str(), argument("command"), argument("path"), argument("pattern"), argument("answer")) {
        ("bash", Some(command), ..) => format!("$ {command}"),
        ("submit", .., Some(answer)) => format!("submit\n{answer}"),
        ("search", _, path, Some(pattern), _) => {
            format!("search {pattern}{}", path.map(|path| format!(" in {path}")).unwrap_or_default())
        }
        (tool, _, Some(path), ..) => format!("{tool} {path}"),
        (tool, ..) => format!("{tool} {}", called.raw),
    }
}

/// `text` without what a terminal would obey: control characters become visible stand-ins, tabs become spaces.
pub fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => cleaned.push_str("    "),
            // Characters that reorder or hide text are as dangerous to a reader as control characters.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}' | '\u{feff}' => cleaned.push('\u{fffd}'),
            control if control.is_control() => cleaned.push('\u{fffd}'),
            other => cleaned.push(other),
        }
    }
    cleaned
}

/// `line` in at most `width` columns, with an ellipsis where it was longer.
pub fn cut_to(line: &str, width: usize) -> String {
    let columns = |text: &str| text.chars().map(|c| c.width().unwrap_or(0)).sum::<usize>();
    if columns(line) <= width {
        return line.to_owned();
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used < width
    };
    line.chars().take_while(fits).chain(['…']).collect()
}

/// `1 turn`, `2 turns`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `12 ms`, `1.2 s`, `3 min 20 s`.
pub fn length(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        _ => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_passed_on() {
        assert_eq!(clean("a\x1b[2Jb\tc\u{202e}d\r"), "a\u{fffd}[2Jb    c\u{fffd}d\u{fffd}");
    }

    #[test]
    fn lines_are_cut_by_columns() {
        assert_eq!(cut_to("abcdef", 6), "abcdef");
        assert_eq!(cut_to("abcdefg", 6), "abcde…");
        assert_eq!(cut_to("日本語です", 6), "日本…");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!([grouped(7), grouped(1234), grouped(1_234_567)], ["7", "1,234", "1,234,567"]);
        assert_eq!([length(999), length(1234), length(200_000)], ["999 ms", "1.2 s", "3 min 20 s"]);
    }
}
