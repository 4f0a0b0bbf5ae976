//! What ends a turn from outside, and when it comes again the program; and what stops the program for a while. It is heard on a
//! thread of its own: whatever keeps the session busy, a model's server, a schema or a reader that takes nothing, a person is heard.

use super::typed::keys::Keys;
use super::view::View;
use engine::Interrupt;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGQUIT, SIGTSTP};
use signal_hook::low_level::emulate_default_handler;
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

/// Ctrl-C, SIGTERM, and the end of the terminal unless that is ignored (`nohup`): watched until this is dropped. Where the
/// terminal's keys are taken, also what stops or quits the program, for the terminal's mode has to be set back before.
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
    pub fn watch(interrupt: Interrupt, view: View, keys: Option<Keys>, clock: Arc<dyn Clock>) -> std::io::Result<Signals> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let mut heard = {
            let _entered = runtime.enter();
            Heard::new(keys.is_some())?
        };
        let state = Arc::new(Mutex::new(State::Works));
        let (_watched, mut over) = oneshot::channel();
        let signals = Signals { state: state.clone(), _watched };
        let watch = async move {
            let mut last: Option<Millis> = None;
            loop {
                let wish = tokio::select! {
                    _ = &mut over => return,
                    wish = heard.next() => wish,
                };
                match (wish, &keys) {
                    (Wish::End, _) => {}
                    (Wish::Quit, keys) => quit(&view, keys.as_ref()),
                    (Wish::Stop, Some(keys)) => {
                        let keys = keys.clone();
                        tell(&view, move |view| view.aside(|| keys.stop()));
                        continue;
                    }
                    (Wish::GoOn, Some(keys)) => {
                        keys.take();
                        tell(&view, View::draw_anew);
                        continue;
                    }
                    (Wish::Stop | Wish::GoOn, None) => continue,
                }
                if last.is_some_and(|last| clock.elapsed().saturating_sub(last) < MOMENT) {
                    continue;
                }
                let met = std::mem::replace(&mut *state.lock().unwrap_or_else(PoisonError::into_inner), State::Stops);
                match met {
                    State::Works => tell(&view, |view| view.say("stopping (once more ends the program at once)\n")),
                    State::Rests => {}
                    State::Stops => end(&view, keys.as_ref()),
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
fn end(view: &View, keys: Option<&Keys>) -> ! {
    leave(view, keys, "ended at once; the record stands\n");
    std::process::exit(130)
}

/// Ends the program as the signal to quit does where nobody hears it, also in what the shell and the system make of that.
fn quit(view: &View, keys: Option<&Keys>) -> ! {
    leave(view, keys, "");
    // It returns only where the system refuses.
    let _ = emulate_default_handler(SIGQUIT);
    std::process::exit(131)
}

/// Gives the terminal back, whoever is busy with it, and says the last `words`.
fn leave(view: &View, keys: Option<&Keys>, words: &'static str) {
    if let Some(keys) = keys {
        keys.give_back();
    }
    tell(view, move |view| {
        view.leave();
        view.say(words);
    });
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

/// What a signal is the wish for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// The turn, the session or the program ends.
    End,
    /// The program is stopped, for the shell to go on with it later.
    Stop,
    /// It goes on.
    GoOn,
    /// It ends at once, and leaves its memory behind where that is wanted.
    Quit,
}

/// The signals as they come.
struct Heard {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
    stop: Option<Signal>,
    goes_on: Option<Signal>,
    quit: Option<Signal>,
}

impl Heard {
    fn new(keys: bool) -> std::io::Result<Heard> {
        let unignored = |number: i32| -> std::io::Result<Option<Signal>> {
            if is_ignored(number) { Ok(None) } else { signal(SignalKind::from_raw(number)).map(Some) }
        };
        Ok(Heard {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: unignored(SIGHUP)?,
            stop: if keys { unignored(SIGTSTP)? } else { None },
            goes_on: if keys { Some(signal(SignalKind::from_raw(SIGCONT))?) } else { None },
            quit: if keys { unignored(SIGQUIT)? } else { None },
        })
    }

    async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.interrupt.recv() => Wish::End,
            _ = self.terminate.recv() => Wish::End,
            () = once(&mut self.hangup) => Wish::End,
            () = once(&mut self.stop) => Wish::Stop,
            () = once(&mut self.goes_on) => Wish::GoOn,
            () = once(&mut self.quit) => Wish::Quit,
        }
    }
}

/// The next of the signals that are listened for; never, where they are not.
async fn once(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Whether this process was started to take no notice of the signal `number`, as by `nohup`. Where the system does not say, it
/// was not.
fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The lowest bit is signal 1.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}
