//! What ends a turn from outside, and when it comes again the program. It is heard on a thread of its own: whatever keeps the
//! session busy, a model's server, a schema or a reader that takes nothing, a person is heard.

use super::view::View;
use engine::Interrupt;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use trace::{Clock, Millis};

/// Signals that come within so many milliseconds are one wish: `timeout` and shells signal a program and then its whole group.
const MOMENT: Millis = 400;
/// How long it may take to tell a person what becomes of the signal.
const TOLD: Duration = Duration::from_secs(1);

/// Ctrl-C, SIGTERM, and the end of the terminal unless that is ignored (`nohup`): watched until this is dropped.
pub struct Signals {
    state: Arc<Mutex<State>>,
    _watched: oneshot::Sender<()>,
}

/// What a signal meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The session is at work: the signal ends the turn.
    Works,
    /// The session waits for a person's next words: the signal ends the session.
    Rests,
    /// An earlier signal is not obeyed yet: this one ends the program.
    Stops,
}

impl Signals {
    /// Watches for a session that works. The wish that the turn, or the session, ends is told to `interrupt`.
    pub fn watch(interrupt: Interrupt, view: View, clock: Arc<dyn Clock>) -> std::io::Result<Signals> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let mut heard = {
            let _entered = runtime.enter();
            Heard::new()?
        };
        let state = Arc::new(Mutex::new(State::Works));
        let (_watched, mut over) = oneshot::channel();
        let signals = Signals { state: state.clone(), _watched };
        let watch = async move {
            let mut last: Option<Millis> = None;
            loop {
                tokio::select! {
                    _ = &mut over => return,
                    () = heard.next() => {}
                }
                if last.is_some_and(|last| clock.elapsed().saturating_sub(last) < MOMENT) {
                    continue;
                }
                let met = std::mem::replace(&mut *state.lock().unwrap_or_else(PoisonError::into_inner), State::Stops);
                match met {
                    State::Works => tell(&view, |view| view.say("stopping (once more ends the program at once)\n")),
                    State::Rests => {}
                    State::Stops => end(&view),
                }
                interrupt.raise();
                last = Some(clock.elapsed());
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(watch))?;
        Ok(signals)
    }

    /// What the next signal is to meet.
    pub fn meet(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

/// Ends the program. What was written stands, and what the run had started ends with it.
fn end(view: &View) -> ! {
    tell(view, |view| {
        view.leave();
        view.say("ended at once; the record stands\n");
    });
    std::process::exit(130)
}

/// Tells a person something, but waits no longer for it than is good: the terminal may take nothing, or be held by whoever is
/// busy.
fn tell(view: &View, words: impl FnOnce(&View) + Send + 'static) {
    let (view, (done, told)) = (view.clone(), channel());
    std::thread::spawn(move || {
        words(&view);
        // Nobody waits any more where it took too long.
        let _ = done.send(());
    });
    // What was not told in time does not hold up what is done.
    let _ = told.recv_timeout(TOLD);
}

/// The signals as they come.
struct Heard {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Heard {
    fn new() -> std::io::Result<Heard> {
        let hangup = if hangup_is_ignored() { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Heard { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())?, hangup })
    }

    async fn next(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hangup => {}
        }
    }
}

/// Whether this process was started to outlive its terminal. Where the system does not say, it was not.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The lowest bit is signal 1, SIGHUP.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
