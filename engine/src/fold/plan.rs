//! The plan of a fold: what goes, so that what stays fits.

use crate::harness::{FoldSettings, Notes};
use crate::progress::{History, Progress, shortened};
use model::{Message, SentPart, Transcript, estimate_tokens, text_of};
use std::ops::Range;
use trace::{Folded, Method, Seq};

/// A fold that leaves more than this part of a request is not worth its loss.
const WORTH: (u64, u64) = (3, 4);

/// How the history is folded to at most half of the `window`, or, where that cannot be had, to `most` tokens.
pub(super) fn plan(progress: &Progress, window: u64, most: u64) -> Option<Folded> {
    let scales = Scales::new(progress)?;
    let most = most.min(progress.size() / WORTH.1 * WORTH.0);
    let kept = [most.min(window / 2), most].into_iter().find_map(|goal| {
        let cut = scales.choices(window).find_map(|choice| scales.fitting(&choice, goal))?;
        Some(scales.folded(cut)).filter(|folded| folded.after <= most)
    });
    kept.or_else(|| scales.bare().map(|cut| scales.folded(cut)).find(|folded| folded.after <= most))
}

/// The history with what each message of it weighs, whole and shortened.
struct Scales<'p> {
    progress: &'p Progress,
    history: &'p History,
    settings: &'p FoldSettings,
    notes: &'p Notes,
    /// What stands before the messages.
    head: &'p Transcript,
    whole: &'p [u64],
    short: Vec<u64>,
    /// The calls whose results are long.
    long: Vec<Option<Seq>>,
}

/// What is tried, one after the other.
struct Choice {
    /// Results that may be shortened, by their place among the messages.
    outputs: Range<usize>,
    /// The first round that may go; where there is none, all stay.
    first: Option<usize>,
    /// Tokens that the account of them has at most.
    account: u64,
}

/// What is shortened, and which rounds go.
struct Cut {
    shortened: Vec<Seq>,
    gone: Range<usize>,
}

