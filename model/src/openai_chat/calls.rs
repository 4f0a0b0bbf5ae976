//! Calls of tools, put together from the pieces of a stream.
//!
//! The rule is: a piece belongs to the call with its `index`. Servers break it in every way, so: without `index`, to the
//! call with its `id`; with neither, to the last call. A piece that names a tool and cannot continue that call (it has
//! another id, or the call's arguments are whole already) begins a call of its own.

use serde_json::Value;

/// The calls of one reply, in the order in which they began.
#[derive(Default)]
pub(super) struct Calls {
    list: Vec<Call>,
    /// The call that was last added to: the one that a cut hits.
    last: usize,
}

/// A call as far as it came.
#[derive(Default)]
pub(super) struct Call {
    index: Option<u64>,
    pub id: String,
    pub name: String,
    pub arguments: String,
}

/// What a piece did.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Added {
    /// The call that it began; `None` where it went on with one.
    pub new: Option<usize>,
    /// The bytes of arguments that it brought.
    pub bytes: usize,
}

impl Calls {
    /// Takes one entry of `tool_calls`.
    pub(super) fn add(&mut self, piece: &Value) -> Added {
        let function = &piece["function"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (id, name) = (text(&piece["id"]), text(&function["name"]));
        let arguments = match &function["arguments"] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            whole => whole.to_string(),
        };
        let bytes = arguments.len();
        let index = piece["index"].as_u64();
        let place = match index {
            Some(_) => self.list.iter().rposition(|call| call.index == index),
            None if !id.is_empty() => self.list.iter().rposition(|call| call.id == id),
            None if !name.is_empty() => None,
            None => self.list.len().checked_sub(1),
        };
        let place = place.filter(|place| name.is_empty() || self.list[*place].may_go_on(&id));
        let Some(place) = place else {
            self.last = self.list.len();
            self.list.push(Call { index, id, name, arguments });
            return Added { new: Some(self.last), bytes };
        };
        let call = &mut self.list[place];
        if call.id.is_empty() {
            call.id = id;
        }
        if call.name != name {
            call.name.push_str(&name);
        }
        call.arguments.push_str(&arguments);
        self.last = place;
        Added { new: None, bytes }
    }

    /// The call at `place`.
    pub(super) fn get(&self, place: usize) -> &Call {
        &self.list[place]
    }

    /// Whether the call at `place` was cut off, in a reply that was.
    pub(super) fn is_cut(&self, place: usize) -> bool {
        let call = &self.list[place];
        if call.arguments.trim().is_empty() { place == self.last } else { !call.is_whole() }
    }
}

impl Call {
    /// Whether the arguments are JSON from the first to the last byte.
    fn is_whole(&self) -> bool {
        serde_json::from_str::<serde::de::IgnoredAny>(&self.arguments).is_ok()
    }

    /// Whether a piece that repeats the name may still belong to this call.
    fn may_go_on(&self, id: &str) -> bool {
        (id.is_empty() || self.id.is_empty() || id == self.id) && !self.is_whole()
    }
}
