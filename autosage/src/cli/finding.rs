//! What was looked at and how it is: one line each, and below it how to mend what is not well.

use super::prose::clean;

/// One line of a report.
pub struct Finding {
    /// What was looked at.
    pub name: String,
    /// How it is.
    pub state: State,
    /// What was found.
    pub detail: String,
    /// How to mend it.
    pub fix: Option<String>,
}

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Well.
    Good,
    /// Not there, and not needed.
    Missing,
    /// Not well.
    Bad,
}

/// The report.
pub fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let mark = match finding.state {
            State::Good => "ok     ",
            State::Missing => "absent ",
            State::Bad => "WRONG  ",
        };
        text.push_str(&format!("{mark} {}: {}\n", finding.name, clean(&finding.detail)));
        for line in finding.fix.iter().flat_map(|fix| fix.lines()) {
            text.push_str(&format!("          {line}\n"));
        }
    }
    text
}

/// Whether nothing is wrong.
pub fn is_sound(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.state != State::Bad)
}
