//! `read output:…`: what a command printed, from the blobs of the run, or a running process, from its environment.

use crate::arguments;
use crate::files::{paging, part};
use crate::names::counted;
use crate::room::{Room, Trouble};
use crate::window::{Long, Shown, Window};
use blake3::Hasher;
use sandbox::capture::Cleaner;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use trace::{Digest, Seq};

/// Shows the output `name`: a place in the record, or a child's name.
pub(crate) async fn read(name: &str, arguments: &arguments::Read, room: &Room<'_>) -> Result<String, Trouble> {
    let part = part(arguments, room.caps);
    if let Ok(at) = name.parse::<u64>() {
        let digest = (room.output)(Seq(at)).ok_or_else(|| Trouble::failed(format!("no output is kept as output:{at}")))?;
        let shown = kept(&room.blobs.path(&digest), digest, Window::new(part, Long::Wrapped))
            .map_err(|error| Trouble::failed(format!("the kept output cannot be read: {error}")))?;
        return Ok(told(shown, part.from, ""));
    }
    let printed = match room.environment.child_output(name).await {
        Ok(printed) => printed,
        Err(error) => return Err(room.child_trouble(error).await),
    };
    let mut cleaned = Cleaned::new(Window::new(part, Long::Wrapped));
    cleaned.push(&printed.bytes);
    let dropped = match printed.dropped {
        0 => String::new(),
        bytes => format!("[before that, {} not kept]\n", counted(bytes, "byte")),
    };
    Ok(told(cleaned.finish(), part.from, &dropped))
}

fn told(shown: Shown, from: u64, before: &str) -> String {
    match (paging(&shown, from), shown.total) {
        (_, 0) => format!("{before}[nothing was printed]"),
        (note, _) => format!("{before}{}{}", shown.text, note.map(|note| format!("[{note}]")).unwrap_or_default()),
    }
}

/// The part of a blob's text that the window shows; the whole of it is read, and proven against its name.
fn kept(path: &Path, digest: Digest, window: Window) -> io::Result<Shown> {
    let mut file = File::open(path)?;
    let mut hasher = Hasher::new();
    let mut cleaned = Cleaned::new(window);
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
        Ok(cleaned.finish())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, "it is damaged"))
    }
}

/// Raw output on its way through a cleaner to a window.
struct Cleaned {
    cleaner: Cleaner,
    window: Window,
}

impl Cleaned {
    fn new(window: Window) -> Cleaned {
        Cleaned { cleaner: Cleaner::default(), window }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.cleaner.push(bytes, &mut |text| self.window.push(text.as_bytes()));
    }

    fn finish(mut self) -> Shown {
        self.cleaner.finish(&mut |text| self.window.push(text.as_bytes()));
        self.window.finish()
    }
}
