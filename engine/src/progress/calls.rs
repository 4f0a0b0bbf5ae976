//! The whole calls of a reply, under names of our own.

use trace::{CallId, Part, Said, Seq, Status};

/// A whole call of the last reply.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenCall {
    /// Our name of it.
    pub id: CallId,
    /// The reply that makes it.
    pub reply: Seq,
    /// The provider's id.
    pub provider_id: String,
    /// The tool's name as the model wrote it.
    pub tool: String,
    /// The arguments as the model wrote them.
    pub raw: String,
    /// An earlier call of the same reply with the same provider's id and bytes, whose answer this one repeats.
    pub same_as: Option<CallId>,
    /// Whether it stands beyond the calls of a reply that are served.
    pub is_surplus: bool,
    /// Where it was written down that it is about to be served.
    pub called: Option<Seq>,
    /// What came of it, once its observation is written.
    pub result: Option<(Status, Vec<Part>)>,
}

/// The whole calls among `parts`, under our own ids; the first `most` of them are served.
pub(super) fn calls_of(reply: Seq, parts: &[Said], most: usize) -> Vec<OpenCall> {
    let mut calls: Vec<OpenCall> = Vec::new();
    for part in parts {
        let Said::Call { id, name, arguments } = part else { continue };
        let twin =
            calls.iter().find(|call| !id.is_empty() && call.provider_id == *id && call.tool == *name && call.raw == *arguments);
        let same_as = twin.map(|twin| twin.same_as.clone().unwrap_or_else(|| twin.id.clone()));
        calls.push(OpenCall {
            id: CallId::new(reply, calls.len()),
            reply,
            provider_id: id.clone(),
            tool: name.clone(),
            raw: arguments.clone(),
            same_as,
            is_surplus: calls.len() >= most,
            called: None,
            result: None,
        });
    }
    calls
}
