//! The line that is being typed: bytes in, as a terminal sends them key by key; the words so far, and the lines that are done, out.

use std::mem::take;
use unicode_width::UnicodeWidthChar;

/// What is being typed.
#[derive(Debug, Default)]
pub struct Line {
    words: String,
    /// The beginning of a character whose other bytes are yet to come.
    begun: Vec<u8>,
    sequence: Sequence,
    /// Whether a text is being pasted: nothing in it is a key.
    pasted: bool,
}

/// What was done with some bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The lines that they ended, each with its end.
    pub sent: String,
    /// Whether no more is to come.
    pub over: bool,
}

/// How much has come of what a key sends that is no character.
#[derive(Debug, Default, PartialEq, Eq)]
enum Sequence {
    #[default]
    None,
    Escape,
    /// `ESC [`, and the parameters so far.
    Control(String),
    /// One more character belongs to it.
    Last,
}

impl Line {
    /// The words so far.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// Takes what was read. What comes behind the end of the input is lost.
    pub fn take(&mut self, bytes: &[u8]) -> Taken {
        // The key Escape itself was pressed: what comes later is not of its sequence, but for one that was split.
        if self.sequence == Sequence::Escape && bytes.first() != Some(&b'[') {
            self.sequence = Sequence::None;
        }
        let mut taken = Taken::default();
        for character in self.characters(bytes).chars() {
            self.character(character, &mut taken);
            if taken.over {
                break;
            }
        }
        taken
    }

    /// The characters that are whole.
    fn characters(&mut self, bytes: &[u8]) -> String {
        self.begun.extend_from_slice(bytes);
        let (bytes, mut text) = (take(&mut self.begun), String::new());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let begun = std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
            match chunk.invalid() {
                [] => {}
                rest if begun && chunks.peek().is_none() => self.begun = rest.to_vec(),
                _ => text.push('\u{fffd}'),
            }
        }
        text
    }

    fn character(&mut self, character: char, taken: &mut Taken) {
        self.sequence = match (take(&mut self.sequence), character) {
            (_, '\x1b') => Sequence::Escape,
            (Sequence::Escape, '[') => Sequence::Control(String::new()),
            // `ESC O` and `ESC [ [` come before one letter: the function keys of some terminals.
            (Sequence::Escape, 'O') => Sequence::Last,
            (Sequence::Control(parameters), '[') if parameters.is_empty() => Sequence::Last,
            (Sequence::Control(mut parameters), ' '..='?') => {
                parameters.push(character);
                Sequence::Control(parameters)
            }
            (Sequence::Control(parameters), last) => {
                match (parameters.as_str(), last) {
                    ("200", '~') => self.pasted = true,
                    ("201", '~') => self.pasted = false,
                    _ => {}
                }
                Sequence::None
            }
            (Sequence::Escape | Sequence::Last, _) => Sequence::None,
            (Sequence::None, character) => {
                self.key(character, taken);
                Sequence::None
            }
        };
    }

    fn key(&mut self, key: char, taken: &mut Taken) {
        match key {
            '\r' | '\n' if self.pasted => self.words.push('\n'),
            '\r' | '\n' => {
                taken.sent.push_str(&take(&mut self.words));
                taken.sent.push('\n');
            }
            '\t' => self.words.push('\t'),
            character if !character.is_control() => self.words.push(character),
            _ if self.pasted => {}
            '\x7f' | '\x08' => self.take_back(),
            // Ctrl-U, Ctrl-W, Ctrl-D.
            '\x15' => self.words.clear(),
            '\x17' => {
                let words = self.words.trim_end();
                self.words.truncate(
                    words.rfind(char::is_whitespace).map_or(0, |at| at + words[at..].chars().next().map_or(0, char::len_utf8)),
                );
            }
            '\x04' => taken.over = self.words.is_empty(),
            _ => {}
        }
    }

    /// Takes back the last character that has a place of its own, with all that is drawn over it.
    fn take_back(&mut self) {
        while self.words.pop().is_some_and(|character| character.width() == Some(0)) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is left in the line, and what was sent, of bytes that are read one after another.
    fn typed(reads: &[&[u8]]) -> (String, String) {
        let mut line = Line::default();
        let sent = reads.iter().map(|read| line.take(read).sent).collect();
        (line.words().to_owned(), sent)
    }

    #[test]
    fn keys_change_the_line_and_enter_sends_it() {
        let is = |keys: &str, words: &str, sent: &str| {
            assert_eq!(typed(&[keys.as_bytes()]), (words.to_owned(), sent.to_owned()), "{keys:?}");
        };
        is("mend it", "mend it", "");
        is("one\rtwo\n\nthree", "three", "one\ntwo\n\n");
        is("日本\x7f語\x08é\u{301}\u{301}\x7f", "日", "");
        is("\x7f\x7fa\x7f\x7fb", "b", "");
        is("a\nb\x15c", "c", "a\n");
        is("one two  \x17", "one ", "");
        is("one\u{3000}two\x17", "one\u{3000}", "");
        is("one\x17\x17", "", "");
        is("a\tb\x01\x0c\x00\u{9b}c", "a\tbc", "");
    }

    #[test]
    fn what_a_key_sends_that_is_no_character_is_not_taken_for_one() {
        let is = |reads: &[&str], words: &str| {
            let reads: Vec<&[u8]> = reads.iter().map(|read| read.as_bytes()).collect();
            assert_eq!(typed(&reads).0, words, "{reads:?}");
        };
        is(&["a\x1b[A\x1b[1;5D\x1bOH\x1b[[A\x1b[3~\x1bbz"], "az");
        is(&["a\x1b", "[A", "\x1b[", "1;5", "Dz"], "az");
        is(&["a\x1b", "bz"], "abz");
        is(&["a\x1b\x1b[Az"], "az");
    }

    #[test]
    fn what_is_pasted_is_sent_by_enter_alone() {
        let pasted = b"see: \x1b[200~fn a() {\r\n\tb();\n}\x15\x7f\x04\x1b[201~";
        assert_eq!(typed(&[pasted]), ("see: fn a() {\n\n\tb();\n}".to_owned(), String::new()));
        assert_eq!(typed(&[pasted, b" ?\r"]), (String::new(), "see: fn a() {\n\n\tb();\n} ?\n".to_owned()));
    }

    #[test]
    fn the_input_ends_on_an_empty_line_only() {
        let mut line = Line::default();
        assert_eq!(line.take(b"a\x04b"), Taken::default());
        assert_eq!(line.take(b"\n\x04c\n"), Taken { sent: "ab\n".to_owned(), over: true });
    }

    #[test]
    fn a_byte_that_is_no_text_takes_nothing_with_it() {
        assert_eq!(typed(&[b"caf\xe9\nb\xe2\x82", b"c"]), ("b\u{fffd}c".to_owned(), "caf\u{fffd}\n".to_owned()));
    }

    proptest! {
        #[test]
        fn characters_come_whole_wherever_they_are_split(text in "[a-z é日🦀\n]{0,12}", at in prop::collection::vec(0..48_usize, 0..6)) {
            let mut at: Vec<usize> = at.into_iter().map(|at| at.min(text.len())).chain([0, text.len()]).collect();
            at.sort_unstable();
            let reads: Vec<&[u8]> = at.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
            let (words, sent) = typed(&reads);
            prop_assert_eq!(sent + &words, text);
        }
    }
}
