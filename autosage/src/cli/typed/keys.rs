//! How a terminal hands over what is typed: key by key and unseen while a session draws it, else as it was found.

use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The keys of the terminal at standard input, once they are taken and until they are given back. Ctrl-C, Ctrl-Z and Ctrl-\ stay
/// signals.
#[derive(Clone)]
pub struct Keys(Arc<Mutex<State>>);

enum State {
    /// Not taken yet.
    Left,
    /// Taken from a terminal that had this mode.
    Taken(Termios),
    /// Given back for good.
    Over,
}

impl Keys {
    /// The keys, which are left to the terminal for now; `None` where standard input is none.
    pub fn at_terminal() -> Option<Keys> {
        tcgetattr(std::io::stdin()).is_ok().then(|| Keys(Arc::new(Mutex::new(State::Left))))
    }

    /// Takes them, also once more after the program was stopped; nothing while the terminal is not ours, and once they were
    /// given back for good.
    pub fn take(&self) {
        let mut state = self.state();
        if matches!(*state, State::Left)
            && is_ours()
            && let Ok(found) = tcgetattr(std::io::stdin())
        {
            *state = State::Taken(found);
        }
        if let State::Taken(found) = &*state {
            let mut mode = found.clone();
            mode.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            mode.special_codes[SpecialCodeIndex::VMIN] = 1;
            mode.special_codes[SpecialCodeIndex::VTIME] = 0;
            set(&mode);
        }
    }

    /// Stops this program, as Ctrl-Z does by itself, with the terminal as it was found; returns when it goes on.
    pub fn stop(&self) {
        if let State::Taken(found) = &*self.state() {
            set(found);
        }
        // Of the signals that stop, this one is not caught; and unlike SIGSTOP it does nothing where no shell could go on with us.
        // That it is ignored is no trouble either.
        let _ = signal_hook::low_level::raise(signal_hook::consts::SIGTTIN);
        self.take();
    }

    /// Gives the terminal back for good.
    pub fn give_back(&self) {
        if let State::Taken(found) = std::mem::replace(&mut *self.state(), State::Over) {
            set(&found);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the terminal at standard input obeys us: in the background it is the shell's.
pub fn is_ours() -> bool {
    // One that controls no session has no background.
    tcgetpgrp(std::io::stdin()).map_or(true, |group| group == getpgrp())
}

/// Sets the terminal's mode, if it is ours: who sets it in the background is stopped.
fn set(mode: &Termios) {
    if is_ours() {
        // A terminal that is gone has no mode.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, mode);
    }
}
