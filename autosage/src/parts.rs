//! What the program is made of besides its code: time, names, surroundings, and where it prints. The shipped program has
//! [`Parts::real`]; a scenario calls the same function with parts of its own, so there is no switch for tests.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use trace::secrets::MachineKey;
use trace::{Clock, Ids, Millis, Pause, RunId, Timestamp};

/// Somewhere to print. Clones print to the same place.
pub type Printer = Arc<Mutex<dyn Write + Send>>;

/// What a program is made of besides its code.
pub struct Parts {
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where names come from.
    pub ids: Arc<dyn Ids>,
    /// What placeholders of secrets are made with; `None` is the machine's own key, kept in `$AUTOSAGE_HOME`.
    pub key: Option<MachineKey>,
    /// The environment's variables.
    pub variables: BTreeMap<String, OsString>,
    /// What a person types to call the program again: the path by which it was called, or its name.
    pub name: String,
    /// The program that raises the walls.
    pub program: sandbox::Program,
    /// The operating system and its kind of machine, such as `linux x86_64`.
    pub os: String,
    /// The program's file, whose digest names the build in a record; `None` leaves the build unnamed.
    pub build: Option<PathBuf>,
    /// Standard output.
    pub out: Printer,
    /// Standard error.
    pub err: Printer,
    /// Whether a person sits at a terminal.
    pub person: Person,
    /// Sees every append of a run, before it and after.
    pub observer: Option<trace::Observer>,
}

/// Whether a person sits at a terminal, who can be shown a live view and asked for a follow-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Person {
    /// One does: input, output and error are a terminal.
    AtTerminal,
    /// None does.
    Absent,
}

impl Parts {
    /// The parts of the shipped program.
    #[allow(clippy::disallowed_methods, reason = "the binary alone reads the environment, here and nowhere else")]
    pub fn real() -> Parts {
        let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        Parts {
            clock: Arc::new(RealClock::new()),
            ids: Arc::new(RandomIds),
            key: None,
            variables: std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect(),
            name: name(std::env::args_os().next()),
            program: sandbox::Program::Current,
            build: std::env::current_exe().ok(),
            os: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            out: Arc::new(Mutex::new(std::io::stdout())),
            err: Arc::new(Mutex::new(std::io::stderr())),
            person: if terminal { Person::AtTerminal } else { Person::Absent },
            observer: None,
        }
    }

    /// The variable `name`, if it is set to text that is not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).and_then(|value| value.to_str()).filter(|value| !value.is_empty())
    }

    /// The folder that the variable `name` of the XDG standard names: one that is not absolute is ignored, as it says.
    pub fn xdg_folder(&self, name: &str) -> Option<&Path> {
        self.variable(name).map(Path::new).filter(|folder| folder.is_absolute())
    }
}

/// A path says where the program is, also where it is not on the person's own path.
fn name(called: Option<OsString>) -> String {
    let called = called.and_then(|called| called.into_string().ok());
    called.filter(|called| called.contains('/')).unwrap_or_else(|| "autosage".to_owned())
}

/// The machine's time.
pub struct RealClock {
    start: Instant,
}

impl RealClock {
    /// A clock that counts from now.
    #[allow(clippy::disallowed_methods, reason = "this is the clock that all others are told by")]
    pub fn new() -> RealClock {
        RealClock { start: Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> RealClock {
        RealClock::new()
    }
}

impl Clock for RealClock {
    #[allow(clippy::disallowed_methods, reason = "this is the clock that all others are told by")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_unix_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn elapsed(&self) -> Millis {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn pause(&self, length: Duration) -> Pause {
        Box::pin(tokio::time::sleep(length))
    }

    fn limit(&self, length: Duration) -> Pause {
        Box::pin(tokio::time::sleep(length))
    }
}

/// Names from the time and the system's random numbers: runs sort by their start, to the millisecond.
pub struct RandomIds;

impl Ids for RandomIds {
    fn run(&self, now: Timestamp) -> RunId {
        // In ASCII order, so that what is written in these digits sorts as the number does.
        const DIGITS: &[u8; 32] = b"23456789abcdefghijkmnpqrstuvwxyz";
        let millis = now.unix_millis().rem_euclid(1000) as u16;
        let mut tail = [0u8; 6];
        // Without random numbers the name is less unlike others; the folder's creation still refuses one that is taken.
        let _ = getrandom::fill(&mut tail[2..]);
        tail[..2].copy_from_slice(&[(millis >> 5) as u8, (millis & 31) as u8]);
        let tail: String = tail.iter().map(|byte| char::from(DIGITS[usize::from(*byte) % DIGITS.len()])).collect();
        format!("{}-{tail}", now.compact()).parse().expect("digits, dashes and lower-case letters make a run's name")
    }
}
