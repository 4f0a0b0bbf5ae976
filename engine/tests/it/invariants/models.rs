//! Whom a world asks: a model of every provider by a name that nobody knows, and all that the table of models has.

use model::catalog::{self, Catalog, Overrides};
use serde_json::json;
use std::sync::LazyLock;
use trace::{Digest, ModelSpec, Said};

/// Names beside those of the table, with which requests look different.
const NAMES: [&str; 3] = ["gemini/gemini-2.5-flash", "gemini/models/gemini-2.5-pro", "gemini/gemini-3-flash"];

/// The models of each provider.
static MODELS: LazyLock<Vec<Vec<ModelSpec>>> = LazyLock::new(|| {
    let table = Catalog::default();
    let of = |provider: &str| {
        let known = table.models().iter().map(|row| format!("{provider}/{}", row.name)).filter(|id| table.known(id).is_some());
        let others = NAMES.map(str::to_owned).into_iter().filter(|id| id.split('/').next() == Some(provider));
        let ids: Vec<String> = std::iter::once(format!("{provider}/m")).chain(known).chain(others).collect();
        ids.iter().map(|id| spec(id)).collect::<Vec<_>>()
    };
    let groq = spec("groq/m");
    // What a person's own table says of one that can be held to a schema.
    let own = ModelSpec { id: "groq/own".into(), name: "own".into(), structured: Some(true), ..groq };
    catalog::providers().iter().map(|row| of(row.name)).chain([vec![own]]).collect()
});

/// The model called `id` at a server of one's own, with the price and the limits of every story.
pub fn spec(id: &str) -> ModelSpec {
    let known = catalog::find(id, &Overrides { base_url: Some("http://127.0.0.1:1/v1".into()), ..Overrides::default() }).unwrap();
    let ModelSpec { max_output, price, context, .. } = crate::story::model();
    ModelSpec { max_output, price, context, ..known }
}

/// A model, by a choice of its provider and one among its provider's.
pub fn chosen(mut below: impl FnMut(usize) -> usize) -> ModelSpec {
    let all = &MODELS[below(MODELS.len())];
    all[below(all.len())].clone()
}

/// What every signature of `model` begins with.
pub fn signature(model: &ModelSpec) -> String {
    format!("{SIGNED}{}", &Digest::of(model.id.as_bytes()).to_string()[..12])
}

/// What every signature begins with.
pub const SIGNED: &str = "signedBy";

/// What only `model` itself understands.
pub fn thought(model: &ModelSpec) -> Said {
    let signature = signature(model);
    let json = match model.wire.as_str() {
        "openai-chat" if model.provider == "openrouter" => {
            let details = json!([{"type": "reasoning.encrypted", "data": signature}]);
            json!({"reasoning_in": "reasoning", "reasoning_details": details})
        }
        "openai-chat" => json!({"reasoning_in": "reasoning"}),
        "openai-responses" => {
            json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": signature, "status": null, "content": null})
        }
        "anthropic-messages" => json!({"type": "thinking", "thinking": "hm", "signature": signature}),
        "gemini" => json!({"on": "call", "thoughtSignature": signature}),
        other => panic!("what is thought on the wire {other}?"),
    };
    Said::Opaque { wire: model.wire.clone(), json }
}
