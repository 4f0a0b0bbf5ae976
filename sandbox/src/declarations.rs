//! Reads what `declare -px` of bash prints: the exported variables, each quoted so that bash could read it again.

use std::collections::BTreeMap;

/// The exported variables that have a value. `None` if this is not what bash prints.
pub(crate) fn exported(text: &[u8]) -> Option<BTreeMap<String, Vec<u8>>> {
    let mut variables = BTreeMap::new();
    let mut rest = text;
    while !rest.is_empty() {
        rest = rest.strip_prefix(b"declare -")?;
        rest = &rest[position(rest, |byte| byte == b' ')? + 1..];
        let end = position(rest, |byte| byte == b'=' || byte == b'\n')?;
        let name = std::str::from_utf8(&rest[..end]).ok()?.to_owned();
        let has_value = rest[end] == b'=';
        rest = &rest[end + 1..];
        if has_value {
            let (value, after) = value(rest)?;
            if let Some(value) = value {
                variables.insert(name, value);
            }
            rest = after.strip_prefix(b"\n")?;
        }
    }
    Some(variables)
}

fn position(bytes: &[u8], wanted: impl Fn(u8) -> bool) -> Option<usize> {
    bytes.iter().position(|byte| wanted(*byte))
}

/// A quoted value (nothing for an array, which no program can be given) and what follows it.
fn value(text: &[u8]) -> Option<(Option<Vec<u8>>, &[u8])> {
    match text {
        [b'"', rest @ ..] => double_quoted(rest).map(|(value, after)| (Some(value), after)),
        [b'$', b'\'', rest @ ..] => ansi_quoted(rest).map(|(value, after)| (Some(value), after)),
        [b'(', ..] => Some((None, &text[position(text, |byte| byte == b'\n')?..])),
        _ => None,
    }
}

fn double_quoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut value = Vec::new();
    let mut rest = text;
    loop {
        match rest {
            [b'"', after @ ..] => return Some((value, after)),
            [b'\\', byte @ (b'"' | b'\\' | b'$' | b'`'), after @ ..] | [byte, after @ ..] => {
                value.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

fn ansi_quoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut value = Vec::new();
    let mut rest = text;
    loop {
        match rest {
            [b'\'', after @ ..] => return Some((value, after)),
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] => {
                value.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = after;
            }
            [b'\\', letter, after @ ..] => {
                value.push(match letter {
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b'E' | b'e' => 0x1b,
                    b'f' => 0x0c,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'v' => 0x0b,
                    other => *other,
                });
                rest = after;
            }
            [byte, after @ ..] => {
                value.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Option<Vec<u8>> {
        exported(format!("declare -x A={text}\n").as_bytes())?.remove("A")
    }

    #[test]
    fn quotes_are_undone() {
        assert_eq!(one(r#""a \"b\" \$c \`d\` \\e 'f'""#).unwrap(), br#"a "b" $c `d` \e 'f'"#);
        assert_eq!(one("\"two\nlines\"").unwrap(), b"two\nlines");
        assert_eq!(one(r"$'x\ny\t\E\'\\\377\001'").unwrap(), b"x\ny\t\x1b'\\\xff\x01");
        assert_eq!(one("\"\"").unwrap(), b"");
    }

    #[test]
    fn other_declarations_are_passed_over() {
        let text = b"declare -x UNSET\ndeclare -ax LIST=([0]=\"1\" [1]=\"2\")\ndeclare -irx N=\"5\"\n";
        assert_eq!(exported(text).unwrap(), BTreeMap::from([("N".to_owned(), b"5".to_vec())]));
    }

    #[test]
    fn what_is_cut_off_is_nothing() {
        for text in ["declare -x A=\"1", "declare -x A", "declare", "A=1\n", "declare -x A=$'1"] {
            assert_eq!(exported(text.as_bytes()), None, "{text}");
        }
    }
}
