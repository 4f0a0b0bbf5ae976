//! What the events of a reply say, or a whole reply at once.
//!
//! A reply is a list of items. Deltas make them grow, `response.output_item.done` gives each as it is, and only the event
//! that closes the reply (`response.completed`, `.incomplete` or `.failed`) makes it one.

use super::WIRE;
use super::items::{Items, TooMany};
use crate::Heard;
use crate::openai;
use crate::trouble::{Kind, Trouble, plain};
use crate::wire::{self, Answer, Phase, usable};
use serde_json::{Value, json};
use trace::{Said, Stop, Usage};

/// A reply as far as it came.
#[derive(Default)]
pub(crate) struct Draft {
    items: Items,
    end: Option<End>,
    usage: Option<Usage>,
    served: Option<String>,
    id: Option<String>,
    trouble: Option<Trouble>,
}

/// How the closing event says that the reply ended.
#[derive(Clone, Copy)]
enum End {
    Completed,
    Length,
    Filtered,
}

/// One item of the output.
#[derive(Default)]
pub(super) struct Item {
    /// As far as it came, in the form in which it will be given whole.
    pub value: Value,
    /// Its place, as the server counts.
    pub index: u64,
    /// Whether it was given whole.
    pub whole: bool,
    /// Whether anything of it was heard.
    pub heard: bool,
    /// Whether anything of a call's arguments was.
    pub argued: bool,
}

