//! Shapes of secrets that can be told by an exact prefix: a list of data, and the rules by which a text is judged.
//!
//! Each row says what its provider's documentation or the tokens that it gives out say: the letters after the prefix and
//! how many there are. They are narrow, so that words (`task-list`, `sk-learn`, `AKIAlice`) are left alone.

use super::runs::{Letters, Runs};
use std::collections::BTreeSet;

/// The longest piece of a private key that is one secret; a longer one is several.
pub(super) const PIECE: usize = 64 << 10;
/// Bytes before a prefix that say whether it begins a word.
pub(super) const LOOK_BACK: usize = 16;
/// A base64 line of a key is longer than this, its last one aside.
const KEY_LINE: usize = 40;
/// The longest line `Name: value` that stands before those of a key.
const FIELD: usize = 200;
/// The most bytes of such lines before the first of base64, the line that begins the key included.
const FIELDS: usize = 1 << 10;
/// The word for a private key in a placeholder.
pub(super) const PRIVATE_KEY: &str = "private-key";
/// What every block in PEM begins and ends with.
const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";

/// A kind of secret that is known by its looks.
#[derive(Debug)]
pub(super) struct Shape {
    /// The word for it in a placeholder.
    pub kind: &'static str,
    pub prefix: &'static str,
    rest: Rest,
}

#[derive(Debug)]
enum Rest {
    /// As many as `least` to `most` of these letters.
    Token { letters: Letters, digit: Digit, least: usize, most: usize, front: Front },
    /// The rest of a private key in PEM.
    PrivateKey,
}

/// Whether one of the letters must be a digit: a word has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Digit {
    Needed,
    Free,
}

/// What may stand before a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Front {
    /// Anything: the prefix alone tells enough.
    Any,
    /// No letter and no digit, unless they belong to an escape.
    Word,
}

/// What a text that begins with a prefix turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// A secret of so many bytes.
    Secret(usize),
    /// The first [`PIECE`] of a secret, which goes on.
    Piece,
    /// Nothing.
    Nothing,
    /// What comes next decides.
    Open,
}

/// Whether more of a text may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// It may.
    GoesOn,
    /// This is its end.
    Ended,
}

const fn token(kind: &'static str, prefix: &'static str, letters: Letters, least: usize, most: usize, front: Front) -> Shape {
    Shape { kind, prefix, rest: Rest::Token { letters, digit: Digit::Free, least, most, front } }
}

const fn with_digit(kind: &'static str, prefix: &'static str, least: usize, most: usize, front: Front) -> Shape {
    Shape { kind, prefix, rest: Rest::Token { letters: Alnum, digit: Digit::Needed, least, most, front } }
}

use Front::{Any, Word};
use Letters::{Alnum, Dotted, Upper, Url};

