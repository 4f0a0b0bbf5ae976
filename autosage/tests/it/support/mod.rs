//! What the end-to-end tests share: a server, a home, a workspace, and a program with a clock and names of its own.

pub mod mock;
pub mod server;
#[path = "../../../../engine/tests/it/strict/mod.rs"]
mod strict;
pub mod terminal;

use self::server::{Answer, Server, Wire};
use autosage::{Parts, Person};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use trace::secrets::MachineKey;
use trace::{Clock, Event, Ids, Millis, Moment, Pause, RunId, Timestamp};

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_autosage");

/// A clock that an append moves on by ten milliseconds, and a pause by its length. Nothing ever lasts too long by it.
pub struct SteppedClock {
    now: AtomicI64,
    elapsed: AtomicU64,
}

impl SteppedClock {
    pub fn new() -> SteppedClock {
        // 2026-11-29T12:00:00Z
        SteppedClock { now: AtomicI64::new(1_795_953_600_000), elapsed: AtomicU64::new(0) }
    }

    pub fn step(&self, millis: u64) {
        self.now.fetch_add(millis as i64, Ordering::SeqCst);
        self.elapsed.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for SteppedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.now.load(Ordering::SeqCst))
    }
    fn elapsed(&self) -> Millis {
        self.elapsed.load(Ordering::SeqCst)
    }
    fn pause(&self, length: Duration) -> Pause {
        self.step(length.as_millis() as u64);
        Box::pin(std::future::ready(()))
    }
    fn limit(&self, _: Duration) -> Pause {
        Box::pin(std::future::pending())
    }
}

/// Names in order: `run-1`, `run-2` …
pub struct CountedIds(pub AtomicU64);

impl Ids for CountedIds {
    fn run(&self, _: Timestamp) -> RunId {
        format!("run-{}", self.0.fetch_add(1, Ordering::SeqCst) + 1).parse().unwrap()
    }
}

/// A folder with a home and a workspace, removed at the end.
pub struct Place {
    root: PathBuf,
}

impl Place {
    /// An empty place at a path that `name` gives, so that two runs of one scenario lie in the same folder.
    pub fn new(name: &str) -> Place {
        let root = std::env::temp_dir().join(format!("autosage-test-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("work")).unwrap();
        Place { root: root.canonicalize().unwrap() }
    }

    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.work().join(path)).unwrap()
    }

    /// The folder of the only run, or of the newest.
    pub fn run_folder(&self) -> PathBuf {
        let mut runs: Vec<PathBuf> = fs::read_dir(self.home().join("runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
        runs.sort();
        runs.pop().unwrap()
    }

    pub fn events(&self) -> Vec<Event> {
        trace::Reading::all(&self.run_folder()).unwrap().0
    }

    /// Calls the program's own `main` with parts of the test's own.
    pub fn call(&self, clock: &Arc<SteppedClock>, ids: &Arc<CountedIds>, args: &[&str]) -> Called {
        self.call_with(clock, ids, args, &BTreeMap::new())
    }

    /// The same with further variables.
    pub fn call_with(
        &self,
        clock: &Arc<SteppedClock>,
        ids: &Arc<CountedIds>,
        args: &[&str],
        more: &BTreeMap<String, String>,
    ) -> Called {
        let (out, err) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
        let stepped = clock.clone();
        let variables = [("AUTOSAGE_HOME", self.home()), ("HOME", self.root.join("person")), ("TEST_KEY", "test-key".into())];
        let parts = Parts {
            clock: clock.clone(),
            ids: ids.clone(),
            key: Some(MachineKey::fixed([7; 32])),
            variables: variables
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.into_os_string()))
                .chain(more.iter().map(|(name, value)| (name.clone(), value.into())))
                .collect(),
            name: "autosage".to_owned(),
            program: sandbox::Program::Path(PROGRAM.into()),
            build: None,
            os: "linux test".to_owned(),
            out: out.clone(),
            err: err.clone(),
            person: Person::Absent,
            observer: Some(Box::new(move |moment, _, _| match moment {
                Moment::Before => {}
                Moment::Written => stepped.step(10),
            })),
        };
        let args = std::iter::once("autosage").chain(args.iter().copied()).map(OsString::from);
        let code = autosage::cli::main(args, parts);
        let text = |bytes: &Mutex<Vec<u8>>| String::from_utf8(bytes.lock().unwrap().clone()).unwrap();
        let code = if code == std::process::ExitCode::SUCCESS { 0 } else { exit_code(code) };
        Called { code, out: text(&out), err: text(&err) }
    }

    /// Starts the real binary.
    #[allow(clippy::disallowed_methods, reason = "a test of the binary starts the binary")]
    pub fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(PROGRAM);
        command.args(args).env_clear().env("AUTOSAGE_HOME", self.home()).env("HOME", self.root.join("person"));
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("TEST_KEY", "test-key").stdin(std::process::Stdio::null());
        command
    }

    /// Runs the real binary to its end.
    pub fn start(&self, args: &[&str]) -> Called {
        let output = self.command(args).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Called { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Runs the real binary in a shell that lets no file grow beyond `kib` KiB.
    #[allow(clippy::disallowed_methods, reason = "a test of the binary starts the binary")]
    pub fn limited(&self, kib: u32, args: &[&str]) -> Called {
        let script = format!("trap '' XFSZ; ulimit -f {kib}; exec \"$0\" \"$@\"");
        let mut command = std::process::Command::new("bash");
        command.args(["-c", &script, PROGRAM]).args(args).env_clear().env("AUTOSAGE_HOME", self.home());
        command
            .env("HOME", self.root.join("person"))
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .stdin(std::process::Stdio::null());
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Called { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    /// The arguments that name `server` and this workspace.
    pub fn arguments<'a>(&'a self, server: &'a Server, work: &'a str) -> Vec<&'a str> {
        self.arguments_on(Wire::Chat, server, work)
    }

    /// The same, with a model that speaks `wire`.
    pub fn arguments_on<'a>(&'a self, wire: Wire, server: &'a Server, work: &'a str) -> Vec<&'a str> {
        [wire.arguments(&server.base_url), vec!["--workspace", work, "--config", "none"]].concat()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// What became of a call of the program.
#[derive(Debug)]
pub struct Called {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// `ExitCode` hides its number; its debug form shows it.
fn exit_code(code: std::process::ExitCode) -> i32 {
    let digits: String = format!("{code:?}").chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(-1)
}

/// Looks until there is something, and returns it; fails where there is nothing in a generous time.
pub fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..6_000 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it did not come in time");
}

/// Does `each` for every wire, side by side: most of the time is waiting.
pub fn on_every_wire(each: impl Fn(Wire) + Sync) {
    on_every(&Wire::ALL, each);
}

/// The same for each of `all`.
pub fn on_every<T: Copy + Send + Sync>(all: &[T], each: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        let each = &each;
        let threads: Vec<_> = all.iter().map(|one| scope.spawn(move || each(*one))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    });
}

/// Says that a test is skipped for want of `component`; fails where `AUTOSAGE_REQUIRE` names it, or all.
#[allow(clippy::disallowed_methods, clippy::print_stdout, reason = "what was not tested has to be seen")]
pub fn skip(component: &str) {
    let required = std::env::var("AUTOSAGE_REQUIRE").unwrap_or_default();
    assert!(!required.split([',', ' ']).any(|name| name == component || name == "all"), "{component} is required and missing");
    println!("skipped: no {component}");
}

/// Reads a list of answers.
pub fn script(text: &str) -> Vec<Answer> {
    serde_json::from_str(text).unwrap()
}

/// Every file below `folder`, with its content.
pub fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push((path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}
