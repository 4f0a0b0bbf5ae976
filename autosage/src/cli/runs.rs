//! `autosage runs`: every run, newest first.

use super::args::{RunsArgs, RunsCommand};
use super::failure::Failure;
use super::home::Home;
use super::print;
use super::prose::{clean, columns, counted, cut_to, size};
use super::summary::Summary;
use super::view::room;
use super::{carry, prune};
use crate::Parts;

/// The fewest columns in which a task stands beside what came of it.
const SOME_WORDS: usize = 16;

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
    let width = room(parts);
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
            let size = size(summary.bytes);
            let task = clean(summary.task.lines().next().unwrap_or_default());
            let question = summary.question.as_ref().map(|question| {
                let words = clean(&format!("asks for {}: ", question.words));
                (words, question.answer.as_str())
            });
            let head = format!("{id}  {state:<14}  {turns:>10}  {money:>9}  {size:>8}  ");
            match width {
                Some(width) if width < head.len() + SOME_WORDS => {
                    below(&[id.as_str(), &state, &turns, &money, &size], &task, question, width)
                }
                _ => {
                    let task = width.map_or(task.clone(), |width| cut_to(&task, width - head.len()));
                    let question = question.map(|(words, answer)| format!("\n{:22}{words}{answer}", ""));
                    format!("{head}{task}{}", question.unwrap_or_default())
                }
            }
        };
        print(&parts.out, &format!("{text}\n"));
    }
    if runs.is_empty() && !args.json {
        print(&parts.err, &format!("There are no runs in {} yet. `autosage demo` makes one.\n", home.folder().display()));
    }
    Ok(0)
}

/// A run where there is little room: as much of what came of it as fits, and its task below. What is to be typed stays whole.
fn below(cells: &[&str], task: &str, question: Option<(String, &str)>, width: usize) -> String {
    let mut head = String::new();
    for cell in cells {
        let gap = if head.is_empty() { "" } else { "  " };
        if head.is_empty() || columns(&head) + gap.len() + columns(cell) <= width {
            head.push_str(gap);
            head.push_str(cell);
        }
    }
    let question =
        question.map(|(words, answer)| format!("\n  {}\n  {answer}", cut_to(words.trim_end(), width.saturating_sub(2))));
    format!("{head}\n  {}{}", cut_to(task, width.saturating_sub(2)), question.unwrap_or_default())
}
