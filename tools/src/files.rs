//! `read`, `write` and `edit`: asks for the work inside, and remembers what the agent has seen.

use crate::arguments;
use crate::edit::{How, listed};
use crate::inside::{change, view};
use crate::names::{self, counted};
use crate::room::{Caps, Room, Trouble};
use crate::window::{Ends, Part, Shown};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use trace::{Digest, FileSeen, Observed, Picture, Sight};

/// The part of a text that a `read` asks for.
pub(crate) fn part(arguments: &arguments::Read, caps: &Caps) -> Part {
    let limit = arguments.limit.and_then(|limit| usize::try_from(limit).ok());
    Part {
        from: arguments.offset.unwrap_or(1),
        lines: limit.map_or(caps.read_lines, |limit| limit.min(caps.read_lines)),
        bytes: caps.read_bytes,
    }
}

/// Shows a file, a picture or a folder.
pub(crate) async fn read(arguments: &arguments::Read, room: &Room<'_>, observed: &mut Observed) -> Result<String, Trouble> {
    let path = names::absolute(room.cwd, &room.meant(&arguments.path)?);
    let part = part(arguments, room.caps);
    let seen = |path: String, digest: Digest, sight: Sight| FileSeen { path, digest, sight };
    match room.ask(view::NAME, &view::Request { path: names::shown(&path), part }).await? {
        view::Answer::Refused(why) => Err(about(&arguments.path, &why)),
        view::Answer::Picture { path, digest, base64 } => {
            observed.files = vec![seen(path, digest, Sight::Part)];
            let (picture, part) = kept(&base64, room).map_err(|why| about(&arguments.path, &why))?;
            observed.content = vec![part];
            Ok(format!("[{picture}]"))
        }
        view::Answer::Binary { path, digest, bytes, picture } => {
            observed.files = vec![seen(path, digest, Sight::Part)];
            let why = picture.map(|why| format!(": {why}")).unwrap_or_default();
            Ok(format!("[binary file, {}{why}]", counted(bytes, "byte")))
        }
        view::Answer::Folder { shown, next, total } => {
            let rest = (next <= total).then(|| format!("[{} more; go on with offset {next}]", total + 1 - next));
            let lines: Vec<String> = shown.into_iter().chain(rest).collect();
            Ok(if lines.is_empty() { "[empty folder]".to_owned() } else { lines.join("\n") })
        }
        view::Answer::Text { path, digest, shown } => {
            observed.truncated = !shown.is_whole(part.from);
            let sight = if observed.truncated { Sight::Part } else { Sight::Whole };
            observed.files = vec![seen(path, digest, sight)];
            let notes: String = notes(&shown, part.from).iter().map(|note| format!("[{note}]\n")).collect();
            Ok((shown.text + &notes).trim_end_matches('\n').to_owned())
        }
    }
}

/// Keeps a picture for the record: what it is, and the part of the observation that names it.
fn kept(base64: &str, room: &Room<'_>) -> Result<(Picture, trace::Part), String> {
    let bytes = STANDARD.decode(base64).map_err(|error| format!("the picture came damaged: {error}"))?;
    let picture = Picture::of(&bytes).map_err(|error| error.to_string())?;
    let blob = room.blobs.put(&bytes).map_err(|error| format!("the picture cannot be kept: {error}"))?;
    Ok((picture.clone(), trace::Part::Image { blob, picture }))
}

/// What is to be known about a text besides its lines.
fn notes(shown: &Shown, from: u64) -> Vec<String> {
    if shown.total == 0 {
        return vec!["empty file".to_owned()];
    }
    let mut notes: Vec<String> = paging(shown, from).into_iter().collect();
    match shown.ends {
        Ends::Lf => {}
        Ends::Crlf => notes.push("line ends are \\r\\n; write and edit keep them".to_owned()),
        Ends::Mixed => notes.push("line ends are mixed: \\n and \\r\\n".to_owned()),
    }
    if shown.open && shown.next > shown.total {
        notes.push("no line end after the last line".to_owned());
    }
    if shown.escaped > 0 {
        notes.push(format!("not UTF-8: {} shown as \\xNN", counted(shown.escaped, "byte")));
    }
    notes
}

/// Which lines are shown, where that is not all.
pub(crate) fn paging(shown: &Shown, from: u64) -> Option<String> {
    let (total, last) = (shown.total, shown.next - 1);
    match (shown.next > from, shown.next <= total) {
        (false, _) => Some(format!("there are only {}", counted(total, "line"))),
        (true, true) => Some(format!("lines {from} to {last} of {total}; go on with offset {}", shown.next)),
        (true, false) if from > 1 => Some(format!("lines {from} to {last}, the last")),
        (true, false) => None,
    }
}

