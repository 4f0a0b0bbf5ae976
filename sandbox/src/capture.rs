//! Turns what a command prints into text for a model: any bytes in, bounded text out, whatever the size and the chunks.
//!
//! A [`Cleaner`] decodes and resolves what a terminal would; [`Ends`] keeps the beginning and the end of a text; a
//! [`Capture`] is the one before the other, and hides secrets before each: as a program printed them, and as a terminal
//! would show them. How the bytes are cut into chunks changes nothing.

use std::mem;
use trace::Secrets;
use trace::secrets::Stream;

/// A line longer than this many bytes is final up to there: carriage returns and backspaces reach no further back.
const REWRITABLE: usize = 4096;
/// A terminal string (such as a window's title) longer than this many characters is text that only began like one.
const STRING: usize = 4096;
/// Parameters of a control sequence beyond this many characters are passed over.
const PARAMETERS: usize = 16;

/// How much of a text is kept, in bytes of its beginning and of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Bytes of the beginning; a character that straddles the limit is kept whole.
    pub head: usize,
    /// Bytes of the end; a character that straddles the limit is left out.
    pub tail: usize,
}

/// Bytes become clean text: UTF-8 (what is not becomes `\xNN`), no terminal sequences, and of a line that was
/// rewritten by carriage returns or backspaces its last state. Control characters other than tab become `\xNN`.
#[derive(Debug, Default)]
pub struct Cleaner {
    /// The beginning of a character whose rest has not come.
    pending: Vec<u8>,
    /// The part of the line that may still be rewritten.
    line: String,
    /// A carriage return has come, and neither a line end nor anything that overwrites.
    returned: bool,
    sequence: Sequence,
    escaped: u64,
}

/// Where in a terminal sequence we are.
#[derive(Debug, Default)]
enum Sequence {
    #[default]
    Outside,
    /// After ESC.
    Begun,
    /// After ESC and a character that announces one more.
    Short,
    /// After ESC [, with the parameters so far.
    Control(String),
    /// In a string of so many characters.
    Text(usize),
    /// In a string, after ESC.
    TextEnding,
}

impl Cleaner {
    /// Takes the next bytes and gives `out` the text that is now final.
    pub fn push(&mut self, bytes: &[u8], out: &mut dyn FnMut(&str)) {
        let mut rest = bytes;
        while !self.pending.is_empty() {
            let Some((byte, after)) = rest.split_first() else { return };
            let mut begun = mem::take(&mut self.pending);
            begun.push(*byte);
            rest = after;
            self.decode(&begun, out);
        }
        self.decode(rest, out);
    }

    /// Gives `out` what was held back, and says how many bytes became `\xNN`.
    pub fn finish(mut self, out: &mut dyn FnMut(&str)) -> u64 {
        if matches!(self.sequence, Sequence::Begun) {
            self.escape(0x1b, out);
        }
        self.sequence = Sequence::Outside;
        for byte in mem::take(&mut self.pending) {
            self.overwrite();
            self.escape(byte, out);
        }
        out(&self.line);
        self.escaped
    }

    fn decode(&mut self, bytes: &[u8], out: &mut dyn FnMut(&str)) {
        let mut left = bytes.len();
        for chunk in bytes.utf8_chunks() {
            left -= chunk.valid().len() + chunk.invalid().len();
            self.text(chunk.valid(), out);
            let unfinished = || std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
            if left == 0 && unfinished() {
                self.pending = chunk.invalid().to_vec();
            } else {
                for byte in chunk.invalid() {
                    self.sequence = Sequence::Outside;
                    self.overwrite();
                    self.escape(*byte, out);
                }
            }
        }
    }

    fn text(&mut self, mut text: &str, out: &mut dyn FnMut(&str)) {
        while let Some(first) = text.chars().next() {
            let mut run = 0;
            if matches!(self.sequence, Sequence::Outside) && !self.returned {
                run = text.bytes().position(is_special).unwrap_or(text.len());
            }
            if run > 0 {
                self.plain(&text[..run], out);
            } else {
                run = first.len_utf8();
                self.character(first, out);
            }
            text = &text[run..];
        }
    }

    /// Text without anything special in it: its whole lines are final at once.
    fn plain(&mut self, text: &str, out: &mut dyn FnMut(&str)) {
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole > 0 {
            out(&self.line);
            self.line.clear();
            out(&text[..whole]);
        }
        self.keep(&text[whole..], out);
    }

