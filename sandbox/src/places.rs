//! The list in `data/places.txt`: what of the host an environment shows.

/// One line of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// What is done with it.
    pub sort: Sort,
    /// Absolute for the system's, relative to the person's home for toolchains.
    pub path: &'static str,
    /// Whether it belongs on `PATH`.
    pub on_path: OnPath,
    /// The variable by which its tool finds it elsewhere.
    pub variable: Option<&'static str>,
}

/// What is done with a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Shown read-only.
    System,
    /// Hidden within the system's.
    Mask,
    /// A toolchain, shown read-only.
    Read,
    /// A toolchain's cache, with a throw-away layer over it.
    Cache,
}

/// Whether programs are looked for in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnPath {
    /// They are.
    Yes,
    /// They are not.
    No,
}

/// The whole list, in its order.
pub(crate) fn entries() -> impl Iterator<Item = Entry> {
    include_str!("../data/places.txt").lines().filter_map(entry)
}

fn entry(line: &'static str) -> Option<Entry> {
    let mut words = line.split_whitespace();
    let sort = match words.next()? {
        "system" => Sort::System,
        "mask" => Sort::Mask,
        "read" => Sort::Read,
        "cache" => Sort::Cache,
        _ => return None,
    };
    let path = words.next()?;
    let mut rest = words.peekable();
    let on_path = if rest.next_if_eq(&"path").is_some() { OnPath::Yes } else { OnPath::No };
    Some(Entry { sort, path, on_path, variable: rest.next() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_that_is_no_comment_is_an_entry() {
        let lines = include_str!("../data/places.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        assert!(lines > 50);
        assert_eq!(entries().count(), lines);
    }

    #[test]
    fn paths_are_absolute_for_the_system_and_relative_for_toolchains() {
        for entry in entries() {
            assert_eq!(entry.path.starts_with('/'), matches!(entry.sort, Sort::System | Sort::Mask), "{entry:?}");
            assert!(!entry.path.ends_with('/') && !entry.path.contains(".."), "{entry:?}");
        }
    }

    #[test]
    fn words_after_the_path_are_read() {
        assert_eq!(
            entry("read .x/bin path X_HOME"),
            Some(Entry { sort: Sort::Read, path: ".x/bin", on_path: OnPath::Yes, variable: Some("X_HOME") })
        );
        assert_eq!(entry("cache .x Y"), Some(Entry { sort: Sort::Cache, path: ".x", on_path: OnPath::No, variable: Some("Y") }));
        assert_eq!(entry("# read .x"), None);
    }
}
