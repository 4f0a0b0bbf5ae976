//! One long run: whether a turn costs the same at its end as at its start.

use super::Wire;
use super::once::{Setting, gaps, median, played};
use serde::Serialize;

/// How many turns on each side of one are taken with it.
const BESIDE: usize = 10;

/// What a long run cost.
#[derive(Serialize)]
pub struct Long {
    pub wire: Wire,
    pub turns: usize,
    /// Our own time at turns of the run, in milliseconds: the median of the turns around each.
    pub at: Vec<At>,
    /// User and system time of all processes.
    pub cpu_s: f64,
    pub peak_mb: f64,
    pub last_body_bytes: u64,
    /// Requests that do not extend the one before.
    pub broken: usize,
}

/// Our own time around one turn.
#[derive(Serialize)]
pub struct At {
    pub turn: usize,
    pub ms: f64,
}

/// Runs once.
pub fn measure(setting: &Setting) -> anyhow::Result<Long> {
    let played = played(setting)?;
    let gaps = gaps(&played.requests);
    Ok(Long {
        wire: setting.way.wire,
        turns: setting.turns,
        at: [5, 45, setting.turns].map(|turn| At { turn, ms: around(&gaps, turn) }).into(),
        cpu_s: played.ended.cpu.as_secs_f64(),
        peak_mb: played.ended.peak_mb(),
        last_body_bytes: played.requests[setting.turns].bytes,
        broken: played.requests.iter().map(|request| request.broken().count()).sum(),
    })
}

/// The median of the gaps around the `turn`th, counted from 1.
fn around(gaps: &[f64], turn: usize) -> f64 {
    let beside = BESIDE.min(turn - 1);
    let window = &gaps[turn - 1 - beside..gaps.len().min(turn + beside)];
    median(window.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_taken_with_its_neighbours() {
        let gaps: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert_eq!([5, 45, 1000].map(|turn| around(&gaps, turn)), [5.0, 45.0, 995.0]);
        assert_eq!(around(&gaps, 1), 1.0);
    }
}