/// All of them. Sources: the providers' pages on token formats, of 2026.
pub(super) const SHAPES: &[Shape] = &[
    // docs.github.com, "About authentication to GitHub": prefixes, 36 letters and more, at most 255; the tokens of apps may
    // be longer and hold dots.
    token("github-token", "ghp_", Alnum, 36, 251, Any),
    token("github-token", "gho_", Alnum, 36, 251, Any),
    token("github-token", "ghu_", Alnum, 36, 251, Any),
    token("github-token", "ghs_", Dotted, 36, 1500, Any),
    token("github-token", "ghr_", Alnum, 36, 251, Any),
    token("github-token", "github_pat_", Url, 60, 251, Any),
    // docs.gitlab.com, "GitLab token overview": 20 letters and more, of newer ones some with dots.
    token("gitlab-token", "glpat-", Dotted, 20, 300, Any),
    token("gitlab-token", "gldt-", Dotted, 20, 300, Word),
    token("gitlab-token", "glrt-", Dotted, 20, 300, Word),
    token("gitlab-token", "glcbt-", Dotted, 20, 300, Word),
    token("gitlab-token", "glptt-", Dotted, 20, 300, Word),
    token("gitlab-token", "glsoat-", Dotted, 20, 300, Word),
    token("gitlab-token", "gloas-", Dotted, 20, 300, Word),
    // platform.claude.com, openrouter.ai, platform.openai.com and the many that imitate the last.
    token("anthropic-key", "sk-ant-", Url, 32, 256, Word),
    token("openrouter-key", "sk-or-v1-", Alnum, 64, 64, Word),
    token("openai-key", "sk-proj-", Url, 40, 256, Word),
    token("openai-key", "sk-svcacct-", Url, 40, 256, Word),
    token("openai-key", "sk-admin-", Url, 40, 256, Word),
    with_digit("api-key", "sk-", 20, 128, Word),
    token("groq-key", "gsk_", Alnum, 40, 128, Word),
    token("xai-key", "xai-", Alnum, 64, 128, Word),
    token("perplexity-key", "pplx-", Alnum, 40, 128, Word),
    token("nvidia-key", "nvapi-", Url, 60, 128, Word),
    token("replicate-token", "r8_", Alnum, 37, 64, Word),
    token("huggingface-token", "hf_", Alnum, 34, 64, Word),
    // docs.aws.amazon.com, "IAM identifiers": a lasting and a temporary access key's id.
    token("aws-key", "AKIA", Upper, 16, 16, Word),
    token("aws-key", "ASIA", Upper, 16, 16, Word),
    // cloud.google.com: keys of APIs, secrets of OAuth clients, access tokens.
    token("google-key", "AIza", Url, 35, 35, Word),
    token("google-secret", "GOCSPX-", Url, 28, 64, Word),
    token("google-token", "ya29.", Dotted, 30, 1500, Word),
    // api.slack.com, "Token types".
    token("slack-token", "xoxb-", Url, 20, 300, Word),
    token("slack-token", "xoxp-", Url, 20, 300, Word),
    token("slack-token", "xoxa-", Url, 20, 300, Word),
    token("slack-token", "xoxr-", Url, 20, 300, Word),
    token("slack-token", "xoxs-", Url, 20, 300, Word),
    token("slack-token", "xoxe-", Url, 20, 300, Word),
    token("slack-token", "xapp-", Url, 30, 300, Word),
    // docs.stripe.com, "API keys" and "webhooks".
    token("stripe-key", "sk_live_", Alnum, 16, 255, Any),
    token("stripe-key", "rk_live_", Alnum, 16, 255, Any),
    with_digit("stripe-key", "sk_test_", 16, 255, Any),
    with_digit("stripe-key", "rk_test_", 16, 255, Any),
    token("stripe-key", "whsec_", Alnum, 32, 255, Any),
    // Registries and clouds.
    token("npm-token", "npm_", Alnum, 36, 64, Any),
    token("pypi-token", "pypi-AgE", Url, 50, 1500, Word),
    token("docker-token", "dckr_pat_", Url, 24, 64, Any),
    token("digitalocean-token", "dop_v1_", Alnum, 64, 64, Any),
    token("vault-token", "hvs.", Url, 24, 300, Word),
    token("sendgrid-key", "SG.", Dotted, 60, 80, Word),
    token("grafana-token", "glsa_", Url, 41, 64, Any),
    // RFC 7468, RFC 4880: PRIVATE KEY with other words around it.
    Shape { kind: PRIVATE_KEY, prefix: "-----BEGIN ", rest: Rest::PrivateKey },
];

impl Shape {
    /// Whether what stands before its prefix, at most [`LOOK_BACK`] bytes of it, allows it to begin there.
    pub fn may_follow(&self, before: &[u8]) -> bool {
        match self.rest {
            Rest::Token { front: Front::Word, .. } => is_front(&before[before.len().saturating_sub(LOOK_BACK)..]),
            Rest::Token { front: Front::Any, .. } | Rest::PrivateKey => true,
        }
    }

