//! `search`: asks for the search inside and puts what was found into words.

use crate::arguments;
use crate::inside::search::{Answer, Found, NAME, Request};
use crate::names::{self, counted};
use crate::room::{Room, Trouble};
use trace::Observed;

/// Matching lines that are shown unless the call says otherwise.
const LIMIT: u64 = 100;
/// The most lines that are shown around a match, on each side; more is for `read`.
const CONTEXT: u64 = 50;

/// Answers a call.
pub(crate) async fn serve(arguments: arguments::Search, room: &Room<'_>, observed: &mut Observed) -> Result<String, Trouble> {
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let request = Request {
        pattern: arguments.pattern,
        root: names::shown(&names::absolute(room.cwd, &room.meant(arguments.path.as_deref().unwrap_or("."))?)),
        cwd: names::shown(room.cwd),
        glob: arguments.glob,
        context: number(arguments.context.unwrap_or(0).min(CONTEXT)),
        limit: number(arguments.limit.unwrap_or(LIMIT)),
        bytes: room.caps.read_bytes,
    };
    match room.ask(NAME, &request).await? {
        Answer::Refused(why) => Err(Trouble::failed(why)),
        Answer::Found(found) => {
            observed.truncated = found.ended_early;
            Ok(told(found))
        }
    }
}

fn told(found: Found) -> String {
    let mut text = found.text;
    if found.matches == 0 && !found.ended_early {
        text.push_str("[no line matches]\n");
    }
    if found.ended_early {
        let (matches, files) = (counted(found.matches, "matching line"), counted(found.files, "file"));
        text.push_str(&format!("[{matches} in {files} so far; there are more]\n"));
    }
    if let Some(why) = found.why_unread {
        text.push_str(&format!("[{} could not be read; the first: {why}]\n", counted(found.unread, "file")));
    }
    text.pop();
    text
}
