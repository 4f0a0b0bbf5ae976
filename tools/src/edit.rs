//! Replaces a passage of a text and leaves everything else byte for byte as it was: line ends, also mixed ones, and
//! whether the last line has one.
//!
//! A passage is looked for as it is first; where it is not found, line by line and blind to whitespace, which counts
//! only if exactly one place fits. Line ends are no part of the comparison: they follow the file.

use crate::reindent::reindent;
use std::ops::Range;

/// How many occurrences are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrences {
    /// The only one.
    One,
    /// Each.
    All,
}

/// How the passage was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// As it was given.
    Exactly,
    /// Blind to whitespace; the new lines were indented as the old ones stand in the file.
    IgnoringWhitespace,
}

/// An edited text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The whole new text.
    pub text: String,
    /// Of each place the first and the last changed line of the new text, counted from 1.
    pub lines: Vec<(usize, usize)>,
    /// How the passage was found.
    pub how: How,
}

/// Why a text was left as it is, in words for the agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nothing to look for.
    #[error("`old` is empty; to make a new file, use write")]
    Empty,
    /// Nothing to change.
    #[error("`old` and `new` are the same")]
    Same,
    /// No place fits.
    #[error("`old` is not in the file{}", hint(closest, *numbered))]
    Missing {
        /// The line (from 1) that is like its first line.
        closest: Option<usize>,
        /// Whether it looks as if the line numbers that `read` shows were copied too.
        numbered: bool,
    },
    /// More than one place fits, at these lines (from 1).
    #[error("`old` is there {} times, at lines {}: add lines around it, or set all", lines.len(), listed(lines))]
    Ambiguous {
        /// The places.
        lines: Vec<usize>,
    },
    /// More than one place fits, but none exactly.
    #[error("`old` fits only if whitespace is ignored, at lines {}: copy it exactly", listed(lines))]
    AmbiguousLoosely {
        /// The places.
        lines: Vec<usize>,
    },
    /// One place fits, but how its indentation relates to that of `old` is not clear.
    #[error("`old` fits line {line} only with other indentation, not uniformly: copy it exactly")]
    Indentation {
        /// The place.
        line: usize,
    },
}

fn hint(closest: &Option<usize>, numbered: bool) -> String {
    match (closest, numbered) {
        (_, true) => ": leave out the line numbers that read shows".to_owned(),
        (Some(line), false) => format!("; its first line is like line {line}: read there again"),
        (None, false) => ": read the file again".to_owned(),
    }
}

/// Places in one line, the first of them.
pub(crate) fn listed(places: &[impl ToString]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<String> = places.iter().take(SHOWN).map(ToString::to_string).collect();
    format!("{}{}", shown.join(", "), if places.len() > SHOWN { ", …" } else { "" })
}

/// Replaces `old` by `new` in `text`.
///
/// # Errors
/// Where it is not clear what to replace.
pub fn edit(text: &str, old: &str, new: &str, occurrences: Occurrences) -> Result<Edited, Refusal> {
    let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
    if old.is_empty() {
        return Err(Refusal::Empty);
    }
    if old == new {
        return Err(Refusal::Same);
    }
    let source = Source::new(text);
    let places = source.places(&old);
    match (places.as_slice(), occurrences) {
        ([], _) => loosely(&source, &old, &new),
        ([_], _) | (_, Occurrences::All) => {
            let ranges = places.iter().map(|&at| at..at + old.len()).collect::<Vec<_>>();
            Ok(source.replace(&ranges, &new, How::Exactly))
        }
        (_, Occurrences::One) => Err(Refusal::Ambiguous { lines: places.iter().map(|&at| source.line_at(at)).collect() }),
    }
}

/// The only place where the lines of `old` stand, whitespace aside.
fn loosely(source: &Source, old: &str, new: &str) -> Result<Edited, Refusal> {
    let key = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let old_lines: Vec<&str> = old.strip_suffix('\n').unwrap_or(old).split('\n').collect();
    let wanted: Vec<String> = old_lines.iter().copied().map(key).collect();
    let lines: Vec<&str> = source.text.lines_of().collect();
    let keys: Vec<String> = lines.iter().copied().map(key).collect();
    let blank = wanted.iter().all(String::is_empty);
    let starts: Vec<usize> = if blank {
        Vec::new()
    } else {
        keys.windows(wanted.len()).enumerate().filter(|(_, window)| *window == wanted).map(|(at, _)| at).collect()
    };
    match starts.as_slice() {
        [] => {
            let first = wanted.iter().find(|line| !line.is_empty());
            let closest = keys.iter().position(|line| Some(line) == first).map(|at| at + 1);
            Err(Refusal::Missing { closest, numbered: old_lines.iter().all(|line| is_numbered(line)) })
        }
        [start] => {
            let found = &lines[*start..start + old_lines.len()];
            let new_lines: Vec<&str> =
                if new.is_empty() { Vec::new() } else { new.strip_suffix('\n').unwrap_or(new).split('\n').collect() };
            let placed = reindent(&old_lines, found, &new_lines).ok_or(Refusal::Indentation { line: start + 1 })?;
            let from = lines[..*start].iter().map(|line| line.len() + 1).sum::<usize>();
            let length = found.iter().map(|line| line.len() + 1).sum::<usize>();
            let to = from + if new_lines.is_empty() { length } else { length - 1 };
            Ok(source.replace(std::slice::from_ref(&(from..to)), &placed.join("\n"), How::IgnoringWhitespace))
        }
        _ => Err(Refusal::AmbiguousLoosely { lines: starts.iter().map(|at| at + 1).collect() }),
    }
}

