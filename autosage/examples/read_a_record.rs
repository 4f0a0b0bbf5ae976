//! Reads the record of a run without owning it: its events, whether they are intact, and what was spent.
//!
//! ```text
//! cargo run --example read_a_record -- ~/.local/share/autosage/runs/20261129-174007-k3x9q2
//! ```

#![allow(clippy::print_stdout, reason = "an example prints")]

use autosage::engine::Ledger;
use autosage::trace::{Condition, Reading, What};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("name the folder of a run")?;
    let (events, reading) = Reading::all(Path::new(&folder))?;
    let mut ledger = Ledger::default();
    for event in &events {
        ledger.fold(event);
        match &event.what {
            What::Called(called) => println!("{:>4} calls {} with {}", event.seq, called.tool, called.raw),
            What::Finished(finished) => println!("{:>4} {}", event.seq, finished.outcome.word()),
            _ => {}
        }
    }
    match reading.condition() {
        Condition::Intact => println!("intact, {} events", events.len()),
        Condition::Torn { bytes, damage } => println!("the last {bytes} bytes are no event: {damage}"),
        Condition::Damaged { line, damage, .. } => println!("line {line}: {damage}"),
    }
    println!("{} turns, {} tokens", ledger.turns, ledger.spent_tokens());
    Ok(())
}
