//! A configuration file as it lies on the disk: a regular file, of which only so much is read.

use anyhow::{Context, bail};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The most bytes of a file of settings.
const MOST: u64 = 1 << 20;

/// The text of the settings at `path`; `None` where nothing is there.
///
/// # Errors
/// Where it is no regular file, larger than a file of settings may be, no text, or cannot be read.
pub fn settings(path: &Path) -> anyhow::Result<Option<String>> {
    let Some(bytes) = start(path, MOST + 1)? else { return Ok(None) };
    if bytes.len() as u64 > MOST {
        bail!("it has more than 1 MiB, which is the most for such a file: make it smaller");
    }
    Ok(Some(String::from_utf8(bytes).context("it is not UTF-8: save it as that")?))
}

/// The first bytes of the file at `path`, `most` of them; `None` where nothing is there.
///
/// # Errors
/// Where it is no regular file, or cannot be read.
pub fn start(path: &Path, most: u64) -> anyhow::Result<Option<Vec<u8>>> {
    let Some(file) = open(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Opens it without waiting for whoever might write into a pipe.
fn open(path: &Path) -> anyhow::Result<Option<File>> {
    match OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => {
            let file = opened?;
            if !file.metadata()?.is_file() {
                bail!("it is not a regular file: one is expected there, or nothing");
            }
            Ok(Some(file))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_a_regular_file_of_a_sensible_size_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let told = || settings(&path).map_err(|error| format!("{error:#}"));
        let is = |end: &str| assert!(told().is_err_and(|error| error.starts_with(end)), "{:?}", told());
        assert_eq!(told(), Ok(None));
        fs::write(&path, "a = 1\n").unwrap();
        assert_eq!(told(), Ok(Some("a = 1\n".to_owned())));
        fs::write(&path, b"a = \xff\n").unwrap();
        is("it is not UTF-8");
        fs::write(&path, vec![b'\n'; MOST as usize]).unwrap();
        assert!(told().is_ok());
        fs::write(&path, vec![b'\n'; MOST as usize + 1]).unwrap();
        is("it has more than 1 MiB");
        for make in ["/dev/zero", "/"] {
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink(make, &path).unwrap();
            is("it is not a regular file");
        }
        fs::remove_file(&path).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        is("it is not a regular file");
    }
}