    /// What begins with the prefix at `start` of `text`.
    pub fn judge(&self, text: &[u8], start: usize, end: Text, runs: &mut Runs) -> Judged {
        match &self.rest {
            Rest::Token { letters, digit, least, most, .. } => {
                let first = start + self.prefix.len();
                let run = runs.at(*letters, text, first);
                let last = run.end().min(first + most + 1);
                if last == text.len() && last - first <= *most && end == Text::GoesOn {
                    return Judged::Open;
                }
                // A longer run is something else; a dot at its end ends a sentence.
                let length = last - first - run.dots(first, last);
                let fits = (*least..=*most).contains(&length) && (*digit == Digit::Free || run.has_digit(first));
                if fits { Judged::Secret(self.prefix.len() + length) } else { Judged::Nothing }
            }
            Rest::PrivateKey => {
                let text = &text[start..];
                header(text, end).map_or_else(|judged| judged, |at| key(text, at, end, Line::Unseen))
            }
        }
    }
}

/// What `text` is, where the private key before it was a [`Judged::Piece`].
pub(super) fn judge_more(text: &[u8], end: Text) -> Judged {
    key(text, 0, end, Line::Full)
}

/// Whether a word can begin after `before`: at the start, after anything but a letter or digit, and after an escape that
/// ends in one (`\n`, `\u003d`, `%3D`, a terminal's colours).
fn is_front(before: &[u8]) -> bool {
    let Some((last, rest)) = before.split_last() else { return true };
    if !last.is_ascii_alphanumeric() {
        return true;
    }
    let hex = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    let short_escape = rest.last() == Some(&b'\\') && b"nrtbf".contains(last);
    let unicode = before.len() >= 6 && before[before.len() - 6..].starts_with(b"\\u") && hex(&before[before.len() - 4..]);
    let percent = before.len() >= 3 && before[before.len() - 3] == b'%' && hex(&before[before.len() - 2..]);
    short_escape || unicode || percent || ends_colour(before)
}

/// Whether `before` ends in a control sequence: escape, `[`, numbers, a letter. The escape may be written `\u001b` or `\x1b`.
fn ends_colour(before: &[u8]) -> bool {
    let Some(rest) = before.strip_suffix(b"m") else { return false };
    let numbers = rest.iter().rev().take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
    let Some(escape) = rest[..rest.len() - numbers].strip_suffix(b"[") else { return false };
    [&b"\x1b"[..], b"\\u001b", b"\\x1b", b"\\e", b"\\033"].iter().any(|written| escape.ends_with(written))
}

/// The end of the line that begins a private key.
fn header(text: &[u8], end: Text) -> Result<usize, Judged> {
    const LONGEST: usize = 40;
    let words = &text[BEGIN.len()..];
    let run = words.iter().take(LONGEST + 1).take_while(|byte| byte.is_ascii_uppercase() || matches!(byte, b' ' | b'0'..=b'9'));
    let run = run.count();
    let behind = &words[run..];
    if run <= LONGEST && behind.len() < DASHES.len() && DASHES.starts_with(behind) && end == Text::GoesOn {
        return Err(Judged::Open);
    }
    let names_key = words[..run].windows(11).any(|words| words == b"PRIVATE KEY");
    if names_key && behind.starts_with(DASHES) { Ok(BEGIN.len() + run + DASHES.len()) } else { Err(Judged::Nothing) }
}

/// Which lines of a key were seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Unseen,
    /// The last one was as long as all but the last line are.
    Full,
    /// The last one was short: the end follows.
    Short,
}

