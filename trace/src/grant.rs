//! The rights that commands and file tools of a run have beyond their workspace.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Component, Path, PathBuf};

/// What an environment may do besides reading and writing its workspace, its private home and `/tmp`.
/// Absolute paths only. The default grants nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Paths outside the workspace that may be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<PathBuf>,
    /// Paths outside the workspace that may be read and written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<PathBuf>,
    /// Whether the host's network can be reached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Names of the person's variables that commands have. Their values are never recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

impl Grant {
    /// Whether it grants nothing.
    pub fn is_empty(&self) -> bool {
        *self == Grant::default()
    }

    /// Whether it grants all that `other` does. Paths are compared by their words: whoever asks has resolved them.
    pub fn covers(&self, other: &Grant) -> bool {
        self.lacks(other).is_empty()
    }

    /// What `other` grants and this does not.
    pub fn lacks(&self, other: &Grant) -> Grant {
        // What `..` leads to is not to be read off the words.
        let is_plain = |path: &Path| !path.components().any(|part| part == Component::ParentDir);
        let covered = |path: &Path, by: &[PathBuf]| is_plain(path) && by.iter().any(|above| path.starts_with(above));
        Grant {
            read: other.read.iter().filter(|path| !covered(path, &self.read) && !covered(path, &self.write)).cloned().collect(),
            write: other.write.iter().filter(|path| !covered(path, &self.write)).cloned().collect(),
            network: other.network && !self.network,
            secrets: other.secrets.iter().filter(|name| !self.secrets.contains(name)).cloned().collect(),
        }
    }

    /// All that this or `other` grants.
    #[must_use]
    pub fn with(&self, other: &Grant) -> Grant {
        let more = self.lacks(other);
        let joined = |own: &[PathBuf], more: Vec<PathBuf>| own.iter().cloned().chain(more).collect();
        Grant {
            read: joined(&self.read, more.read),
            write: joined(&self.write, more.write),
            network: self.network || more.network,
            secrets: self.secrets.iter().cloned().chain(more.secrets).collect(),
        }
    }
}

impl fmt::Display for Grant {
    /// `the network, writing /a and /b`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = |what: &str, paths: &[PathBuf]| {
            let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            (!paths.is_empty()).then(|| format!("{what} {}", paths.join(" and ")))
        };
        let network = self.network.then(|| "the network".to_owned());
        let secrets = (!self.secrets.is_empty()).then(|| format!("the variables {}", self.secrets.join(" and ")));
        let rights = [network, paths("reading", &self.read), paths("writing", &self.write), secrets];
        f.write_str(&rights.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn write(paths: &[&str]) -> Grant {
        Grant { write: paths.iter().map(PathBuf::from).collect(), ..Grant::default() }
    }

    #[test]
    fn a_folder_covers_what_lies_in_it_and_no_name_that_begins_so() {
        assert!(write(&["/a"]).covers(&write(&["/a/b", "/a"])));
        assert!(!write(&["/a"]).covers(&write(&["/ab"])));
        assert!(!write(&["/a"]).covers(&write(&["/a/../b"])));
        assert!(!write(&["/a/b"]).covers(&write(&["/a"])));
        assert!(write(&["/a"]).covers(&Grant { read: vec!["/a/b".into()], ..Grant::default() }), "what is written can be read");
        assert!(!Grant { read: vec!["/a".into()], ..Grant::default() }.covers(&write(&["/a"])));
        assert!(!Grant::default().covers(&Grant { network: true, ..Grant::default() }));
    }

    fn any_grant() -> impl Strategy<Value = Grant> {
        let paths = || prop::collection::vec(prop::sample::select(vec!["/a", "/a/b", "/ab", "/c"]).prop_map(PathBuf::from), 0..3);
        let names = prop::collection::vec(prop::sample::select(vec!["A", "B"]).prop_map(str::to_owned), 0..2);
        (paths(), paths(), any::<bool>(), names).prop_map(|(read, write, network, secrets)| Grant {
            read,
            write,
            network,
            secrets,
        })
    }

    proptest! {
        #[test]
        fn joined_grants_cover_both_and_no_more(one in any_grant(), other in any_grant(), asked in any_grant()) {
            let joined = one.with(&other);
            prop_assert!(joined.covers(&one) && joined.covers(&other));
            if joined.covers(&asked) {
                // Each single right comes from one of the two.
                let single = |read: Vec<PathBuf>, write: Vec<PathBuf>| Grant { read, write, ..Grant::default() };
                let rights = asked.read.iter().map(|path| single(vec![path.clone()], vec![]))
                    .chain(asked.write.iter().map(|path| single(vec![], vec![path.clone()])));
                for right in rights {
                    prop_assert!(one.covers(&right) || other.covers(&right));
                }
                prop_assert!(!asked.network || one.network || other.network);
                prop_assert!(asked.secrets.iter().all(|name| one.secrets.contains(name) || other.secrets.contains(name)));
            }
        }
    }
}
