//! Secrets and what stands for them: nothing that is recorded, sent or shown holds a secret, only its placeholder
//! `<secret:KIND:8 digits>`.
//!
//! A secret is a value that is known (a key of the engine's own, a variable that a person granted) or a text that its shape
//! gives away (`shapes.rs`). [`Secrets::hide`] and [`Stream`] replace it wherever it stands; [`Secrets::put_back`] gives the
//! value for the placeholder where an agent's words go into its environment. The digits are a keyed hash of the value: of
//! one value they are the same all through a run, and they tell nothing to who does not have the machine's key.

mod finder;
mod json;
mod key;
mod runs;
mod shapes;
mod stream;

pub use json::Opaque;
pub use key::{KeyError, MachineKey};
pub use stream::{Piece, Stream};

use crate::RunId;
use finder::{Finder, Known, Life, Whose};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Values below this length are not looked for: every `x` would be hidden.
pub const SHORTEST: usize = 8;
/// Lines of a known value from this length on are known themselves: a part of a file may be shown.
const SHORTEST_LINE: usize = 24;
/// Lines of met keys are remembered while fewer values than this are known: each makes every search a little slower.
const MOST_KNOWN: usize = 512;

/// The secrets of one run in one session. Clones share what they know.
#[derive(Clone)]
pub struct Secrets {
    key: [u8; 32],
    state: Arc<Mutex<State>>,
}

struct State {
    finder: Arc<Finder>,
    /// By the digits of its placeholder: what was hidden, and whose it is.
    hidden: BTreeMap<u32, (Whose, String)>,
    /// Variables that a person granted.
    granted: BTreeMap<String, String>,
}

/// What a worker behind the walls must know to hide secrets before it shows a part of a text. It holds the values: it may go
/// into a request and nowhere else.
#[derive(Serialize, Deserialize)]
pub struct Hiding {
    key: [u8; 32],
    known: Vec<Known>,
}

/// What a worker has hidden.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Met(Vec<MetOne>);

#[derive(Serialize, Deserialize)]
struct MetOne {
    tag: u32,
    whose: Whose,
    value: String,
}

impl fmt::Debug for MetOne {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.tag)
    }
}

/// Who wrote the text in which placeholders stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// An agent. A key of the engine's own is not for it.
    Agent,
    /// A person: what they wrote themselves is theirs.
    Person,
}

/// Why there is no value for a placeholder; in words for an agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Withheld {
    /// Nothing that this session has met has this placeholder.
    #[error(
        "secret not available: this session has met no value of {0}. Read it again where it lies and copy what stands for it; a text that only looks like this can be made with printf"
    )]
    Unknown(String),
    /// It is a key of the engine's own.
    #[error("{0} is a key of the engine's own and is not given out: leave it where it is, and change only what is around it")]
    Engines(String),
}

/// Why a value is not taken as a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSecret {
    /// Hiding it would hide too much.
    #[error("the value of {0} has fewer than {SHORTEST} bytes: so short a value cannot be kept out of texts")]
    Short(String),
}

impl Secrets {
    /// The secrets of the run `run` on the machine that has `key`. Nothing is known yet but shapes.
    pub fn of_run(key: &MachineKey, run: &RunId) -> Secrets {
        Secrets::with(key.of(run.as_str()), Vec::new(), Life::Long)
    }

    /// Secrets of no run, for what is only shown. Without random numbers their placeholders are like those of any other.
    pub fn of_nothing() -> Secrets {
        let key = MachineKey::random().unwrap_or(MachineKey::fixed([0; 32]));
        Secrets::with(key.of(""), Vec::new(), Life::Long)
    }

    /// What a worker got with its request.
    pub fn of_request(hiding: Hiding) -> Secrets {
        Secrets::with(hiding.key, hiding.known, Life::Short)
    }

    fn with(key: [u8; 32], known: Vec<Known>, life: Life) -> Secrets {
        let finder = Arc::new(Finder::new(known, life));
        Secrets { key, state: Arc::new(Mutex::new(State { finder, hidden: BTreeMap::new(), granted: BTreeMap::new() })) }
    }

