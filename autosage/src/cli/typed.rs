//! What a person types while a session lasts.

pub mod keys;
mod line;

use self::line::Line;
use super::view::View;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{ErrorKind, Read};
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
    /// The question that stood when its first line was begun: it answers no later one.
    pub asked: Option<Seq>,
}

impl Typed {
    /// Reads standard input on a thread of its own, which ends with the input or the process. The line that is being typed is
    /// shown in `view`.
    pub fn listen(view: View) -> Typed {
        let (send, messages) = mpsc::channel(16);
        std::thread::spawn(move || {
            let Ok(input) = std::io::stdin().as_fd().try_clone_to_owned() else { return };
            let mut input = Input::new(File::from(input));
            let asked = || view.question().map(|(asked, _)| asked);
            while let Some(message) = input.message(asked, |words| view.typing(words)) {
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

/// Where what is typed comes from, whether the terminal hands it over by keys or by lines.
struct Input {
    file: File,
    line: Line,
    /// The question that stood when the line was begun, if it was.
    begun: Option<Option<Seq>>,
    over: bool,
}

impl Input {
    fn new(file: File) -> Input {
        Input { file, line: Line::default(), begun: None, over: false }
    }

    /// One line, with all that comes at once behind it: what is pasted is one message. `None` at the end of the input. Each
    /// time that the line which is being typed has changed, it is `shown`.
    fn message(&mut self, asked: impl Fn() -> Option<Seq>, shown: impl Fn(&str)) -> Option<Message> {
        let mut message: Option<Message> = None;
        while !self.over && (message.is_none() || self.comes()) {
            let sent = self.read();
            if !sent.is_empty() {
                let asked = self.begun.take().unwrap_or_else(&asked);
                message.get_or_insert_with(|| Message { text: String::new(), asked }).text.push_str(&sent);
            }
            match self.line.words() {
                "" => self.begun = None,
                _ => _ = self.begun.get_or_insert_with(&asked),
            }
            shown(self.line.words());
        }
        message
    }

    /// Whether something comes at once.
    fn comes(&self) -> bool {
        /// How long the rest of a pasted text may take.
        const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        matches!(poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&AT_ONCE)), Ok(1..))
    }

    /// The lines that end with what is read next.
    fn read(&mut self) -> String {
        let mut bytes = [0; 4096];
        match self.file.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => String::new(),
            // A terminal that is gone gives an error: nobody types there any more.
            Ok(0) | Err(_) => {
                self.over = true;
                String::new()
            }
            Ok(count) => {
                let taken = self.line.take(&bytes[..count]);
                self.over = taken.over;
                taken.sent
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io::Write;

    #[test]
    fn what_was_typed_before_a_question_stood_does_not_belong_to_it() {
        let (input, mut keyboard) = std::io::pipe().unwrap();
        let mut input = Input::new(File::from(std::os::fd::OwnedFd::from(input)));
        let stands = Cell::new(None);
        // The question appears while the rest of what was pasted is waited for.
        let asked = || stands.replace(Some(Seq(7)));
        keyboard.write_all(b"y\n").unwrap();
        let early = input.message(asked, |_| ()).unwrap();
        // These words are begun before a question stands, and ended after.
        let stands = Cell::new(None);
        keyboard.write_all(b"ye").unwrap();
        let begun = input.message(
            || stands.get(),
            |words| {
                if words == "ye" {
                    stands.set(Some(Seq(7)));
                    (&keyboard).write_all(b"s\n").unwrap();
                }
            },
        );
        let begun = begun.unwrap();
        let asked = || stands.get();
        keyboard.write_all(b"no,\ntry the mirror\n").unwrap();
        let late = input.message(asked, |_| ()).unwrap();
        // A byte that is no text takes nothing of what follows with it.
        keyboard.write_all(b"caf\xe9\n").unwrap();
        let odd = input.message(|| None, |_| ()).unwrap();
        drop(keyboard);
        assert_eq!((early.text.as_str(), early.asked), ("y\n", None));
        assert_eq!((begun.text.as_str(), begun.asked), ("yes\n", None));
        assert_eq!((late.text.as_str(), late.asked), ("no,\ntry the mirror\n", Some(Seq(7))));
        assert_eq!(odd.text, "caf\u{fffd}\n");
        assert!(input.message(asked, |_| ()).is_none());
    }
}
