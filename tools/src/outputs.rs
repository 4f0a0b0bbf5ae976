//! `read output:…`: what a command printed, from the blobs of the run, or a running process, from its environment.

use crate::arguments;
use crate::files::{paging, part};
use crate::names::counted;
use crate::room::{Output, Room, Trouble};
use crate::window::{Long, Shown, Window};
use blake3::Hasher;
use sandbox::capture::{self, Ending};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use trace::{Digest, Observed, Secrets, Seq, text_of};

/// Shows the output `name`: a place in the record, or a child's name.
pub(crate) async fn read(
    name: &str,
    arguments: &arguments::Read,
    room: &Room<'_>,
    observed: &mut Observed,
) -> Result<String, Trouble> {
    let part = part(arguments, room.caps);
    if let Ok(at) = name.parse::<u64>() {
        let unreadable = |error| Trouble::failed(format!("the kept output cannot be read: {error}"));
        let mut cleaned = Cleaned::new(Window::new(part, Long::Wrapped), room.secrets);
        let shown = match (room.output)(Seq(at)).map_err(unreadable)? {
            None => return Err(Trouble::failed(format!("no output is kept as output:{at}"))),
            Some(Output::Blob(digest)) => kept(&room.blobs.path(&digest), digest, cleaned).map_err(unreadable)?,
            Some(Output::Told(parts)) => {
                cleaned.push(text_of(&parts).as_bytes());
                observed.content.extend(parts.into_iter().filter(|part| part.blob().is_some()));
                cleaned.finish(Ending::Whole)
            }
        };
        return Ok(told(shown, part.from, ""));
    }
    // Asked first: what has ended prints no more. Where that cannot be told, it may go on.
    let here = room.environment.children().await.ok();
    let goes_on = match here {
        Some(here) => here.iter().chain(&room.children_beside().await).any(|child| child.name == name),
        None => true,
    };
    let printed = room.child_output(name).await?;
    let mut cleaned = Cleaned::new(Window::new(part, Long::Wrapped), room.secrets);
    // What is left of a line whose beginning is gone may be the end of a secret.
    let broken = if printed.dropped > 0 { broken(&printed.bytes) } else { 0 };
    cleaned.push(&printed.bytes[broken..]);
    let dropped = match printed.dropped {
        0 => String::new(),
        bytes => format!("[before that, {} not kept]\n", counted(bytes + broken as u64, "byte")),
    };
    let ending = if goes_on { Ending::Cut } else { Ending::Whole };
    Ok(told(cleaned.finish(ending), part.from, &dropped))
}

/// Bytes at the beginning that belong to what is gone: a line, or a private key of which only the end is there.
fn broken(bytes: &[u8]) -> usize {
    const END: &[u8] = b"-----END ";
    const BEGIN: &[u8] = b"-----BEGIN ";
    let line_end = |from: usize| bytes[from..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| from + at + 1);
    let first = |what: &[u8]| bytes.windows(what.len()).position(|window| window == what);
    match (first(BEGIN), first(END)) {
        (Some(begin), Some(end)) if begin < end => line_end(0),
        (_, Some(end)) => line_end(end),
        (_, None) => line_end(0),
    }
}

fn told(shown: Shown, from: u64, before: &str) -> String {
    match (paging(&shown, from), shown.total) {
        (_, 0) => format!("{before}[nothing was printed]"),
        (note, _) => format!("{before}{}{}", shown.text, note.map(|note| format!("[{note}]")).unwrap_or_default()),
    }
}

/// The part of a blob's text that the window shows; the whole of it is read, and proven against its name.
fn kept(path: &Path, digest: Digest, mut cleaned: Cleaned) -> io::Result<Shown> {
    let mut file = File::open(path)?;
    let mut hasher = Hasher::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        match file.read(&mut chunk)? {
            0 => break,
            read => {
                hasher.update(&chunk[..read]);
                cleaned.push(&chunk[..read]);
            }
        }
    }
    if Digest::from(hasher.finalize()) == digest {
        Ok(cleaned.finish(Ending::Whole))
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, "it is damaged"))
    }
}

/// Raw output on its way to a window.
struct Cleaned {
    output: capture::Shown,
    window: Window,
}

impl Cleaned {
    fn new(window: Window, secrets: &Secrets) -> Cleaned {
        Cleaned { output: capture::Shown::new(secrets), window }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.output.push(bytes, &mut |_| {}, &mut |text| self.window.push(text.as_bytes()));
    }

    fn finish(mut self, ending: Ending) -> Shown {
        self.output.finish(ending, &mut |_| {}, &mut |text| self.window.push(text.as_bytes()));
        self.window.finish()
    }
}
