//! The report as tables: what was measured, and what it is meant to stay under on a quiet machine with two cores.

use super::folds::Folds;
use super::long::Long;
use super::once::{Figures, median};
use super::record::{Length, Lengths};
use super::{Durability, Report, Way, Wire};
use std::fmt::Display;

pub fn table(report: &Report) -> String {
    let runs = report.ways.first().map_or(0, |way| way.runs.len());
    let mut text = format!("median of {runs} runs of {} turns for each column\n\n", report.turns);
    text += &ways(report);
    text += &format!("\nown time around a turn, `process`\n\n{}", long(&report.long));
    text += &format!("\nfolding\n\n{}", folds(&report.folds));
    text += &format!("\ncached before and after each fold\n\n{}", cached_at(&report.folds));
    text += &format!("\nthe record\n\n{}", lengths(&report.lengths));
    text += &format!("\nthe walls and the disk\n\n{}\n", walls(report));
    let broken = report.ways.iter().flat_map(|way| &way.median.broken).cloned();
    let broken: Vec<String> = broken.chain(report.long.iter().filter(|long| long.broken > 0).map(told)).collect();
    text += &if broken.is_empty() { "every request extends the last\n".to_owned() } else { format!("{}\n", broken.join("\n")) };
    text
}

fn told(long: &Long) -> String {
    format!("{} requests of the long run over {} do not extend the last", long.broken, wire(long.wire))
}

fn wire(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenaiChat => "chat",
        Wire::Anthropic => "messages",
        Wire::Responses => "responses",
        Wire::Gemini => "gemini",
    }
}

fn ways(report: &Report) -> String {
    let name = |way: &Way| match way.durability {
        Durability::Process => format!("{}, process", wire(way.wire)),
        Durability::Power => format!("{}, power", wire(way.wire)),
    };
    let head = report.ways.iter().map(|measured| name(&measured.way));
    let row = |figure: &str, goal: &str, of: &dyn Fn(&Figures) -> String| {
        let cells = report.ways.iter().map(|measured| of(&measured.median));
        [figure.to_owned()].into_iter().chain(cells).chain([goal.to_owned()]).collect()
    };
    let base = report.ways.first().map_or(0.0, |first| first.median.turn_ms);
    let fresh = ["the same, nothing kept yet".to_owned(), ms(report.fresh.first_request_ms)].into_iter();
    let rows = vec![
        row("first request after the start", "50 ms", &|figures| ms(figures.first_request_ms)),
        fresh.chain(report.ways.iter().skip(1).map(|_| String::new())).chain([String::new()]).collect(),
        row("own time a turn", "7 ms", &|figures| ms(figures.turn_ms)),
        row("its ratio to the first column", "", &|figures| ratio(figures.turn_ms, base)),
        row("processor time in all", "0.5 s", &|figures| format!("{:.2} s", figures.cpu_s)),
        row("largest process", "40 MB", &|figures| format!("{:.1} MB", figures.peak_mb)),
        row("first request's body", "5000 bytes", &|figures| format!("{} bytes", figures.first_body_bytes)),
        row("growth a turn", "250 bytes", &|figures| format!("{} bytes", figures.growth_bytes)),
    ];
    drawn(["figure".to_owned()].into_iter().chain(head).chain(["goal".to_owned()]).collect(), rows)
}

