//! What the model is told: message after message, each final once the calls before it are closed.

use super::calls::{MOST_SENT, OpenCall, calls_of, sent, sent_parts};
use super::history::{History, Round};
use super::pictures::Pictures;
use crate::harness::Notes;
use model::{Message, SentCall, Transcript};
use serde_json::Value;
use trace::{CallId, Called, Folded, ModelSpec, Part, Said, Seq, Status, ToolSpec};

/// The conversation with the model.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    /// How parts of events become parts of messages.
    pictures: Pictures,
    history: History,
    /// What stands before them in every request to the model.
    head: Option<Transcript>,
    /// The same with the final messages of the history, as the model is sent them.
    transcript: Option<Transcript>,
    /// The tokens that each of these messages adds to it.
    weights: Vec<u64>,
    /// Messages that came while calls were open; they stand after the observations.
    held: Vec<Message>,
    /// The calls of the last reply.
    calls: Vec<OpenCall>,
}

impl Conversation {
    pub fn new(pictures: Pictures) -> Conversation {
        let (history, held, calls) = (History::default(), Vec::new(), Vec::new());
        Conversation { pictures, history, head: None, transcript: None, weights: Vec::new(), held, calls }
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// The conversation up to its last final message, as the model is sent it.
    pub fn transcript(&self) -> Option<&Transcript> {
        self.transcript.as_ref()
    }

    /// What stands before the conversation.
    pub fn head(&self) -> Option<&Transcript> {
        self.head.as_ref()
    }

    /// The tokens that each message adds, as far as they are final.
    pub fn weights(&self) -> &[u64] {
        &self.weights
    }

    /// The calls of the last reply.
    pub fn calls(&self) -> &[OpenCall] {
        &self.calls
    }

    /// How many of them are not sent back, being too many for a message.
    pub fn unsent(&self) -> usize {
        self.calls.len().saturating_sub(MOST_SENT)
    }

    /// Those of them that have no observation yet, in order.
    pub fn open_calls(&self) -> impl Iterator<Item = &OpenCall> {
        self.calls.iter().filter(|call| call.result.is_none())
    }

    pub fn has_open_calls(&self) -> bool {
        self.open_calls().next().is_some()
    }

    /// This model is asked from here on: it is sent all of the conversation in its own form.
    pub fn begin(&mut self, model: &ModelSpec, system: &str, tools: &[ToolSpec], schema: Option<&Value>) {
        self.head = Some(Transcript::new(model, system, tools, schema));
        self.transcript.clone_from(&self.head);
        self.weights.clear();
        self.pictures.fit(model);
    }

    /// What was thought is sent to nobody any more. Answers with whether there was anything; then the transcript has to begin
    /// anew.
    pub fn drop_thoughts(&mut self) -> bool {
        let mut dropped = false;
        for message in &mut self.history.messages {
            if let Message::Reply { parts, .. } = message {
                let before = parts.len();
                parts.retain(|part| !matches!(part, Said::Opaque { .. } | Said::Reasoning { .. }));
                dropped |= parts.len() < before;
            }
        }
        dropped
    }

    /// The last reply, if it is the one at `reply` and its calls are closed, is sent to nobody any more, nor are its results;
    /// what was said after it stays. Answers with whether it was; then the transcript has to begin anew.
    pub fn forget(&mut self, reply: Seq) -> bool {
        let is_closed = !self.has_open_calls();
        let Some(round) = self.history.rounds.pop_if(|round| round.reply == reply && is_closed) else { return false };
        let rest = self.history.messages.split_off(round.at);
        self.history.messages.extend(rest.into_iter().filter(|message| matches!(message, Message::User(_))));
        true
    }

    /// Extends the transcript by what is final: a reply is so once its calls are closed.
    pub fn write(&mut self) {
        if self.has_open_calls() {
            return;
        }
        let Some(transcript) = &mut self.transcript else { return };
        for message in &self.history.messages[self.weights.len()..] {
            let fitting = self.pictures.fitting(message);
            let before = transcript.tokens();
            transcript.push(&fitting);
            self.weights.push(transcript.tokens() - before);
            self.pictures.write(&fitting);
        }
    }

    /// Where there are more pictures than a request may hold, the oldest are words from here on. Answers with whether there
    /// were; then the transcript has to begin anew.
    pub fn thin(&mut self) -> bool {
        let are_too_many = self.pictures.are_too_many();
        if are_too_many {
            let new = self.history.rounds.last().map_or(0, |round| round.at);
            self.pictures.thin(&mut self.history.messages, new);
        }
        are_too_many
    }

    /// A request goes out.
    pub fn ask(&mut self) {
        self.pictures.ask();
    }

    /// The request was refused for what it holds. Answers with whether it can be made again without pictures that may be why.
    /// In any case the transcript has to begin anew.
    pub fn refuse(&mut self) -> bool {
        self.pictures.refuse()
    }

    /// Adds `message` to `transcript`, as the model is sent it.
    pub fn push(&self, transcript: &mut Transcript, message: &Message) {
        transcript.push(&self.pictures.fitting(message));
    }

    /// Puts the folded history in the place of the whole one. A fold while calls are open, which no record of ours holds,
    /// changes nothing. Answers with whether it was done; then the transcript has to begin anew.
    pub fn fold(&mut self, folded: &Folded, notes: &Notes) -> bool {
        let is_final = !self.has_open_calls();
        if is_final {
            self.history = self.history.folded(folded, notes);
        }
        is_final
    }

    /// Puts `parts` at the tail of the prompt, behind the observations of calls that are still open.
    pub fn tell(&mut self, parts: &[Part]) {
        let message = Message::User(self.pictures.sent(parts));
        if self.has_open_calls() { self.held.push(message) } else { self.history.messages.push(message) }
    }

    /// The same for what the person says in the event at `seq`, whose pictures can be read again.
    pub fn hear(&mut self, seq: Seq, parts: &[Part]) {
        self.pictures.place(seq, parts);
        self.tell(parts);
    }

    /// Calls that are still open are closed with `note`.
    pub fn give_up_calls(&mut self, note: &str) {
        for call in self.calls.iter_mut().filter(|call| call.result.is_none()) {
            call.result = Some((Status::Interrupted, vec![Part::text(note)]));
        }
        self.close();
    }

    /// The model says something, of whose calls the first `most` are served; no calls are open.
    pub fn reply(&mut self, seq: Seq, parts: &[Said], most: usize) {
        self.pictures.accept();
        self.calls = calls_of(seq, parts, most);
        self.history.rounds.push(Round { reply: seq, at: self.history.messages.len(), calls: Vec::new() });
        let calls = self.calls.iter().take(MOST_SENT).map(sent).collect();
        self.history.messages.push(Message::Reply { parts: sent_parts(parts), calls });
    }

    /// A call is about to be served. Answers with it, if it is one of the last reply and was not begun before.
    pub fn call(&mut self, seq: Seq, called: &Called) -> Option<&OpenCall> {
        let is_new = |call: &OpenCall| call.id == called.id && call.called.is_none() && call.result.is_none();
        let index = self.calls.iter().position(is_new)?;
        self.calls[index].called = Some(seq);
        if let Some(round) = self.history.rounds.last_mut() {
            round.calls.push((called.id.clone(), seq));
        }
        // Later requests carry `{}` for arguments that were not usable, so that no server chokes on them.
        if called.arguments.is_none()
            && let Some(call) = self.sent_calls().and_then(|calls| calls.get_mut(index))
        {
            call.arguments = "{}".to_owned();
        }
        self.calls.get(index)
    }

    /// What came of a call. Answers with the call, if it is one of the last reply and was still open.
    pub fn observe(&mut self, id: &CallId, status: Status, content: &[Part]) -> Option<&OpenCall> {
        let index = self.calls.iter().position(|call| call.id == *id && call.result.is_none())?;
        self.calls[index].result = Some((status, content.to_vec()));
        if !self.has_open_calls() {
            self.close();
        }
        Some(&self.calls[index])
    }

    /// The calls of the last reply, as they are sent back.
    fn sent_calls(&mut self) -> Option<&mut Vec<SentCall>> {
        let at = self.history.rounds.last()?.at;
        match self.history.messages.get_mut(at) {
            Some(Message::Reply { calls, .. }) => Some(calls),
            Some(Message::User(_) | Message::Result { .. }) | None => None,
        }
    }

    /// The results enter the prompt together and in call order, for `submit` is served last wherever it stands.
    fn close(&mut self) {
        if let Some(calls) = self.sent_calls() {
            // Whatever the record says of them: no server takes arguments that are no object.
            calls.iter_mut().filter(|call| !is_object(&call.arguments)).for_each(|call| call.arguments = "{}".to_owned());
        }
        for call in &self.calls {
            if let Some((_, content)) = &call.result {
                self.pictures.place(call.called.unwrap_or(call.reply), content);
            }
        }
        let result = |call: &OpenCall| {
            let (status, content) = call.result.as_ref()?;
            Some(Message::Result { id: call.id.clone(), status: *status, content: self.pictures.sent(content) })
        };
        self.history.messages.extend(self.calls.iter().take(MOST_SENT).filter_map(result));
        self.history.messages.append(&mut self.held);
    }
}

fn is_object(arguments: &str) -> bool {
    serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments).is_ok()
}
