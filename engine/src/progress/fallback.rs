//! The model that is asked, and those that are left to fall back on.

use super::Progress;
use super::size::Size;
use trace::{ModelSpec, Switched};

impl Progress {
    /// Another model is asked from here on: it is sent all of the conversation in its own form. What the one before thought is
    /// left out from then on, for it stands for nothing elsewhere, or is refused.
    pub(super) fn change_model(&mut self, model: &ModelSpec) {
        if self.model.as_ref().is_some_and(|before| !understands(model, before)) {
            self.conversation.drop_thoughts();
        }
        self.fallback.retain(|other| other.id != model.id);
        self.model = Some(model.clone());
        self.size = Size::default();
        self.turn.meet_window();
        self.begin_transcript();
    }

    /// The model is sent all of the conversation anew.
    pub(super) fn begin_transcript(&mut self) {
        let started = self.started.as_deref();
        let tools = started.map_or(&[][..], |started| &started.tools);
        let schema = started.and_then(|started| started.output_schema.as_ref());
        if let Some(model) = &self.model {
            self.conversation.begin(model, &self.system, tools, schema);
        }
    }

    /// The model before is not asked any more, and its fault goes with it.
    pub(super) fn switch(&mut self, switched: &Switched) {
        self.turn.fault = None;
        self.change_model(&switched.model);
    }

    /// The models that are left to fall back on, in order.
    pub fn fallback(&self) -> &[ModelSpec] {
        &self.fallback
    }
}

/// Whether a model understands what another one keeps for itself: only where it is the same at the same place. One provider
/// may serve models of several makers, and what a snapshot reads of an older one nobody promises.
fn understands(model: &ModelSpec, other: &ModelSpec) -> bool {
    (&model.provider, &model.base_url, &model.name) == (&other.provider, &other.base_url, &other.name)
}