/// Whether the line begins as `read` shows lines: a number and a tab.
fn is_numbered(line: &str) -> bool {
    line.split_once('\t').is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// A text whose line ends are all `\n`, the last line included, and what they were.
struct Source {
    text: String,
    /// Where in `text` stands a `\n` that was `\r\n`; ascending.
    crlf: Vec<usize>,
    /// Whether the last line had no end.
    open: bool,
}

trait Lines {
    /// The lines, without their ends.
    fn lines_of(&self) -> impl Iterator<Item = &str>;
}

impl Lines for String {
    // Not `str::lines`: a carriage return that is data stays.
    fn lines_of(&self) -> impl Iterator<Item = &str> {
        self.split_terminator('\n')
    }
}

impl Source {
    fn new(raw: &str) -> Source {
        let (mut text, mut crlf) = (String::with_capacity(raw.len() + 1), Vec::new());
        for line in raw.split_inclusive('\n') {
            match line.strip_suffix("\r\n") {
                Some(content) => {
                    text.push_str(content);
                    crlf.push(text.len());
                    text.push('\n');
                }
                None => text.push_str(line),
            }
        }
        let open = !text.is_empty() && !text.ends_with('\n');
        if open {
            // Should text come after it, its end is to be like that of the line before.
            if text.rfind('\n').is_some_and(|at| crlf.last() == Some(&at)) {
                crlf.push(text.len());
            }
            text.push('\n');
        }
        Source { text, crlf, open }
    }

    /// Where `old` stands. A last line without an end counts as if it had one, unless only that end is meant.
    fn places(&self, old: &str) -> Vec<usize> {
        let only_ends = old.bytes().all(|byte| byte == b'\n');
        let end = self.text.len() - usize::from(self.open && only_ends);
        self.text[..end].match_indices(old).map(|(at, _)| at).collect()
    }

    fn line_at(&self, at: usize) -> usize {
        1 + self.text[..at].matches('\n').count()
    }

    fn is_crlf(&self, at: usize) -> bool {
        self.crlf.binary_search(&at).is_ok()
    }

    /// The text with `new` in place of each of `ranges` (ascending, apart). Of a range only what differs is touched.
    fn replace(&self, ranges: &[Range<usize>], new: &str, how: How) -> Edited {
        let mut out = Output::default();
        let mut done = 0;
        let mut lines = Vec::new();
        for range in ranges {
            let (before, after) = shared(&self.text[range.clone()], new);
            let core = range.start + before..range.end - after;
            let new_core = &new[before..new.len() - after];
            self.copy(done..core.start, &mut out);
            let first = out.line;
            self.insert(&core, new_core, &mut out);
            lines.push((first, out.line.max(first)));
            done = core.end;
        }
        self.copy(done..self.text.len(), &mut out);
        if self.open {
            out.drop_last_end();
        }
        Edited { text: out.text, lines, how }
    }

    fn copy(&self, range: Range<usize>, out: &mut Output) {
        let start = range.start;
        let mut offset = start;
        for line in self.text[range].split_inclusive('\n') {
            offset += line.len();
            match line.strip_suffix('\n') {
                Some(content) => out.line(content, self.is_crlf(offset - 1)),
                None => out.text.push_str(line),
            }
        }
    }

    /// The ends of new lines are those of the lines that they replace, or that of the line before, or after.
    fn insert(&self, core: &Range<usize>, new: &str, out: &mut Output) {
        let end_in = |range: Range<usize>| self.text[range.clone()].find('\n').map(|at| range.start + at);
        let before = self.text[..core.start].rfind('\n');
        let mut crlf = before.or_else(|| end_in(core.end..self.text.len())).is_some_and(|at| self.is_crlf(at));
        let mut replaced = core.start;
        for line in new.split_inclusive('\n') {
            if let Some(at) = end_in(replaced..core.end) {
                crlf = self.is_crlf(at);
                replaced = at + 1;
            }
            match line.strip_suffix('\n') {
                Some(content) => out.line(content, crlf),
                None => out.text.push_str(line),
            }
        }
    }
}

/// A text as it is put together again.
struct Output {
    text: String,
    /// The number of the line that is being written, from 1.
    line: usize,
    /// Whether the last line end was `\r\n`.
    crlf: bool,
}

impl Default for Output {
    fn default() -> Output {
        Output { text: String::new(), line: 1, crlf: false }
    }
}

impl Output {
    fn line(&mut self, content: &str, crlf: bool) {
        self.text.push_str(content);
        self.text.push_str(if crlf { "\r\n" } else { "\n" });
        self.line += 1;
        self.crlf = crlf;
    }

    fn drop_last_end(&mut self) {
        if self.text.ends_with('\n') {
            self.text.truncate(self.text.len() - if self.crlf { 2 } else { 1 });
        }
    }
}

/// How many bytes two texts share at their beginning, and then at their end, in whole characters.
fn shared(old: &str, new: &str) -> (usize, usize) {
    let same = |(a, b): &(char, char)| a == b;
    let length = |pairs: &mut dyn Iterator<Item = (char, char)>| pairs.take_while(same).map(|(c, _)| c.len_utf8()).sum::<usize>();
    let before = length(&mut old.chars().zip(new.chars()));
    let after = length(&mut old[before..].chars().rev().zip(new[before..].chars().rev()));
    (before, after)
}

#[cfg(test)]
mod tests;
