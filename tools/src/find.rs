//! `find`: asks for the files inside and puts what was found into words.

use crate::arguments;
use crate::inside::find::{Answer, Found, NAME, Request};
use crate::inside::walk::Which;
use crate::names::{self, counted};
use crate::room::{Room, Trouble};
use sandbox::capture::grouped;
use trace::Observed;

/// The most files that are named; who wants others asks for fewer.
const LIMIT: usize = 200;

/// Answers a call.
pub(crate) async fn serve(arguments: arguments::Find, room: &Room<'_>, observed: &mut Observed) -> Result<String, Trouble> {
    let request = Request {
        glob: room.meant(&arguments.glob)?.into_owned(),
        root: names::shown(&names::absolute(room.cwd, &room.meant(arguments.path.as_deref().unwrap_or("."))?)),
        cwd: names::shown(room.cwd),
        which: if arguments.all { Which::All } else { Which::Projects },
        limit: LIMIT,
        bytes: room.caps.read_bytes,
    };
    match room.ask(NAME, &request).await? {
        Answer::Refused(why) => Err(Trouble::failed(why)),
        Answer::Found(found) => {
            observed.truncated = found.more > 0;
            Ok(told(found))
        }
    }
}

fn told(found: Found) -> String {
    let mut text = found.text;
    if found.files == 0 {
        text.push_str("[no file fits]\n");
    }
    if found.more > 0 {
        let (more, files) = (grouped(found.more as u64), counted(found.files, "file"));
        text.push_str(&format!("[{more} more of {files}; ask for a narrower glob or path]\n"));
    }
    if let Some(why) = found.why_unread {
        text.push_str(&format!("[{} could not be read; the first: {why}]\n", counted(found.unread, "folder")));
    }
    text.pop();
    text
}
