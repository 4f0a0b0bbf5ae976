//! A typed question: the answer is a value of one's own type, or a typed error. The model here is a script that first says
//! what does not fit, to show that it is told so.
//!
//! ```text
//! cargo run --example ask
//! ```

#![allow(clippy::print_stdout, reason = "an example prints")]

use autosage::ask;
use autosage::model::{ScriptedModel, Step};
use schemars::JsonSchema;
use serde::Deserialize;

/// What a sentence says of a meeting. Comments are told to the model.
#[derive(Debug, Deserialize, JsonSchema)]
struct Meeting {
    /// Who comes.
    people: Vec<String>,
    /// The hour of the day, from 0 to 23.
    hour: u8,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A real one: `model::connect(model::catalog::find("openai/gpt-6-sol", &Default::default())?, access)`.
    let model = ScriptedModel::new([
        Step::text("Ada and Grace meet at three."),
        Step::text(r#"{"people": ["Ada", "Grace"], "hour": 15}"#),
    ]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let meeting: Meeting = runtime.block_on(ask(&model, "Ada meets Grace at three in the afternoon."))?;
    println!("{} people at {}:00", meeting.people.len(), meeting.hour);
    Ok(())
}
