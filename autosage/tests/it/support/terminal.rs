//! The program at a terminal: what a person sees, and what it is told in answer.

use super::{Called, Place, until};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// As many rows as a test's whole story takes.
const ROWS: u16 = 60;

/// A program that prints nothing for so long waits for what never comes.
const SILENT: Timespec = Timespec { tv_sec: 100, tv_nsec: 0 };

/// Words, and what is typed once they were printed.
pub type Typed<'a> = (&'a str, &'a dyn Fn() -> &'static str);

impl Place {
    /// [`Place::at_terminal_of`] the usual 80 columns.
    pub fn at_terminal(&self, args: &[&str], variables: &[(&str, &str)], answers: &[Typed<'_>]) -> Called {
        self.at_terminal_of(80, args, variables, answers)
    }

    /// Runs the real binary with input, output and error at a terminal, with `variables`. What each of `answers` gives is typed when
    /// the words before it have been printed since the last one. All that was printed is `out`.
    pub fn at_terminal_of(&self, columns: u16, args: &[&str], variables: &[(&str, &str)], answers: &[Typed<'_>]) -> Called {
        let (mut near, far) = open(24, columns);
        let mut command = self.command(args);
        let mut child = at(&mut command, &far).envs(variables.iter().copied()).spawn().unwrap();
        // Only the program holds the far end now, so that the terminal ends with it.
        drop((command, far));
        let (mut out, mut seen, mut answers) = (Vec::new(), 0, answers.iter());
        let mut next = answers.next();
        let mut buffer = [0; 4096];
        let comes = |near: &File| matches!(poll(&mut [PollFd::new(near, PollFlags::IN)], Some(&SILENT)), Ok(1..));
        loop {
            if !comes(&near) {
                child.kill().unwrap();
                let waits = next.map(|(words, _)| words);
                panic!("nothing more was printed; waited for {waits:?}:\n{}", String::from_utf8_lossy(&out));
            }
            // At its end a terminal gives an error.
            let Ok(count @ 1..) = near.read(&mut buffer) else { break };
            out.extend_from_slice(&buffer[..count]);
            while let Some((words, answer)) = next
                && let Some(at) = String::from_utf8_lossy(&out[seen..]).find(words)
            {
                seen += at + words.len();
                near.write_all(answer().as_bytes()).unwrap();
                next = answers.next();
            }
        }
        let code = child.wait().unwrap().code().unwrap_or(-1);
        let out = String::from_utf8_lossy(&out).replace("\r\n", "\n");
        assert!(next.is_none(), "never printed: {:?}\n{out}", next.map(|(words, _)| words));
        Called { code, out, err: String::new() }
    }
}

/// Both ends of a terminal.
fn open(rows: u16, columns: u16) -> (File, File) {
    let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&near).unwrap();
    unlockpt(&near).unwrap();
    let name = ptsname(&near, Vec::new()).unwrap().into_string().unwrap();
    let far = OpenOptions::new().read(true).write(true).open(name).unwrap();
    tcsetwinsize(&far, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    (File::from(near), far)
}

/// `command` at the `far` end of a terminal.
fn at<'a>(command: &'a mut Command, far: &File) -> &'a mut Command {
    let end = || Stdio::from(far.try_clone().unwrap());
    command.env("TERM", "dumb").stdin(end()).stdout(end()).stderr(end())
}

/// A terminal that obeys what is printed, with the program at it.
pub struct Screen {
    near: File,
    /// Held, so that the terminal's mode can be asked for when the program has ended.
    _far: File,
    child: Child,
    drawn: vt100::Parser,
}

impl Screen {
    /// Starts the real binary at a terminal of `columns`, in a group of processes of its own.
    pub fn open(place: &Place, columns: u16, args: &[&str]) -> Screen {
        let (near, far) = open(ROWS, columns);
        let mut command = place.command(args);
        let child = at(&mut command, &far).env("TERM", "xterm").process_group(0).spawn().unwrap();
        Screen { near, _far: far, child, drawn: vt100::Parser::new(ROWS.try_into().unwrap(), columns.try_into().unwrap(), 0) }
    }

    /// What stands there by now, without the ends of its lines.
    pub fn text(&mut self) -> String {
        let mut bytes = [0; 4096];
        let now = Timespec::default();
        while matches!(poll(&mut [PollFd::new(&self.near, PollFlags::IN)], Some(&now)), Ok(1..)) {
            let count = self.near.read(&mut bytes).unwrap();
            self.drawn.process(&bytes[..count]);
        }
        self.drawn.screen().contents().lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// Waits until `words` stand there, and returns all that does.
    pub fn until(&mut self, words: &str) -> String {
        until(|| Some(self.text()).filter(|text| text.contains(words)))
    }

    pub fn keys(&mut self, keys: &str) {
        self.bytes(keys.as_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.near.write_all(bytes).unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Sends `signal` until the program ends, and reads nothing meanwhile.
    pub fn signal_until_end(&mut self, signal: Signal) {
        until(|| {
            self.signal(signal);
            self.child.try_wait().unwrap()
        });
    }

    /// How many bytes wait to be read.
    pub fn unread(&self) -> u64 {
        rustix::io::ioctl_fionread(&self.near).unwrap()
    }

    /// Whether keys are handed over one by one and unseen.
    pub fn is_taken(&self) -> bool {
        let modes = tcgetattr(&self.near).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ISIG), "Ctrl-C stays a signal");
        assert_eq!(modes.contains(LocalModes::ICANON), modes.contains(LocalModes::ECHO));
        !modes.contains(LocalModes::ICANON)
    }

    /// Whether what is pasted is marked.
    pub fn marks_pasted(&mut self) -> bool {
        self.text();
        self.drawn.screen().bracketed_paste()
    }

    /// Waits until the program is stopped.
    pub fn until_stopped(&self) {
        let status = waitpid(Some(self.pid()), WaitOptions::UNTRACED).unwrap().unwrap().1;
        assert!(status.stopped(), "{status:?}");
    }

    /// Waits until the program has ended; its exit code, and what stands there then.
    pub fn end(&mut self) -> (Option<i32>, String) {
        let status = until(|| {
            self.text();
            self.child.try_wait().unwrap()
        });
        (status.code(), self.text())
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A test that has failed leaves no program behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