/// The lines of a key from `at` on: base64 up to the line that ends it, or as far as there is base64 if none does.
fn key(text: &[u8], mut at: usize, end: Text, mut line: Line) -> Judged {
    let mut last = 0;
    let so_far = |last: usize| if last > 0 { Judged::Secret(last) } else { Judged::Nothing };
    loop {
        at += between(&text[at..]);
        if at > PIECE {
            return Judged::Piece;
        }
        let rest = &text[at..];
        if rest.len() < END.len() && END.starts_with(rest) || is_escape_begun(rest) {
            return if end == Text::GoesOn { Judged::Open } else { so_far(last) };
        }
        if let Some(words) = rest.strip_prefix(END) {
            let run = words.iter().take(41).take_while(|byte| byte.is_ascii_uppercase() || matches!(byte, b' ' | b'0'..=b'9'));
            let run = run.count();
            let behind = &words[run..];
            if behind.len() < DASHES.len() && DASHES.starts_with(behind) && end == Text::GoesOn {
                return Judged::Open;
            }
            let closed = if behind.starts_with(DASHES) { END.len() + run + DASHES.len() } else { END.len() };
            return if last > 0 { Judged::Secret(at + closed) } else { Judged::Nothing };
        }
        let is_base64 = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
        let run = rest.iter().take(PIECE + 1).take_while(is_base64).count();
        if line == Line::Unseen && run < rest.len().min(KEY_LINE) {
            // Lines of the form `Name: value` may stand before those of the key.
            match field(rest) {
                Some(_) if at > FIELDS => return Judged::Nothing,
                Some(length) => at += length,
                None if rest.len() < FIELD && end == Text::GoesOn => return Judged::Open,
                None => return Judged::Nothing,
            }
            continue;
        }
        let is_full = run >= KEY_LINE;
        if at + run == text.len() && end == Text::GoesOn {
            let is_piece = at + run > PIECE && (is_full || line == Line::Full);
            return if is_piece { Judged::Piece } else { Judged::Open };
        }
        let belongs = is_full || line == Line::Full || rest.starts_with(b"=") && last > 0;
        if run == 0 || !belongs {
            return so_far(last);
        }
        at += run;
        last = at;
        line = if is_full { Line::Full } else { Line::Short };
    }
}

/// Whether `line` begins or ends a block in PEM.
pub(super) fn is_mark(line: &str) -> bool {
    line.as_bytes().starts_with(DASHES)
}

/// The long lines of base64 of the private key `block`, each once, in pieces where they are very long; none of what is no such
/// key.
pub(super) fn key_lines(block: &str) -> BTreeSet<String> {
    const LONGEST: usize = 128;
    if !block.as_bytes().starts_with(BEGIN) || !block.contains("PRIVATE KEY") {
        return BTreeSet::new();
    }
    // Line ends may be written as escapes.
    let written = block.replace("\\n", "\n").replace("\\r", "\n");
    let lines = written.split(|c: char| !c.is_ascii_alphanumeric() && !"+/=".contains(c));
    let pieces = lines.flat_map(|line| (0..line.len()).step_by(LONGEST).map(move |at| &line[at..line.len().min(at + LONGEST)]));
    pieces.filter(|piece| piece.len() >= KEY_LINE).map(str::to_owned).collect()
}

/// The length of a line `Name: value` and its end; `None` where there is none, or not all of it.
fn field(text: &[u8]) -> Option<usize> {
    let name = text.iter().take(24).take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-').count();
    if name == 0 || !text[name..].starts_with(b": ") {
        return None;
    }
    let end = text.iter().take(FIELD).position(|byte| *byte == b'\n' || *byte == b'\\')?;
    Some(end)
}

/// Bytes between two lines of a key: white space, line ends that are written as escapes, and what tools put before lines.
fn between(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        at += match rest {
            [b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'\'' | b',' | b'|' | b'>' | b'#' | b'*', ..] => 1,
            // What a difference puts before a line that went; the end's own dashes are more than one.
            [b'-', next, ..] if *next != b'-' => 1,
            [b'0'..=b'9', ..] if number(rest) > 0 => number(rest),
            [b'\\', ..] => {
                let backslashes = rest.iter().take_while(|byte| **byte == b'\\').count();
                match rest.get(backslashes) {
                    Some(b'n' | b'r' | b't') => backslashes + 1,
                    _ => return at,
                }
            }
            _ => return at,
        };
    }
}

/// The length of a line's number and what stands behind it, as `cat -n` and `grep -n` put them; 0 where there is none.
fn number(text: &[u8]) -> usize {
    const LONGEST: usize = 7;
    let digits = text.iter().take(LONGEST + 1).take_while(|byte| byte.is_ascii_digit()).count();
    if digits <= LONGEST && matches!(text.get(digits), Some(b'\t' | b':')) { digits + 1 } else { 0 }
}

/// Whether the text ends where the next line of a key, or an escape, may begin.
fn is_escape_begun(text: &[u8]) -> bool {
    text.is_empty() || text.iter().all(|byte| *byte == b'\\')
}
