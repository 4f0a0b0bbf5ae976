//! One very long run in a small window: what folding its history costs, and what it sends against a window that slides.

use super::Wire;
use super::once::{Setting, median, played};
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

/// What folding cost in one run.
#[derive(Serialize)]
pub struct Folds {
    pub wire: Wire,
    pub turns: usize,
    pub window: u64,
    pub folds: usize,
    /// From the event before a fold to the request after it, in milliseconds, by the run's own clock: of each fold the median
    /// of the runs, and of these the median and the most. In it are plan, account and event, and the conversation written
    /// anew.
    pub ms: f64,
    pub most_ms: f64,
    /// Tokens of all requests against those of a window that slides: each request of that has the task and as many of the
    /// last whole rounds as fit beside the room for a reply.
    pub to_sliding: f64,
    /// The part of a request that a cache served, right before each fold and right after it.
    pub cached_at: Vec<[f64; 2]>,
    /// The same over the whole run.
    pub cached: f64,
    /// Requests that do not extend the one before though nothing was folded between, or whose head changed, or that have a
    /// call without its one result.
    pub broken: usize,
}

/// A line of the program's `--json`, as far as it is of interest.
#[derive(Deserialize)]
struct Line {
    kind: String,
    #[serde(default)]
    ms: u64,
    #[serde(default)]
    epoch: u32,
    usage: Option<Used>,
}

#[derive(Clone, Copy, Deserialize)]
struct Used {
    input: u64,
    #[serde(default)]
    cached: u64,
}

/// A request: how often the history was folded before, and what it used.
struct Sent {
    epoch: u32,
    used: Used,
    /// Milliseconds that the fold before it took, if there was one.
    fold_ms: u64,
}

/// Runs so many times; all figures but the time are those of the last run.
pub fn measure(setting: &Setting, runs: usize) -> anyhow::Result<Folds> {
    let (mut folds, mut costs) = (None, Vec::new());
    for _ in 0..runs {
        let (figures, cost) = once(setting)?;
        folds = Some(figures);
        costs.push(cost);
    }
    let folds = folds.context("no run is no measurement")?;
    if costs.iter().any(|cost| cost.len() != folds.folds) {
        bail!("the same run was folded at different turns: {costs:?}");
    }
    let each: Vec<f64> = (0..folds.folds).map(|fold| median(costs.iter().map(|cost| cost[fold]))).collect();
    Ok(Folds { ms: median(each.iter().copied()), most_ms: most(&each), ..folds })
}

fn most(costs: &[f64]) -> f64 {
    costs.iter().copied().fold(0.0, f64::max)
}

/// Runs once; answers with the time of each fold as well.
fn once(setting: &Setting) -> anyhow::Result<(Folds, Vec<f64>)> {
    let window = setting.context;
    let played = played(setting)?;
    let events = setting.folder.join("events.jsonl");
    let text = std::fs::read_to_string(&events).with_context(|| format!("{}", events.display()))?;
    let sent = sent(&text)?;
    if sent.len() != played.requests.len() {
        bail!("{} requests were answered, and {} reached the server", sent.len(), played.requests.len());
    }
    let after: Vec<usize> = (1..sent.len()).filter(|&at| sent[at].epoch != sent[at - 1].epoch).collect();
    let share = |used: Used| used.cached as f64 / used.input.max(1) as f64;
    let all = sent.iter().fold(Used { input: 0, cached: 0 }, |all, one| Used {
        input: all.input + one.used.input,
        cached: all.cached + one.used.cached,
    });
    let is_broken = |at: usize| {
        let broken: Vec<&str> = played.requests[at].broken().collect();
        !(broken.is_empty() || (broken == ["prefix_ok"] && after.contains(&at)))
    };
    let costs: Vec<f64> = after.iter().map(|&at| sent[at].fold_ms as f64).collect();
    let folds = Folds {
        wire: setting.way.wire,
        turns: setting.turns,
        window,
        folds: after.len(),
        ms: median(costs.iter().copied()),
        most_ms: most(&costs),
        to_sliding: all.input as f64 / sliding(&sent, window - window / 4) as f64,
        cached_at: after.iter().map(|&at| [at - 1, at].map(|at| share(sent[at].used))).collect(),
        cached: share(all),
        broken: (0..sent.len()).filter(|&at| is_broken(at)).count(),
    };
    Ok((folds, costs))
}

fn sent(text: &str) -> anyhow::Result<Vec<Sent>> {
    let (mut sent, mut epoch, mut before, mut fold_ms) = (Vec::new(), 0, 0, 0);
    let mut began = None;
    for line in text.lines() {
        let line: Line = serde_json::from_str(line)?;
        match (line.kind.as_str(), line.usage) {
            ("Folded", _) => began = Some(before),
            ("Asked", _) => (epoch, fold_ms) = (line.epoch, began.take().map_or(0, |began| line.ms - began)),
            ("Replied", Some(used)) => sent.push(Sent { epoch, used, fold_ms }),
            _ => {}
        }
        before = line.ms;
    }
    Ok(sent)
}

/// Tokens that a window of `most` tokens sends which slides round by round. A round is what a request has more than the one
/// before; one at a fold is taken to be as long as the one before it.
fn sliding(sent: &[Sent], most: u64) -> u64 {
    let Some(first) = sent.first().map(|one| one.used.input) else { return 0 };
    let (mut rounds, mut total): (Vec<u64>, u64) = (Vec::new(), first);
    for pair in sent.windows(2) {
        let round = match pair[0].epoch == pair[1].epoch {
            true => pair[1].used.input.saturating_sub(pair[0].used.input),
            false => rounds.last().copied().unwrap_or_default(),
        };
        rounds.push(round);
        let mut tokens = first;
        for round in rounds.iter().rev() {
            if tokens + round > most {
                break;
            }
            tokens += round;
        }
        total += tokens;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_from_events() {
        let text = r#"{"kind": "Started"}
{"kind": "Asked", "epoch": 0}
{"kind": "Replied", "usage": {"input": 10, "cached": 4, "output": 1}}
{"kind": "Observed", "ms": 40}
{"kind": "Folded", "epoch": 1, "ms": 42}
{"kind": "Asked", "epoch": 1, "ms": 43}
{"kind": "Replied", "usage": {"input": 5, "output": 1}}"#;
        let sent = sent(text).unwrap();
        assert_eq!(
            sent.iter().map(|one| (one.epoch, one.used.input, one.used.cached, one.fold_ms)).collect::<Vec<_>>(),
            [(0, 10, 4, 0), (1, 5, 0, 3)]
        );
    }

    #[test]
    fn a_window_slides_round_by_round() {
        let one = |epoch, input| Sent { epoch, used: Used { input, cached: 0 }, fold_ms: 0 };
        // 100, 110, 120, and then never more than 125.
        assert_eq!(sliding(&[one(0, 100), one(0, 110), one(0, 120), one(1, 105), one(1, 115)], 125), 100 + 110 + 120 + 120 + 120);
    }
}
