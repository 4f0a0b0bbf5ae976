//! When to ask again, and how long to wait before.

use crate::trouble::{Kind, Trouble};
use jiff::fmt::{rfc2822, strtime};
use std::time::Duration;
use trace::{Digest, FaultClass, Millis, Timestamp};

/// How much trouble one request puts up with before it gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudget {
    /// Time from the first failure; a longer wait that a provider asks for pauses the run instead.
    pub wall: Duration,
    /// The same while nothing has ever answered at the address, where that is less: then it is more likely wrong than busy.
    pub first_contact: Duration,
    /// How many replies of no use are asked for again, those without words and calls and those with more than 1,000 of them:
    /// they are paid for.
    pub void_replies: u32,
    /// The most that one reply may take from its head to its end, however alive its stream is. One that takes longer is a
    /// stream that broke.
    pub reply: Duration,
}

impl Default for RetryBudget {
    /// Fifteen minutes, ten seconds, two, an hour.
    fn default() -> RetryBudget {
        RetryBudget {
            wall: Duration::from_secs(15 * 60),
            first_contact: Duration::from_secs(10),
            void_replies: 2,
            reply: Duration::from_secs(60 * 60),
        }
    }
}

/// The longest wait that we choose ourselves.
const LONGEST: Duration = Duration::from_secs(60);

/// The failures of one request so far.
pub(crate) struct Retries {
    budget: RetryBudget,
    failures: u32,
    voids: u32,
    since: Option<Millis>,
}

/// What to do after a failure.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Ask again after this time.
    Wait(Duration),
    /// Give up.
    Stop(FaultClass),
}

impl Retries {
    pub(crate) fn new(budget: RetryBudget) -> Retries {
        Retries { budget, failures: 0, voids: 0, since: None }
    }

    /// Judges a failure at `now` (`elapsed` on the same clock). `met` says whether the server has ever answered, `seed`
    /// makes waits differ between requests, and only between them.
    pub(crate) fn after(&mut self, trouble: &Trouble, now: Timestamp, elapsed: Millis, met: bool, seed: &Digest) -> After {
        let wall = match trouble.kind {
            Kind::ContextFull => return After::Stop(FaultClass::ContextFull),
            Kind::Refused => return After::Stop(FaultClass::Refused),
            Kind::Rejected => return After::Stop(FaultClass::Rejected),
            Kind::TimeOver => return After::Stop(FaultClass::Interrupted),
            Kind::Void if self.voids >= self.budget.void_replies => return After::Stop(FaultClass::Unavailable),
            Kind::Void => {
                self.voids += 1;
                self.budget.wall
            }
            Kind::Unreachable if !met => self.budget.first_contact.min(self.budget.wall),
            Kind::Unreachable | Kind::Passing => self.budget.wall,
        };
        let since = *self.since.get_or_insert(elapsed);
        let left = wall.saturating_sub(Duration::from_millis(elapsed.saturating_sub(since)));
        let wait = trouble.told.unwrap_or_default().max(backoff(self.failures, seed));
        self.failures += 1;
        match trouble.told {
            _ if wait <= left => After::Wait(wait),
            Some(told) if told > left => After::Stop(FaultClass::Paused { until: now.plus(millis(told)) }),
            _ => After::Stop(FaultClass::Unavailable),
        }
    }
}

/// Half a second, doubled with each failure up to a minute, and of that between three quarters and all, in whole
/// milliseconds.
fn backoff(failures: u32, seed: &Digest) -> Duration {
    let full = Duration::from_millis(500).saturating_mul(1 << failures.min(16)).min(LONGEST);
    let digest = Digest::of_two(seed.to_string().as_bytes(), &failures.to_le_bytes()).to_string();
    let spread = u32::from_str_radix(&digest[..4], 16).unwrap_or_default();
    Duration::from_millis(millis(full - full / 4 * spread / 0x1_0000))
}

