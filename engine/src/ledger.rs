//! The budget of a run, kept by the fold: reserved before asking, settled by the answer.

use sandbox::capture::grouped;
use trace::{Cost, Delivered, Delivery, Event, Exhausted, Finished, Limits, Millis, NanoUsd, Usage, What};

/// What was spent, what is reserved, and what may be spent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The limits that hold now.
    pub limits: Limits,
    /// Requests to think.
    pub turns: u64,
    /// Tokens that providers counted or we estimated.
    pub usage: Usage,
    /// Tokens of requests that were never answered, because the process died: charged whole.
    pub lost_tokens: u64,
    /// Money, lost requests included.
    pub cost: NanoUsd,
    /// Whether any request had no price, so that `cost` is not the whole.
    pub unpriced: bool,
    /// Whether the model that is asked next has no price.
    asks_unpriced: bool,
    /// Active milliseconds until the last event.
    pub active_ms: Millis,
    /// The reserve of the open request.
    pub reserve: Option<Reserve>,
}

/// What one request may cost at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Tokens: the estimated input and the whole output.
    pub tokens: u64,
    /// Money; `None` where no price is known.
    pub nano_usd: Option<NanoUsd>,
}

/// What is left of each limit; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Requests to think.
    pub turns: Option<u64>,
    /// Tokens.
    pub tokens: Option<u64>,
    /// Money.
    pub nano_usd: Option<NanoUsd>,
    /// Active milliseconds.
    pub time_ms: Option<Millis>,
}

impl Ledger {
    /// What was spent when a turn ended so. What was lost is in the money, and the limits are not known.
    pub fn so_far(finished: &Finished) -> Ledger {
        Ledger {
            turns: finished.turns,
            usage: finished.usage,
            cost: finished.cost_nano_usd.unwrap_or_default(),
            unpriced: finished.cost_nano_usd.is_none(),
            active_ms: finished.active_ms,
            ..Ledger::default()
        }
    }

    /// What is left, with an open request counted at its reserve.
    pub fn left(&self) -> Left {
        let open = self.reserve.unwrap_or(Reserve { tokens: 0, nano_usd: None });
        let tokens = self.spent_tokens().saturating_add(open.tokens);
        let money = self.cost.saturating_add(open.nano_usd.unwrap_or_default());
        Left {
            turns: self.limits.turns.map(|limit| limit.saturating_sub(self.turns)),
            tokens: self.limits.tokens.map(|limit| limit.saturating_sub(tokens)),
            nano_usd: self.limits.nano_usd.map(|limit| NanoUsd(limit.0.saturating_sub(money.0))),
            time_ms: self.limits.time_ms.map(|limit| limit.saturating_sub(self.active_ms)),
        }
    }

    /// Tokens spent, lost requests included.
    pub fn spent_tokens(&self) -> u64 {
        self.usage.total().saturating_add(self.lost_tokens)
    }

    /// Money spent, if every request had a price; before the first one, if it will have one.
    pub fn cost(&self) -> Option<NanoUsd> {
        (!self.unpriced && (self.turns > 0 || !self.asks_unpriced)).then_some(self.cost)
    }

    /// Money that is known to be spent though not all of it is: `None` where all is known, or nothing.
    pub fn known_part(&self) -> Option<NanoUsd> {
        Some(self.cost).filter(|cost| self.unpriced && cost.0 > 0)
    }

    /// Takes in one more event.
    pub fn fold(&mut self, event: &Event) {
        self.active_ms = event.ms;
        match &event.what {
            What::Started(started) => {
                self.limits = started.limits;
                self.asks_unpriced = started.model.price.is_none();
            }
            What::Switched(switched) => self.asks_unpriced = switched.model.price.is_none(),
            What::Asked(asked) => {
                self.reserve(Reserve { tokens: asked.reserved_tokens, nano_usd: asked.reserved_nano_usd });
            }
            What::Replied(replied) => self.settle(replied.usage, replied.cost),
            What::Granted(granted) => self.grant(granted.limits),
            // Whatever request a session before this one still waited for is not answered any more.
            What::Delivered(Delivered { what: Delivery::Session { model, .. }, .. }) => {
                self.charge_lost();
                if let Some(model) = model {
                    self.asks_unpriced = model.price.is_none();
                }
            }
            What::Delivered(_) | What::ApprovalAsked(_) | What::Called(_) | What::Observed(_) | What::Verified(_) => {}
            What::Folded(_) | What::Recovered(_) | What::Finished(_) | What::Unknown { .. } => {}
        }
    }

    /// A request goes out.
    fn reserve(&mut self, reserve: Reserve) {
        self.charge_lost();
        self.turns += 1;
        self.unpriced |= reserve.nano_usd.is_none();
        self.reserve = Some(reserve);
    }

    /// Its answer came: the reserve returns, what was used is charged.
    fn settle(&mut self, usage: Usage, cost: Cost) {
        self.reserve = None;
        self.usage += usage;
        match cost {
            Cost::NanoUsd(amount) => self.cost = self.cost.saturating_add(amount),
            Cost::Unpriced => self.unpriced = true,
        }
    }

    /// A request whose answer never came stays charged, once.
    fn charge_lost(&mut self) {
        if let Some(lost) = self.reserve.take() {
            self.lost_tokens = self.lost_tokens.saturating_add(lost.tokens);
            match lost.nano_usd {
                Some(amount) => self.cost = self.cost.saturating_add(amount),
                None => self.unpriced = true,
            }
        }
    }

    /// New limits; each one that is there replaces the old one.
    fn grant(&mut self, limits: Limits) {
        let Limits { turns, tokens, nano_usd, time_ms } = limits;
        let old = self.limits;
        self.limits = Limits {
            turns: turns.or(old.turns),
            tokens: tokens.or(old.tokens),
            nano_usd: nano_usd.or(old.nano_usd),
            time_ms: time_ms.or(old.time_ms),
        };
    }

    /// Whether the time or the turns are over; tokens and money are judged against the request that would come next.
    pub fn exhausted(&self) -> Option<Exhausted> {
        let left = self.left();
        match (left.time_ms, left.turns) {
            (Some(0), _) => Some(Exhausted::Time),
            (_, Some(0)) => Some(Exhausted::Turns),
            _ => None,
        }
    }

    /// What was spent of `which`, against what.
    pub fn reason(&self, which: Exhausted) -> String {
        let of = |limit: Option<u64>| limit.map_or("no limit".to_owned(), grouped);
        match which {
            Exhausted::Turns => format!("{} of {} turns are used", grouped(self.turns), of(self.limits.turns)),
            Exhausted::Tokens => {
                let limit = of(self.limits.tokens);
                let spent = grouped(self.spent_tokens());
                format!("{spent} of {limit} tokens are used; the next request may need more than is left")
            }
            Exhausted::Money => {
                let limit = self.limits.nano_usd.unwrap_or_default();
                format!("{} of {limit} are spent; the next request may cost more than is left", self.cost)
            }
            Exhausted::Time => {
                let tenths = |millis: Millis| format!("{}.{}", millis / 1000, millis % 1000 / 100);
                let (used, limit, unit) = match self.limits.time_ms {
                    Some(limit @ ..1000) => (self.active_ms.to_string(), limit.to_string(), "milliseconds"),
                    limit => (tenths(self.active_ms), limit.map_or("no limit".to_owned(), tenths), "seconds"),
                };
                format!("{used} of {limit} {unit} of active time are used")
            }
        }
    }
}
