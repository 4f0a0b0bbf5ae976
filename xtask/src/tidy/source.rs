//! A Rust file as rules see it: code without its words, the words apart, and the part that only tests are built from.

use std::ops::Range;

/// One file, taken apart once for all rules. Offsets are bytes of `text`.
pub struct Source {
    /// From the root of the repository.
    pub path: String,
    pub text: String,
    /// `text` with comments and the insides of literals turned into spaces; every byte stands where it stood.
    pub code: String,
    pub literals: Vec<Words>,
    pub comments: Vec<Words>,
    /// Items under `#[cfg(test)]`, or the whole file if it is one of tests.
    tests: Vec<Range<usize>>,
    /// Modules of tests that are files of their own: `#[cfg(test)] mod NAME;`.
    pub test_modules: Vec<String>,
}

/// A literal without its quotes and line continuations, or a comment.
pub struct Words {
    pub start: usize,
    pub text: String,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Source {
        let (code, literals, comments) = split(text);
        let (mut tests, mut test_modules) = (Vec::new(), Vec::new());
        for (start, _) in code.match_indices("#[cfg(test)]") {
            let item = item_after(&code, start);
            if let Some(name) = module_declared(&code[item.clone()]) {
                test_modules.push(name.to_owned());
            }
            tests.push(start..item.end);
        }
        let mut source = Source { path: path.to_owned(), text: text.to_owned(), code, literals, comments, tests, test_modules };
        if is_of_tests(path) {
            source.is_all_tests();
        }
        source
    }

    /// Says that another file declares this one under `#[cfg(test)]`.
    pub fn is_all_tests(&mut self) {
        self.tests = std::iter::once(0..self.text.len()).collect();
    }

    pub fn in_tests(&self, offset: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&offset))
    }

    /// Counted from one.
    pub fn line(&self, offset: usize) -> usize {
        line_of(&self.text, offset)
    }

    /// Lines outside of tests.
    pub fn lines(&self) -> usize {
        let mut start = 0;
        let outside = self.text.split_inclusive('\n').filter(|line| {
            let indent = line.len() - line.trim_start().len();
            let first = start + indent.min(line.len() - 1);
            start += line.len();
            !self.in_tests(first)
        });
        outside.count()
    }

    /// Where `word` stands in the code, not as a part of a longer name.
    pub fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        let bytes = self.code.as_bytes();
        self.code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
            let before = at.checked_sub(1).is_none_or(|i| !is_name(bytes[i]));
            before && bytes.get(at + word.len()).is_none_or(|&next| !is_name(next))
        })
    }

    /// The name of the last function that begins before `offset`.
    pub fn function_before(&self, offset: usize) -> Option<&str> {
        let at = self.words("fn").take_while(|&at| at < offset).last()?;
        name_at(&self.code[at + 2..])
    }
}

/// The line of an offset, counted from one.
pub fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// The name that `code` begins with, spaces aside.
pub fn name_at(code: &str) -> Option<&str> {
    let code = code.trim_start();
    let end = code.bytes().position(|byte| !is_name(byte)).unwrap_or(code.len());
    (end > 0).then(|| &code[..end])
}

/// The item at `start`, attributes included: up to its `;` or its closing brace.
pub fn item_after(code: &str, start: usize) -> Range<usize> {
    let bytes = code.as_bytes();
    let (mut depth, mut at) = (0usize, start);
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'}' if depth <= 1 => return start..at + 1,
            b'}' => depth -= 1,
            b';' if depth == 0 => return start..at + 1,
            _ => {}
        }
        at += 1;
    }
    start..bytes.len()
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_of_tests(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs")
}

fn module_declared(item: &str) -> Option<&str> {
    let rest = item.strip_suffix(';')?.trim_end();
    let (before, name) = rest.rsplit_once(|c: char| c.is_ascii_whitespace())?;
    before.trim_end().ends_with("mod").then_some(name)
}

