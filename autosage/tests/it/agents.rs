//! Agents that run at the same time, in one workspace and one home: each has its own tools, history and record.

use crate::support::server::{Answer, Server, Wire, bash, call};
use crate::support::{PROGRAM, Place, on_every_wire, until};
use autosage::engine::{self, Engine, Environments, Harness, Interrupt};
use autosage::sandbox::{self, EnvironmentSpec, Kind, Sandbox};
use autosage::{RealClock, tools};
use model::Access;
use model::catalog::{Catalog, Overrides};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;
use trace::{Event, Reading, Status, What, text_of};

/// An agent, by what it is asked and what it can do.
#[derive(Debug)]
struct Agent {
    name: &'static str,
    tools: [&'static str; 2],
}

const X: Agent = Agent { name: "x", tools: ["bash", "read"] };
const Y: Agent = Agent { name: "y", tools: ["bash", "write"] };

impl Agent {
    fn task(&self) -> String {
        format!("You are agent {}.", self.name)
    }

    /// The folder of its harness: the usual one with its own tools.
    fn harness(&self, place: &Place) -> PathBuf {
        let folder = place.home().with_file_name(format!("harness-{}", self.name));
        assert_eq!(place.start(&["harness", "export", folder.to_str().unwrap()]).code, 0);
        let file = folder.join("loop.toml");
        let settings = fs::read_to_string(&file).unwrap();
        let (before, rest) = settings.split_once("\ntools = [").unwrap();
        let (_, after) = rest.split_once(']').unwrap();
        fs::write(&file, format!("{before}\ntools = {:?}{after}", self.tools)).unwrap();
        folder
    }
}

/// A command that begins what the other agent waits for, and waits for what the other begins then: so requests come by turns.
fn pass(words: &str, mine: &str, theirs: &str) -> Answer {
    bash(&format!("{words}; touch {mine}; until test -e {theirs}; do sleep 0.02; done"))
}

/// Both replies of three rounds, by turns, and then what either may have.
fn script() -> Vec<Answer> {
    let all = |answers: [Answer; 3]| Answer {
        calls: answers.into_iter().flat_map(|answer| answer.calls).collect(),
        ..Answer::default()
    };
    let read = || call("read", json!({"path": "note.txt"}));
    let write = |path: &str| call("write", json!({"path": path, "content": "made\n"}));
    let by_turns = [
        pass("echo this is x > ~/who", "x1", "y1"),
        pass("echo this is y > ~/who", "y1", "x2"),
        all([read(), write("made-by-x"), pass("cat ~/who", "x2", "y2")]),
        all([write("made-by-y"), read(), pass("cat ~/who", "y2", "x3")]),
        pass("echo third of x", "x3", "y3"),
        bash("echo third of y; touch y3"),
    ];
    by_turns.into_iter().chain((0..6).map(|number| bash(&format!("echo {number}; cat ~/who")))).collect()
}

/// The names of the tools that a request offers.
fn offered(body: &Value) -> Vec<&str> {
    let tools = body["tools"].as_array().unwrap();
    let tools = tools[0]["functionDeclarations"].as_array().unwrap_or(tools);
    tools.iter().map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str()).unwrap()).collect()
}

/// What each call of a record came to, by the name that it was called by.
fn calls(events: &[Event]) -> Vec<(&str, Status, String)> {
    let tool = |event: &Event| match &events[event.cause.unwrap().0 as usize].what {
        What::Called(called) => called.tool.as_str(),
        other => panic!("{} is no call", other.kind()),
    };
    let observed = events.iter().filter_map(|event| match &event.what {
        What::Observed(observed) => Some((tool(event), observed.status, text_of(&observed.content))),
        _ => None,
    });
    observed.collect()
}

/// The agents were at work at the same time, and neither was told, given or charged what is the other's.
fn are_apart(place: &Place, server: &Server) {
    let bodies = server.bodies();
    let whose = |body: &String| {
        let [x, y] = [X, Y].map(|agent| body.contains(&agent.task()));
        assert!(x != y, "a request is of one of them: {body}");
        if x { X } else { Y }
    };
    let order: Vec<&str> = bodies.iter().take(6).map(|body| whose(body).name).collect();
    assert_eq!(order, ["x", "y", "x", "y", "x", "y"], "they overlap");
    assert_eq!(bodies.len(), 6 + 6 + 2, "all was played");
    for body in &bodies {
        let agent = whose(body);
        assert_eq!(offered(&serde_json::from_str(body).unwrap()), agent.tools, "{agent:?}");
        let other = if agent.name == "x" { "of y" } else { "of x" };
        assert!(!body.contains(other), "{agent:?}: {body}");
    }
    let mut served = 0;
    for agent in [X, Y] {
        let runs = fs::read_dir(place.home().join("runs")).unwrap().map(|entry| entry.unwrap().path());
        let is_its = |events: &Vec<Event>| matches!(&events[0].what, What::Started(started) if text_of(&started.task.parts) == agent.task());
        let mut records = runs.map(|run| Reading::all(&run).unwrap().0).filter(is_its);
        let (Some(events), None) = (records.next(), records.next()) else { panic!("one record of {agent:?}") };
        let calls = calls(&events);
        let (rounds, free) = calls.split_at(5);
        let told = |at: usize| (rounds[at].1, rounds[at].2.clone());
        let third = format!("third of {}\n", agent.name);
        let [_, own] = agent.tools;
        let foreign = if agent.name == "x" { Y.tools[1] } else { X.tools[1] };
        assert_eq!(rounds.iter().map(|call| call.0).collect::<Vec<_>>(), ["bash", own, foreign, "bash", "bash"]);
        assert!(told(1).0 == Status::Ok && (agent.name != "x" || told(1).1.contains("what the note says")), "{rounds:?}");
        let words = format!("There is no tool named {foreign}. The tools are: {}.", agent.tools.join(", "));
        assert_eq!(told(2), (Status::Failed, words));
        let who = format!("this is {}\n", agent.name);
        assert_eq!((told(3), told(4)), ((Status::Ok, who.clone()), (Status::Ok, third)), "{agent:?}");
        assert!(free.iter().all(|(_, status, words)| *status == Status::Ok && words.ends_with(&who)), "{agent:?}: {free:?}");
        served += free.len();
        assert_eq!(events.last().unwrap().what.kind(), "Finished");
    }
    assert_eq!(served, 6, "what either may have was called once");
    assert!(!place.work().join("made-by-x").exists() && place.read("made-by-y") == "made\n");
}

