//! Whether standard output took all that was said: a script that reads a file must not take a full disk for success.

use crate::Printer;
use std::io::{ErrorKind, Result, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// What went wrong first on a printer.
#[derive(Clone, Default)]
pub struct Trouble(Arc<Mutex<Option<String>>>);

impl Trouble {
    /// The same printer, watched.
    pub fn watching(&self, inner: &Printer) -> Printer {
        Arc::new(Mutex::new(Watched { inner: inner.clone(), trouble: self.clone() }))
    }

    /// What it was, if there was any.
    pub fn told(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep<T>(&self, done: Result<T>) -> Result<T> {
        // A reader that went away (`autosage runs | head`) is no trouble of ours.
        if let Err(error) = &done
            && !matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted)
        {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| error.to_string());
        }
        done
    }
}

struct Watched {
    inner: Printer,
    trouble: Trouble,
}

impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.trouble.keep(self.inner.lock().unwrap_or_else(PoisonError::into_inner).write(bytes))
    }

    fn flush(&mut self) -> Result<()> {
        self.trouble.keep(self.inner.lock().unwrap_or_else(PoisonError::into_inner).flush())
    }
}