    fn character(&mut self, c: char, out: &mut dyn FnMut(&str)) {
        match (mem::take(&mut self.sequence), c) {
            (Sequence::Outside, _) => self.ordinary(c, out),
            (Sequence::Begun, '[') => self.sequence = Sequence::Control(String::new()),
            (Sequence::Begun, ']' | 'P' | 'X' | '^' | '_') => self.sequence = Sequence::Text(0),
            (Sequence::Begun | Sequence::Short, ' '..='/') => self.sequence = Sequence::Short,
            (Sequence::Begun | Sequence::Short, '0'..='~') => {}
            (Sequence::Begun, _) => {
                self.overwrite();
                self.escape(0x1b, out);
                self.ordinary(c, out);
            }
            (Sequence::Control(mut parameters), ' '..='?') => {
                if parameters.len() < PARAMETERS {
                    parameters.push(c);
                }
                self.sequence = Sequence::Control(parameters);
            }
            (Sequence::Control(parameters), '@'..='~') => self.control(&parameters, c),
            (Sequence::Text(_), '\x07') | (Sequence::TextEnding, '\\') => {}
            (Sequence::Text(_), '\x1b') => self.sequence = Sequence::TextEnding,
            (Sequence::Text(length), _) if c != '\n' && length < STRING => self.sequence = Sequence::Text(length + 1),
            (Sequence::TextEnding, _) => {
                self.sequence = Sequence::Begun;
                self.character(c, out);
            }
            (Sequence::Short | Sequence::Control(_) | Sequence::Text(_), _) => self.ordinary(c, out),
        }
    }

    /// Of all control sequences those count by which programs rewrite the line they are on.
    fn control(&mut self, parameters: &str, last: char) {
        match (last, parameters) {
            ('K', "2") => self.line.clear(),
            ('K', "" | "0") if self.returned => self.line.clear(),
            ('G', "" | "1") => self.returned = true,
            _ => {}
        }
    }

    fn ordinary(&mut self, c: char, out: &mut dyn FnMut(&str)) {
        match c {
            '\x1b' => self.sequence = Sequence::Begun,
            '\r' => self.returned = true,
            '\n' => {
                self.returned = false;
                self.line.push('\n');
                out(&self.line);
                self.line.clear();
            }
            '\x08' => {
                if !mem::take(&mut self.returned) {
                    self.line.pop();
                }
            }
            _ => {
                self.overwrite();
                let mut room = [0; 4];
                let text = c.encode_utf8(&mut room);
                if c.is_control() && c != '\t' {
                    text.bytes().for_each(|byte| self.escape(byte, out));
                } else {
                    self.keep(text, out);
                }
            }
        }
    }

    /// What comes after a carriage return replaces the line.
    fn overwrite(&mut self) {
        if mem::take(&mut self.returned) {
            self.line.clear();
        }
    }

    fn escape(&mut self, byte: u8, out: &mut dyn FnMut(&str)) {
        let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
        self.escaped += 1;
        for c in ['\\', 'x', digit(byte >> 4), digit(byte & 15)] {
            self.keep(c.encode_utf8(&mut [0; 4]), out);
        }
    }

    fn keep(&mut self, mut text: &str, out: &mut dyn FnMut(&str)) {
        loop {
            let fits = text.floor_char_boundary(REWRITABLE.saturating_sub(self.line.len()));
            self.line.push_str(&text[..fits]);
            text = &text[fits..];
            if text.is_empty() {
                return;
            }
            out(&self.line);
            self.line.clear();
        }
    }
}

/// Whether a byte of UTF-8 text needs a closer look; 0xC2 leads the control characters above ASCII, among others.
fn is_special(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\n' && byte != b'\t') || byte == 0x7f || byte == 0xc2
}

/// The beginning and the end of a text of any length.
#[derive(Debug)]
pub struct Ends {
    caps: Caps,
    head: String,
    /// At least the last `caps.tail` bytes of what came after the head, and at most twice as many.
    tail: String,
    total: u64,
}

impl Ends {
    /// Nothing yet.
    pub fn new(caps: Caps) -> Ends {
        Ends { caps, head: String::new(), tail: String::new(), total: 0 }
    }

