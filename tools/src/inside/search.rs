//! Searches files with ripgrep's libraries, one file after the other in order of name, so that two searches say the same.

use super::walk::{Which, globs, is_file, walk};
use crate::names;
use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use trace::Secrets;
use trace::secrets::{Piece, Stream};

/// The operation's name.
pub const NAME: &str = "search";
/// The most bytes that are shown of a line, and how many of them stand before the match.
const LINE: usize = 400;
const BEFORE: usize = 100;
/// The most bytes of a line that are held.
const HEAP: usize = 64 << 20;

/// What to look for, and where.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// A regular expression.
    pub pattern: String,
    /// A file or folder.
    pub root: String,
    /// The agent's directory: paths below it are shown relative to it.
    pub cwd: String,
    /// Which files.
    pub glob: Option<String>,
    /// Lines around each match.
    pub context: usize,
    /// The most matching lines.
    pub limit: usize,
    /// The most bytes that are shown, the last line aside.
    pub bytes: usize,
}

/// What was found.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// Matching lines.
    Found(Found),
    /// The request cannot be served.
    Refused(String),
}

/// Matching lines under the names of their files.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Found {
    /// The text to show.
    pub text: String,
    /// Lines that matched, as far as the search went.
    pub matches: usize,
    /// Files with such lines.
    pub files: usize,
    /// Whether the search was ended before it was through.
    pub ended_early: bool,
    /// Files and folders that could not be read.
    pub unread: usize,
    /// The first of them, and why.
    pub why_unread: Option<String>,
}

/// Searches, and shows what is found without secrets.
pub fn search(request: Request, secrets: &Secrets) -> Answer {
    let (root, cwd) = (names::meant(&request.root), names::meant(&request.cwd));
    if let Err(error) = std::fs::symlink_metadata(&root) {
        return Answer::Refused(format!("{}: {}", names::brief(&cwd, &request.root), super::words(&error)));
    }
    let matcher = match RegexMatcherBuilder::new().crlf(true).build(&request.pattern) {
        Ok(matcher) => matcher,
        Err(error) => return Answer::Refused(format!("`pattern`: {error}")),
    };
    let globs = match globs(&root, request.glob.as_deref()) {
        Ok(globs) => globs,
        Err(error) => return Answer::Refused(format!("`glob`: {error}")),
    };
    let mut report = Report { matcher: &matcher, request: &request, secrets, found: Found::default(), path: None, hidden: None };
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_terminator(LineTerminator::crlf())
        .line_number(true)
        .before_context(request.context)
        .after_context(request.context)
        .heap_limit(Some(HEAP))
        .build();
    for entry in walk(&root, Which::Projects) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                report.unread(error.to_string());
                continue;
            }
        };
        if is_file(&entry) && !globs.matched(entry.path(), false).is_ignore() {
            let path = names::brief(&cwd, &names::shown(entry.path()));
            report.path = Some(path.clone());
            report.hidden = Some(HiddenPlaces::new(entry.path(), secrets));
            let before = report.found.matches;
            if let Err(error) = searcher.search_path(&matcher, entry.path(), &mut report) {
                report.unread(format!("{path}: {error}"));
            }
            report.found.files += usize::from(report.found.matches > before);
        }
        if report.found.ended_early {
            break;
        }
    }
    Answer::Found(report.found)
}

/// Where the secrets of a file are, as far as it was looked at: those of a shown line may begin lines before it.
struct HiddenPlaces {
    path: PathBuf,
    file: Option<File>,
    stream: Option<Stream>,
    /// Bytes of the file that are decided.
    decided: usize,
    places: Vec<(Range<usize>, String)>,
}

impl HiddenPlaces {
    /// Nothing is looked at yet.
    fn new(path: &Path, secrets: &Secrets) -> HiddenPlaces {
        HiddenPlaces { path: path.to_owned(), file: None, stream: Some(secrets.stream()), decided: 0, places: Vec::new() }
    }

    /// The secrets that touch the bytes `lines` of the file, each with its placeholder.
    fn of(&mut self, lines: Range<usize>) -> io::Result<&[(Range<usize>, String)]> {
        while self.decided < lines.end && self.stream.is_some() {
            self.look()?;
        }
        // Lines come in order, so what is before them is not asked for again.
        self.places.retain(|(place, _)| place.end > lines.start);
        let behind = self.places.iter().position(|(place, _)| place.start >= lines.end).unwrap_or(self.places.len());
        Ok(&self.places[..behind])
    }

