//! Text in columns: made harmless, wrapped between words, cut to a width; numbers and lengths of time that read well.

pub use sandbox::capture::grouped;
use trace::Part;
use unicode_width::UnicodeWidthChar;

/// `text` as it stands, but for control characters other than line ends and tabs: no answer needs them, and standard output
/// may be a terminal.
pub fn harmless(text: &str) -> String {
    let stands = |c: char| !c.is_control() || c == '\n' || c == '\t';
    text.chars().map(|c| if stands(c) { c } else { '\u{fffd}' }).collect()
}

/// What `parts` say, with a line for each that is no words.
pub fn told(parts: &[Part]) -> String {
    let line = |part: &Part| match part {
        Part::Text { text } => text.clone(),
        Part::Image { picture, .. } => format!("[{picture}]"),
        Part::File { name, media_type, .. } => format!("[file {name}, {media_type}]"),
    };
    parts.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// `text` without what a terminal would obey: control characters become visible stand-ins, tabs become spaces.
pub fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => cleaned.push_str("    "),
            // Characters that reorder or hide text are as dangerous to a reader as control characters.
            '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{200b}'..='\u{200f}' | '\u{feff}' => cleaned.push('\u{fffd}'),
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{e0000}'..='\u{e007f}' => cleaned.push('\u{fffd}'),
            control if control.is_control() => cleaned.push('\u{fffd}'),
            other => cleaned.push(other),
        }
    }
    cleaned
}

/// The columns that `text` takes.
pub fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// `line` in at most `width` columns, with an ellipsis where it was longer.
pub fn cut_to(line: &str, width: usize) -> String {
    if columns(line) <= width {
        return line.to_owned();
    }
    let start = &line[..fitting(line, width.saturating_sub(1))];
    format!("{start}…")
}

/// The end of `line` in at most `width` columns, behind an ellipsis where there was more.
pub fn end_of(line: &str, width: usize) -> String {
    if columns(line) <= width {
        return line.to_owned();
    }
    let mut used = 0;
    let mut kept: Vec<char> = Vec::new();
    for c in line.chars().rev() {
        used += c.width().unwrap_or(0);
        if used >= width {
            break;
        }
        kept.push(c);
    }
    std::iter::once('…').chain(kept.into_iter().rev()).collect()
}

/// `line` as lines of at most `width` columns, broken between words, and inside a word only where it is longer than a line.
/// The lines after the first are indented like it.
pub fn wrapped(line: &str, width: usize) -> Vec<String> {
    let indent = " ".repeat((line.len() - line.trim_start().len()).min(width / 2));
    let (mut words, mut lines) = (line.trim(), Vec::new());
    loop {
        // Each line takes at least one character of the words, however narrow it is, so that this ends.
        let least = words.chars().next().map_or(0, char::len_utf8);
        let fits = fitting(words, width - indent.len()).max(least);
        if fits >= words.len() {
            lines.push(format!("{indent}{words}"));
            return lines;
        }
        let space = if words[fits..].starts_with(' ') { Some(fits) } else { words[..fits].rfind(' ') };
        let end = space.filter(|at| *at > 0).unwrap_or(fits);
        lines.push(format!("{indent}{}", words[..end].trim_end()));
        words = words[end..].trim_start();
    }
}

/// How many bytes of `line` fit into `width` columns.
fn fitting(line: &str, width: usize) -> usize {
    let mut used = 0;
    let past = line.char_indices().find(|(_, c)| {
        used += c.width().unwrap_or(0);
        used > width
    });
    past.map_or(line.len(), |(at, _)| at)
}

/// `1 turn`, `2 turns`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// `12 B`, `1.2 kB`, `3.4 MB`.
pub fn size(bytes: u64) -> String {
    let units = ["kB", "MB", "GB", "TB"];
    let mut tenths = bytes / 100;
    for unit in units {
        if bytes < 1000 {
            break;
        } else if tenths < 10_000 || unit == "TB" {
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
        tenths /= 1000;
    }
    format!("{bytes} B")
}

/// `12 ms`, `1.2 s`, `3 min 20 s`.
pub fn length(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        _ => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_passed_on() {
        assert_eq!(clean("a\x1b[2Jb\tc\u{202e}d\r"), "a\u{fffd}[2Jb    c\u{fffd}d\u{fffd}");
        assert_eq!(clean("a\u{61c}\u{ad}\u{2028}\u{2067}\u{e0041}b é 日"), "a\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}b é 日");
    }

    #[test]
    fn lines_are_cut_by_columns() {
        assert_eq!(cut_to("abcdef", 6), "abcdef");
        assert_eq!(cut_to("abcdefg", 6), "abcde…");
        assert_eq!(cut_to("日本語です", 6), "日本…");
        assert_eq!(end_of("abcdef", 6), "abcdef");
        assert_eq!(end_of("abcdefg", 6), "…cdefg");
        assert_eq!(end_of("日本語です", 6), "…です");
    }

    #[test]
    fn lines_are_wrapped_between_words() {
        let wrap = |line, width| wrapped(line, width).join("|");
        assert_eq!(wrap("", 8), "");
        assert_eq!(wrap("one two three", 8), "one two|three");
        assert_eq!(wrap("one  two", 8), "one  two");
        assert_eq!(wrap("  - one two", 8), "  - one|  two");
        assert_eq!(wrap("a longerthanthat b", 8), "a|longerth|anthat b");
        assert_eq!(wrap("        x", 8), "    x");
        assert_eq!(wrap(" 日日", 1), "日|日");
    }

    #[test]
    fn a_line_of_megabytes_is_wrapped_in_one_pass() {
        // Copying what is left for each line takes minutes.
        assert_eq!(wrapped(&"word ".repeat(1 << 20), 80).len(), (1 << 20) / 16);
    }

    proptest! {
        #[test]
        fn wrapping_ends_and_loses_no_word(line in "[ a-z日]{0,60}", width in 1..30_usize) {
            let lines = wrapped(&line, width);
            let letters = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&line));
            prop_assert!(lines.iter().all(|line| columns(line) <= width.max(3)), "{:?}", lines);
        }
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!([grouped(7), grouped(1234), grouped(1_234_567)], ["7", "1,234", "1,234,567"]);
        assert_eq!([size(999), size(1234), size(999_999), size(1_000_000)], ["999 B", "1.2 kB", "999.9 kB", "1.0 MB"]);
        assert_eq!([length(999), length(1234), length(200_000)], ["999 ms", "1.2 s", "3 min 20 s"]);
    }
}
