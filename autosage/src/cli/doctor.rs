//! `autosage doctor`: what works on this machine, and how to mend what does not.

use super::config::{self, Config, Standing};
use super::failure::Failure;
use super::finding::{self, Finding, State};
use super::home::Home;
use super::print;
use super::project;
use super::{thinker, trust, wiring};
use crate::Parts;
use model::catalog;

/// Looks at everything and prints what it found. The exit code is 0 where an agent can work here.
pub fn doctor(
    named: Option<&str>,
    config: &Result<Config, Failure>,
    home: &Result<Home, Failure>,
    parts: &Parts,
) -> Result<u8, Failure> {
    let known = config.as_ref().ok();
    let mut findings = vec![home_folder(home), configuration(named, config, parts)];
    findings.extend(home.as_ref().ok().map(|home| project(known, home, parts)));
    findings.extend(models(known, parts));
    let probes = sandbox::probe_native();
    let native = probes.iter().all(|probe| probe.ok || !probe.required);
    findings.extend(probes.into_iter().map(|probe| Finding {
        state: match (probe.ok, probe.required) {
            (true, _) => State::Good,
            (false, false) => State::Missing,
            (false, true) => State::Bad,
        },
        name: probe.name.to_owned(),
        detail: probe.detail,
        fix: probe.fix,
    }));
    let mut text = finding::text(&findings);
    text.push_str(match native {
        true => "\nThe native sandbox works here.\n",
        false => "\nThe native sandbox does not work here. `--sandbox reduced` stands on Landlock and seccomp alone: right inside a container.\n",
    });
    print(&parts.out, &text);
    Ok(if finding::is_sound(&findings) { 0 } else { 1 })
}

fn home_folder(home: &Result<Home, Failure>) -> Finding {
    let finding = |state, detail, fix| Finding { name: "home".into(), state, detail, fix };
    let folder = match home {
        Ok(home) => home.folder(),
        Err(failure) => return finding(State::Bad, failure.to_string(), None),
    };
    let probe = folder.join(".doctor");
    let tried =
        std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&probe, b"")).and_then(|()| std::fs::remove_file(&probe));
    match tried {
        Ok(()) => finding(State::Good, folder.display().to_string(), None),
        Err(error) => finding(
            State::Bad,
            format!("{} cannot be written: {error}", folder.display()),
            Some("set AUTOSAGE_HOME to a folder that can be written".into()),
        ),
    }
}

fn configuration(named: Option<&str>, config: &Result<Config, Failure>, parts: &Parts) -> Finding {
    let name = "configuration".into();
    let detail = match config::path(named, parts) {
        None => "none is looked for".to_owned(),
        Some(path) if path.exists() => path.display().to_string(),
        Some(path) => format!("none at {}", path.display()),
    };
    match config {
        Ok(_) => Finding { name, state: State::Good, detail, fix: None },
        Err(failure) => Finding { name, state: State::Bad, detail: failure.to_string(), fix: None },
    }
}

/// The files of the project in the current folder, and whether they are trusted.
fn project(config: Option<&Config>, home: &Home, parts: &Parts) -> Finding {
    let looked = || {
        let workspace = wiring::workspace(None)?;
        let project = project::read_anyhow(&workspace, config.and_then(|config| config.sandbox), home, parts)?;
        let standing = project.standing(trust::decision(home, &workspace)?.as_ref());
        Ok::<_, Failure>((project, standing))
    };
    let finding = |state, detail, fix| Finding { name: "project".into(), state, detail, fix };
    match looked() {
        Err(failure) => finding(State::Bad, failure.to_string(), None),
        Ok((project, standing)) => {
            let names: Vec<String> = project
                .files
                .iter()
                .map(|(name, text)| {
                    text.as_ref().err().map_or((*name).to_owned(), |reason| format!("{name} (not read: {reason})"))
                })
                .collect();
            let names = if names.is_empty() { "no files of its own in this folder".to_owned() } else { names.join(", ") };
            match standing {
                Standing::Trusted => finding(State::Good, format!("{names}; trusted"), None),
                Standing::Untrusted if project.files.is_empty() => finding(State::Good, names, None),
                Standing::Untrusted => {
                    finding(State::Good, format!("{names}; not trusted, so it can only narrow"), Some(SEE.into()))
                }
                Standing::Changed => finding(State::Good, format!("{names}; changed since it was trusted"), Some(SEE.into())),
            }
        }
    }
}

/// What to do about files that are not trusted.
const SEE: &str = "`autosage trust` shows what the project asks for";

fn models(config: Option<&Config>, parts: &Parts) -> Vec<Finding> {
    let configured = config.and_then(|config| config.model.as_deref());
    let keys: Vec<&str> = catalog::providers()
        .iter()
        .map(|provider| thinker::own_variable(provider, parts))
        .filter(|name| parts.variable(name).is_some())
        .collect();
    let detail = match (configured, keys.is_empty()) {
        (Some(model), _) => {
            format!("{model} (configured); keys found: {}", if keys.is_empty() { "none".to_owned() } else { keys.join(", ") })
        }
        (None, false) => format!("none configured; keys found: {}", keys.join(", ")),
        (None, true) => "none configured, and no key is set".to_owned(),
    };
    let state = if configured.is_some() || !keys.is_empty() { State::Good } else { State::Missing };
    let fix = (state == State::Missing).then(|| "`autosage run` says what to set; `autosage demo` needs none".to_owned());
    vec![Finding { name: "model".into(), state, detail, fix }]
}
