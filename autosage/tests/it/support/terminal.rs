//! The program at a terminal: what a person sees, and what it is told in answer.

use super::{Called, Place};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::Stdio;

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
        let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&near).unwrap();
        unlockpt(&near).unwrap();
        let name = ptsname(&near, Vec::new()).unwrap().into_string().unwrap();
        let far = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&far, size).unwrap();
        let end = || Stdio::from(far.try_clone().unwrap());
        let mut command = self.command(args);
        let mut child =
            command.env("TERM", "dumb").envs(variables.iter().copied()).stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        // Only the program holds the far end now, so that the terminal ends with it.
        drop((command, far));
        let mut near = File::from(near);
        let (mut out, mut seen, mut answers) = (Vec::new(), 0, answers.iter());
        let mut next = answers.next();
        let mut buffer = [0; 4096];
        // At its end a terminal gives an error.
        while let Ok(count @ 1..) = near.read(&mut buffer) {
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