/// A place with something to read, and its server.
fn begin(name: &str, wire: Wire) -> (Place, Server) {
    let (place, server) = (Place::new(&format!("{name}-{wire:?}")), Server::start(script()));
    place.write("note.txt", "what the note says\n");
    (place, server)
}

#[test]
fn a9_agents_of_two_programs_have_each_its_own_tools() {
    on_every_wire(|wire| {
        let (place, server) = begin("a9", wire);
        let work = place.work().display().to_string();
        let start = |agent: &Agent| {
            let (task, harness) = (agent.task(), agent.harness(&place).display().to_string());
            let args = [vec!["run", &task, "--harness", &harness], place.arguments_on(wire, &server, &work)].concat();
            place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let x = start(&X);
        until(|| place.work().join("x1").exists().then_some(()));
        let y = start(&Y);
        for Output { status, stdout, stderr } in [x, y].map(|child| child.wait_with_output().unwrap()) {
            assert!(status.success() && stdout == b"Done.\n", "{}", String::from_utf8_lossy(&stderr));
        }
        are_apart(&place, &server);
    });
}

/// Runs `agent` to its end.
async fn run(agent: &Agent, wire: Wire, place: &Place, server: &Server, sandbox: &Sandbox) {
    let [_, id, _, base_url, ..] = wire.arguments(&server.base_url)[..] else { panic!("no model") };
    let overrides = Overrides { base_url: Some(base_url.to_owned()), ..Overrides::default() };
    let spec = Catalog::default().find(id, &overrides).unwrap();
    let model = model::connect(spec, Access { key: Some("test-key".to_owned()), ..Access::default() });
    let harness = Harness::load(&agent.harness(place)).unwrap();
    let toolbox = tools::builtin(&|name| harness.tool(name)).unwrap().only(&harness.settings().tools).unwrap();
    let session = place.home().join("session").join(agent.name);
    let (home, tmp) = (session.join("home"), session.join("tmp"));
    for folder in [&home, &tmp] {
        fs::create_dir_all(folder).unwrap();
    }
    let spec = EnvironmentSpec {
        workspace: place.work(),
        grant: trace::Grant::default(),
        home,
        tmp,
        hidden: Vec::new(),
        user_home: None,
        limits: sandbox::Limits::default(),
        access: sandbox::Access::Write,
        names: sandbox::Names::default(),
    };
    let environments = Environments::new(sandbox, spec);
    let (clock, interrupt) = (Arc::new(RealClock::new()), Interrupt::default());
    let engine = Engine {
        model: model.as_ref(),
        fallback: &[],
        toolbox: &toolbox,
        environments: &environments,
        clock: clock.as_ref(),
        interrupt: &interrupt,
        heard: &|_| {},
    };
    let parts = vec![trace::Part::text(agent.task())];
    let assignment = engine::Assignment {
        run: agent.name.parse().unwrap(),
        task: trace::Task { parts, workspace: place.work(), checks: Vec::new() },
        limits: trace::Limits::default(),
        max_claims: 1,
        grant: trace::Grant::default(),
        terms: trace::Terms::default(),
        output_schema: None,
        labels: Default::default(),
    };
    let folder = place.home().join("runs").join(agent.name);
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    let record = trace::Record::create(&folder, trace::Durability::Process, clock.clone(), Box::new(|_, _, _| ())).unwrap();
    let surroundings = engine::Surroundings::default();
    let mut run = engine::start(&engine, record, harness.clone(), assignment, surroundings).await.unwrap();
    let outcome = engine::run(&engine, &mut run).await.unwrap();
    assert_eq!((outcome.word(), run.progress().answer()), ("done", Some("Done.")));
    environments.close().await;
}

/// Looks until there is a file there, without keeping the thread.
async fn until_there(path: &Path) {
    for _ in 0..6_000 {
        if path.exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} did not come in time", path.display());
}

#[test]
fn a9_agents_of_one_program_have_each_its_own_tools() {
    on_every_wire(|wire| {
        let (place, server) = begin("a9-library", wire);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let sandbox = Sandbox::start(Kind::Native, sandbox::Program::Path(PROGRAM.into())).unwrap();
        let x = run(&X, wire, &place, &server, &sandbox);
        let y = async {
            until_there(&place.work().join("x1")).await;
            run(&Y, wire, &place, &server, &sandbox).await;
        };
        runtime.block_on(futures_util::future::join(x, y));
        are_apart(&place, &server);
    });
}
