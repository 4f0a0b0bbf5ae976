//! What the walls cost: medians in milliseconds, as JSON. `cargo xtask bench` reads it; build it with `--release`.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that measures: it prints, asks the time and starts a bare command"
)]

use sandbox::{Command, Environment, EnvironmentSpec, Kind, Limits, Program, Sandbox};
use std::error::Error;
use std::time::{Duration, Instant};
use trace::Grant;

const ENVIRONMENTS: usize = 60;
const COMMANDS: usize = 300;
const A_WHILE: Duration = Duration::from_millis(50);

fn main() -> Result<(), Box<dyn Error>> {
    sandbox::enter(&[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (environment_ms, command_ms) = runtime.block_on(walls())?;
    let bare = (0..COMMANDS).map(|_| {
        let since = Instant::now();
        std::process::Command::new("bash").args(["-c", "true"]).status().map(|_| since.elapsed())
    });
    let bare_ms = median(bare.collect::<Result<_, _>>()?);
    println!(r#"{{"environment_ms": {environment_ms}, "command_ms": {command_ms}, "bare_ms": {bare_ms}}}"#);
    Ok(())
}

/// Medians of an environment's creation, and of a command in one that is there already.
async fn walls() -> Result<(f64, f64), Box<dyn Error>> {
    let top = tempfile::tempdir()?;
    let folder = |name: &str| std::fs::create_dir_all(top.path().join(name)).map(|()| top.path().join(name));
    let spec = EnvironmentSpec {
        workspace: folder("workspace")?,
        grant: Grant::default(),
        home: folder("home")?,
        tmp: folder("tmp")?,
        hidden: Vec::new(),
        user_home: None,
        limits: Limits::default(),
        access: sandbox::Access::Write,
        names: sandbox::Names::default(),
    };
    let sandbox = Sandbox::start(Kind::Native, Program::Current)?;
    let mut environments = Vec::new();
    for _ in 0..ENVIRONMENTS {
        // As in a run, where time passes before a check has an environment of its own.
        std::thread::sleep(A_WHILE);
        let since = Instant::now();
        let environment = sandbox.environment(&spec).await?;
        environments.push(since.elapsed());
        environment.close().await;
    }
    let environment = sandbox.environment(&spec).await?;
    let mut commands = Vec::new();
    for _ in 0..COMMANDS {
        commands.push(command(&environment).await?);
    }
    environment.close().await;
    Ok((median(environments), median(commands)))
}

async fn command(environment: &Environment) -> Result<Duration, Box<dyn Error>> {
    let command =
        Command { script: "true".to_owned(), cwd: None, shell: None, timeout: Duration::from_secs(60), env: Vec::new() };
    let since = Instant::now();
    let exit = environment.run(&command, &mut |_| {}).await?;
    let took = since.elapsed();
    if exit.code == Some(0) { Ok(took) } else { Err(format!("{exit:?}").into()) }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}
