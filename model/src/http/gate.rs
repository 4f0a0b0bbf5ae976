//! Until when providers have asked this process to wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use trace::{Digest, Timestamp};

/// Where a provider has told one request how long to wait, all requests of the same account wait as long. Clones share
/// this; nothing is held while a request is made, so nobody waits for anybody.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<Mutex<BTreeMap<Account, Timestamp>>>);

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
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = held.entry(account.clone()).or_insert(until);
        *before = until.max(*before);
    }

    /// Until when `account` waits, if that is after `now`.
    pub(super) fn until(&self, account: &Account, now: Timestamp) -> Option<Timestamp> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, until| *until > now);
        held.get(account).copied()
    }
}