    /// Takes the next piece of the text.
    pub fn push(&mut self, mut text: &str) {
        self.total += text.len() as u64;
        if self.head.len() < self.caps.head {
            let (fits, rest) = text.split_at(text.ceil_char_boundary(self.caps.head - self.head.len()));
            self.head.push_str(fits);
            text = rest;
        }
        if text.len() >= self.caps.tail {
            self.tail.clear();
            text = last(text, self.caps.tail);
        }
        self.tail.push_str(text);
        if self.tail.len() > self.caps.tail.saturating_mul(2) {
            self.tail.drain(..self.tail.len() - last(&self.tail, self.caps.tail).len());
        }
    }

    fn finish(mut self, bytes: u64, escaped: u64) -> Captured {
        self.tail.drain(..self.tail.len() - last(&self.tail, self.caps.tail).len());
        let left_out = self.total - (self.head.len() + self.tail.len()) as u64;
        Captured { head: self.head, tail: self.tail, left_out, bytes, escaped }
    }
}

/// The whole characters among the last `bytes` bytes.
fn last(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}

/// Output on its way from bytes to clean text without secrets.
#[derive(Debug)]
pub struct Shown {
    printed: Stream,
    cleaner: Cleaner,
    clean: Stream,
}

/// How an output ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All of it came.
    Whole,
    /// It was cut off: what may be the beginning of a secret is left out.
    Cut,
}

impl Shown {
    /// Nothing yet.
    pub fn new(secrets: &Secrets) -> Shown {
        Shown { printed: secrets.stream(), cleaner: Cleaner::default(), clean: secrets.stream() }
    }

    /// Takes the next bytes and gives `kept` the same without secrets, and `text` what is to be shown of them.
    pub fn push(&mut self, bytes: &[u8], kept: &mut dyn FnMut(&[u8]), text: &mut dyn FnMut(&str)) {
        let (cleaner, clean) = (&mut self.cleaner, &mut self.clean);
        self.printed.push(bytes, &mut |piece| {
            kept(piece.shown());
            cleaner.push(piece.shown(), &mut |cleaned| clean.push(cleaned.as_bytes(), &mut |piece| text(&piece.text())));
        });
    }

    /// Gives the rest; returns how many bytes are shown as `\xNN`.
    pub fn finish(self, ending: Ending, kept: &mut dyn FnMut(&[u8]), text: &mut dyn FnMut(&str)) -> u64 {
        let Shown { printed, mut cleaner, mut clean } = self;
        let mut rest = |piece: trace::secrets::Piece<'_>| {
            kept(piece.shown());
            cleaner.push(piece.shown(), &mut |cleaned| clean.push(cleaned.as_bytes(), &mut |piece| text(&piece.text())));
        };
        match ending {
            Ending::Whole => printed.finish(&mut rest),
            Ending::Cut => printed.finish_cut(&mut rest),
        }
        let escaped = cleaner.finish(&mut |cleaned| clean.push(cleaned.as_bytes(), &mut |piece| text(&piece.text())));
        match ending {
            Ending::Whole => clean.finish(&mut |piece| text(&piece.text())),
            Ending::Cut => clean.finish_cut(&mut |piece| text(&piece.text())),
        }
        escaped
    }
}

/// Output on its way from bytes to capped text.
#[derive(Debug)]
pub struct Capture {
    shown: Shown,
    ends: Ends,
    bytes: u64,
}

impl Capture {
    /// Nothing yet. What `secrets` knows is hidden before anything is cut.
    pub fn new(caps: Caps, secrets: &Secrets) -> Capture {
        Capture { shown: Shown::new(secrets), ends: Ends::new(caps), bytes: 0 }
    }

    /// Takes the next bytes; all of them go on to `kept`, without secrets.
    pub fn push(&mut self, bytes: &[u8], kept: &mut dyn FnMut(&[u8])) {
        self.bytes += bytes.len() as u64;
        self.shown.push(bytes, kept, &mut |text| self.ends.push(text));
    }

    /// What is to be shown; the rest goes on to `kept`.
    pub fn finish(mut self, ending: Ending, kept: &mut dyn FnMut(&[u8])) -> Captured {
        let escaped = self.shown.finish(ending, kept, &mut |text| self.ends.push(text));
        self.ends.finish(self.bytes, escaped)
    }
}