impl<'p> Scales<'p> {
    fn new(progress: &'p Progress) -> Option<Scales<'p>> {
        let (history, harness) = (progress.history(), progress.harness());
        let (settings, notes) = (&harness.settings().fold, harness.notes());
        let mut long = history.calls();
        for (call, message) in long.iter_mut().zip(&history.messages) {
            let is_long = match message {
                Message::Result { content, .. } => {
                    let has_picture = content.iter().any(|part| matches!(part, SentPart::Picture(_)));
                    has_picture || text_of(content).len() > settings.output_bytes
                }
                Message::User(_) | Message::Reply { .. } => false,
            };
            call.take_if(|_| !is_long);
        }
        let head = progress.head()?;
        let whole = progress.weights();
        let mut transcript = head.clone();
        let mut weigh = |message: &Message| {
            let before = transcript.tokens();
            progress.push(&mut transcript, message);
            transcript.tokens() - before
        };
        let short = history.messages.iter().zip(&long).zip(whole).map(|((message, call), whole)| match (message, call) {
            (Message::Result { id, status, content }, Some(call)) => {
                let content = shortened(content, *call, settings.head_bytes, settings.tail_bytes, notes);
                weigh(&Message::Result { id: id.clone(), status: *status, content })
            }
            _ => *whole,
        });
        let short = short.collect();
        Some(Scales { progress, history, settings, notes, head, whole, short, long })
    }

    /// The place of the first message of a round.
    fn place(&self, round: usize) -> usize {
        self.history.rounds.get(round).map_or(self.history.messages.len(), |round| round.at)
    }

    /// From what loses least to what loses most: old outputs; with them rounds between the first and the latest; with them
    /// the first ones; and last of all the latest outputs.
    fn choices(&self, window: u64) -> impl Iterator<Item = Choice> {
        let rounds = self.history.rounds.len();
        // Once an account stands there, the first rounds are those before it.
        let first = self.before_account().unwrap_or(self.settings.first_rounds.min(rounds.saturating_sub(1)));
        let old = self.place(first)..self.place(rounds.saturating_sub(self.settings.last_rounds).max(first));
        let all = 0..self.history.messages.len();
        let account = self.account(0..rounds.saturating_sub(1), window).map_or(0, |text| in_json(&text));
        let choices =
            [(old.clone(), None), (old.clone(), Some(first)), (old, Some(0)), (all.clone(), Some(first)), (all, Some(0))];
        choices.into_iter().map(move |(outputs, first)| Choice { outputs, first, account })
    }

    /// The account of the rounds `gone`, as it is shown in a `window`; `None` where none go.
    fn account(&self, gone: Range<usize>, window: u64) -> Option<String> {
        let first = self.first(&gone)?;
        let end = self.history.rounds.get(gone.end).map_or(self.progress.next_seq(), |round| round.reply);
        let told = self.progress.account().between(first, end, self.progress.plan(), self.notes);
        let most = usize::try_from(window / self.settings.account_share.get() * 3).unwrap_or(usize::MAX);
        Some(told.within(most, self.progress.next_seq()))
    }

    /// How many rounds stand before the account, if there is one.
    fn before_account(&self) -> Option<usize> {
        let account = self.history.account?;
        Some(self.history.rounds.iter().filter(|round| round.at < account.at).count())
    }

    /// From which reply on an account tells that stands in the place of the rounds `gone`: also of what the one before told.
    fn first(&self, gone: &Range<usize>) -> Option<Seq> {
        let first = self.history.rounds.get(gone.start).filter(|_| !gone.is_empty())?.reply;
        Some(self.history.account.map_or(first, |account| account.first.min(first)))
    }

    /// As little of `choice` as brings the request to `goal` tokens, if all of it does.
    fn fitting(&self, choice: &Choice, goal: u64) -> Option<Cut> {
        let may = |at: usize| choice.outputs.contains(&at) && self.long[at].is_some() && self.short[at] < self.whole[at];
        let fits = |tokens: u64| self.progress.size_of(self.head.tokens() + tokens) <= goal;
        let Some(first) = choice.first else {
            // The oldest go first, and no more than have to.
            let mut tokens: u64 = self.whole.iter().sum();
            let mut shortened = Vec::new();
            for at in choice.outputs.clone().filter(|at| may(*at)) {
                tokens = tokens - self.whole[at] + self.short[at];
                shortened.extend(self.long[at]);
                if fits(tokens) {
                    return Some(Cut { shortened, gone: 0..0 });
                }
            }
            return None;
        };
        // An account goes with the first round that does, and a new one takes its place.
        let account = self.history.account.map(|account| account.at);
        let one = |at: usize| if may(at) { self.short[at] } else { self.whole[at] };
        let weight = |range: Range<usize>| range.filter(|at| Some(*at) != account).map(one).sum::<u64>();
        let old = account.map_or(0, |at| self.whole[at]);
        let rounds = self.history.rounds.len();
        let before = weight(0..self.place(first));
        let mut kept = None;
        let mut tail = 0;
        for round in (first..rounds).rev() {
            tail += weight(self.place(round)..self.place(round + 1));
            let account = if round > first { choice.account } else { old };
            if !fits(before + account + tail) {
                break;
            }
            kept = Some(round);
        }
        let kept = kept?;
        // An account tells in one piece what happened: where a round before it goes, it begins there and ends no earlier.
        let least = if kept > first { self.before_account().unwrap_or(kept) } else { kept };
        let gone = first..kept.max(least);
        let stays = |at: &usize| !(self.place(gone.start)..self.place(gone.end)).contains(at);
        let shortened: Vec<Seq> =
            choice.outputs.clone().filter(|at| may(*at) && stays(at)).filter_map(|at| self.long[at]).collect();
        (!gone.is_empty() || !shortened.is_empty()).then_some(Cut { shortened, gone })
    }

    /// Where no round can stay, as one with very many results or with a very long message behind it: all of them go, first
    /// those behind the first ones, and what was said last stays alone.
    fn bare(&self) -> impl Iterator<Item = Cut> {
        let rounds = self.history.rounds.len();
        let first = self.before_account().unwrap_or(self.settings.first_rounds);
        [first, 0]
            .into_iter()
            .filter(move |first| *first < rounds)
            .map(move |first| Cut { shortened: Vec::new(), gone: first..rounds })
    }

    /// What is written down of the fold, with its sizes as they come out.
    fn folded(&self, Cut { shortened, gone }: Cut) -> Folded {
        let progress = self.progress;
        let method = match self.account(gone.clone(), progress.window()) {
            None => Method::Shorten,
            Some(text) => {
                let last = self.history.rounds[gone.end - 1].reply;
                let first = self.first(&gone).unwrap_or(last);
                Method::Ledger { first, last, replies: gone.len() as u64, text, whole: None }
            }
        };
        let mut folded = Folded {
            epoch: progress.epoch() + 1,
            upto: Seq(progress.next_seq().0.saturating_sub(1)),
            before: progress.size(),
            after: 0,
            shortened,
            head_bytes: self.settings.head_bytes,
            tail_bytes: self.settings.tail_bytes,
            method,
        };
        let kept = self.history.folded(&folded, self.notes);
        let mut transcript = self.head.clone();
        kept.messages.iter().for_each(|message| progress.push(&mut transcript, message));
        folded.after = progress.size_of(transcript.tokens());
        folded
    }
}

/// An estimate of the tokens of `text` within a message of its own.
fn in_json(text: &str) -> u64 {
    // A line end is two characters there, and the message around it has some more.
    estimate_tokens(text) + text.lines().count() as u64 + 32
}
