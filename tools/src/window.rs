//! The lines of a text that are shown: numbered, from one line on, within a number of lines and bytes.

use serde::{Deserialize, Serialize};
use trace::secrets::Piece;

/// The most bytes of one line that are shown at once.
pub const LINE: usize = 2000;

/// Which part of a text is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The first line, from 1.
    pub from: u64,
    /// The most lines.
    pub lines: usize,
    /// The most bytes, the last line aside.
    pub bytes: usize,
}

/// What becomes of a line that is longer than [`LINE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Long {
    /// Its rest is left out: line numbers stay those of the file.
    Cut,
    /// It is shown as several lines: all of it can be reached.
    Wrapped,
}

/// Which line ends a text has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    /// `\n`, or none at all.
    Lf,
    /// `\r\n`.
    Crlf,
    /// Both.
    Mixed,
}

/// What of a text is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The lines, each with its number and a tab before it and a line end after it.
    pub text: String,
    /// The number of the first line after those that are shown.
    pub next: u64,
    /// Lines in all.
    pub total: u64,
    /// Lines of which the rest was left out.
    pub cut: u64,
    /// Bytes that are shown as `\xNN`.
    pub escaped: u64,
    /// The line ends of the whole text.
    pub ends: Ends,
    /// Whether the last line has none.
    pub open: bool,
}

impl Shown {
    /// Whether every byte of the text is shown, asked from `from` on.
    pub fn is_whole(&self, from: u64) -> bool {
        from == 1 && self.next > self.total && self.cut == 0
    }
}

/// A text on its way past the window.
#[derive(Debug)]
pub struct Window {
    part: Part,
    long: Long,
    /// The beginning of the line that is being read, at most [`LINE`] bytes.
    line: Vec<u8>,
    /// Bytes of that line.
    length: u64,
    /// Its number.
    number: u64,
    /// Line ends in it that are not seen.
    swallowed: u64,
    last_was_cr: bool,
    shown: Shown,
    lf: u64,
    crlf: u64,
    full: bool,
}

impl Window {
    /// A window on the part `part`.
    pub fn new(part: Part, long: Long) -> Window {
        let part = Part { from: part.from.max(1), lines: part.lines.max(1), ..part };
        let shown = Shown { text: String::new(), next: part.from, total: 0, cut: 0, escaped: 0, ends: Ends::Lf, open: false };
        Window {
            part,
            long,
            line: Vec::new(),
            length: 0,
            number: 1,
            swallowed: 0,
            last_was_cr: false,
            shown,
            lf: 0,
            crlf: 0,
            full: false,
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(rest) => {
                    self.extend(rest);
                    self.end_line();
                }
                None => self.extend(piece),
            }
        }
    }

    /// Takes the next piece of a text without secrets: lines keep the numbers that they have in the text itself.
    pub fn take(&mut self, piece: Piece<'_>) {
        self.push(piece.shown());
        if let Piece::Hidden { line_ends, .. } = piece {
            self.swallowed += line_ends;
        }
    }

    /// What is shown.
    pub fn finish(mut self) -> Shown {
        self.shown.open = self.length > 0;
        if self.shown.open {
            self.end_row();
        }
        self.shown.total = self.number - 1;
        self.shown.ends = match (self.lf, self.crlf) {
            (_, 0) => Ends::Lf,
            (0, _) => Ends::Crlf,
            _ => Ends::Mixed,
        };
        self.shown
    }

    fn extend(&mut self, mut bytes: &[u8]) {
        loop {
            let fits = bytes.len().min(LINE - self.line.len());
            self.line.extend_from_slice(&bytes[..fits]);
            self.length += fits as u64;
            bytes = &bytes[fits..];
            match (self.long, bytes.last()) {
                (_, None) => return,
                (Long::Cut, Some(last)) => {
                    self.length += bytes.len() as u64;
                    self.last_was_cr = *last == b'\r';
                    return;
                }
                (Long::Wrapped, Some(_)) => self.wrap(),
            }
        }
    }

    /// Ends the row, but takes the beginning of a character that is not whole over to the next.
    fn wrap(&mut self) {
        let over = self.line.split_off(self.line.len() - unfinished(&self.line));
        self.length = self.line.len() as u64;
        self.end_row();
        self.length = over.len() as u64;
        self.line = over;
    }

    fn end_line(&mut self) {
        let beyond = self.length > self.line.len() as u64;
        let crlf = if beyond { self.last_was_cr } else { self.line.ends_with(b"\r") };
        if crlf {
            self.crlf += 1;
            self.length -= 1;
            self.line.truncate(usize::try_from(self.length).unwrap_or(usize::MAX));
        } else {
            self.lf += 1;
        }
        self.end_row();
    }

    fn end_row(&mut self) {
        if self.number + self.swallowed >= self.part.from && !self.full {
            self.show();
        }
        self.number += 1 + std::mem::take(&mut self.swallowed);
        self.line.clear();
        self.length = 0;
        self.last_was_cr = false;
    }

    fn show(&mut self) {
        let (mut row, mut escaped) = (format!("{}\t", self.number), 0);
        let beyond = self.length - self.line.len() as u64;
        let whole = self.line.len() - if beyond > 0 { unfinished(&self.line) } else { 0 };
        for chunk in self.line[..whole].utf8_chunks() {
            row.push_str(chunk.valid());
            escaped += chunk.invalid().len() as u64;
            chunk.invalid().iter().for_each(|byte| row.push_str(&format!("\\x{byte:02x}")));
        }
        if beyond > 0 {
            row.push_str(&format!("… [the line has {} bytes]", self.length));
        }
        row.push('\n');
        let shown = self.number.saturating_sub(self.part.from);
        if shown > 0 && self.shown.text.len() + row.len() > self.part.bytes {
            self.full = true;
            return;
        }
        self.shown.text.push_str(&row);
        self.shown.cut += u64::from(beyond > 0);
        self.shown.escaped += escaped;
        self.shown.next = self.number + 1 + self.swallowed;
        self.full = shown + 1 >= self.part.lines as u64;
    }
}