/// Code with blanks, literals, comments.
fn split(text: &str) -> (String, Vec<Words>, Vec<Words>) {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let (mut literals, mut comments) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text.as_bytes()[at..];
        let (inside, end) = if rest.starts_with(b"//") {
            let end = at + rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
            comments.push(Words { start: at, text: text[at..end].to_owned() });
            (at..end, end)
        } else if rest.starts_with(b"/*") {
            let end = at + block_comment(rest);
            comments.push(Words { start: at, text: text[at..end].to_owned() });
            (at..end, end)
        } else if let Some(hashes) = raw_string(bytes, at) {
            let start = at + 1 + hashes + 1;
            let close = format!("\"{}", "#".repeat(hashes));
            let end = text[start..].find(&close).map_or(bytes.len(), |found| start + found);
            literals.push(Words { start, text: text[start..end].to_owned() });
            (start..end, (end + close.len()).min(bytes.len()))
        } else if rest[0] == b'"' {
            let end = at + 1 + quoted(&rest[1..], b'"');
            literals.push(Words { start: at + 1, text: unescaped(&text[at + 1..end]) });
            (at + 1..end, (end + 1).min(bytes.len()))
        } else if let Some(length) = character(&text[at..]) {
            (at + 1..at + length - 1, at + length)
        } else {
            (at..at, at + 1)
        };
        for byte in &mut code[inside] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    (String::from_utf8(code).expect("only whole characters were replaced"), literals, comments)
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// How many `#` the raw string at `at` has; none if there is no raw string.
fn raw_string(bytes: &[u8], at: usize) -> Option<usize> {
    let prefixed = at.checked_sub(1).is_some_and(|i| matches!(bytes[i], b'b' | b'c'));
    let name_start = if prefixed { at - 1 } else { at };
    if bytes[at] != b'r' || name_start.checked_sub(1).is_some_and(|i| is_name(bytes[i])) {
        return None;
    }
    let hashes = bytes[at + 1..].iter().take_while(|&&b| b == b'#').count();
    (bytes.get(at + 1 + hashes) == Some(&b'"')).then_some(hashes)
}

/// Bytes before the closing quote.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 0;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    at.min(rest.len())
}

/// The length of the character literal that `rest` begins with; none for a lifetime.
fn character(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    let length = if first == '\\' { quoted(inside.as_bytes(), b'\'') } else { first.len_utf8() };
    inside[length..].starts_with('\'').then_some(length + 2)
}

/// Every escape counts as the one character that it stands for; a line continuation as none.
fn unescaped(literal: &str) -> String {
    let mut out = String::new();
    let mut rest = literal.chars().peekable();
    while let Some(next) = rest.next() {
        match (next, rest.peek()) {
            ('\\', Some('\n')) => while rest.next_if(|c| c.is_whitespace()).is_some() {},
            ('\\', Some(_)) => out.extend(rest.next()),
            _ => out.push(next),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn words_are_taken_out_of_the_code() {
        let text = r###"
let a = "one \" two"; // three
let b = r#"four " five"#; /* six /* seven */ */
fn f<'a>(c: &'a str) -> char { '"' }
let d = ("ninety \
          nine", '\'', b"x", br"y\", r#type);
"###;
        let source = Source::new("a.rs", text);
        expect![[r##"

            let a = "          ";         
            let b = r#"           "#;                      
            fn f<'a>(c: &'a str) -> char { ' ' }
            let d = ("        
                          ", '  ', b" ", br"  ", r#type);
        "##]]
        .assert_eq(&source.code);
        let literals: Vec<&str> = source.literals.iter().map(|words| words.text.as_str()).collect();
        assert_eq!(literals, ["one \" two", "four \" five", "ninety nine", "x", "y\\"]);
        let comments: Vec<&str> = source.comments.iter().map(|words| words.text.as_str()).collect();
        assert_eq!(comments, ["// three", "/* six /* seven */ */"]);
    }

    #[test]
    fn the_part_of_tests_is_known() {
        let text = "//! A.\nfn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n#[cfg(test)]\nmod faults;\n";
        let source = Source::new("a.rs", text);
        assert_eq!(source.lines(), 3);
        assert_eq!(source.test_modules, ["faults"]);
        assert!(source.in_tests(text.find("fn b").unwrap()));
        assert!(!source.in_tests(text.find("fn c").unwrap()));
        assert_eq!(Source::new("a/tests/b.rs", text).lines(), 0);
    }
}
