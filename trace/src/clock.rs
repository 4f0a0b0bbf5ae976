//! Time and random names as values that are given to the engine, so that a test can step the one and fix the other.

use crate::RunId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// A length of time in milliseconds.
pub type Millis = u64;

/// A moment in UTC with milliseconds, written as `2026-11-29T17:40:07.123Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

impl Timestamp {
    /// The moment `millis` milliseconds after the start of 1970; what lies outside the years -9999 to 9999 is held there.
    pub fn from_unix_millis(millis: i64) -> Timestamp {
        let (first, last) = (jiff::Timestamp::MIN.as_millisecond(), jiff::Timestamp::MAX.as_millisecond());
        Timestamp(millis.clamp(first, last))
    }

    /// Milliseconds since the start of 1970.
    pub fn unix_millis(self) -> i64 {
        self.0
    }

    /// The moment `millis` later.
    pub fn plus(self, millis: Millis) -> Timestamp {
        Timestamp::from_unix_millis(self.0.saturating_add(i64::try_from(millis).unwrap_or(i64::MAX)))
    }

    /// The day, as `2026-11-29`.
    pub fn date(self) -> String {
        self.to_string()[..10].to_owned()
    }

    /// Day and time as they stand in a run's name: `20261129-174007`.
    pub fn compact(self) -> String {
        let text = self.to_string();
        let digits: String = text.chars().filter(char::is_ascii_digit).take(14).collect();
        format!("{}-{}", &digits[..8], &digits[8..])
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::MAX);
        write!(f, "{moment:.3}")
    }
}

impl TryFrom<String> for Timestamp {
    type Error = jiff::Error;
    fn try_from(text: String) -> Result<Timestamp, jiff::Error> {
        text.parse::<jiff::Timestamp>().map(|moment| Timestamp(moment.as_millisecond()))
    }
}

impl From<Timestamp> for String {
    fn from(moment: Timestamp) -> String {
        moment.to_string()
    }
}

/// A future that may be moved between threads.
pub type Pause = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where time comes from. The real clock ends both kinds of wait when their time has passed; a stepped clock passes a
/// `pause` at once (and steps) and never ends a `limit`, for in a scenario nothing may depend on how fast a machine is.
pub trait Clock: Send + Sync {
    /// The wall time.
    fn now(&self) -> Timestamp;
    /// Milliseconds since some fixed moment of this process; never goes back.
    fn elapsed(&self) -> Millis;
    /// A wait that we mean to take, such as the one before a retry.
    fn pause(&self, length: Duration) -> Pause;
    /// The end of the time that something else may take, such as a request.
    fn limit(&self, length: Duration) -> Pause;
}

/// Where random names come from. Everything else that looks random is derived from the run's name.
pub trait Ids: Send + Sync {
    /// A new run's name, for a run that starts at `now`.
    fn run(&self, now: Timestamp) -> RunId;
}
