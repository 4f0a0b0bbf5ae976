//! The bill of a run: what each request used and cost, and what they come to; where several models were asked, each of them.

use super::prose::{clean, counted, grouped, length};
use engine::Ledger;
use trace::{Cost, Event, NanoUsd, Usage, What};

/// A row for each request, below the model that was asked where that is another one; sums below them.
pub fn bill(events: &[Event]) -> String {
    let mut text =
        format!("{:>5}  {:>10}  {:>10}  {:>8}  {:>10}  {:>9}  cost\n", "event", "input", "cached", "output", "reasoning", "time");
    let mut all = Ledger::default();
    let mut models: Vec<(&str, Ledger)> = Vec::new();
    let mut asked: Option<usize> = None;
    let several = is_of_several(events);
    for event in events {
        all.fold(event);
        match &event.what {
            What::Asked(request) => {
                let known = models.iter().position(|(id, _)| *id == request.model);
                let at = known.unwrap_or_else(|| {
                    models.push((&request.model, Ledger::default()));
                    models.len() - 1
                });
                models[at].1.fold(event);
                let before = asked.replace(at);
                if several && before != Some(at) {
                    text.push_str(&format!("{}\n", clean(&request.model)));
                }
            }
            What::Replied(replied) => {
                let priced = match replied.cost {
                    Cost::NanoUsd(amount) => Some(amount),
                    Cost::Unpriced => None,
                };
                let note = if replied.estimated { " (tokens estimated)" } else { "" };
                let time = replied.timing.total_ms;
                text.push_str(&row(&event.seq.to_string(), &replied.usage, time, &(money(priced) + note)));
                if let Some(at) = asked {
                    models[at].1.fold(event);
                }
            }
            // A session charges what the one before it asked and was not answered.
            _ => models.iter_mut().for_each(|(_, ledger)| ledger.fold(event)),
        }
    }
    text.push_str(&row("total", &all.usage, all.active_ms, &money(all.cost())));
    if several {
        text.extend(models.iter().map(|(id, ledger)| share(id, ledger)));
    }
    let folds = events.iter().filter(|event| matches!(event.what, What::Folded(_))).count();
    if folds > 0 {
        text.push_str(&format!("the history was folded {}\n", counted(folds as u64, "time")));
    }
    if all.lost_tokens > 0 {
        text.push_str(&format!("{} tokens of requests whose answer was lost are charged besides\n", grouped(all.lost_tokens)));
    }
    text
}

/// Whether more than one model was asked.
fn is_of_several(events: &[Event]) -> bool {
    let mut models =
        events.iter().filter_map(|event| if let What::Asked(asked) = &event.what { Some(&asked.model) } else { None });
    models.next().is_some_and(|first| models.any(|model| model != first))
}

fn row(name: &str, usage: &Usage, ms: u64, cost: &str) -> String {
    let Usage { input, cached, output, reasoning, .. } = *usage;
    let [input, cached, output, reasoning] = [input, cached, output, reasoning].map(grouped);
    format!("{name:>5}  {input:>10}  {cached:>10}  {output:>8}  {reasoning:>10}  {:>9}  {cost}\n", length(ms))
}

/// What was asked of one model, and what it cost, lost requests included.
fn share(id: &str, ledger: &Ledger) -> String {
    let (requests, cost) = (counted(ledger.turns, "request"), money(ledger.cost()));
    let [input, output] = [ledger.usage.input, ledger.usage.output].map(grouped);
    format!("{}: {requests}, {input} tokens in, {output} out, {cost}\n", clean(id))
}

fn money(amount: Option<NanoUsd>) -> String {
    amount.map_or("unpriced".to_owned(), |amount| amount.to_string())
}
