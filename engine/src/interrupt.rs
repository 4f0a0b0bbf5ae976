//! The wish of a person, or of a signal, that the turn ends.

use std::sync::Arc;
use tokio::sync::watch;

/// Raised by whoever owns the terminal; heard by the loop, which drops what it waits for, writes down what it knows and
/// ends the turn. Clones share one state.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<watch::Sender<bool>>);

impl Default for Interrupt {
    fn default() -> Interrupt {
        Interrupt(Arc::new(watch::Sender::new(false)))
    }
}

impl Interrupt {
    /// Ends the turn.
    pub fn raise(&self) {
        self.0.send_replace(true);
    }

    /// Whether it is raised; once taken, it is down again.
    pub fn take(&self) -> bool {
        self.0.send_replace(false)
    }

    /// Returns as soon as it is raised.
    pub async fn raised(&self) {
        let mut changes = self.0.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = changes.wait_for(|raised| *raised).await;
    }
}
