//! Pictures in the terminal itself, where it says that it can: the escapes of kitty (sw.kovidgoyal.net/kitty/graphics-protocol)
//! and iTerm2 (iterm2.com/documentation-images.html). The bytes go there as they are; the terminal decodes them.

use crate::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use trace::{Blobs, Part, Picture};

/// The most columns and rows that a picture takes.
const COLUMNS: u32 = 72;
const ROWS: u32 = 14;
/// Pixels of a cell, about; what a picture takes is rounded up to whole cells.
const CELL: (u32, u32) = (10, 20);
/// The most base64 in one escape of kitty's.
const CHUNK: usize = 4096;

/// How a terminal is given a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Kitty's: PNG only.
    Kitty,
    /// iTerm2's: whatever the terminal can decode.
    Iterm,
}

impl Protocol {
    /// What the terminal announces. Within tmux and screen neither: they pass no such escapes on.
    pub fn of(parts: &Parts) -> Option<Protocol> {
        Protocol::announced(|name| parts.variable(name))
    }

    fn announced<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Option<Protocol> {
        let term = variable("TERM").unwrap_or_default();
        if variable("TMUX").is_some() || variable("STY").is_some() || term.starts_with("screen") || term.starts_with("tmux") {
            return None;
        }
        match (variable("TERM_PROGRAM"), variable("KITTY_WINDOW_ID"), term) {
            (Some("iTerm.app" | "WezTerm"), ..) => Some(Protocol::Iterm),
            (Some("ghostty"), ..) | (_, Some(_), _) | (_, _, "xterm-kitty" | "xterm-ghostty") => Some(Protocol::Kitty),
            _ => None,
        }
    }

    /// The escape that shows `bytes`, with a line end; nothing where the terminal would not know what they are.
    fn escape(self, picture: &Picture, bytes: &[u8]) -> Option<String> {
        let (columns, rows) = (picture.width.div_ceil(CELL.0).max(1), picture.height.div_ceil(CELL.1).max(1));
        // One side is given, and the terminal keeps the ratio: the one that would not fit by more.
        let is_wide = u64::from(columns) * u64::from(ROWS) > u64::from(rows) * u64::from(COLUMNS);
        let base64 = STANDARD.encode(bytes);
        match self {
            Protocol::Kitty if picture.media_type == "image/png" => {
                let side = if is_wide { format!("c={}", columns.min(COLUMNS)) } else { format!("r={}", rows.min(ROWS)) };
                // Base64 is ASCII, so that every place is a boundary.
                let mut chunks = base64.as_bytes().chunks(CHUNK).map(|chunk| String::from_utf8_lossy(chunk)).peekable();
                let mut escape = String::with_capacity(base64.len() + 256);
                let mut keys = format!("a=T,f=100,q=2,{side},");
                while let Some(chunk) = chunks.next() {
                    let more = u8::from(chunks.peek().is_some());
                    escape.push_str(&format!("\x1b_G{keys}m={more};{chunk}\x1b\\"));
                    keys.clear();
                }
                Some(escape + "\n")
            }
            Protocol::Kitty => None,
            Protocol::Iterm => {
                let side = if is_wide { format!("width={}", columns.min(COLUMNS)) } else { format!("height={}", rows.min(ROWS)) };
                let size = bytes.len();
                Some(format!("\x1b]1337;File=inline=1;size={size};{side};preserveAspectRatio=1:{base64}\x07\n"))
            }
        }
    }
}

/// Where the pictures of a run are, and how they are shown.
#[derive(Debug)]
pub struct Inline {
    pub protocol: Protocol,
    pub blobs: Blobs,
}

impl Inline {
    /// The pictures among `parts`. One that is missing is not shown; the line that names it stands all the same.
    pub fn shown(&self, parts: &[Part]) -> String {
        let shown = |part: &Part| match part {
            Part::Image { blob, picture } => self.protocol.escape(picture, &self.blobs.get(blob).ok()?),
            Part::Text { .. } | Part::File { .. } => None,
        };
        parts.iter().filter_map(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use std::collections::BTreeMap;

    #[test]
    fn terminals_announce_what_they_can() {
        let check = |variables: &[(&str, &'static str)], expected: Option<Protocol>| {
            let variables: BTreeMap<&str, &'static str> = variables.iter().copied().collect();
            assert_eq!(Protocol::announced(|name| variables.get(name).copied()), expected, "{variables:?}");
        };
        check(&[("TERM", "xterm-256color")], None);
        check(&[("TERM", "xterm-kitty")], Some(Protocol::Kitty));
        check(&[("TERM", "xterm-256color"), ("KITTY_WINDOW_ID", "1")], Some(Protocol::Kitty));
        check(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "iTerm.app")], Some(Protocol::Iterm));
        check(&[("TERM", "xterm-ghostty"), ("TERM_PROGRAM", "ghostty")], Some(Protocol::Kitty));
        check(&[("TERM", "xterm-kitty"), ("KITTY_WINDOW_ID", "1"), ("TMUX", "/tmp/x")], None);
        check(&[("TERM", "screen-256color"), ("TERM_PROGRAM", "iTerm.app")], None);
        check(&[("TERM", "tmux-256color"), ("KITTY_WINDOW_ID", "1")], None);
    }

    #[test]
    fn a_picture_is_one_escape_or_several() {
        let picture = |width, height| Picture { media_type: "image/png".to_owned(), width, height, bytes: 3 };
        let check = |protocol: Protocol, picture: &Picture, expected: Expect| {
            expected.assert_eq(&format!("{:?}", protocol.escape(picture, b"png").unwrap()));
        };
        check(Protocol::Kitty, &picture(16, 9), expect![[r#""\u{1b}_Ga=T,f=100,q=2,r=1,m=0;cG5n\u{1b}\\\n""#]]);
        check(Protocol::Kitty, &picture(4000, 100), expect![[r#""\u{1b}_Ga=T,f=100,q=2,c=72,m=0;cG5n\u{1b}\\\n""#]]);
        check(
            Protocol::Iterm,
            &picture(1000, 8000),
            expect![[r#""\u{1b}]1337;File=inline=1;size=3;height=14;preserveAspectRatio=1:cG5n\u{7}\n""#]],
        );
        let gif = Picture { media_type: "image/gif".to_owned(), ..picture(1, 1) };
        assert_eq!(Protocol::Kitty.escape(&gif, b"gif"), None);
        let long = Protocol::Kitty.escape(&picture(16, 9), &[0; 5000]).unwrap();
        let pieces: Vec<&str> = long.trim_end().split_inclusive("\x1b\\").collect();
        assert_eq!(pieces.iter().map(|piece| piece.len()).collect::<Vec<_>>(), [4096 + 27, 2572 + 9]);
        assert!(pieces[0].starts_with("\x1b_Ga=T,f=100,q=2,r=1,m=1;") && pieces[1].starts_with("\x1b_Gm=0;"));
    }
}
