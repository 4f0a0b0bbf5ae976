//! What a person types while a session lasts.

use super::view::View;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use tokio::sync::mpsc;
use trace::Seq;

/// Messages that a person types or pastes.
pub struct Typed {
    messages: mpsc::Receiver<Message>,
}

/// What was typed or pasted at once.
pub struct Message {
    /// Its words.
    pub text: String,
    /// The question that stood when its first line was read: it answers no later one.
    pub asked: Option<Seq>,
}

impl Typed {
    /// Reads standard input on a thread of its own, which ends with the input or the process.
    pub fn listen(view: View) -> Typed {
        let (send, messages) = mpsc::channel(16);
        std::thread::spawn(move || {
            let Ok(input) = std::io::stdin().as_fd().try_clone_to_owned() else { return };
            let mut input = BufReader::new(fs::File::from(input));
            let asked = || view.question().map(|(asked, _)| asked);
            while let Some(message) = message(&mut input, asked) {
                if send.blocking_send(message).is_err() {
                    break;
                }
            }
        });
        Typed { messages }
    }

    /// The next message; `None` once nobody types any more.
    pub async fn message(&mut self) -> Option<Message> {
        self.messages.recv().await
    }

    /// The next message; never, where nobody types.
    pub async fn next(typed: &mut Option<&mut Typed>) -> Option<Message> {
        match typed {
            Some(typed) => match typed.message().await {
                Some(message) => Some(message),
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }
}

/// One line, with all that comes at once behind it: what is pasted is one message. `None` at the end of the input.
fn message(input: &mut BufReader<fs::File>, asked: impl Fn() -> Option<Seq>) -> Option<Message> {
    /// How long the rest of a pasted text may take.
    const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    let mut text = Vec::new();
    if input.read_until(b'\n', &mut text).ok()? == 0 {
        return None;
    }
    let asked = asked();
    let comes = |input: &BufReader<fs::File>| poll(&mut [PollFd::new(input.get_ref(), PollFlags::IN)], Some(&AT_ONCE));
    while !input.buffer().is_empty() || matches!(comes(input), Ok(1..)) {
        if input.read_until(b'\n', &mut text).ok()? == 0 {
            break;
        }
    }
    Some(Message { text: String::from_utf8_lossy(&text).into_owned(), asked })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io::Write;

    #[test]
    fn what_was_typed_before_a_question_stood_does_not_belong_to_it() {
        let (input, mut keyboard) = std::io::pipe().unwrap();
        let mut input = BufReader::new(fs::File::from(std::os::fd::OwnedFd::from(input)));
        let stands = Cell::new(None);
        // The question appears while the rest of what was pasted is waited for.
        let asked = || stands.replace(Some(Seq(7)));
        keyboard.write_all(b"y\n").unwrap();
        let early = message(&mut input, asked).unwrap();
        keyboard.write_all(b"no,\ntry the mirror\n").unwrap();
        let late = message(&mut input, asked).unwrap();
        // A byte that is no text takes nothing of what follows with it.
        keyboard.write_all(b"caf\xe9\n").unwrap();
        let odd = message(&mut input, || None).unwrap();
        drop(keyboard);
        assert_eq!((early.text.as_str(), early.asked), ("y\n", None));
        assert_eq!((late.text.as_str(), late.asked), ("no,\ntry the mirror\n", Some(Seq(7))));
        assert_eq!(odd.text, "caf\u{fffd}\n");
        assert!(message(&mut input, asked).is_none());
    }
}
