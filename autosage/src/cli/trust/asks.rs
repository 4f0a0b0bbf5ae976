//! What the files of a project ask for, in plain words.

use crate::Parts;
use crate::cli::config::{Config, Rights};
use crate::cli::project::{self, Project};
use crate::cli::prose::{clean, length};
use anyhow::{Context, anyhow};
use clap::ValueEnum;
use trace::{Grant, Limits};

/// What the files ask for, in plain words: first what counts as it is, then what trust is about.
pub fn asked(project: &Project, person: &Config, parts: &Parts, usual: Limits) -> String {
    if project.files.is_empty() {
        return format!(
            "There is no {} and no {} here; one that comes later has to be trusted anew.\n",
            project::SETTINGS,
            project::SERVERS
        );
    }
    let mut text = String::new();
    let mut list = |head: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text.push_str(&format!("{head}\n{}", lines.iter().map(|line| format!("  {}\n", clean(line))).collect::<String>()));
        }
    };
    let (settings, problems) = project.settings(parts);
    list(&format!("{} wants, and needs no trust for it:", project::SETTINGS), narrowing(&settings));
    if let Some(Ok(text)) = project.files.get(project::SERVERS) {
        let lines = servers(text).unwrap_or_else(|error| vec![error.to_string()]);
        list(&format!("{} names servers of tools; it is not used yet:", project::SERVERS), lines);
    }
    list(&format!("{} wants, and gets if you trust it:", project::SETTINGS), widening(&settings, person, usual));
    let unread = project.files.iter().filter_map(|(name, text)| Some(format!("{name}: {}", text.as_ref().err()?)));
    let wrong = problems.iter().map(|problem| format!("{}:{problem}", project::SETTINGS));
    let linked = project::linked(&settings, parts).into_iter().map(|wrong| format!("{}: {wrong}", project::SETTINGS));
    list("What cannot be used:", unread.chain(wrong).chain(linked).collect());
    text
}

fn narrowing(settings: &Config) -> Vec<String> {
    let Limits { turns, tokens, nano_usd, time_ms } = settings.budget;
    let checks = settings.checks.iter().map(|command| format!("run this check, inside the walls: {command}"));
    let limits = [
        turns.map(|turns| format!("spend at most {turns} requests to think")),
        tokens.map(|tokens| format!("spend at most {tokens} tokens")),
        nano_usd.map(|money| format!("spend at most {money}")),
        time_ms.map(|millis| format!("spend at most {} of active time", length(millis))),
    ];
    checks.chain(limits.into_iter().flatten()).collect()
}

fn widening(settings: &Config, person: &Config, usual: Limits) -> Vec<String> {
    let Config {
        model,
        models: _,
        fallback,
        catalog: _,
        base_url,
        key_env,
        approve,
        allow: _,
        sandbox,
        checks: _,
        budget,
        grant,
        mcp,
        instructions: _,
        bell: _,
        reply_time: _,
        retry_time: _,
    } = settings;
    let Rights { read, write, network, secrets } = grant;
    let listed = |model: &&String| !person.models.contains(model) && person.model.as_ref() != Some(model);
    let mut lines: Vec<String> = Vec::new();
    lines.extend(model.iter().filter(listed).map(|model| format!("ask the model {model}")));
    let unlisted = |model: &&String| listed(model) && !person.fallback.contains(model);
    lines.extend(fallback.iter().filter(unlisted).map(|model| format!("fall back on the model {model}")));
    lines.extend(base_url.iter().map(|url| {
        let key = key_env.as_deref().unwrap_or("the model's usual variable");
        format!("send all that the agent says and sees to {url}, with the key in {key}")
    }));
    if base_url.is_none() {
        lines.extend(key_env.iter().map(|name| format!("send the value of {name} to the model's server, as its key")));
    }
    let above = |wanted: Option<u64>, own: Option<u64>, usual: Option<u64>| {
        wanted.filter(|_| own.is_none()).filter(|it| Some(*it) > usual)
    };
    lines.extend(
        above(budget.turns, person.budget.turns, usual.turns)
            .map(|turns| format!("spend {turns} requests to think, which is more than usual")),
    );
    lines.extend(
        above(budget.time_ms, person.budget.time_ms, usual.time_ms)
            .map(|millis| format!("work for {}, which is more than usual", length(millis))),
    );
    let approve = approve.and_then(|approve| approve.to_possible_value());
    lines.extend(approve.iter().map(|approve| format!("settle questions of wider rights by `{}`", approve.get_name())));
    lines.extend(sandbox.iter().map(|kind| match kind {
        sandbox::Kind::Native | sandbox::Kind::Reduced => format!("run commands behind the walls `{kind}`"),
        sandbox::Kind::Host => "run commands WITHOUT WALLS: with all your rights, your keys and files".to_owned(),
    }));
    let (read, write, secrets) = (read.clone(), write.clone(), secrets.clone());
    lines.extend(rights(&Grant { read, write, network: *network == Some(true), secrets }));
    lines.extend(mcp.iter().map(|(name, server)| format!("use a server of tools, {name}: {server} (not used yet)")));
    lines
}

/// The servers of a `.mcp.json`, each whole.
pub fn servers(text: &str) -> anyhow::Result<Vec<String>> {
    let all: serde_json::Value = serde_json::from_str(text).context("it is not JSON")?;
    let named = all.get("mcpServers").and_then(serde_json::Value::as_object);
    let named = named.ok_or_else(|| anyhow!("there is no table `mcpServers` in it"))?;
    Ok(named.iter().map(|(name, server)| format!("{name}: {server}")).collect())
}

/// The rights that are approved for always.
pub fn kept(rules: &Grant) -> String {
    let lines: String = rights(rules).iter().map(|line| format!("  {}\n", clean(line))).collect();
    if lines.is_empty() { lines } else { format!("You have approved for always here:\n{lines}") }
}

/// Rights, a line each.
pub fn rights(grant: &Grant) -> Vec<String> {
    let Grant { read, write, network, secrets } = grant;
    let read = read.iter().map(|path| format!("let commands read {}", path.display()));
    let write = write.iter().map(|path| format!("let commands read and write {}", path.display()));
    let network = network.then(|| "let commands reach the network".to_owned());
    let secrets = secrets.iter().map(|name| format!("give commands the value of the variable {name}"));
    read.chain(write).chain(network).chain(secrets).collect()
}
