//! What the tests of the record share: a clock that stands, and a letter.

use std::time::Duration;
use trace::{Clock, Delivery, Millis, Part, Timestamp};

pub struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(1_795_974_007_123)
    }
    fn elapsed(&self) -> Millis {
        7
    }
    fn pause(&self, _: Duration) -> trace::Pause {
        Box::pin(std::future::ready(()))
    }
    fn limit(&self, _: Duration) -> trace::Pause {
        Box::pin(std::future::pending())
    }
}

pub fn message(text: &str) -> Delivery {
    Delivery::Message { parts: vec![Part::text(text)] }
}