    /// Makes known a key of the engine's own, which the variable `name` holds. One that is too short to be one is left.
    pub fn know_own(&self, name: &str, value: &str) {
        // Too short: then it is no key but a word that some servers want for one.
        let _ = self.know(name, value, Whose::Engines);
    }

    /// Grants the variable `name` to the run: commands have it, and its placeholder stands for it.
    ///
    /// # Errors
    /// Where it is too short to be hidden.
    pub fn grant(&self, name: &str, value: &str) -> Result<(), NotSecret> {
        self.know(name, value, Whose::Runs)?;
        self.state().granted.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    fn know(&self, name: &str, value: &str, whose: Whose) -> Result<(), NotSecret> {
        let value = value.trim();
        if value.len() < SHORTEST {
            return Err(NotSecret::Short(name.to_owned()));
        }
        let mut state = self.state();
        let mut known = state.finder.known.clone();
        let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE && !shapes::is_mark(line));
        for value in std::iter::once(value).chain(lines) {
            match known.iter_mut().find(|known| known.value == value) {
                // What a person grants is the run's, whatever else it is.
                Some(before) if whose < before.whose => *before = Known { kind: kind(name), whose, ..before.clone() },
                Some(_) => continue,
                None => known.push(Known { kind: kind(name), value: value.to_owned(), whose }),
            }
            // What was hidden before it was granted stands for the value from now on.
            state.hidden.entry(self.tag(value.as_bytes())).or_insert_with(|| (whose, value.to_owned())).0 = whose;
        }
        state.finder = Arc::new(state.finder.with(known));
        Ok(())
    }

    /// The variables that were granted.
    pub fn variables(&self) -> Vec<(String, String)> {
        self.state().granted.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// What a worker must know.
    pub fn for_request(&self) -> Hiding {
        Hiding { key: self.key, known: self.finder().known.clone() }
    }

    /// What was hidden here, for whoever sent the request.
    pub fn met(&self) -> Met {
        let state = self.state();
        let one = |(tag, (whose, value)): (&u32, &(Whose, String))| MetOne { tag: *tag, whose: *whose, value: value.clone() };
        Met(state.hidden.iter().map(one).collect())
    }

    /// Takes in what a worker has hidden.
    pub fn meet(&self, met: Met) {
        let mut state = self.state();
        for one in met.0.into_iter().filter(|one| self.tag(one.value.as_bytes()) == one.tag) {
            state.meet(one.tag, one.whose, &one.value);
        }
    }

    /// `text` with a placeholder for each secret.
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let finder = self.finder();
        if !finder.may_hold(text.as_bytes()) {
            return Cow::Borrowed(text);
        }
        let mut hidden = Vec::with_capacity(text.len());
        let mut stream = Stream::new(self.clone(), finder);
        let mut out = |piece: Piece<'_>| hidden.extend_from_slice(piece.shown());
        stream.push(text.as_bytes(), &mut out);
        stream.finish(&mut out);
        // Of a text, whole characters are taken out, so it stays one.
        Cow::Owned(String::from_utf8(hidden).unwrap_or_else(|bytes| String::from_utf8_lossy(bytes.as_bytes()).into_owned()))
    }

    /// The same for a text that was cut off at its end, where the beginning of a secret may stand: that is left out.
    pub fn hide_cut(&self, text: &str) -> String {
        let mut hidden = Vec::with_capacity(text.len());
        let mut stream = self.stream();
        let mut out = |piece: Piece<'_>| hidden.extend_from_slice(piece.shown());
        stream.push(text.as_bytes(), &mut out);
        stream.finish_cut(&mut out);
        String::from_utf8_lossy(&hidden).into_owned()
    }

    /// A text that comes in pieces.
    pub fn stream(&self) -> Stream {
        Stream::new(self.clone(), self.finder())
    }

