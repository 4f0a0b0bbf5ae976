//! `autosage runs export` and `runs import`: a run as one file.

use super::args::{ExportArgs, ImportArgs};
use super::failure::Failure;
use super::home::Home;
use super::print;
use super::prose::{counted, size};
use super::summary::Summary;
use crate::Parts;
use anyhow::Context;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use trace::{ArchiveError, Archived, Imported};

/// Writes a run into one file, or to standard output.
pub fn export(args: &ExportArgs, home: &Home, parts: &Parts) -> Result<u8, Failure> {
    let folder = home.named(&args.run)?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (archived, place) = match args.file.as_deref() {
        Some(dash) if dash == Path::new("-") => {
            let mut out = parts.out.lock().unwrap_or_else(PoisonError::into_inner);
            (trace::export(&folder, &mut *out)?, "standard output".to_owned())
        }
        named => {
            let path = named.map_or_else(|| PathBuf::from(format!("{name}.tar.gz")), Path::to_owned);
            let (archived, bytes) = write(&folder, &path)?;
            (archived, format!("{}, {}", path.display(), size(bytes)))
        }
    };
    let Archived { run, events, blobs, left_out } = archived;
    let (events, blobs) = (counted(events as u64, "event"), counted(blobs as u64, "blob"));
    print(&parts.err, &format!("{run}: {events} and {blobs} in {place}\n"));
    if left_out > 0 {
        print(&parts.err, &format!("the last {left_out} bytes of its record are no whole event and were left out\n"));
    }
    Ok(0)
}

/// Writes the archive beside and gives it its name when it is whole and on the disk. Returns its bytes too.
fn write(run: &Path, path: &Path) -> Result<(Archived, u64), Failure> {
    if path.exists() {
        return Err(Failure::usage(format!("{} is there already: name another file", path.display())));
    }
    let mut draft = path.file_name().map(|name| std::ffi::OsString::from(format!(".{}", name.to_string_lossy())));
    let name = draft.as_mut().ok_or_else(|| Failure::usage(format!("{} is no name of a file", path.display())))?;
    name.push(format!(".{}", std::process::id()));
    let draft = path.with_file_name(&*name);
    let failed = |error: io::Error| {
        Failure::Infrastructure(anyhow::Error::from(error).context(format!("writing the archive {}", path.display())))
    };
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).map_err(failed)?;
    let written = || -> Result<(Archived, u64), Failure> {
        let mut to = BufWriter::new(&file);
        let archived = trace::export(run, &mut to)?;
        to.flush().and_then(|()| file.sync_all()).map_err(failed)?;
        renameat_with(CWD, &draft, CWD, path, RenameFlags::NOREPLACE).map_err(|error| failed(error.into()))?;
        Ok((archived, file.metadata().map_err(failed)?.len()))
    };
    let written = written();
    if written.is_err() {
        // Half an archive is of no use; what cannot be removed is hidden and says by its name what it is.
        let _ = fs::remove_file(&draft);
    }
    written
}

/// Reads a run from a file, or from standard input.
pub fn import(args: &ImportArgs, home: &Home, parts: &Parts) -> Result<u8, Failure> {
    let from: Box<dyn Read> = if args.file == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let opened = File::open(&args.file).with_context(|| format!("opening the archive {}", args.file.display()));
        Box::new(opened.map_err(Failure::Usage)?)
    };
    let runs = home.runs_folder();
    let (word, archived) = match trace::import(from, &runs, parts.clock.as_ref()).map_err(|error| refused(error, &args.file))? {
        Imported::New(archived) => ("imported", archived),
        Imported::Known(archived) => ("here already, with the same content", archived),
    };
    let Archived { run, events, blobs, .. } = archived;
    let folder = home.run(&run);
    let summary = Summary::glance(&folder, &parts.name)
        .with_context(|| format!("reading {}", folder.display()))
        .map_err(Failure::Infrastructure)?;
    let (events, blobs) = (counted(events as u64, "event"), counted(blobs as u64, "blob"));
    print(&parts.err, &format!("{run} is {word}: {events} and {blobs}, {}\n", size(summary.bytes)));
    if let Some(workspace) = summary.workspace.filter(|workspace| !workspace.is_dir()) {
        let text = format!("its workspace {} is not here: it can be shown, and be resumed where that is\n", workspace.display());
        print(&parts.err, &super::prose::harmless(&text));
    }
    Ok(0)
}

/// An archive that is refused is named: what it holds does not say where it lies.
fn refused(error: ArchiveError, file: &Path) -> Failure {
    match error {
        ArchiveError::Refused(_) => Failure::Usage(anyhow::Error::from(error).context(format!("importing {}", file.display()))),
        error => error.into(),
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Failure {
        match error {
            ArchiveError::Disk { .. } => Failure::Infrastructure(error.into()),
            ArchiveError::NotIntact { .. } => Failure::Unsuccessful(error.into()),
            ArchiveError::Refused(_) | ArchiveError::Taken { .. } => Failure::Usage(error.into()),
        }
    }
}