/// What is shown of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Its beginning: all of it, together with `tail`, where nothing is left out.
    pub head: String,
    /// Its end.
    pub tail: String,
    /// Bytes of clean text between the two that are not shown.
    pub left_out: u64,
    /// Bytes that came in.
    pub bytes: u64,
    /// Bytes among them that are shown as `\xNN`.
    pub escaped: u64,
}

impl Captured {
    /// Whether some of it is not shown.
    pub fn truncated(&self) -> bool {
        self.left_out > 0
    }

    /// Beginning and end, and between them, on a line of its own, `[… 29,994,000 bytes left out<hint> …]`.
    pub fn text(&self, hint: &str) -> String {
        if !self.truncated() {
            return format!("{}{}", self.head, self.tail);
        }
        let gap = if self.head.is_empty() || self.head.ends_with('\n') { "" } else { "\n" };
        format!("{}{gap}[… {} bytes left out{hint} …]\n{}", self.head, grouped(self.left_out), self.tail)
    }
}

/// A number with a comma after each group of three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    const WIDE: Caps = Caps { head: 4000, tail: 4000 };

    fn captured(bytes: &[u8], caps: Caps) -> Captured {
        let mut capture = Capture::new(caps, &Secrets::of_nothing());
        capture.push(bytes, &mut |_| {});
        capture.finish(Ending::Whole, &mut |_| {})
    }

    fn check(bytes: &[u8], expected: Expect) {
        expected.assert_eq(&captured(bytes, WIDE).text(""));
    }

    #[test]
    fn what_is_not_utf8_is_shown_by_its_bytes() {
        check(b"a\xff\xfeb \xe2\x82 \xe2\x82\xac caf\xc3\xa9 \xc2\xa7", expect![r"a\xff\xfeb \xe2\x82 € café §"]);
        check(b"cut at the end \xf0\x9f\x98", expect![r"cut at the end \xf0\x9f\x98"]);
        assert_eq!(captured(b"a\xff\x00b", WIDE).escaped, 2);
    }

    #[test]
    fn control_characters_are_shown_and_tabs_kept() {
        check(b"a\0b\x07\tc\x0cd\x7f\xc2\x9be", expect![r"a\x00b\x07	c\x0cd\x7f\xc2\x9be"]);
    }

    #[test]
    fn terminal_sequences_vanish() {
        check(
            b"\x1b[1;31mred\x1b[0m \x1b(Bplain\x1b7\x1b]0;title\x07.\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
            expect!["red plain.link"],
        );
        check(
            b"\x1b]unfinished\nnext \x1bP1$r\x1b[1mbold \x1b",
            expect![[r#"

            next bold \x1b"#]],
        );
    }

    #[test]
    fn rewritten_lines_show_their_last_state() {
        check(
            b"  5%\r 50%\r100%\r\ndone\r\r\nx\n",
            expect![[r#"
            100%
            done
            x
        "#]],
        );
        check(b"first\rlast", expect!["last"]);
        check(b"kept\r", expect!["kept"]);
        check(
            b"gone\r\x1b[K\nold\x1b[2K\x1b[1Gnew\n",
            expect![[r#"

            new
        "#]],
        );
        check(b"N\x08Na\x08am\x08\x08\x08e |\x08/\x08-", expect!["e -"]);
    }

    #[test]
    fn a_string_that_never_ends_hides_only_its_beginning() {
        let mut bytes = b"\x1b]".to_vec();
        bytes.extend(vec![b'x'; 3 * STRING]);
        assert_eq!(captured(&bytes, WIDE).left_out, (2 * STRING - 8000) as u64);
    }

    #[test]
    fn the_middle_is_left_out_also_of_one_line() {
        let caps = Caps { head: 4, tail: 5 };
        expect![[r#"
            abcd
            [… 17 bytes left out; see there …]
            vwxyz"#]]
        .assert_eq(&captured(b"abcdefghijklmnopqrstuvwxyz", caps).text("; see there"));
        expect![[r#"
            y
            y
            [… 29,999,991 bytes left out …]

            y
            y
        "#]]
        .assert_eq(&captured(&b"y\n".repeat(15_000_000), caps).text(""));
    }

    #[test]
    fn characters_are_never_cut() {
        let euros = captured("€€€€€".as_bytes(), Caps { head: 4, tail: 5 });
        assert_eq!((euros.head.as_str(), euros.tail.as_str(), euros.left_out), ("€€", "€", 6));
    }

    fn output() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => proptest::string::bytes_regex("[a-z \n]{0,12}").expect("a valid pattern"),
            4 => prop::sample::select(vec!["\r", "\x08", "\x1b", "\x1b[", "K", "2K", "1G", "\x1b]", "\x07", "\\", "é", "€", "😀", "\t", "\r\n"])
                .prop_map(|text| text.as_bytes().to_vec()),
            1 => prop::collection::vec(any::<u8>(), 0..6),
            1 => (0usize..3).prop_map(|n| vec![b'w'; n * (REWRITABLE - 2)]),
        ];
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn chunks_change_nothing(bytes in output(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
                                 head in 0usize..40, tail in 0usize..40) {
            let caps = Caps { head, tail };
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let secrets = Secrets::of_nothing();
            let mut chunked = Capture::new(caps, &secrets);
            at.windows(2).for_each(|pair| chunked.push(&bytes[pair[0]..pair[1]], &mut |_| {}));
            let mut single = Capture::new(caps, &secrets);
            bytes.iter().for_each(|byte| single.push(&[*byte], &mut |_| {}));
            let whole = captured(&bytes, caps);
            prop_assert_eq!(&chunked.finish(Ending::Whole, &mut |_| {}), &whole);
            prop_assert_eq!(&single.finish(Ending::Whole, &mut |_| {}), &whole);
        }

        #[test]
        fn what_is_shown_is_bounded_and_clean(bytes in output(), head in 0usize..40, tail in 0usize..40) {
            let shown = captured(&bytes, Caps { head, tail });
            prop_assert!(shown.head.len() < head + 4 && shown.tail.len() <= tail);
            let clean = |c: char| c == '\n' || c == '\t' || !c.is_control();
            prop_assert!(shown.head.chars().chain(shown.tail.chars()).all(clean));
            prop_assert_eq!(shown.bytes, bytes.len() as u64);
        }

        #[test]
        fn the_ends_are_those_of_the_whole(bytes in output(), head in 0usize..40, tail in 0usize..40) {
            let whole = captured(&bytes, Caps { head: usize::MAX, tail: 0 }).head;
            let shown = captured(&bytes, Caps { head, tail });
            prop_assert!(whole.starts_with(&shown.head) && whole.ends_with(&shown.tail));
            prop_assert_eq!(shown.head.len() as u64 + shown.left_out + shown.tail.len() as u64, whole.len() as u64);
            if whole.len() <= head + tail {
                prop_assert_eq!(shown.left_out, 0);
            }
        }

        /// Wherever the ends are cut, no half of a secret is seen or kept, with colours in it or not.
        #[test]
        fn no_piece_of_a_secret_is_seen(before in "[a-z \n]{0,60}", after in "[a-z \n]{0,60}", colour in any::<bool>(),
                                        head in 0usize..80, tail in 0usize..80, chunk in 1usize..9) {
            let secrets = Secrets::of_nothing();
            secrets.grant("TOKEN", "0123456789ABCDEFGHIJ").unwrap();
            let token = if colour { "01234\x1b[1m56789AB\x1b[0mCDEFGHIJ" } else { "0123456789ABCDEFGHIJ" };
            let mut capture = Capture::new(Caps { head, tail }, &secrets);
            let mut kept = Vec::new();
            for piece in format!("{before}{token}{after}").as_bytes().chunks(chunk) {
                capture.push(piece, &mut |bytes| kept.extend_from_slice(bytes));
            }
            let shown = capture.finish(Ending::Whole, &mut |bytes| kept.extend_from_slice(bytes));
            for piece in "0123456789ABCDEFGHIJ".as_bytes().windows(6) {
                let text = std::str::from_utf8(piece).unwrap();
                prop_assert!(!shown.head.contains(text) && !shown.tail.contains(text), "{text} in {shown:?}");
                prop_assert!(colour || !kept.windows(6).any(|window| window == piece));
            }
        }

        #[test]
        fn plain_text_passes_as_it_is(text in "[a-zé€ \t\n]{0,200}") {
            prop_assert_eq!(captured(text.as_bytes(), WIDE).text(""), text);
        }
    }
}
