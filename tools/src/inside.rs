//! What is done inside an environment, each in a forked worker behind the walls: looking, writing, editing, searching.
//!
//! Requests and answers are JSON. Paths travel as [`crate::names`] shows them, absolute.

pub mod change;
pub mod search;
pub mod view;

use sandbox::Op;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use trace::Digest;

/// The operations, by name.
pub const OPS: [(&str, Op); 4] = [
    (view::NAME, |request| serve(request, view::view)),
    (change::WRITE, |request| serve(request, change::write)),
    (change::EDIT, |request| serve(request, change::edit)),
    (search::NAME, |request| serve(request, search::search)),
];

/// Both sides are one program, so a request that cannot be read is a defect: the panic tells the caller which.
fn serve<Q: DeserializeOwned, A: Serialize>(request: &[u8], op: fn(Q) -> A) -> Vec<u8> {
    let request = serde_json::from_slice(request).unwrap_or_else(|error| panic!("a request from another program: {error}"));
    serde_json::to_vec(&op(request)).unwrap_or_else(|error| panic!("an answer that is no JSON: {error}"))
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
