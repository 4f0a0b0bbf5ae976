//! Writes down what a model answers, so that it can be played again.

use crate::recorded::{Head, Line, Prompt, Seen, VERSION};
use crate::wire::Wire;
use crate::{Ask, Masks, Model};
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use trace::secrets::Opaque;
use trace::{Fault, FaultClass, ModelSpec, Replied, Secrets, Stop};

/// Asks another model, and those to fall back on, and keeps their replies in a file, each with the digest of what it
/// answers, written before the reply is returned.
pub struct Recorder {
    inner: Box<dyn Model>,
    fallback: Vec<Box<dyn Model>>,
    file: Mutex<File>,
    masks: Mutex<Masks>,
    secrets: Mutex<Secrets>,
}

impl Recorder {
    /// Begins a recording of `inner`, and of those to `fallback` on, at `path`. A file that is there already is an error: a
    /// recording is never overwritten.
    pub fn create(inner: Box<dyn Model>, fallback: Vec<Box<dyn Model>>, path: &Path) -> io::Result<Recorder> {
        let mut file = File::create_new(path)?;
        let (spec, further) = (inner.spec().clone(), fallback.iter().map(|model| model.spec().clone()).collect());
        let head = Head { autosage_recording: VERSION, strict: true, spec, fallback: further };
        let secrets = Secrets::of_nothing();
        write(&mut file, &[head], &secrets)?;
        Ok(Recorder { inner, fallback, file: Mutex::new(file), masks: Mutex::default(), secrets: Mutex::new(secrets) })
    }

    /// The models to fall back on. What they answer is kept in the same file.
    pub fn fallback(self: &Arc<Recorder>) -> Vec<Arc<dyn Model>> {
        let of = |at: usize| Arc::new(Further { recorder: self.clone(), which: at + 1 }) as Arc<dyn Model>;
        (0..self.fallback.len()).map(of).collect()
    }

    /// The model `which`, the first of which is 0.
    fn model(&self, which: usize) -> &dyn Model {
        which.checked_sub(1).and_then(|at| self.fallback.get(at)).unwrap_or(&self.inner).as_ref()
    }

    /// What differs between runs and does not make a prompt another one; to be said before the first request.
    pub fn mask(&self, masks: Masks) {
        *self.masks.lock().unwrap_or_else(PoisonError::into_inner) = masks;
    }

    /// From here on `secrets` stand in the file as placeholders; before, those that their shape gives away.
    pub fn hide(&self, secrets: &Secrets) {
        *self.secrets.lock().unwrap_or_else(PoisonError::into_inner) = secrets.clone();
    }

    /// To be told of each observation in order, with the exit code if there is one.
    pub fn observed(&self, exit: Option<i32>) -> io::Result<()> {
        self.keep(&[Line::Observed(Seen { exit })])
    }

    fn keep(&self, lines: &[Line]) -> io::Result<()> {
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner).clone();
        write(&mut self.file.lock().unwrap_or_else(PoisonError::into_inner), lines, &secrets)
    }

    async fn asked(&self, ask: Ask<'_>, which: usize) -> Replied {
        let model = self.model(which);
        let body = Wire::of(model.spec()).without_key(ask.body);
        let masked = self.masks.lock().unwrap_or_else(PoisonError::into_inner).hide(&body);
        let asked = Line::Asked(Prompt::of(&masked, which));
        let replied = model.ask(ask).await;
        match self.keep(&[asked, Line::Replied(Box::new(replied.clone()))]) {
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
        Box::pin(self.asked(ask, 0))
    }
}

/// A model to fall back on that is recorded.
struct Further {
    recorder: Arc<Recorder>,
    which: usize,
}

impl Model for Further {
    fn spec(&self) -> &ModelSpec {
        self.recorder.model(self.which).spec()
    }

    fn ask<'a>(&'a self, ask: Ask<'a>) -> BoxFuture<'a, Replied> {
        Box::pin(self.recorder.asked(ask, self.which))
    }
}

/// Writes lines at once, so that a reply never stands there without what it answers.
fn write(file: &mut File, lines: &[impl Serialize], secrets: &Secrets) -> io::Result<()> {
    let mut text = String::new();
    for line in lines {
        let json = serde_json::to_string(line)?;
        let hidden = secrets.hide_json(&json, Opaque::Exempt)?;
        text.push_str(&hidden.map_or(json, |hidden| hidden.to_string()));
        text.push('\n');
    }
    file.write_all(text.as_bytes())
}
