//! The settings of the loop: a harness's `loop.toml`.

use serde::Deserialize;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

/// `loop.toml`: how far the loop goes, and how much of an output an agent sees.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopSettings {
    /// The tools that are on, in the order in which a model sees them.
    pub tools: Vec<String>,
    /// How many claims the checks judge before the run has failed.
    pub max_claims: u32,
    /// How many calls of one reply are served; the others are denied. Harnesses of before have no word for it.
    #[serde(default = "usual_calls")]
    pub max_calls: NonZeroUsize,
    /// What a run may spend unless the person says otherwise.
    pub budget: StepBudget,
    /// How much of an output an agent sees.
    pub caps: Caps,
    /// When calls that bring nothing new are a loop. Harnesses of before have no word for it.
    #[serde(default)]
    pub loops: Loops,
    /// What a fold keeps. Harnesses of before have no word for it.
    #[serde(default)]
    pub fold: FoldSettings,
}

fn usual_calls() -> NonZeroUsize {
    NonZeroUsize::new(50).expect("fifty is not zero")
}

/// When calls in a row that bring nothing new are a loop: each is one, with its arguments and its result, that this turn of
/// the user has seen before.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loops {
    /// So many, and the agent is warned.
    pub warn: NonZeroU32,
    /// So many, once it was warned, and the turn ends.
    pub stop: NonZeroU32,
}

impl Default for Loops {
    fn default() -> Loops {
        let [warn, stop] = [4, 9].map(|calls| NonZeroU32::new(calls).expect("neither is zero"));
        Loops { warn, stop }
    }
}

/// What a fold keeps of a history that outgrows the model's window.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoldSettings {
    /// Rounds (a reply with what came of it) at the start that stay as they are, if that can be.
    pub first_rounds: usize,
    /// Rounds at the end whose outputs stay as they are, if that can be.
    pub last_rounds: usize,
    /// Bytes of an output that is short enough to stay whole.
    pub output_bytes: usize,
    /// Bytes from the start of a longer one that stay.
    pub head_bytes: usize,
    /// Bytes from its end.
    pub tail_bytes: usize,
    /// An account of what is gone has at most one of so many parts of the window, and the words of the person as many more.
    pub account_share: NonZeroU64,
}

impl Default for FoldSettings {
    fn default() -> FoldSettings {
        let account_share = NonZeroU64::new(10).expect("ten is not zero");
        FoldSettings { first_rounds: 2, last_rounds: 4, output_bytes: 1200, head_bytes: 400, tail_bytes: 400, account_share }
    }
}

/// The default budget.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepBudget {
    /// Requests to think.
    pub turns: u64,
    /// Minutes of active time.
    pub minutes: u64,
}

/// How much of an output an agent sees.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caps {
    /// Bytes from the start of a command's output.
    pub head_bytes: usize,
    /// Bytes from its end.
    pub tail_bytes: usize,
    /// Lines of a file that one `read` shows.
    pub read_lines: usize,
    /// Bytes of a file that one `read` shows.
    pub read_bytes: usize,
}
