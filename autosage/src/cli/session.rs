//! A session: one process that owns a run, from the raising of the walls to the last outcome.

use super::args::Output;
use super::failure::Failure;
use super::home::Home;
use super::print;
use super::prose::harmless;
use super::reply::{self, Reply, Rules};
use super::signals::{Signals, State};
use super::thinker::Thinker;
use super::trust;
use super::typed::Typed;
use super::typed::keys::Keys;
use super::view::View;
use super::wiring;
use crate::{Parts, Person};
use anyhow::{Context, anyhow};
use engine::{Engine, Environments, Harness, Interrupt, Run};
use model::Model;
use sandbox::Sandbox;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trace::{Answer, Approve, Delivery, Event, Moment, Outcome, Part, Seq, What};

/// How often the line below the story is drawn anew.
const TICK: Duration = Duration::from_millis(250);

/// What a session works with.
pub struct Session<'a> {
    /// Time, names, surroundings.
    pub parts: &'a Parts,
    /// Where everything is kept.
    pub home: &'a Home,
    /// The run's folder.
    pub folder: PathBuf,
    /// Who thinks.
    pub thinker: Thinker,
    /// What shapes the agent.
    pub harness: Harness,
    /// What answers are to fit.
    pub output_schema: Option<serde_json::Value>,
    /// The walls.
    pub kind: sandbox::Kind,
    /// Those, where they are raised already; of another kind they are of no use.
    pub walls: Option<Sandbox>,
    /// Where the work lies.
    pub workspace: PathBuf,
    /// What can be done with it.
    pub access: sandbox::Access,
    /// Whether an answer can be kept for always.
    pub rules: Rules,
    /// What is seen of it.
    pub view: View,
    /// Whether the run stays open for a follow-up.
    pub follow_up: FollowUp,
}

/// Whether a run stays open after its turn has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowUp {
    /// A person may type what comes next.
    Typed,
    /// The session ends with the turn.
    None,
}

impl FollowUp {
    /// What fits the surroundings: a follow-up is for a person at a terminal who sees the story.
    pub fn fitting(parts: &Parts, output: Output) -> FollowUp {
        match (parts.person, output) {
            (Person::AtTerminal, Output::Answer) => FollowUp::Typed,
            (Person::AtTerminal, Output::Lines) | (Person::Absent, _) => FollowUp::None,
        }
    }
}

/// What sees every append of a session: the view, a recording that is played or made, and whoever the parts name.
pub fn observer(view: &View, thinker: &Thinker, parts: &mut Parts) -> trace::Observer {
    let (view, recorded, recorder) = (view.clone(), thinker.recorded.clone(), thinker.recorder.clone());
    let mut other = parts.observer.take();
    let err = parts.err.clone();
    Box::new(move |moment: Moment, event: &Event, line: &str| {
        if let (Moment::Written, What::Observed(observed)) = (moment, &event.what) {
            if let Some(recorded) = &recorded {
                recorded.observed(observed.exit_code);
            }
            if let Some(Err(error)) = recorder.as_ref().map(|recorder| recorder.observed(observed.exit_code)) {
                print(&err, &format!("autosage: the recording cannot be written: {error}\n"));
            }
        }
        if moment == Moment::Written {
            view.event(event, line);
        }
        if let Some(other) = &mut other {
            other(moment, event, line);
        }
    })
}

/// A runtime for one session: everything that is awaited, is awaited on this thread.
pub fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("starting the runtime").map_err(Failure::Infrastructure)
}

