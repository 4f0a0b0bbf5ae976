//! The bill of a run: what each request used and cost, and what they come to; where several models were asked, each of them.

use super::prose::{clean, columns, counted, grouped, length, wrapped};
use engine::Ledger;
use trace::{Cost, Event, NanoUsd, Usage, What};

/// What stands above the cells of a row.
const HEAD: [&str; 7] = ["event", "input", "cached", "output", "reasoning", "time", "cost"];
/// The least width of each column, so that the bills of short runs look alike.
const LEAST: [usize; 7] = [5, 5, 6, 6, 9, 6, 0];

/// A line of a bill.
enum Line {
    /// A request, or the sum of all, by the columns of [`HEAD`].
    Row([String; 7]),
    /// Anything else.
    Words(String),
}

/// A row for each request, below the model that was asked where that is another one; sums below them. Lines have at most
/// `width` columns, as far as the numbers allow it.
pub fn bill(events: &[Event], width: usize) -> String {
    let mut lines = vec![Line::Row(HEAD.map(str::to_owned))];
    let (mut is_estimated, mut cached) = (false, 0_u64);
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
                    lines.push(Line::Words(request.model.clone()));
                }
            }
            What::Replied(replied) => {
                let priced = match replied.cost {
                    Cost::NanoUsd(amount) => Some(amount),
                    Cost::Unpriced => None,
                };
                is_estimated |= replied.estimated;
                let mark = if replied.estimated { " ~" } else { "" };
                let time = replied.timing.total_ms;
                // A server's count may be wrong: no more of a prompt than all of it was cached.
                let usage = Usage { cached: replied.usage.cached.min(replied.usage.input), ..replied.usage };
                cached = cached.saturating_add(usage.cached);
                lines.push(row(&event.seq.to_string(), &usage, time, money(priced) + mark));
                if let Some(at) = asked {
                    models[at].1.fold(event);
                }
            }
            // A session charges what the one before it asked and was not answered.
            _ => models.iter_mut().for_each(|(_, ledger)| ledger.fold(event)),
        }
    }
    let known = all.known_part();
    let cost = known.map_or_else(|| money(all.cost()), |known| format!("{known} +"));
    lines.push(row("total", &Usage { cached, ..all.usage }, all.active_ms, cost));
    if several {
        lines.extend(models.iter().map(|(id, ledger)| share(id, ledger)));
    }
    if known.is_some() {
        lines.push(Line::Words("+ what is unpriced comes on top: its price is not known".to_owned()));
    }
    if is_estimated {
        lines.push(Line::Words("~ tokens estimated: the provider did not say them".to_owned()));
    }
    let folds = events.iter().filter(|event| matches!(event.what, What::Folded(_))).count();
    if folds > 0 {
        lines.push(Line::Words(format!("the history was folded {}", counted(folds as u64, "time"))));
    }
    if all.lost_tokens > 0 {
        let lost = grouped(all.lost_tokens);
        lines.push(Line::Words(format!("{lost} tokens of requests whose answer was lost are charged besides")));
    }
    laid_out(&lines, width)
}

/// The lines as text: each column as wide as its widest cell. Where there is little room the columns stand closer, and then
/// what was reasoned has none: it is part of the output.
fn laid_out(lines: &[Line], width: usize) -> String {
    let mut widest = LEAST;
    for line in lines {
        let Line::Row(cells) = line else { continue };
        widest.iter_mut().zip(cells).for_each(|(widest, cell)| *widest = columns(cell).max(*widest));
    }
    let all: Vec<usize> = (0..HEAD.len()).collect();
    let fewer: Vec<usize> = all.iter().copied().filter(|at| HEAD[*at] != "reasoning").collect();
    let fits = |(shown, gap): &(&Vec<usize>, usize)| {
        shown.iter().map(|at| widest[*at]).sum::<usize>() + gap * (shown.len() - 1) <= width
    };
    let layouts = [(&all, 2), (&all, 1), (&fewer, 2), (&fewer, 1)];
    let (shown, gap) = layouts.into_iter().find(fits).unwrap_or((&fewer, 1));
    let text = |line: &Line| match line {
        Line::Row(cells) => {
            let cell = |at: &usize| match HEAD[*at] {
                "cost" => cells[*at].clone(),
                _ => format!("{:>wide$}", cells[*at], wide = widest[*at]),
            };
            shown.iter().map(cell).collect::<Vec<_>>().join(&" ".repeat(gap)) + "\n"
        }
        Line::Words(words) => wrapped(&clean(words), width).into_iter().map(|line| line + "\n").collect(),
    };
    lines.iter().map(text).collect()
}