impl wire::Draft for Draft {
    fn event(&mut self, data: &str, heard: &dyn Fn(Heard<'_>)) {
        let data = data.trim();
        if data.is_empty() || data == "[DONE]" || self.end.is_some() || self.trouble.is_some() {
            return;
        }
        match serde_json::from_str(data) {
            Ok(event) => self.take_event(event, heard),
            Err(_) => self.give_up(Kind::Passing, "an event of the stream is not JSON"),
        }
    }

    fn whole(&mut self, reply: &Value, heard: &dyn Fn(Heard<'_>)) {
        if reply["output"].is_array() || reply["status"].is_string() {
            self.close_with(reply, heard);
        } else if let Some(error) = reply.get("error").filter(|error| !error.is_null()) {
            self.trouble.get_or_insert(openai::in_stream(error));
        } else {
            self.give_up(Kind::Rejected, &format!("the answer is not a reply: {}", plain(&reply.to_string())));
        }
    }

    fn fail(&mut self, trouble: Trouble) {
        self.trouble.get_or_insert(trouble);
    }

    fn phase(&self) -> Phase {
        if self.trouble.is_some() || self.end.is_some() { Phase::Done } else { Phase::Open }
    }

    fn close(self: Box<Self>) -> (Result<Answer, Trouble>, Option<Usage>) {
        let usage = self.usage;
        (self.answer(), usage)
    }
}

impl Draft {
    fn give_up(&mut self, kind: Kind, message: &str) {
        self.trouble.get_or_insert_with(|| Trouble::new(kind, message));
    }

    fn take_event(&mut self, mut event: Value, heard: &dyn Fn(Heard<'_>)) {
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        let delta = event["delta"].as_str().unwrap_or_default().to_owned();
        match kind.as_str() {
            "response.output_item.added" => self.begin(&mut event, heard),
            "response.output_item.done" => self.put(&mut event, heard),
            "response.output_text.delta" => self.grow(&event, &["content", "text"], &delta, Heard::Text(&delta), heard),
            "response.refusal.delta" => self.grow(&event, &["content", "refusal"], &delta, Heard::Text(&delta), heard),
            "response.reasoning_text.delta" => {
                self.grow(&event, &["content", "text"], &delta, Heard::Reasoning(&delta), heard);
            }
            "response.reasoning_summary_text.delta" => {
                self.grow(&event, &["summary", "text"], &delta, Heard::Reasoning(&delta), heard);
            }
            "response.function_call_arguments.delta" => {
                let Some(item) = self.item(&event) else { return };
                push_str(&mut item.value["arguments"], &delta);
                item.argued = true;
                heard(Heard::Arguments { bytes: delta.len() });
            }
            "response.completed" | "response.incomplete" | "response.failed" => self.close_with(&event["response"], heard),
            "error" => {
                let error = event.get("error").filter(|error| error.is_object()).unwrap_or(&event);
                self.trouble.get_or_insert(openai::in_stream(error));
            }
            // Servers beside OpenAI's break off with a bare error.
            "" if !event["error"].is_null() => {
                self.trouble.get_or_insert(openai::in_stream(&event["error"]));
            }
            _ => {}
        }
    }

    /// The item that a delta belongs to, unless there are too many.
    fn item(&mut self, event: &Value) -> Option<&mut Item> {
        let id = event["item_id"].as_str().unwrap_or_default();
        heeded(self.items.named(&Value::Null, id, event["output_index"].as_u64()), &mut self.trouble)
    }

    fn begin(&mut self, event: &mut Value, heard: &dyn Fn(Heard<'_>)) {
        let value = event["item"].take();
        let item = heeded(self.items.begun(&value, event["output_index"].as_u64()), &mut self.trouble);
        if let Some(item) = item.filter(|item| value.is_object() && !item.whole) {
            item.value = value;
            item.hear_call(heard);
        }
    }

    fn put(&mut self, event: &mut Value, heard: &dyn Fn(Heard<'_>)) {
        let value = event["item"].take();
        let id = event["item_id"].as_str().unwrap_or_default();
        let item = heeded(self.items.named(&value, id, event["output_index"].as_u64()), &mut self.trouble);
        if let Some(item) = item.filter(|_| value.is_object()) {
            item.put(value, heard);
        }
    }

    /// A piece of a text: `path` is the item's list of texts and the field of the text in an entry of it.
    fn grow(&mut self, event: &Value, path: &[&str; 2], delta: &str, word: Heard<'_>, heard: &dyn Fn(Heard<'_>)) {
        if delta.is_empty() {
            return;
        }
        let [list, field] = *path;
        let place = event["content_index"].as_u64().or(event["summary_index"].as_u64()).unwrap_or(0);
        let Some(item) = self.item(event) else { return };
        item.heard = true;
        if !item.value[list].is_array() {
            item.value[list] = json!([]);
        }
        if let Some(texts) = item.value[list].as_array_mut() {
            let place = usize::try_from(place).map_or(texts.len(), |place| place.min(texts.len()));
            if place == texts.len() {
                let kind = if field == "refusal" { "refusal" } else { "output_text" };
                texts.push(json!({"type": kind}));
            }
            if let Some(text) = texts[place].as_object_mut() {
                push_str(text.entry(field).or_insert(Value::Null), delta);
            }
        }
        heard(word);
    }

    /// The closing event, or a reply that came whole.
    fn close_with(&mut self, reply: &Value, heard: &dyn Fn(Heard<'_>)) {
        let text = |field: &str| reply[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        self.usage = usage(&reply["usage"]).or(self.usage);
        self.served = text("model");
        self.id = text("id");
        let items = reply["output"].as_array().map_or(&[][..], Vec::as_slice);
        let put = |item: &mut Item, value: &Value| {
            if !item.whole {
                item.put(value.clone(), heard);
            }
        };
        if heeded(self.items.close(items, put), &mut self.trouble).is_none() {
            return;
        }
        let error = &reply["error"];
        match (reply["status"].as_str(), reply["incomplete_details"]["reason"].as_str()) {
            _ if !error.is_null() => drop(self.trouble.get_or_insert(openai::in_stream(error))),
            (Some("completed") | None, _) => self.end = Some(End::Completed),
            (Some("incomplete"), Some("max_output_tokens")) => self.end = Some(End::Length),
            (Some("incomplete"), Some("content_filter")) => self.end = Some(End::Filtered),
            (Some(status), reason) => {
                let why = reason.map(|reason| format!(" ({})", plain(reason))).unwrap_or_default();
                self.give_up(Kind::Passing, &format!("the server broke off the reply: {}{why}", plain(status)));
            }
        }
    }

    /// What it comes to.
    fn answer(mut self) -> Result<Answer, Trouble> {
        if let Some(trouble) = self.trouble.take() {
            return Err(trouble);
        }
        let Some(end) = self.end else {
            return Err(Trouble::new(Kind::Passing, "the stream ended before the reply did"));
        };
        let mut parts = Vec::new();
        let mut declined = matches!(end, End::Filtered);
        for item in self.items.into_iter() {
            declined |= item.say(matches!(end, End::Completed), &mut parts);
        }
        let calls = parts.iter().any(|part| matches!(part, Said::Call { .. }));
        let stop = match end {
            _ if declined => Stop::Refused,
            End::Length => Stop::Length,
            End::Completed | End::Filtered if calls => Stop::Calls,
            End::Completed | End::Filtered => Stop::End,
        };
        usable(parts, stop, self.served, self.id)
    }
}

/// What was asked for, unless the reply has too many items: that is trouble.
fn heeded<T>(found: Result<T, TooMany>, trouble: &mut Option<Trouble>) -> Option<T> {
    found.map_err(|TooMany| trouble.get_or_insert_with(|| Trouble::new(Kind::Void, "the reply has more than 1,000 items"))).ok()
}

impl Item {
    /// Takes it as it is in the end.
    fn put(&mut self, value: Value, heard: &dyn Fn(Heard<'_>)) {
        self.value = value;
        self.whole = true;
        self.hear_call(heard);
        self.hear_late(heard);
    }

    /// Tells of a call once its name is there.
    fn hear_call(&mut self, heard: &dyn Fn(Heard<'_>)) {
        if let (Some("function_call"), Some(name), false) = (self.value["type"].as_str(), self.value["name"].as_str(), self.heard)
        {
            heard(Heard::Call { name });
            self.heard = true;
        }
    }

    /// Tells of the words, or the arguments, of an item of which no delta came.
    fn hear_late(&mut self, heard: &dyn Fn(Heard<'_>)) {
        if let (Some(arguments), false) = (self.value["arguments"].as_str(), std::mem::replace(&mut self.argued, true)) {
            heard(Heard::Arguments { bytes: arguments.len() });
        }
        if std::mem::replace(&mut self.heard, true) {
            return;
        }
        let thought = self.value["type"] == "reasoning";
        for text in texts(&self.value).into_iter().filter(|text| !text.is_empty()) {
            heard(if thought { Heard::Reasoning(text) } else { Heard::Text(text) });
        }
    }

    /// Adds what it says to `parts`; returns whether it declines. `closed` says that the reply came to its own end.
    fn say(self, closed: bool, parts: &mut Vec<Said>) -> bool {
        let Item { value, whole, .. } = self;
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        match value["type"].as_str() {
            Some("reasoning") => {
                let text = texts(&value).join("\n\n");
                if !text.is_empty() {
                    parts.push(Said::Reasoning { text });
                }
                if whole {
                    parts.push(Said::Opaque { wire: WIRE.to_owned(), json: value });
                }
                false
            }
            Some("function_call") => {
                let name = text("name");
                let arguments = match &value["arguments"] {
                    Value::Null => String::new(),
                    Value::String(text) => text.clone(),
                    whole => whole.to_string(),
                };
                let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(&arguments).is_ok();
                let is_whole = closed || (whole && is_json());
                let cut = value["status"] == "incomplete" || !is_whole;
                parts.push(match cut {
                    true => Said::Cut { name, raw: arguments },
                    false => Said::Call { id: text("call_id"), name, arguments },
                });
                false
            }
            Some("message") | None => {
                for text in texts(&value).into_iter().filter(|text| !text.is_empty()) {
                    if let Some(phase) = value["phase"].as_str() {
                        let json = json!({"type": "message", "phase": phase});
                        parts.push(Said::Opaque { wire: WIRE.to_owned(), json });
                    }
                    parts.push(Said::Text { text: text.to_owned() });
                }
                value["content"].as_array().into_iter().flatten().any(|part| part["refusal"].is_string())
            }
            // Nothing else is asked for.
            Some(_) => false,
        }
    }
}

/// The texts of an item; reasoning has its own words or, where these are kept, a summary of them.
fn texts(item: &Value) -> Vec<&str> {
    let of = |list: &str| -> Vec<&str> {
        let parts = item[list].as_array().into_iter().flatten();
        parts.filter_map(|part| part["text"].as_str().or(part["refusal"].as_str())).collect()
    };
    let content = of("content");
    if content.is_empty() { of("summary") } else { content }
}

fn push_str(value: &mut Value, more: &str) {
    match value {
        Value::String(text) => text.push_str(more),
        other => *other = Value::String(more.to_owned()),
    }
}

/// Tokens as the server counted them; `None` where it says nothing, or nothing but zeros.
fn usage(fields: &Value) -> Option<Usage> {
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let input = fields["input_tokens"].as_u64()?;
    let output = count(&fields["output_tokens"]);
    let cached = count(&fields["input_tokens_details"]["cached_tokens"]);
    let cache_write = count(&fields["input_tokens_details"]["cache_write_tokens"]);
    let reasoning = count(&fields["output_tokens_details"]["reasoning_tokens"]);
    (input.saturating_add(output) > 0).then_some(Usage { input, cached, cache_write, output, reasoning })
}
