//! What is done inside an environment, each in a forked worker behind the walls: looking, writing, editing, searching, finding.
//!
//! Requests and answers are JSON. Paths travel as [`crate::names`] shows them, absolute. With each request comes what is
//! secret, so that it is hidden before anything is cut, and with each answer goes what was hidden.

pub mod change;
pub mod find;
pub mod search;
pub mod view;
pub mod walk;

use sandbox::Op;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use trace::secrets::{Hiding, Met};
use trace::{Digest, Secrets};

/// The operations, by name.
pub const OPS: [(&str, Op); 5] = [
    (view::NAME, |request| serve(request, view::view)),
    (change::WRITE, |request| serve(request, |request, _| change::write(request))),
    (change::EDIT, |request| serve(request, change::edit)),
    (search::NAME, |request| serve(request, search::search)),
    (find::NAME, |request| serve(request, find::find)),
];

/// A request, and what is to be hidden in its answer.
#[derive(Serialize, Deserialize)]
pub struct Question<Q> {
    pub ask: Q,
    pub hide: Hiding,
}

/// An answer, and what was hidden in it.
#[derive(Serialize, Deserialize)]
pub struct Told<A> {
    pub answer: A,
    pub met: Met,
}

/// Both sides are one program, so a request that cannot be read is a defect: the panic tells the caller which.
fn serve<Q: DeserializeOwned, A: Serialize>(request: &[u8], op: fn(Q, &Secrets) -> A) -> Vec<u8> {
    let request: Question<Q> =
        serde_json::from_slice(request).unwrap_or_else(|error| panic!("a request from another program: {error}"));
    let secrets = Secrets::of_request(request.hide);
    let answer = op(request.ask, &secrets);
    serde_json::to_vec(&Told { answer, met: secrets.met() }).unwrap_or_else(|error| panic!("an answer that is no JSON: {error}"))
}

/// Why the system did not do something, in words for the agent.
fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file or folder here".to_owned(),
        io::ErrorKind::PermissionDenied => "this is not permitted".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "this can only be read here".to_owned(),
        io::ErrorKind::NotADirectory => "a part of the path is not a folder".to_owned(),
        _ => error.to_string(),
    }
}

/// The digest of what was hashed.
fn digest(hasher: &blake3::Hasher) -> Digest {
    Digest::from(hasher.finalize())
}
