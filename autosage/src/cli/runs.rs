//! `autosage runs`: every run, newest first.

use super::args::{RunsArgs, RunsCommand};
use super::failure::Failure;
use super::home::Home;
use super::print;
use super::prose::{clean, counted, cut_to, size};
use super::summary::Summary;
use super::view::look;
use super::{carry, prune};
use crate::Parts;

/// Prints the list, or does what was said.
pub fn runs(args: &RunsArgs, home: &Home, parts: &Parts) -> Result<u8, Failure> {
    match &args.command {
        None => list(args, home, parts),
        Some(RunsCommand::Prune(args)) => prune::prune(args, home, parts),
        Some(RunsCommand::Export(args)) => carry::export(args, home, parts),
        Some(RunsCommand::Import(args)) => carry::import(args, home, parts),
    }
}

fn list(args: &RunsArgs, home: &Home, parts: &Parts) -> Result<u8, Failure> {
    let runs = home.runs()?;
    let (_, width) = look(parts);
    for (id, folder) in &runs {
        let summary = match Summary::glance(folder, &parts.name) {
            Ok(summary) => summary,
            Err(error) => {
                print(&parts.err, &format!("autosage: {id} cannot be read: {error}\n"));
                continue;
            }
        };
        let text = if args.json {
            serde_json::to_string(&summary).map_err(|error| Failure::Infrastructure(error.into()))?
        } else {
            let state = match (summary.state.word(), summary.outcome) {
                ("ended", Some(outcome)) => outcome.to_owned(),
                (state, _) => state.to_owned(),
            };
            let money = summary.cost_nano_usd.map_or("unpriced".to_owned(), |cost| cost.to_string());
            let turns = summary.turns.map_or("many turns".to_owned(), |turns| counted(turns, "turn"));
            let head = format!("{id}  {state:<14}  {turns:>10}  {money:>9}  {:>8}  ", size(summary.bytes));
            let task = clean(summary.task.lines().next().unwrap_or_default());
            let question = summary.question.as_ref().map(|question| {
                let words = clean(&format!("asks for {}: ", question.words));
                format!("\n{:22}{words}{}", "", question.answer)
            });
            format!("{head}{}{}", cut_to(&task, width.saturating_sub(head.len()).max(20)), question.unwrap_or_default())
        };
        print(&parts.out, &format!("{text}\n"));
    }
    if runs.is_empty() && !args.json {
        print(&parts.err, &format!("There are no runs in {} yet. `autosage demo` makes one.\n", home.folder().display()));
    }
    Ok(0)
}