impl Session<'_> {
    /// Raises the walls, lets `begin` start or reopen the run, and goes on with it until it rests. Returns the exit code.
    /// The run's record is owned by then: whoever does not own a run must not touch its session's folder.
    pub async fn hold(mut self, begin: impl AsyncFnOnce(&Engine<'_>, Harness) -> Result<Run, Failure>) -> Result<u8, Failure> {
        let interrupt = Interrupt::default();
        let terminal = Terminal::of(&self.view, self.follow_up);
        let signals = Signals::watch(interrupt.clone(), self.view.clone(), terminal.keys.clone(), self.parts.clock.clone());
        let signals = signals.context("listening for signals").map_err(Failure::Infrastructure)?;
        // From here on whatever ends the program is heard, so that the terminal is given back.
        terminal.take();
        let sandbox = match self.walls.take().filter(|walls| walls.kind() == self.kind) {
            Some(raised) => raised,
            None => Sandbox::start(self.kind, self.parts.program.clone())?,
        };
        let rooms = SessionFolder::make(self.folder.join("session"))?;
        let spec = wiring::environment_spec(&self.workspace, self.access, rooms.path(), self.home, self.parts);
        let environments = Environments::new(&sandbox, spec);
        let toolbox = tools::builtin(&|name| self.harness.tool(name));
        let toolbox = toolbox.map_err(|error| Failure::Usage(error.into()))?;
        let mut toolbox = toolbox.only(&self.harness.settings().tools).map_err(|error| Failure::Usage(error.into()))?;
        if let Some(schema) = &self.output_schema {
            toolbox = toolbox.answering(schema);
        }
        self.view.lies_in(&self.folder, self.parts);
        let heard = |heard: model::Heard<'_>| self.view.heard(heard);
        let fallback: Vec<&dyn Model> = self.thinker.fallback.iter().map(AsRef::as_ref).collect();
        let engine = Engine {
            model: self.thinker.model.as_ref(),
            fallback: &fallback,
            toolbox: &toolbox,
            environments: &environments,
            clock: self.parts.clock.as_ref(),
            interrupt: &interrupt,
            heard: &heard,
        };
        let begun = begin(&engine, self.harness.clone()).await;
        let outcome = match begun {
            Ok(mut run) => self.turns(&engine, &mut run, &signals).await,
            Err(failure) => Err(failure),
        };
        environments.close().await;
        drop(terminal);
        outcome.map(|outcome| outcome.exit_code())
    }

    /// Turn after turn of the user, until none follows.
    async fn turns(&self, engine: &Engine<'_>, run: &mut Run, signals: &Signals) -> Result<Outcome, Failure> {
        let mut typed = (self.follow_up == FollowUp::Typed).then(|| Typed::listen(self.view.clone()));
        if typed.is_some() && run.progress().terms().approve == Approve::Ask {
            self.view.take_answers(reply::choices(self.rules));
        }
        loop {
            self.view.work();
            let outcome = self.turn(engine, run, typed.as_mut()).await?;
            self.view.rest();
            self.tell(run, &outcome);
            let Some(typed) = &mut typed else { return Ok(outcome) };
            self.view.wait();
            signals.meet(State::Rests);
            let rests = self.parts.clock.elapsed();
            let message = tokio::select! {
                message = typed.message() => message,
                () = engine.interrupt.raised() => None,
            };
            run.rested(self.parts.clock.elapsed().saturating_sub(rests));
            let text = message.as_ref().map(|message| message.text.trim());
            self.view.wait_no_more(text);
            match text {
                None | Some("" | "/quit" | "/exit") => return Ok(outcome),
                Some(text) => {
                    signals.meet(State::Works);
                    run.hear(vec![Part::text(text)])?;
                }
            }
        }
    }

    /// One turn of the user. What is typed meanwhile is left in the inbox.
    async fn turn(&self, engine: &Engine<'_>, run: &mut Run, mut typed: Option<&mut Typed>) -> Result<Outcome, Failure> {
        let secrets = run.record().secrets().clone();
        let turn = engine::run(engine, run);
        tokio::pin!(turn);
        let mut ticks = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                biased;
                outcome = &mut turn => return Ok(outcome?),
                Some(message) = Typed::next(&mut typed) => self.hear(&secrets.hide(message.text.trim()), message.asked)?,
                _ = ticks.tick() => self.view.tick(),
            }
        }
    }

    /// What was typed while the agent works: the answer to its question, if that stood when it was `read`, or a message.
    fn hear(&self, text: &str, read: Option<Seq>) -> Result<(), Failure> {
        let Some((asked, question)) = self.view.question().filter(|(asked, _)| Some(*asked) == read) else {
            return self.leave_message(text);
        };
        let reply = reply::read(text, self.rules);
        let answer = match &reply {
            Reply::Again => {
                self.view.ask(text);
                return Ok(());
            }
            Reply::Answer(answer) => *answer,
            Reply::Always => {
                trust::allow(self.home, &self.workspace, &question.wants)?;
                Answer::Run
            }
            Reply::NoAnd(_) => Answer::No,
        };
        // The words that go with an answer must be there when it is taken in.
        if let Reply::NoAnd(words) = &reply {
            self.leave_message(words)?;
        }
        self.leave(&Delivery::Approval { asked, answer, by: "terminal".to_owned() })?;
        self.view.answered(asked);
        Ok(())
    }

    fn leave_message(&self, text: &str) -> Result<(), Failure> {
        if !text.is_empty() {
            let name = self.leave(&Delivery::Message { parts: vec![Part::text(text)] })?;
            self.view.sent(name, text);
        }
        Ok(())
    }

    fn leave(&self, what: &Delivery) -> Result<String, Failure> {
        let left = trace::inbox::leave(&self.folder, &self.parts.clock.now().to_string(), what);
        left.context("keeping what was typed").map_err(Failure::Infrastructure)
    }

    /// What a person is told at the end of a turn: the answer, and how to go on where it ended early.
    fn tell(&self, run: &Run, outcome: &Outcome) {
        // Where answers have a form, other words are not for standard output.
        let is_told = self.output_schema.is_none() || *outcome == Outcome::Done;
        if let (Person::Absent, Some(answer)) = (self.parts.person, run.progress().answer().filter(|_| is_told))
            && !self.view.is_lines()
        {
            print(&self.parts.out, &format!("{}\n", harmless(answer.trim_end())));
        }
        self.tell_unreadable(run);
        let id = self.folder.file_name().unwrap_or_default().to_string_lossy();
        let hint = match outcome {
            Outcome::Done => return,
            Outcome::Budget { which, .. } => format!("resume {id} {}", flag(*which)),
            Outcome::Failed { .. } | Outcome::Refused { .. } | Outcome::ContextFull { .. } => {
                format!("resume {id} -m TEXT")
            }
            // A recording has nothing beyond its end.
            Outcome::Infrastructure { .. } if self.thinker.recorded.is_some() => format!("resume {id} --model PROVIDER/NAME"),
            Outcome::Infrastructure { .. } | Outcome::Paused { .. } | Outcome::Interrupted => format!("resume {id}"),
        };
        let walls = if self.kind == sandbox::Kind::Host { " --sandbox host" } else { "" };
        self.view.say(&format!("go on with: {} {hint}{walls}\n", self.parts.name));
    }

    /// What lies in the inbox and is no message; a message that was meant for the run must not be lost in silence.
    fn tell_unreadable(&self, run: &Run) {
        let told = match trace::inbox::waiting(&self.folder, run.progress().delivered()) {
            Ok(letters) => letters.unreadable,
            Err(error) => vec![(self.folder.join("inbox"), error.to_string())],
        };
        for (path, reason) in told {
            print(&self.parts.err, &format!("autosage: {} is not taken in: {}\n", path.display(), harmless(&reason)));
        }
    }
}

