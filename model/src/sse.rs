//! Server-sent events: bytes in, in pieces of any size; the `data` of each event out.
//!
//! Only `data` matters to the wires; `event`, `id`, `retry` and comments are skipped. Lines end with LF, CR LF or CR.
//! Bytes that are not UTF-8 become U+FFFD instead of costing the reply, and since lines are decoded whole, a character
//! may be split over pieces. An event that the end of the stream leaves without its blank line still counts: whether the
//! reply was whole is for the wire to say.

/// The most bytes that an event may have: a server that sends more without an end is broken.
const MOST: usize = 64 << 20;

/// Reads one stream.
#[derive(Default)]
pub(crate) struct Events {
    /// Bytes of a line that has no end yet.
    line: Vec<u8>,
    /// The `data` lines of an event that has no end yet, each with LF.
    data: String,
    /// Whether a CR ended the last line, so that an LF at the start of the next piece belongs to it.
    after_cr: bool,
    /// Whether a line was read already: before the first, a byte order mark may stand.
    begun: bool,
}

/// An event longer than any sane server sends.
#[derive(Debug, thiserror::Error)]
#[error("the server sent {} MiB without the end of an event", MOST >> 20)]
pub(crate) struct TooLong;

impl Events {
    /// Takes the next piece; `event` is given the data of each event that it completes.
    pub(crate) fn push(&mut self, mut piece: &[u8], mut event: impl FnMut(&str)) -> Result<(), TooLong> {
        if self.after_cr && !piece.is_empty() {
            piece = piece.strip_prefix(b"\n").unwrap_or(piece);
            self.after_cr = false;
        }
        while let Some(end) = piece.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line.extend_from_slice(&piece[..end]);
            self.end_line(&mut event);
            let rest = &piece[end + 1..];
            piece = match (piece[end], rest) {
                (b'\r', []) => {
                    self.after_cr = true;
                    rest
                }
                (b'\r', _) => rest.strip_prefix(b"\n").unwrap_or(rest),
                _ => rest,
            };
        }
        self.line.extend_from_slice(piece);
        if self.line.len() + self.data.len() > MOST { Err(TooLong) } else { Ok(()) }
    }

    /// The end of the stream.
    pub(crate) fn finish(mut self, mut event: impl FnMut(&str)) {
        if !self.line.is_empty() {
            self.end_line(&mut event);
        }
        self.end_event(&mut event);
    }

    fn end_line(&mut self, event: &mut impl FnMut(&str)) {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = if self.begun { &line } else { line.trim_start_matches('\u{feff}') };
        self.begun = true;
        if line.is_empty() {
            self.end_event(event);
        } else if let Some(value) = line.strip_prefix("data:") {
            self.data.push_str(value.strip_prefix(' ').unwrap_or(value));
            self.data.push('\n');
        }
    }

    fn end_event(&mut self, event: &mut impl FnMut(&str)) {
        let data = std::mem::take(&mut self.data);
        if let Some(data) = data.strip_suffix('\n') {
            event(data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let (mut events, mut out) = (Events::default(), Vec::new());
        for piece in pieces {
            events.push(piece, |data| out.push(data.to_owned())).unwrap();
        }
        events.finish(|data| out.push(data.to_owned()));
        out
    }

    #[test]
    fn lines_end_in_three_ways_and_a_space_after_the_colon_is_optional() {
        let text =
            "\u{feff}data: a\n\ndata:b\r\n\r\ndata:  c\r\rid: 7\nretry: 3\n: alive\n\nevent: x\ndata: d\ndata: e\n\ndata: no end";
        assert_eq!(read([text.as_bytes()]), ["a", "b", " c", "d\ne", "no end"]);
    }

    #[test]
    fn a_byte_that_is_no_character_costs_one_character() {
        assert_eq!(read([b"data: a\xffb\n\n".as_slice(), b"data: c\n\n"]), ["a\u{fffd}b", "c"]);
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut events = Events::default();
        let piece = vec![b'x'; 1 << 20];
        let fed = (0..100).find(|_| events.push(&piece, |_| ()).is_err());
        assert_eq!(fed, Some(64));
    }

    proptest! {
        #[test]
        fn how_it_is_cut_makes_no_difference(
            lines in proptest::collection::vec("(data: ?|: |event:)?[äa€\u{1f600} ]{0,4}(\n|\r\n|\r)", 0..12), cuts in proptest::collection::vec(1usize..5, 0..40)
        ) {
            let text = lines.concat();
            let (mut rest, mut pieces) = (text.as_bytes(), Vec::new());
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            pieces.push(rest);
            prop_assert_eq!(read(pieces), read([text.as_bytes()]));
        }
    }
}