/// Makes or replaces a file.
pub(crate) async fn write(arguments: arguments::Write, room: &Room<'_>, observed: &mut Observed) -> Result<String, Trouble> {
    let path = names::absolute(room.cwd, &room.meant(&arguments.path)?);
    let known = |seen: &FileSeen| seen.sight != Sight::Part;
    let content = room.meant(&arguments.content)?.into_owned();
    let request = |expect| change::Writing { path: names::shown(&path), content: content.clone(), expect };
    let (answer, _) = while_it_is_as_seen(change::WRITE, room, &path, known, request).await?;
    match answer {
        change::Answer::Done(change::Written { path, digest, made, lines, kept_crlf }) => {
            let crlf = if kept_crlf { "; line ends stay \\r\\n" } else { "" };
            observed.files = vec![FileSeen { path, digest, sight: Sight::Written }];
            Ok(format!("{} {} ({}{crlf})", if made { "made" } else { "replaced" }, arguments.path, counted(lines, "line")))
        }
        change::Answer::Refused(why) => Err(about(&arguments.path, &why)),
        change::Answer::Differs { path, digest } => {
            Err(about(&arguments.path, &what_to_do((room.seen)(&path), digest, "replace it")))
        }
    }
}

/// Changes a passage of a file.
pub(crate) async fn edit(arguments: arguments::Edit, room: &Room<'_>, observed: &mut Observed) -> Result<String, Trouble> {
    let path = names::absolute(room.cwd, &room.meant(&arguments.path)?);
    let (old, new) = (room.meant(&arguments.old)?.into_owned(), room.meant(&arguments.new)?.into_owned());
    let request =
        |expect| change::Editing { path: names::shown(&path), old: old.clone(), new: new.clone(), all: arguments.all, expect };
    let (answer, before) = while_it_is_as_seen(change::EDIT, room, &path, |_| true, request).await?;
    match answer {
        change::Answer::Done(change::Edited { path, digest, lines, how, now }) => {
            let sight = match before {
                Some(Sight::Part) | None => Sight::Part,
                Some(Sight::Whole | Sight::Written) => Sight::Written,
            };
            observed.files = vec![FileSeen { path, digest, sight }];
            let places: Vec<String> = lines.iter().map(|place| span(*place)).collect();
            let edited = match places.as_slice() {
                [place] if lines[0].0 == lines[0].1 => format!("edited {}: line {place}", arguments.path),
                [place] => format!("edited {}: lines {place}", arguments.path),
                places => format!("edited {} in {} places: lines {}", arguments.path, places.len(), listed(places)),
            };
            Ok(match how {
                How::Exactly => edited,
                How::IgnoringWhitespace => {
                    format!("{edited}\n[`old` fits only if whitespace is ignored; it now reads]\n{}", now.trim_end())
                }
            })
        }
        change::Answer::Refused(why) => Err(about(&arguments.path, &why)),
        change::Answer::Differs { path, digest } => {
            Err(about(&arguments.path, &what_to_do((room.seen)(&path), digest, "edit it")))
        }
    }
}

fn span((first, last): (usize, usize)) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// Asks for a change, first of the file as the agent saw it under the path it gave; where links lead to another path, of
/// the file as it was seen under that. Returns also how much the agent knew of it.
async fn while_it_is_as_seen<Q: Serialize, Done: DeserializeOwned>(
    op: &str,
    room: &Room<'_>,
    path: &Path,
    known: impl Fn(&FileSeen) -> bool,
    request: impl Fn(Option<Digest>) -> Q,
) -> Result<(change::Answer<Done>, Option<Sight>), Trouble> {
    let seen = (room.seen)(&names::shown(path)).filter(&known);
    let answer = room.ask(op, &request(seen.as_ref().map(|seen| seen.digest))).await?;
    let change::Answer::Differs { path, digest } = &answer else { return Ok((answer, seen.map(|seen| seen.sight))) };
    match (room.seen)(path).filter(&known) {
        Some(there) if there.digest == *digest => Ok((room.ask(op, &request(Some(*digest))).await?, Some(there.sight))),
        _ => Ok((answer, None)),
    }
}

/// What an agent is to do about a file that is not as it saw it last.
fn what_to_do(seen: Option<FileSeen>, digest: Digest, next: &str) -> String {
    match seen {
        None => format!("you have not read it: read it, then {next}"),
        Some(seen) if seen.digest != digest => format!("it changed since you saw it: read it again, then {next}"),
        Some(_) => "you have not seen all of it: edit it, or remove it first".to_owned(),
    }
}

fn about(path: &str, why: &str) -> Trouble {
    Trouble::failed(format!("{path}: {why}"))
}
