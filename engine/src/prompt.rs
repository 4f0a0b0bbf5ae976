//! The prompt: made of events alone, and of one rule after another, so that the same events give the same bytes.

use crate::harness::{Harness, fill};
use crate::progress::Progress;
use trace::{Asked, Digest, Exhausted, NanoUsd, Price, Seq, Started, Usage};

/// The version of the rules by which a prompt is built from events. It grows with every change that alters a byte, so
/// that a build that would prompt differently is told from one that would not.
pub const RULES: u32 = 4;

/// A reply shorter than this is not worth a request: what is left of a budget must allow as many tokens of output.
const LEAST_OUTPUT: u64 = 256;

/// Room for a reply that gets somewhere.
pub(crate) const GOOD_OUTPUT: u64 = 4 * LEAST_OUTPUT;

/// The next request to think, ready to be written down and sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The body, byte for byte.
    pub body: String,
    /// What is written down of it before it is sent.
    pub asked: Asked,
}

/// Why there is no next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Its reserve does not fit what is left of this limit.
    Budget(Exhausted),
    /// The run has no first event.
    NotStarted,
}

impl Request {
    /// The request that the events up to now lead to, with as much output as the budget allows.
    pub(crate) fn next(progress: &Progress) -> Result<Request, Refusal> {
        let model = progress.model().ok_or(Refusal::NotStarted)?;
        let left = progress.ledger().left();
        let transcript = progress.transcript().ok_or(Refusal::NotStarted)?;
        // What a server counted, where that is more than the estimate.
        let input = transcript.tokens().max(progress.size());
        let mut output = model.max_output;
        if let Some(tokens) = left.tokens {
            let affordable = |tokens: u64| tokens.saturating_sub(input);
            let (all, half) = (affordable(tokens), affordable(tokens / 2));
            output = fitting(output, all, half).ok_or(Refusal::Budget(Exhausted::Tokens))?;
        }
        let most = |output| model.price.map(|price| dearest(&price, input, output));
        if let (Some(money), Some(for_input), Some(for_first)) = (left.nano_usd, most(0), most(1)) {
            let each = for_first.0 - for_input.0;
            let affordable = |money: u64| match money.checked_sub(for_input.0) {
                None => 0,
                Some(rest) => rest.checked_div(each).unwrap_or(output),
            };
            let (all, half) = (affordable(money.0), affordable(money.0 / 2));
            output = fitting(output, all, half).ok_or(Refusal::Budget(Exhausted::Money))?;
        }
        let (size, estimate) = (progress.size(), progress.estimate());
        let windows = [(progress.window(), size), (model.window(), size), (model.window(), estimate)];
        let free = windows.map(|(window, size)| window.saturating_sub(size)).into_iter().find(|free| *free >= LEAST_OUTPUT);
        output = output.min(free.unwrap_or(LEAST_OUTPUT));
        let body = transcript.body(output);
        let asked = Asked {
            model: model.id.clone(),
            max_output: output,
            prompt: Digest::of(body.as_bytes()),
            bytes: body.len() as u64,
            upto: Seq(progress.next_seq().0.saturating_sub(1)),
            epoch: progress.epoch(),
            rules: RULES,
            reserved_tokens: input.saturating_add(output),
            reserved_nano_usd: most(output),
        };
        Ok(Request { body, asked })
    }

    /// The body of the request that the events of `progress` lead to, if its reply may have `max_output` tokens; `None`
    /// before the first event. A reply whose calls are still open is not in it. This is how a reader proves what was sent.
    pub fn body(progress: &Progress, max_output: u64) -> Option<String> {
        progress.transcript().map(|transcript| transcript.body(max_output))
    }
}

/// The most that a request can cost: its input written to a cache, or not, whichever is dearer.
fn dearest(price: &Price, input: u64, output: u64) -> NanoUsd {
    let plain = Usage { input, output, ..Usage::default() };
    price.of(&plain).max(price.of(&Usage { cache_write: input, ..plain }))
}

/// The most output that is wanted and affordable; `None` where that is too little to be worth a request. While `half` of
/// what is left still buys a good reply, no more is taken, so that a request that fails on its way can be made once more.
fn fitting(wanted: u64, all: u64, half: u64) -> Option<u64> {
    let output = wanted.min(if half >= GOOD_OUTPUT { half } else { all });
    (output >= LEAST_OUTPUT.min(wanted)).then_some(output)
}

/// The instructions that every prompt of a run begins with: the harness's, the surroundings, the project's own.
pub(crate) fn system(harness: &Harness, started: &Started) -> String {
    let git = started.facts.git.as_ref().map(|git| format!(", a git repository at {git}")).unwrap_or_default();
    let facts = fill(
        &harness.notes().facts,
        &[
            ("os", &started.facts.os),
            ("date", &started.facts.date),
            ("workspace", &started.task.workspace.display().to_string()),
            ("git", &git),
            ("backend", &started.facts.backend),
        ],
    );
    let rights = fill(&harness.notes().granted, &[("rights", &started.grant.to_string())]);
    let access = [(!started.grant.is_empty()).then_some(&rights), started.terms.read_only.then_some(&harness.notes().read_only)];
    let access: String = access.into_iter().flatten().map(|words| format!(" {words}")).collect();
    let mut text = format!("{}\n\n{facts}{access}", harness.system().trim_end());
    for file in &started.project {
        let head = fill(&harness.notes().project_file, &[("path", &file.path)]);
        text.push_str(&format!("\n\n{head}\n{}", file.text.trim_end()));
    }
    if let Some(schema) = &started.output_schema {
        let words = fill(&harness.notes().output_schema, &[("schema", &schema.to_string())]);
        text.push_str(&format!("\n\n{words}"));
    }
    text
}
