//! Writes down what a model answers, so that it can be played again.

use crate::recorded::{Head, Line, Seen, VERSION};
use crate::{Ask, Model};
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use trace::{Fault, FaultClass, ModelSpec, Replied, Stop};

/// Asks another model and keeps its replies in a file, one line each, written before the reply is returned.
pub struct Recorder {
    inner: Box<dyn Model>,
    file: Mutex<File>,
}

impl Recorder {
    /// Begins a recording at `path`. A file that is there already is an error: a recording is never overwritten.
    pub fn create(inner: Box<dyn Model>, path: &Path) -> io::Result<Recorder> {
        let mut file = File::create_new(path)?;
        let head = Head { autosage_recording: VERSION, spec: inner.spec().clone() };
        write(&mut file, &head)?;
        Ok(Recorder { inner, file: Mutex::new(file) })
    }

    /// To be told of each observation in order, with the exit code if there is one.
    pub fn observed(&self, exit: Option<i32>) -> io::Result<()> {
        self.keep(&Line::Observed(Seen { exit }))
    }

    fn keep(&self, line: &Line) -> io::Result<()> {
        write(&mut self.file.lock().unwrap_or_else(PoisonError::into_inner), line)
    }

    async fn asked(&self, ask: Ask<'_>) -> Replied {
        let replied = self.inner.ask(ask).await;
        match self.keep(&Line::Replied(Box::new(replied.clone()))) {
            Ok(()) => replied,
            Err(error) => {
                let message = format!("the recording cannot be written: {error}");
                let fault = Fault { class: FaultClass::Rejected, status: None, request_id: None, message };
                Replied { parts: Vec::new(), stop: Stop::Error(fault), ..replied }
            }
        }
    }
}

impl Model for Recorder {
    fn spec(&self) -> &ModelSpec {
        self.inner.spec()
    }

    fn ask<'a>(&'a self, ask: Ask<'a>) -> BoxFuture<'a, Replied> {
        Box::pin(self.asked(ask))
    }
}

fn write(file: &mut File, line: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    file.write_all(&bytes)
}
