//! Escapes in JSON that not every reader takes: halves of characters, for some servers cut an emoji in two where its pieces
//! come in two events, and no parser reads half of one; and NUL, at which llama.cpp ends a prompt
//! (github.com/ggml-org/llama.cpp/issues/25543).

use std::borrow::Cow;

/// `json` with U+FFFD for each `\u` escape that is half of a pair without the other half.
pub fn without_halves(json: &str) -> Cow<'_, str> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return json.into();
    }
    replaced(json, |escape| match (half(escape), escape.get(6..).and_then(half)) {
        (Some(true), Some(false)) => Escape::Kept(12),
        (Some(_), _) => Escape::Replaced,
        (None, _) => Escape::Other,
    })
}

/// `json` with U+FFFD for each `\u0000`.
pub fn without_nul(json: &str) -> Cow<'_, str> {
    const NUL: &str = "\\u0000";
    if !json.contains(NUL) {
        return json.into();
    }
    replaced(json, |escape| if escape.starts_with(NUL) { Escape::Replaced } else { Escape::Other })
}

/// What becomes of a `\u` escape.
enum Escape {
    /// It stays, in so many bytes.
    Kept(usize),
    /// U+FFFD stands for it.
    Replaced,
    /// It is none of those that are looked for.
    Other,
}

/// `json` with those of its escapes replaced that `judge`, who is given the text from each on, says so of.
fn replaced(json: &str, judge: impl Fn(&str) -> Escape) -> Cow<'_, str> {
    let (mut whole, mut rest) = (String::with_capacity(json.len()), json);
    while let Some(at) = rest.find('\\') {
        let escape = &rest[at..];
        let length = match judge(escape) {
            Escape::Kept(length) => length,
            Escape::Replaced => {
                whole.push_str(&rest[..at]);
                whole.push_str("\\ufffd");
                rest = &escape[6..];
                continue;
            }
            // The character behind the backslash begins no new escape.
            Escape::Other => 1 + escape[1..].chars().next().map_or(0, char::len_utf8),
        };
        whole.push_str(&rest[..at + length]);
        rest = &escape[length..];
    }
    whole.push_str(rest);
    whole.into()
}

/// Whether `text` begins with the escape of the first half of a pair (`true`) or of the second; `None` where with neither.
fn half(text: &str) -> Option<bool> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..0xdc00 => Some(true),
        0xdc00..0xe000 => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_is_replaced_and_all_else_stays() {
        for (json, whole) in [
            (r#""plain é \n""#, r#""plain é \n""#),
            (r#""\ud83d\ude00 \uD83D\uDE00""#, r#""\ud83d\ude00 \uD83D\uDE00""#),
            (r#""a\ud83d""#, r#""a\ufffd""#),
            (r#""\ude00b\uDE00""#, r#""\ufffdb\ufffd""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud83d \\\ud83d""#, r#""\\ud83d \\\ufffd""#),
            (r#""\ud83dé\ud83d\n""#, r#""\ufffdé\ufffd\n""#),
        ] {
            assert_eq!(without_halves(json), whole);
            assert!(serde_json::from_str::<String>(&without_halves(json)).is_ok(), "{json}");
        }
        assert_eq!(without_halves(r"\ud83d\"), r"\ufffd\", "what is no JSON is no trouble");
    }
    #[test]
    fn a_nul_is_replaced_and_what_only_looks_like_one_stays() {
        for (json, whole) in [
            (r#""plain \u0001""#, r#""plain \u0001""#),
            (r#""a\u0000b\u0000""#, r#""a\ufffdb\ufffd""#),
            (r#""\\u0000 \\\u0000""#, r#""\\u0000 \\\ufffd""#),
        ] {
            assert_eq!(without_nul(json), whole);
        }
    }
}