/// Whether more than one model was asked.
fn is_of_several(events: &[Event]) -> bool {
    let mut models =
        events.iter().filter_map(|event| if let What::Asked(asked) = &event.what { Some(&asked.model) } else { None });
    models.next().is_some_and(|first| models.any(|model| model != first))
}

fn row(name: &str, usage: &Usage, ms: u64, cost: String) -> Line {
    let Usage { input, cached, output, reasoning, .. } = *usage;
    let [input, cached, output, reasoning] = [input, cached, output, reasoning].map(grouped);
    Line::Row([name.to_owned(), input, cached, output, reasoning, length(ms), cost])
}

/// What was asked of one model, and what it cost, lost requests included.
fn share(id: &str, ledger: &Ledger) -> Line {
    let (requests, cost) = (counted(ledger.turns, "request"), money(ledger.cost()));
    let [input, output] = [ledger.usage.input, ledger.usage.output].map(grouped);
    Line::Words(format!("{id}: {requests}, {input} tokens in, {output} out, {cost}"))
}

fn money(amount: Option<NanoUsd>) -> String {
    amount.map_or("unpriced".to_owned(), |amount| amount.to_string())
}

/// What a run has cost: `all` of it, or the part that is known.
pub fn spent(all: Option<NanoUsd>, known_part: Option<NanoUsd>) -> String {
    match (all, known_part) {
        (None, Some(known)) => format!("{known} + unpriced"),
        (all, _) => money(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use trace::{AgentPath, Asked, Digest, Replied, Seq, Stop, Timestamp, Timing};

    /// The events of requests, each to a model, with tokens in and milliseconds; what takes less than a second is unpriced.
    fn events(requests: &[(&str, u64, u64)]) -> Vec<Event> {
        let asked = |model: &str| {
            What::Asked(Asked {
                model: model.to_owned(),
                max_output: 0,
                prompt: Digest::of(b""),
                bytes: 0,
                upto: Seq(0),
                epoch: 0,
                rules: 0,
                reserved_tokens: 0,
                reserved_nano_usd: Some(NanoUsd(0)),
            })
        };
        let replied = |input: u64, total_ms: u64| {
            What::Replied(Replied {
                parts: Vec::new(),
                stop: Stop::End,
                usage: Usage { input, cached: input / 2, output: 812, reasoning: 640, ..Usage::default() },
                estimated: total_ms < 1_000,
                cost: if total_ms < 1_000 { Cost::Unpriced } else { Cost::NanoUsd(NanoUsd(1_234_500_000)) },
                served: None,
                request_id: None,
                timing: Timing { first_token_ms: None, total_ms },
                attempts: Vec::new(),
                raw: None,
                redacted: false,
            })
        };
        let whats = requests.iter().flat_map(|(model, input, ms)| [asked(model), replied(*input, *ms)]);
        let event = |(seq, what)| {
            let at = Timestamp::from_unix_millis(0);
            Event { seq: Seq(seq), at, ms: 0, agent: AgentPath::root(), cause: None, what }
        };
        (1..).zip(whats).map(event).collect()
    }

    #[test]
    fn no_more_of_a_prompt_was_cached_than_it_has() {
        let mut events = events(&[("openai/gpt", 100, 1_200), ("openai/gpt", 900, 1_200)]);
        let What::Replied(replied) = &mut events[1].what else { panic!("{:?}", events[1]) };
        replied.usage.cached = 5_000;
        expect![[r#"
            event  input  cached  output  reasoning    time  cost
                2    100     100     812        640   1.2 s  $1.2345
                4    900     450     812        640   1.2 s  $1.2345
            total  1,000     550   1,624      1,280    0 ms  $2.4690
        "#]]
        .assert_eq(&bill(&events, 80));
    }

    fn check(width: usize, requests: &[(&str, u64, u64)], expected: Expect) {
        let bill = bill(&events(requests), width);
        assert!(bill.lines().all(|line| columns(line) <= width), "{bill}");
        expected.assert_eq(&bill);
    }

    #[test]
    fn a_bill_stands_in_its_columns_however_wide_the_terminal_is() {
        let short = [("openai/gpt", 4_100, 900), ("openai/gpt", 4_300, 1_200)];
        check(
            60,
            &short,
            expect![[r#"
                event  input  cached  output  reasoning    time  cost
                    2  4,100   2,050     812        640  900 ms  unpriced ~
                    4  4,300   2,150     812        640   1.2 s  $1.2345
                total  8,400   4,200   1,624      1,280    0 ms  $1.2345 +
                + what is unpriced comes on top: its price is not known
                ~ tokens estimated: the provider did not say them
            "#]],
        );
        let long = [
            ("openrouter/some-vendor/a-model-with-a-name-that-says-all-2026-11-30-preview", 1_234_567, 7_521_000),
            ("anthropic/claude-sonnet-5-5", 12_345_678, 900),
        ];
        check(
            60,
            &long,
            expect![[r#"
                event      input    cached output         time cost
                openrouter/some-vendor/a-model-with-a-name-that-says-all-202
                6-11-30-preview
                    2  1,234,567   617,283    812 125 min 21 s $1.2345
                anthropic/claude-sonnet-5-5
                    4 12,345,678 6,172,839    812       900 ms unpriced ~
                total 13,580,245 6,790,122  1,624         0 ms $1.2345 +
                openrouter/some-vendor/a-model-with-a-name-that-says-all-202
                6-11-30-preview: 1 request, 1,234,567 tokens in, 812 out,
                $1.2345
                anthropic/claude-sonnet-5-5: 1 request, 12,345,678 tokens
                in, 812 out, unpriced
                + what is unpriced comes on top: its price is not known
                ~ tokens estimated: the provider did not say them
            "#]],
        );
        check(
            80,
            &long,
            expect![[r#"
                event       input     cached  output  reasoning          time  cost
                openrouter/some-vendor/a-model-with-a-name-that-says-all-2026-11-30-preview
                    2   1,234,567    617,283     812        640  125 min 21 s  $1.2345
                anthropic/claude-sonnet-5-5
                    4  12,345,678  6,172,839     812        640        900 ms  unpriced ~
                total  13,580,245  6,790,122   1,624      1,280          0 ms  $1.2345 +
                openrouter/some-vendor/a-model-with-a-name-that-says-all-2026-11-30-preview: 1
                request, 1,234,567 tokens in, 812 out, $1.2345
                anthropic/claude-sonnet-5-5: 1 request, 12,345,678 tokens in, 812 out, unpriced
                + what is unpriced comes on top: its price is not known
                ~ tokens estimated: the provider did not say them
            "#]],
        );
        check(
            120,
            &long,
            expect![[r#"
                event       input     cached  output  reasoning          time  cost
                openrouter/some-vendor/a-model-with-a-name-that-says-all-2026-11-30-preview
                    2   1,234,567    617,283     812        640  125 min 21 s  $1.2345
                anthropic/claude-sonnet-5-5
                    4  12,345,678  6,172,839     812        640        900 ms  unpriced ~
                total  13,580,245  6,790,122   1,624      1,280          0 ms  $1.2345 +
                openrouter/some-vendor/a-model-with-a-name-that-says-all-2026-11-30-preview: 1 request, 1,234,567 tokens in, 812 out,
                $1.2345
                anthropic/claude-sonnet-5-5: 1 request, 12,345,678 tokens in, 812 out, unpriced
                + what is unpriced comes on top: its price is not known
                ~ tokens estimated: the provider did not say them
            "#]],
        );
    }
}