/// Bytes at the end that are only the beginning of a character; none where that would be all.
fn unfinished(bytes: &[u8]) -> usize {
    let end = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let begun = std::str::from_utf8(end).is_err_and(|error| error.error_len().is_none());
    if begun && end.len() < bytes.len() { end.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use proptest::prelude::*;

    fn window(text: &[u8], part: Part, long: Long) -> Shown {
        let mut window = Window::new(part, long);
        window.push(text);
        window.finish()
    }

    const ALL: Part = Part { from: 1, lines: 100, bytes: 100_000 };

    #[test]
    fn lines_are_numbered_and_ends_told() {
        let shown = window(b"one\r\ntwo\n\nf\xffur", ALL, Long::Cut);
        expect![[r#"
            1	one
            2	two
            3	
            4	f\xffur
        "#]]
        .assert_eq(&shown.text);
        assert_eq!((shown.ends, shown.open, shown.total, shown.escaped, shown.is_whole(1)), (Ends::Mixed, true, 4, 1, true));
        let empty = window(b"", ALL, Long::Cut);
        assert_eq!((empty.text.as_str(), empty.total, empty.is_whole(1)), ("", 0, true));
    }

    #[test]
    fn a_part_ends_at_its_lines_or_bytes() {
        let part = window(b"a\nb\nc\nd\n", Part { from: 2, lines: 2, bytes: 100 }, Long::Cut);
        assert_eq!((part.text.as_str(), part.next, part.total, part.is_whole(2)), ("2\tb\n3\tc\n", 4, 4, false));
        let bytes = window(b"aaaa\nbbbb\ncccc\n", Part { from: 1, lines: 9, bytes: 14 }, Long::Cut);
        assert_eq!((bytes.text.as_str(), bytes.next), ("1\taaaa\n2\tbbbb\n", 3));
        let beyond = window(b"a\n", Part { from: 9, lines: 9, bytes: 14 }, Long::Cut);
        assert_eq!((beyond.text.as_str(), beyond.next, beyond.total), ("", 9, 1));
    }

    #[test]
    fn a_long_line_is_cut_or_wrapped() {
        let text = format!("{}é\r\nnext\n", "x".repeat(LINE - 1));
        let cut = window(text.as_bytes(), ALL, Long::Cut);
        assert_eq!(cut.text, format!("1\t{}… [the line has {} bytes]\n2\tnext\n", "x".repeat(LINE - 1), LINE + 1));
        assert_eq!((cut.cut, cut.ends, cut.is_whole(1)), (1, Ends::Mixed, false));
        let wrapped = window(text.replace('\r', "").as_bytes(), ALL, Long::Wrapped);
        assert_eq!(wrapped.text, format!("1\t{}\n2\té\n3\tnext\n", "x".repeat(LINE - 1)));
        assert!(wrapped.is_whole(1));
    }

    proptest! {
        #[test]
        fn chunks_change_nothing(lines in prop::collection::vec(("[a-zé]{0,9}", 0usize..3, prop::sample::select(vec!["\n", "\r\n", "\n\n"])), 0..6),
                                 cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8), from in 0u64..5, bytes in 0usize..5000, wrap in any::<bool>()) {
            let text: String = lines.iter().map(|(text, long, end)| text.clone() + &"é".repeat(long * LINE / 2) + end).collect();
            let long = if wrap { Long::Wrapped } else { Long::Cut };
            let part = Part { from, lines: 3, bytes };
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            at.extend([0, text.len()]);
            at.sort_unstable();
            let mut chunked = Window::new(part, long);
            at.windows(2).for_each(|pair| chunked.push(&text.as_bytes()[pair[0]..pair[1]]));
            prop_assert_eq!(chunked.finish(), window(text.as_bytes(), part, long));
        }

        #[test]
        fn pages_add_up_to_the_whole(text in "([a-z\\n]{0,30}\n)?", lines in 1usize..4, bytes in 0usize..40) {
            let (mut pages, mut from) = (String::new(), 1);
            loop {
                let page = window(text.as_bytes(), Part { from, lines, bytes }, Long::Cut);
                pages.push_str(&page.text);
                from = page.next;
                if page.next > page.total { break; }
            }
            prop_assert_eq!(pages, window(text.as_bytes(), ALL, Long::Cut).text);
        }
    }
}