/// The flag that raises a limit.
fn flag(which: trace::Exhausted) -> &'static str {
    match which {
        trace::Exhausted::Turns => "--max-turns N",
        trace::Exhausted::Tokens => "--max-tokens N",
        trace::Exhausted::Money => "--max-usd USD",
        trace::Exhausted::Time => "--max-time DUR",
    }
}

/// The terminal, while a session reads its keys and draws what is typed. Dropping this leaves it as it was found.
struct Terminal {
    view: View,
    keys: Option<Keys>,
}

impl Terminal {
    /// The keys are of use where a person types and what is below the story is redrawn.
    fn of(view: &View, follow_up: FollowUp) -> Terminal {
        let typed = follow_up == FollowUp::Typed && view.is_redrawn();
        Terminal { view: view.clone(), keys: if typed { Keys::at_terminal() } else { None } }
    }

    fn take(&self) {
        if let Some(keys) = &self.keys {
            keys.take();
            self.view.draw_typing();
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.view.leave();
        if let Some(keys) = &self.keys {
            keys.give_back();
        }
    }
}

/// The private home and `/tmp` of a session's environments. They go with the session.
pub struct SessionFolder(PathBuf);

impl SessionFolder {
    /// Makes it anew at `folder`.
    pub fn make(folder: PathBuf) -> Result<SessionFolder, Failure> {
        let made = || -> std::io::Result<()> {
            match fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut private = fs::DirBuilder::new();
            private.mode(0o700).recursive(true);
            private.create(folder.join("home"))?;
            private.create(folder.join("tmp"))
        };
        made().map_err(|error| Failure::Infrastructure(anyhow!("making the session's folder {}: {error}", folder.display())))?;
        Ok(SessionFolder(folder))
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SessionFolder {
    fn drop(&mut self) {
        // What cannot be removed now is removed when the run is next opened.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Says loudly that there are weaker walls than usual.
pub fn warn_of_weak_walls(kind: sandbox::Kind, view: &View) {
    match kind {
        sandbox::Kind::Native => {}
        sandbox::Kind::Reduced => view.say("sandbox reduced: no namespaces; Landlock and seccomp stand alone\n"),
        sandbox::Kind::Host => {
            view.say("SANDBOX HOST: NO WALLS. Commands run with all your rights: they can read your keys and change any file.\n");
        }
    }
}