    fn look(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::open(&self.path)?),
        };
        let mut chunk = vec![0; 1 << 16];
        let read = file.read(&mut chunk)?;
        let (decided, places) = (&mut self.decided, &mut self.places);
        let mut note = |piece: Piece<'_>| match piece {
            Piece::Plain(bytes) => *decided += bytes.len(),
            Piece::Hidden { placeholder, bytes, .. } => {
                places.push((*decided..*decided + bytes, placeholder.to_owned()));
                *decided += bytes;
            }
        };
        match (read, self.stream.take()) {
            (0, Some(stream)) => stream.finish(&mut note),
            (read, Some(mut stream)) => {
                stream.push(&chunk[..read], &mut note);
                self.stream = Some(stream);
            }
            (_, None) => {}
        }
        Ok(())
    }
}

/// Where matching lines are written down.
struct Report<'a> {
    matcher: &'a RegexMatcher,
    request: &'a Request,
    secrets: &'a Secrets,
    found: Found,
    /// Of the file that is being searched.
    hidden: Option<HiddenPlaces>,
    /// The file that is being searched, until its name is written.
    path: Option<String>,
}

impl Report<'_> {
    /// Ends the search, since no more is shown.
    fn end(&mut self) -> bool {
        self.found.ended_early = true;
        false
    }

    fn line(&mut self, number: Option<u64>, mark: char, start: u64, line: &[u8]) -> io::Result<()> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let number = number.unwrap_or_default();
        let found = if line.len() > LINE { self.matcher.find(line).ok().flatten() } else { None };
        let (line, found) = self.without_secrets(start, line, found.map_or(0, |found| found.start()))?;
        self.found.text.push_str(&format!("{number}{mark} {}\n", excerpt(&line, found)));
        Ok(())
    }

    /// The line without secrets, and where in it the place `at` is then.
    fn without_secrets(&mut self, start: u64, line: &[u8], at: usize) -> io::Result<(Vec<u8>, usize)> {
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let end = start.saturating_add(line.len());
        let mut shown = Vec::with_capacity(line.len());
        let (mut done, mut place) = (0, at);
        let places = self.hidden.as_mut().map(|hidden| hidden.of(start..end)).transpose()?.unwrap_or_default();
        for (secret, placeholder) in places {
            let (from, to) = (secret.start.max(start) - start, secret.end.min(end) - start);
            shown.extend_from_slice(&line[done..from]);
            if at >= from {
                place = shown.len();
            }
            shown.extend_from_slice(placeholder.as_bytes());
            if at >= to {
                place = shown.len() + (at - to);
            }
            done = to;
        }
        shown.extend_from_slice(&line[done..]);
        // The file may have another content by now, or another encoding, than the line that was found in it.
        let again = self.secrets.places(&shown);
        for (secret, placeholder) in again.into_iter().rev() {
            shown.splice(secret, placeholder.into_bytes());
        }
        let place = place.min(shown.len());
        Ok((shown, place))
    }
}

/// The line, or what surrounds the place `found` in it.
fn excerpt(line: &[u8], found: usize) -> String {
    let mut from = 0;
    if line.len() > LINE {
        from = found.saturating_sub(BEFORE).min(line.len() - LINE);
    }
    let to = line.len().min(from + LINE);
    let is_inside = |at: &usize| line.get(*at).is_some_and(|byte| (0x80..0xc0).contains(byte));
    let from = (from..to).find(|at| !is_inside(at)).unwrap_or(from);
    let to = (from..=to).rev().find(|at| !is_inside(at)).unwrap_or(to);
    let mut text = String::from(if from > 0 { "…" } else { "" });
    for chunk in line[from..to].utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text + if to < line.len() { "…" } else { "" }
}

impl Report<'_> {
    fn unread(&mut self, why: String) {
        self.found.unread += 1;
        self.found.why_unread.get_or_insert(why);
    }

    /// Writes the file's name before its first line.
    fn head(&mut self) {
        if let Some(path) = self.path.take() {
            self.found.text.push_str(&path);
            self.found.text.push('\n');
        }
    }
}

impl Sink for &mut Report<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.found.matches >= self.request.limit || self.found.text.len() >= self.request.bytes {
            return Ok(self.end());
        }
        self.head();
        self.found.matches += 1;
        self.line(found.line_number(), ':', found.absolute_byte_offset(), found.bytes())?;
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.found.text.len() >= self.request.bytes {
            return Ok(self.end());
        }
        self.head();
        self.line(context.line_number(), '-', context.absolute_byte_offset(), context.bytes())?;
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.found.text.push_str("--\n");
        Ok(true)
    }
}