/// Whole milliseconds, rounded up.
pub(crate) fn millis(length: Duration) -> Millis {
    u64::try_from(length.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// The wait that headers ask for: `Retry-After` in seconds or as an HTTP date (counted from the server's own `Date` if it
/// sent one, else from `now`), or `retry-after-ms`.
pub(crate) fn told_in_headers<'a>(header: impl Fn(&str) -> Option<&'a str>, now: Timestamp) -> Option<Duration> {
    let number = |text: &str| text.trim().parse().ok().and_then(seconds);
    if let Some(wait) = header("retry-after-ms").and_then(number) {
        return Some(wait / 1000);
    }
    let told = header("retry-after")?;
    number(told).or_else(|| {
        let from = header("date").and_then(moment).unwrap_or_else(|| now.unix_millis());
        Some(Duration::from_millis(u64::try_from(moment(told)?.saturating_sub(from)).unwrap_or(0)))
    })
}

/// A wait of so many seconds. What is longer than can be told is as long as can be; what is no length of time is none.
pub(crate) fn seconds(count: f64) -> Option<Duration> {
    (count >= 0.0).then(|| Duration::try_from_secs_f64(count).unwrap_or(Duration::MAX))
}

/// Milliseconds since 1970 of a moment as HTTP or RFC 3339 write it. Some write the end of the year 9999 for never, whose
/// last hours are no moment everywhere on earth: they are as late as can be told.
pub(crate) fn moment(text: &str) -> Option<i64> {
    let text = text.trim();
    let told = rfc2822::parse(text).map(|moment| moment.timestamp()).or_else(|_| text.parse());
    let never = || {
        let read = |form| strtime::parse(form, text).and_then(|told| told.to_datetime()).ok();
        let told = ["%a, %d %b %Y %H:%M:%S GMT", "%Y-%m-%dT%H:%M:%SZ"].into_iter().find_map(read)?;
        (told.year() == 9999).then_some(jiff::Timestamp::MAX)
    };
    told.ok().or_else(never).map(jiff::Timestamp::as_millisecond)
}

/// The wait that a sentence asks for: `try again in 17.252s`, `7m12s`, `retry after 20 seconds`.
pub(crate) fn told_in_words(sentence: &str) -> Option<Duration> {
    let lower = sentence.to_lowercase();
    let marks = ["try again in ", "retry in ", "retry after ", "try again after "];
    marks.iter().find_map(|mark| length(&lower[lower.find(mark)? + mark.len()..]))
}

/// A length of time at the start of `text`: numbers with units.
fn length(mut text: &str) -> Option<Duration> {
    let mut sum = None;
    loop {
        text = text.trim_start();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let Ok(count) = text[..digits].trim_end_matches('.').parse::<f64>() else { return sum };
        let rest = text[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86400.0,
            _ => return sum,
        };
        let more = seconds(count * unit)?;
        sum = Some(sum.unwrap_or(Duration::ZERO).saturating_add(more));
        text = &rest[letters..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(sentence: &str) -> Option<f64> {
        told_in_words(sentence).map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn waits_stand_in_sentences() {
        assert_eq!(words("Please try again in 17.252s. Visit …"), Some(17.252));
        assert_eq!(words("Please try again in 7m12s."), Some(432.0));
        assert_eq!(words("Try again in 1h0m0.5s"), Some(3600.5));
        assert_eq!(words("try again in 250ms"), Some(0.25));
        assert_eq!(words("Please retry after 20 seconds."), Some(20.0));
        assert_eq!(words("Please retry in 1 minute and"), Some(60.0));
        assert_eq!(words("try again in a moment"), None);
        assert_eq!(words("try again in 5 parsecs"), None);
        assert_eq!(words("try again in 99999999999999999999999s"), Some(Duration::MAX.as_secs_f64()));
        assert_eq!(words("Too many requests."), None);
    }

    #[test]
    fn waits_stand_in_headers() {
        let told = |headers: &[(&str, &'static str)]| {
            let header = |wanted: &str| headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
            let now = "2026-11-29T12:00:00Z".to_owned().try_into().unwrap();
            told_in_headers(header, now).map(|wait| wait.as_secs_f64())
        };
        assert_eq!(told(&[("retry-after", "17")]), Some(17.0));
        assert_eq!(told(&[("retry-after", "0.5")]), Some(0.5));
        assert_eq!(told(&[("retry-after-ms", "1500"), ("retry-after", "2")]), Some(1.5));
        assert_eq!(told(&[("retry-after", "Sun, 29 Nov 2026 12:01:00 GMT")]), Some(60.0));
        let date = ("date", "Sun, 29 Nov 2026 12:00:58 GMT");
        assert_eq!(told(&[("retry-after", "Sun, 29 Nov 2026 12:01:00 GMT"), date]), Some(2.0));
        assert_eq!(told(&[("retry-after", "Sun, 29 Nov 2020 12:00:00 GMT")]), Some(0.0));
        assert_eq!(told(&[("retry-after", "-3")]), None);
        for senseless in ["soon", "NaN", "-1e300", "Fri, 32 Dec 9999 00:00:00 GMT", "Sun, 31 Dec 9999 00:00:00 GMT"] {
            assert_eq!(told(&[("retry-after", senseless)]), None, "{senseless}");
        }
        assert_eq!(told(&[]), None);
    }

    #[test]
    fn a_wait_that_has_no_end_pauses_a_run_until_the_last_moment_that_can_be_written() {
        let never = ["1e300", "1e400", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT", "9999-12-31T23:59:59Z"];
        for never in never {
            let now = Timestamp::from_unix_millis(0);
            let told = told_in_headers(|name| (name == "retry-after").then_some(never), now);
            let trouble = Trouble { told, ..Trouble::new(Kind::Passing, "") };
            let after = Retries::new(RetryBudget::default()).after(&trouble, now, 0, true, &Digest::of(b"body"));
            let until = jiff::Timestamp::MAX.as_millisecond();
            assert_eq!(after, After::Stop(FaultClass::Paused { until: Timestamp::from_unix_millis(until) }), "{never}");
        }
    }

    proptest! {
        #[test]
        fn a_told_wait_is_never_cut_short_and_ours_never_exceeds_a_minute(
            told in proptest::option::of(0u64..2_000_000), failures in 0usize..40
        ) {
            let mut retries = Retries::new(RetryBudget { wall: Duration::from_secs(100_000), ..RetryBudget::default() });
            let trouble = Trouble { told: told.map(Duration::from_millis), ..Trouble::new(Kind::Passing, "") };
            for _ in 0..failures {
                let now = Timestamp::from_unix_millis(0);
                let After::Wait(wait) = retries.after(&trouble, now, 0, true, &Digest::of(b"body")) else { panic!("gave up") };
                prop_assert!(wait >= trouble.told.unwrap_or_default());
                prop_assert!(wait <= LONGEST.max(trouble.told.unwrap_or_default()));
            }
        }

        #[test]
        fn no_sentence_is_a_panic(sentence in ".*") {
            told_in_words(&format!("try again in {sentence}"));
            told_in_headers(|_| Some(&sentence), Timestamp::from_unix_millis(0));
        }
    }
}
