//! Names of files as agents see and write them (any bytes as text, and back), and numbers of things.

use sandbox::capture::grouped;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A path as text: what is not UTF-8 and control characters as `\xNN`, and so a backslash that would read as one of these.
pub fn shown(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        let valid = chunk.valid();
        for (at, c) in valid.char_indices() {
            let ambiguous = c == '\\' && escaped(&valid.as_bytes()[at..]).is_some();
            if c.is_control() || ambiguous {
                c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| escape(&mut text, byte));
            } else {
                text.push(c);
            }
        }
        chunk.invalid().iter().for_each(|byte| escape(&mut text, *byte));
    }
    text
}

/// The path that a text from [`shown`] names.
pub fn meant(text: &str) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let (byte, after) = escaped(rest).map_or((first, after), |byte| (byte, &rest[4..]));
        bytes.push(byte);
        rest = after;
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// What `path`, as an agent wrote it, names for one whose directory is `cwd`: absolute, without `.` and doubled slashes.
/// What `..` means is for the file system to say, for the folder before it may be a link.
pub fn absolute(cwd: &Path, path: &str) -> PathBuf {
    cwd.join(meant(path)).components().collect()
}

/// `path` for an agent whose directory is `cwd`: relative where it lies below.
pub fn brief(cwd: &Path, path: &str) -> String {
    match meant(path).strip_prefix(cwd) {
        Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
        Ok(below) => shown(below),
        Err(_) => path.to_owned(),
    }
}

/// `1 line`, `1,234 lines`.
pub fn counted(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

fn escape(text: &mut String, byte: u8) {
    text.push_str(&format!("\\x{byte:02x}"));
}

/// The byte that `\xNN` at the start of `bytes` stands for.
fn escaped(bytes: &[u8]) -> Option<u8> {
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    if !bytes.starts_with(b"\\x") {
        return None;
    }
    u8::try_from(digit(2)? * 16 + digit(3)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn any_name_can_be_shown() {
        let name = |bytes: &[u8]| shown(Path::new(std::ffi::OsStr::from_bytes(bytes)));
        assert_eq!(name(b"caf\xc3\xa9 a\\b"), "café a\\b");
        assert_eq!(name(b"a\xff\n\\x41"), r"a\xff\x0a\x5cx41");
        assert_eq!(brief(Path::new("/w"), "/w/a/b"), "a/b");
        assert_eq!(brief(Path::new("/w"), "/w"), ".");
        assert_eq!(brief(Path::new("/w"), "/wide"), "/wide");
        assert_eq!(absolute(Path::new("/w/x"), "./a//b/../c"), Path::new("/w/x/a/b/../c"));
        assert_eq!(absolute(Path::new("/w/x"), "/etc/hosts"), Path::new("/etc/hosts"));
    }

    proptest! {
        #[test]
        fn what_is_shown_can_be_given_back(bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"\\x41\n".to_vec())], 0..12)) {
            let path = PathBuf::from(OsString::from_vec(bytes));
            let text = shown(&path);
            prop_assert!(!text.contains(char::is_control));
            prop_assert_eq!(meant(&text).into_os_string(), path.into_os_string());
        }
    }
}