fn long(long: &[Long]) -> String {
    let turns = long.first().map(|long| long.at.iter().map(|at| format!("turn {}", at.turn))).into_iter().flatten();
    let rest = ["last to first", "processor time", "largest process", "last body"].map(str::to_owned);
    let row = |long: &Long| {
        let (first, last) = (long.at.first().map_or(0.0, |at| at.ms), long.at.last().map_or(0.0, |at| at.ms));
        let rest = [
            ratio(last, first),
            format!("{:.1} s", long.cpu_s),
            format!("{:.1} MB", long.peak_mb),
            format!("{} bytes", long.last_body_bytes),
        ];
        [wire(long.wire).to_owned()].into_iter().chain(long.at.iter().map(|at| ms(at.ms))).chain(rest).collect()
    };
    let goal = ["goal", "", "", "", "1.5", "", "", ""].map(str::to_owned).into();
    let rows = long.iter().map(row).chain([goal]).collect();
    drawn(["wire".to_owned()].into_iter().chain(turns).chain(rest).collect(), rows)
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

fn folds(folds: &[Folds]) -> String {
    let cached = |folds: &Folds, which: usize| percent(median(folds.cached_at.iter().map(|at| at[which])));
    let row = |folds: &Folds| {
        vec![
            wire(folds.wire).to_owned(),
            folds.turns.to_string(),
            folds.folds.to_string(),
            ms(folds.ms),
            ms(folds.most_ms),
            ratio(folds.to_sliding, 1.0),
            cached(folds, 0),
            cached(folds, 1),
            percent(folds.cached),
            folds.broken.to_string(),
        ]
    };
    let goal = ["goal", "", "", "5 ms", "5 ms", "1.30", "", "", "", "0"].map(str::to_owned).into();
    let head =
        ["wire", "turns", "folds", "a fold", "the longest", "sent to sliding", "cached before", "after", "in all", "broken"];
    drawn(head.map(str::to_owned).into(), folds.iter().map(row).chain([goal]).collect())
}

/// What a cache served of the requests around each fold, a row for the first of each wire, the second, and so on.
fn cached_at(folds: &[Folds]) -> String {
    let most = folds.iter().map(|folds| folds.cached_at.len()).max().unwrap_or_default();
    let cell = |folds: &Folds, at: usize| match folds.cached_at.get(at) {
        Some([before, after]) => format!("{} → {}", percent(*before), percent(*after)),
        None => String::new(),
    };
    let row = |at: usize| [(at + 1).to_string()].into_iter().chain(folds.iter().map(|folds| cell(folds, at))).collect();
    let head = ["fold".to_owned()].into_iter().chain(folds.iter().map(|folds| wire(folds.wire).to_owned()));
    drawn(head.collect(), (0..most).map(row).collect())
}

fn lengths(lengths: &Lengths) -> String {
    let row = |length: &Length| {
        let events = length.events as f64;
        vec![
            length.events.to_string(),
            format!("{:.1} MB", length.bytes as f64 / 1e6),
            format!("{:.1} µs each", length.append_ms * 1e3 / events),
            ms(length.reopen_ms),
            format!("{:.1} MB", length.reopen_peak_mb),
        ]
    };
    let show = ["`show` of 10000".to_owned(), String::new(), String::new(), ms(lengths.show_ms), String::new()];
    let goal = ["goal", "", "", "1000 ms; `show` 200 ms", ""].map(str::to_owned);
    let rows = lengths.records.iter().map(row).chain([show.into(), goal.into()]).collect();
    drawn(["events", "bytes", "appended and folded", "reopened and folded", "memory"].map(str::to_owned).into(), rows)
}

fn walls(report: &Report) -> String {
    let walls = &report.walls;
    let row = |figure: &str, measured: f64, goal: &str| vec![figure.to_owned(), format!("{measured:.2} ms"), goal.to_owned()];
    let rows = vec![
        row("environment ready", walls.environment_ms, "3 ms"),
        row("a bare fork and exec", walls.bare_ms, ""),
        row("a command above fork and exec", walls.command_ms - walls.bare_ms, "1.5 ms"),
        row("the disk's own fdatasync", report.fdatasync_ms, ""),
    ];
    drawn(["figure", "measured", "goal"].map(str::to_owned).into(), rows)
}

fn ms(millis: f64) -> String {
    if millis < 100.0 { format!("{millis:.1} ms") } else { format!("{millis:.0} ms") }
}

fn ratio(one: f64, other: f64) -> String {
    if other > 0.0 { format!("{:.2}", one / other) } else { "-".to_owned() }
}

/// A table with its columns set, the first to the left, the others to the right.
fn drawn(head: Vec<String>, rows: Vec<Vec<String>>) -> String {
    let length = |text: &String| text.chars().count();
    let widths: Vec<usize> = (0..head.len())
        .map(|at| rows.iter().chain([&head]).filter_map(|row| row.get(at)).map(length).max().unwrap_or(0))
        .collect();
    let line = |row: &[String]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| match at {
            0 => format!(" {cell:<width$} |"),
            _ => format!(" {cell:>width$} |"),
        });
        format!("|{}\n", cells.collect::<String>())
    };
    let rule = |(at, width): (usize, &usize)| match at {
        0 => format!("{:-<1$}|", "", width + 2),
        _ => format!("{:->1$}:|", "", width + 1),
    };
    let rule: String = widths.iter().enumerate().map(rule).collect();
    lines([line(&head), format!("|{rule}\n")].into_iter().chain(rows.iter().map(|row| line(row))))
}

