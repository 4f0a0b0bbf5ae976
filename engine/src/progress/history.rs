//! Messages in their order, and the rounds that they form: a reply with all that came of it. A round is kept whole or goes.

use crate::harness::{Notes, fill};
use model::{Message, SentPart, text_of};
use std::collections::BTreeSet;
use std::ops::Range;
use trace::{CallId, Folded, Method, Seq};

/// What the model is told, as a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub messages: Vec<Message>,
    pub rounds: Vec<Round>,
    /// The account that stands in the place of rounds that went.
    pub account: Option<AccountPlace>,
}

/// Where an account stands, and from which reply on it tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccountPlace {
    pub at: usize,
    pub first: Seq,
}

/// A reply and all that follows it, up to the next.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// The reply.
    pub reply: Seq,
    /// Its place among the messages.
    pub at: usize,
    /// Its calls that were begun, and where.
    pub calls: Vec<(CallId, Seq)>,
}

impl History {
    /// For each message the call whose result it is, if it is one.
    pub fn calls(&self) -> Vec<Option<Seq>> {
        let mut calls = vec![None; self.messages.len()];
        for (round, range) in self.rounds.iter().zip(self.ranges()) {
            for at in range {
                if let Message::Result { id, .. } = &self.messages[at] {
                    calls[at] = round.calls.iter().find(|(call, _)| call == id).map(|(_, seq)| *seq);
                }
            }
        }
        calls
    }

    /// Where the messages of each round stand.
    fn ranges(&self) -> impl DoubleEndedIterator<Item = Range<usize>> + ExactSizeIterator {
        let end = |next: usize| self.rounds.get(next).map_or(self.messages.len(), |round| round.at);
        (0..self.rounds.len()).map(move |round| self.rounds[round].at..end(round + 1))
    }

    /// The same history after a fold. What `folded` names and is not there changes nothing.
    pub fn folded(&self, folded: &Folded, notes: &Notes) -> History {
        let calls = self.calls();
        let (gone, account) = match &folded.method {
            Method::Shorten => (0..0, None),
            Method::Ledger { first, last, text, .. } => (self.between(*first, *last), Some((*first, text))),
        };
        let account = account.filter(|_| !gone.is_empty());
        let shorter: BTreeSet<Seq> = folded.shortened.iter().copied().collect();
        let mut rounds = self.rounds.iter().peekable();
        let mut kept = History { account: self.account, ..History::default() };
        for (at, message) in self.messages.iter().enumerate() {
            if at == gone.start
                && let Some((first, text)) = account
            {
                kept.account = Some(AccountPlace { at: kept.messages.len(), first });
                kept.messages.push(Message::User(vec![SentPart::text(text)]));
            }
            let round = rounds.next_if(|round| round.at == at);
            // A new account tells what the one before did as well.
            let is_old_account = account.is_some() && self.account.is_some_and(|old| old.at == at);
            if gone.contains(&at) || is_old_account {
                continue;
            }
            if let Some(round) = round {
                kept.rounds.push(Round { at: kept.messages.len(), ..round.clone() });
            }
            let call = calls[at].filter(|call| shorter.contains(call));
            kept.messages.push(match (message, call) {
                (Message::Result { id, status, content }, Some(call)) => {
                    let content = shortened(content, call, folded.head_bytes, folded.tail_bytes, notes);
                    Message::Result { id: id.clone(), status: *status, content }
                }
                _ => message.clone(),
            });
        }
        kept
    }

    /// The messages of the rounds whose replies lie between `first` and `last`; what was said after all of them stays.
    fn between(&self, first: Seq, last: Seq) -> Range<usize> {
        let is_between = |round: &Round| (first..=last).contains(&round.reply);
        let begin = self.rounds.iter().find(|round| is_between(round)).map_or(0, |round| round.at);
        let end =
            self.rounds.iter().zip(self.ranges()).rev().find(|(round, _)| is_between(round)).map_or(0, |(_, range)| range.end);
        let is_said_last = end == self.messages.len() && matches!(self.messages.last(), Some(Message::User(_)));
        begin..if is_said_last { end - 1 } else { end }
    }
}

/// The beginning and the end of what a call was told, and where all of it is to be had.
pub(crate) fn shortened(content: &[SentPart], call: Seq, head: usize, tail: usize, notes: &Notes) -> Vec<SentPart> {
    let text = text_of(content);
    let note = fill(&notes.shortened, &[("at", &call.to_string())]);
    // What is short enough as it is has a picture, and stays without it.
    if text.len() <= head + tail {
        return vec![SentPart::text(format!("{text}\n{note}"))];
    }
    let end = text.floor_char_boundary(head);
    let start = text.ceil_char_boundary(text.len().saturating_sub(tail).max(end));
    // Whole lines, where that costs less than half of what is shown.
    let end = text[..end].rfind('\n').filter(|line| *line >= end / 2).unwrap_or(end);
    let start = text[start..].find('\n').filter(|line| *line <= (text.len() - start) / 2).map_or(start, |line| start + line + 1);
    vec![SentPart::text(format!("{}\n{note}\n{}", &text[..end], &text[start..]))]
}
