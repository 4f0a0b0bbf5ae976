//! Until when providers have asked this process to wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use trace::{Digest, Timestamp};

/// Where a provider has told one request how long to wait, all requests of the same account wait as long. A wait for which
/// that request gives up is kept by those alone that ask the same model: another model of the account may have a limit of its
/// own. Clones share this; nothing is held while a request is made, so nobody waits for anybody.
///
/// A program makes one and gives a clone to each [`Access`](crate::Access), or its models know nothing of each other's limits:
///
/// ```
/// use model::{Access, Gate};
///
/// let gate = Gate::default();
/// let access = |key: &str| Access { key: Some(key.to_owned()), gate: gate.clone(), ..Access::default() };
/// let (first, second) = (access("a key"), access("a key"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<Mutex<BTreeMap<Held, Timestamp>>>);

/// Whom a wait holds back: all that an account asks, or one model of it.
type Held = (Account, Option<String>);

/// Who asks whom: the host, and the digest of the key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Account(String, Option<String>);

impl Account {
    pub fn of(base_url: &str, key: Option<&str>) -> Account {
        let host = reqwest::Url::parse(base_url).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
        Account(host, key.map(|key| Digest::of(key.as_bytes()).to_string()))
    }
}

impl Gate {
    /// Nobody of `account` asks before `until`.
    pub(super) fn hold(&self, account: &Account, until: Timestamp) {
        self.keep((account.clone(), None), until);
    }

    /// Nobody of `account` asks `model` before `until`.
    pub(super) fn close(&self, account: &Account, model: &str, until: Timestamp) {
        self.keep((account.clone(), Some(model.to_owned())), until);
    }

    fn keep(&self, whom: Held, until: Timestamp) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = held.entry(whom).or_insert(until);
        *before = until.max(*before);
    }

    /// Until when `account` waits before it asks `model`, if that is after `now`.
    pub(super) fn until(&self, account: &Account, model: &str, now: Timestamp) -> Option<Timestamp> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, until| *until > now);
        [None, Some(model.to_owned())].into_iter().filter_map(|which| held.get(&(account.clone(), which)).copied()).max()
    }
}