fn lines(all: impl Iterator<Item = impl Display>) -> String {
    all.map(|line| line.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::long::At;
    use super::super::walls::Walls;
    use super::super::{Measured, Way};
    use super::*;
    use expect_test::expect;

    fn figures(turn_ms: f64, broken: &[&str]) -> Figures {
        let broken = broken.iter().map(|text| (*text).to_owned()).collect();
        Figures { first_request_ms: 9.0, turn_ms, cpu_s: 0.2, peak_mb: 9.5, first_body_bytes: 4000, growth_bytes: 240, broken }
    }

    #[test]
    fn figures_make_tables() {
        let way = |at: usize, turn_ms, broken| {
            let runs = vec![figures(turn_ms, broken)];
            Measured { way: Way::ALL[at], median: Figures::median(&runs), runs }
        };
        let at = |turn, ms| At { turn, ms };
        let report = Report {
            turns: 50,
            ways: vec![way(0, 2.0, &[]), way(1, 3.0, &["turn 3: prefix_ok is false"]), way(4, 5.0, &[])],
            fresh: figures(2.0, &[]),
            long: vec![Long {
                wire: Wire::OpenaiChat,
                turns: 1000,
                at: vec![at(5, 2.0), at(45, 2.5), at(1000, 3.0)],
                cpu_s: 5.0,
                peak_mb: 20.0,
                last_body_bytes: 250_000,
                broken: 2,
            }],
            folds: vec![Folds {
                wire: Wire::OpenaiChat,
                turns: 2000,
                window: 32_768,
                folds: 14,
                ms: 2.0,
                most_ms: 3.5,
                to_sliding: 0.75,
                cached_at: vec![[0.98, 0.25], [0.99, 0.2], [0.995, 0.3]],
                cached: 0.9875,
                broken: 0,
            }],
            fdatasync_ms: 1.25,
            walls: Walls { environment_ms: 1.5, command_ms: 1.6, bare_ms: 0.9 },
            lengths: Lengths {
                records: vec![Length {
                    events: 100_000,
                    bytes: 40_000_000,
                    append_ms: 500.0,
                    reopen_ms: 400.0,
                    reopen_peak_mb: 99.0,
                }],
                show_ms: 50.0,
            },
        };
        expect![[r#"
            median of 1 runs of 50 turns for each column

            | figure                        | chat, process | messages, process | chat, power |       goal |
            |-------------------------------|--------------:|------------------:|------------:|-----------:|
            | first request after the start |        9.0 ms |            9.0 ms |      9.0 ms |      50 ms |
            | the same, nothing kept yet    |        9.0 ms |                   |             |            |
            | own time a turn               |        2.0 ms |            3.0 ms |      5.0 ms |       7 ms |
            | its ratio to the first column |          1.00 |              1.50 |        2.50 |            |
            | processor time in all         |        0.20 s |            0.20 s |      0.20 s |      0.5 s |
            | largest process               |        9.5 MB |            9.5 MB |      9.5 MB |      40 MB |
            | first request's body          |    4000 bytes |        4000 bytes |  4000 bytes | 5000 bytes |
            | growth a turn                 |     240 bytes |         240 bytes |   240 bytes |  250 bytes |

            own time around a turn, `process`

            | wire | turn 5 | turn 45 | turn 1000 | last to first | processor time | largest process |    last body |
            |------|-------:|--------:|----------:|--------------:|---------------:|----------------:|-------------:|
            | chat | 2.0 ms |  2.5 ms |    3.0 ms |          1.50 |          5.0 s |         20.0 MB | 250000 bytes |
            | goal |        |         |           |           1.5 |                |                 |              |

            folding

            | wire | turns | folds | a fold | the longest | sent to sliding | cached before |  after | in all | broken |
            |------|------:|------:|-------:|------------:|----------------:|--------------:|-------:|-------:|-------:|
            | chat |  2000 |    14 | 2.0 ms |      3.5 ms |            0.75 |        99.0 % | 25.0 % | 98.8 % |      0 |
            | goal |       |       |   5 ms |        5 ms |            1.30 |               |        |        |      0 |

            cached before and after each fold

            | fold |            chat |
            |------|----------------:|
            | 1    | 98.0 % → 25.0 % |
            | 2    | 99.0 % → 20.0 % |
            | 3    | 99.5 % → 30.0 % |

            the record

            | events          |   bytes | appended and folded |    reopened and folded |  memory |
            |-----------------|--------:|--------------------:|-----------------------:|--------:|
            | 100000          | 40.0 MB |         5.0 µs each |                 400 ms | 99.0 MB |
            | `show` of 10000 |         |                     |                50.0 ms |         |
            | goal            |         |                     | 1000 ms; `show` 200 ms |         |

            the walls and the disk

            | figure                        | measured |   goal |
            |-------------------------------|---------:|-------:|
            | environment ready             |  1.50 ms |   3 ms |
            | a bare fork and exec          |  0.90 ms |        |
            | a command above fork and exec |  0.70 ms | 1.5 ms |
            | the disk's own fdatasync      |  1.25 ms |        |

            turn 3: prefix_ok is false
            2 requests of the long run over chat do not extend the last
        "#]]
        .assert_eq(&table(&report));
    }
}