    /// The places of secrets in `text`, in order, with their placeholders.
    pub fn places(&self, text: &[u8]) -> Vec<(Range<usize>, String)> {
        let (mut places, mut at) = (Vec::new(), 0);
        let mut note = |piece: Piece<'_>| match piece {
            Piece::Plain(bytes) => at += bytes.len(),
            Piece::Hidden { placeholder, bytes, .. } => {
                places.push((at..at + bytes, placeholder.to_owned()));
                at += bytes;
            }
        };
        let mut stream = self.stream();
        stream.push(text, &mut note);
        stream.finish(&mut note);
        places
    }

    /// `text` with the value for each placeholder.
    ///
    /// # Errors
    /// Where a value is not there or not for `author`; nothing of the text may be used then.
    pub fn put_back<'a>(&self, text: &'a str, author: Author) -> Result<Cow<'a, str>, Withheld> {
        let mut whole = String::new();
        let mut done = 0;
        for (place, tag) in placeholders(text) {
            let written = || text[place.clone()].to_owned();
            let state = self.state();
            let value = match (state.hidden.get(&tag), author) {
                (None, _) => return Err(Withheld::Unknown(written())),
                (Some((Whose::Engines, _)), Author::Agent) => return Err(Withheld::Engines(written())),
                (Some((Whose::Engines, value)), Author::Person) | (Some((Whose::Runs, value)), _) => value,
            };
            whole.push_str(&text[done..place.start]);
            whole.push_str(value);
            done = place.end;
        }
        if done == 0 {
            return Ok(Cow::Borrowed(text));
        }
        whole.push_str(&text[done..]);
        Ok(Cow::Owned(whole))
    }

    /// The placeholder for `value`, which it stands for from now on.
    fn placeholder(&self, kind: &str, value: &[u8], whose: Whose) -> String {
        let tag = self.tag(value);
        if let Ok(value) = std::str::from_utf8(value) {
            self.state().meet(tag, whose, value);
        }
        format!("<secret:{kind}:{tag:08x}>")
    }

    fn tag(&self, value: &[u8]) -> u32 {
        let hash = blake3::keyed_hash(&self.key, value);
        u32::from_be_bytes(*hash.as_bytes().first_chunk().expect("a hash has 32 bytes"))
    }

    fn finder(&self) -> Arc<Finder> {
        Arc::clone(&self.state().finder)
    }

    /// Held for a moment only.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes in what was hidden. Lines of a private key are known from then on: a part of its file may be shown next.
    fn meet(&mut self, tag: u32, whose: Whose, value: &str) {
        // Of two values with the same digits, one in four billion, the first is meant.
        let Entry::Vacant(vacant) = self.hidden.entry(tag) else { return };
        vacant.insert((whose, value.to_owned()));
        let before = &self.finder.known;
        let is_new = |line: &String| before.iter().all(|known| known.value != *line);
        let lines = shapes::key_lines(value).into_iter().filter(is_new).take(MOST_KNOWN.saturating_sub(before.len()));
        let lines: Vec<Known> = lines.map(|value| Known { kind: shapes::PRIVATE_KEY.to_owned(), value, whose }).collect();
        if !lines.is_empty() {
            let known = before.iter().cloned().chain(lines).collect();
            self.finder = Arc::new(self.finder.with(known));
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} known, {} hidden)", self.finder().known.len(), self.state().hidden.len())
    }
}

impl<'a> Piece<'a> {
    /// What is to be shown.
    pub fn shown(&self) -> &'a [u8] {
        match self {
            Piece::Plain(bytes) => bytes,
            Piece::Hidden { placeholder, .. } => placeholder.as_bytes(),
        }
    }

    /// The same of a text: its pieces are cut between characters.
    pub fn text(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.shown())
    }
}

/// The variable's name as a placeholder can hold it.
fn kind(name: &str) -> String {
    const LONGEST: usize = 64;
    name.chars().filter(|c| is_kind(*c)).take(LONGEST).collect()
}

fn is_kind(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// Where placeholders stand in `text`, and their digits.
fn placeholders(text: &str) -> impl Iterator<Item = (Range<usize>, u32)> + '_ {
    const BEGIN: &str = "<secret:";
    text.match_indices(BEGIN).filter_map(|(start, _)| {
        let rest = &text[start + BEGIN.len()..];
        let kind = rest.find(|c| !is_kind(c))?;
        let digits = rest[kind..].strip_prefix(':')?.get(..9)?.strip_suffix('>')?;
        let is_tag = kind > 0 && digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        let tag = u32::from_str_radix(digits, 16).ok().filter(|_| is_tag)?;
        Some((start..start + BEGIN.len() + kind + 1 + 9, tag))
    })
}

#[cfg(test)]
mod tests;
