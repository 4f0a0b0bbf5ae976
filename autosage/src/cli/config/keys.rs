//! From the text of a configuration file to what it says, and to all that is wrong with it: where, and what was meant.

use super::Config;
use super::section::{Findings, Problem, Section};
use super::value::{absolute, length, number, shown, text, typed};
use crate::cli::args;
use crate::cli::wiring::millis;
use clap::ValueEnum;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// The keys of a file, and of its tables.
const TOP: [&str; 15] = [
    "model",
    "models",
    "fallback",
    "base_url",
    "key_env",
    "approve",
    "allow",
    "sandbox",
    "checks",
    "budget",
    "grant",
    "mcp",
    "bell",
    "reply_time",
    "retry_time",
];
const BUDGET: [&str; 4] = ["turns", "tokens", "usd", "time"];
const GRANT: [&str; 4] = ["read", "write", "network", "secrets"];
const ALLOW: [&str; 2] = ["write", "network"];

/// What a length of time is.
const LENGTH: &str = "a length of time, such as \"90s\", \"30m\" or \"2h\"";

/// Whose file it is, and where its relative paths and `~/` begin.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// The person's own.
    Person {
        /// The folder of the file.
        folder: &'a Path,
        /// The person's home.
        user_home: Option<&'a Path>,
    },
    /// A project's.
    Project {
        /// The workspace.
        folder: &'a Path,
        /// The person's home.
        user_home: Option<&'a Path>,
    },
}

/// Reads `text`. What is wrong is not in the result.
pub fn parse(text: &str, origin: &Origin<'_>) -> (Config, Vec<Problem>) {
    let mut found = Findings::of(text);
    let config = match DeTable::parse(text) {
        Ok(table) => read(table.get_ref(), origin, &mut found),
        Err(error) => {
            found.add(error.span().map_or(0, |span| span.start), error.message().to_owned());
            Config::default()
        }
    };
    (config, found.in_order())
}

fn read(table: &DeTable<'_>, origin: &Origin<'_>, found: &mut Findings<'_>) -> Config {
    let top = Section { name: "", table };
    refuse_unknown(&top, &TOP, found);
    let models = match origin {
        Origin::Person { .. } => top.list("models", "a list of models, each provider/name", found, text),
        Origin::Project { .. } => {
            top.refuse("models", "the models that a project may choose are for the person's own configuration to say", found);
            Vec::new()
        }
    };
    let kinds = "\"native\", \"reduced\" or \"host\"";
    let answers: Vec<String> = args::Approve::value_variants()
        .iter()
        .filter_map(ValueEnum::to_possible_value)
        .map(|it| it.get_name().to_owned())
        .collect();
    let mut config = Config {
        model: top.get("model", "a model, as \"provider/name\"", found, text),
        models,
        fallback: top.list("fallback", "a list of models, each provider/name", found, text),
        base_url: top.get("base_url", "an address, as \"http://HOST:PORT/v1\"", found, text),
        key_env: top.get("key_env", "the name of a variable", found, text),
        approve: top.get("approve", &one_of(&answers), found, |value| args::Approve::from_str(value.as_str()?, false).ok()),
        sandbox: top.get("sandbox", kinds, found, |value| value.as_str()?.parse().ok()),
        checks: top.list("checks", "a list of commands, none of them empty", found, text),
        ..Config::default()
    };
    if let Some(budget) = section(&top, "budget", &BUDGET, found) {
        config.budget.turns = budget.get("turns", "a whole number", found, number);
        config.budget.tokens = budget.get("tokens", "a whole number", found, number);
        config.budget.nano_usd =
            budget.get("usd", "an amount of dollars, such as 0.50", found, |value| args::usd(&typed(value)?).ok());
        config.budget.time_ms = budget.get("time", LENGTH, found, length).map(millis);
    }
    match origin {
        Origin::Person { .. } => {
            config.reply_time = top.get("reply_time", LENGTH, found, length);
            config.retry_time = top.get("retry_time", LENGTH, found, length);
        }
        Origin::Project { .. } => {
            let why = "how long a model is waited for is for the person's own configuration to say";
            top.refuse("reply_time", why, found);
            top.refuse("retry_time", why, found);
        }
    }
    match origin {
        Origin::Person { .. } => config.bell = top.get("bell", "true or false", found, DeValue::as_bool),
        Origin::Project { .. } => top.refuse("bell", "how a run calls a person is for their own configuration to say", found),
    }
    let path = |value: &DeValue<'_>| absolute(&text(value)?, origin);
    let paths = "a list of paths: absolute, or from the folder of this file, or from ~/";
    if let Origin::Project { .. } = origin {
        top.refuse("allow", "what needs no question is for the person's own configuration to say", found);
    } else if let Some(allow) = section(&top, "allow", &ALLOW, found) {
        config.allow.write = allow.list("write", paths, found, path);
        config.allow.network = allow.get("network", "true or false", found, DeValue::as_bool).unwrap_or_default();
    }
    if let Some(grant) = section(&top, "grant", &GRANT, found) {
        config.grant.read = grant.list("read", paths, found, path);
        config.grant.write = grant.list("write", paths, found, path);
        config.grant.network = grant.get("network", "true or false", found, DeValue::as_bool);
        config.grant.secrets = grant.list("secrets", "a list of names of variables", found, text);
    }
    if let Some(value) = table.get("mcp") {
        match value.get_ref() {
            DeValue::Table(servers) => {
                config.mcp = servers.iter().map(|(name, value)| (name.get_ref().to_string(), shown(value.get_ref()))).collect();
            }
            other => found.expected("mcp", "a table for each server, as [mcp.NAME]", other, value.span().start),
        }
    }
    config
}

/// The table called `name`, in which these keys are known.
fn section<'t, 'i>(
    top: &Section<'t, 'i>,
    name: &'static str,
    known: &[&str],
    found: &mut Findings<'_>,
) -> Option<Section<'t, 'i>> {
    let section = top.below(name, found)?;
    refuse_unknown(&section, known, found);
    Some(section)
}

/// Tells of each key that is not `known`, and what was meant by it.
fn refuse_unknown(section: &Section<'_, '_>, known: &[&str], found: &mut Findings<'_>) {
    for (key, _) in section.table {
        let name: &str = key.get_ref();
        if !known.contains(&name) {
            let meant = match near(section.name, name) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("known here are {}", known.join(", ")),
            };
            found.add(key.span().start, format!("unknown key `{}`: {meant}", section.full(name)));
        }
    }
}

/// The known key that was perhaps meant by `key` in the table `section`: one that is written alike, or of the same name in another table.
fn near(section: &str, key: &str) -> Option<String> {
    let of = |section: &'static str, keys: &[&'static str]| keys.iter().map(|key| (section, *key)).collect::<Vec<_>>();
    let known = [of("", &TOP), of("budget", &BUDGET), of("grant", &GRANT), of("allow", &ALLOW)].concat();
    let distance = |(other, name): &(&str, &str)| {
        let written = strsim::osa_distance(&key.to_lowercase().replace('-', "_"), name);
        let elsewhere = usize::from(*other != section);
        (written <= key.chars().count().max(name.len()) / 3).then_some((written, elsewhere))
    };
    // Of several that are as near, the first that is listed.
    let near = known.iter().filter_map(|it| Some((distance(it)?, it))).min_by_key(|(distance, _)| *distance);
    let (_, (section, name)) = near?;
    Some(if section.is_empty() { (*name).to_owned() } else { format!("{section}.{name}") })
}

fn one_of(names: &[String]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use std::path::PathBuf;

    fn origin() -> Origin<'static> {
        Origin::Person { folder: Path::new("/conf"), user_home: Some(Path::new("/me")) }
    }

    fn check(text: &str, expected: Expect) {
        let (_, problems) = parse(text, &origin());
        expected.assert_eq(&problems.iter().map(|problem| format!("{problem}\n")).collect::<String>());
    }

    #[test]
    fn every_key_is_read() {
        let text = r#"
            model = "ollama/m"
            models = ["ollama/n"]
            fallback = ["ollama/o"]
            base_url = "http://h/v1"
            key_env = "K"
            approve = "auto"
            sandbox = "reduced"
            checks = ["make test"]
            [allow]
            write = ["~/out"]
            network = true
            [budget]
            turns = 3
            tokens = 1_000
            usd = 0.5
            time = "2m"
            [grant]
            read = ["/a", "b", "~/c"]
            write = []
            network = false
            secrets = ["S"]
            [mcp.fetch]
            command = "uvx"
            args = ["x", 1]
        "#;
        let (config, problems) = parse(text, &origin());
        assert_eq!(problems, []);
        expect![[r#"
            Config {
                model: Some(
                    "ollama/m",
                ),
                models: [
                    "ollama/n",
                ],
                fallback: [
                    "ollama/o",
                ],
                base_url: Some(
                    "http://h/v1",
                ),
                key_env: Some(
                    "K",
                ),
                approve: Some(
                    Auto,
                ),
                allow: Ceiling {
                    write: [
                        "/me/out",
                    ],
                    network: true,
                },
                sandbox: Some(
                    Reduced,
                ),
                checks: [
                    "make test",
                ],
                budget: Limits {
                    turns: Some(
                        3,
                    ),
                    tokens: Some(
                        1000,
                    ),
                    nano_usd: Some(
                        NanoUsd(
                            500000000,
                        ),
                    ),
                    time_ms: Some(
                        120000,
                    ),
                },
                grant: Rights {
                    read: [
                        "/a",
                        "/conf/b",
                        "/me/c",
                    ],
                    write: [],
                    network: Some(
                        false,
                    ),
                    secrets: [
                        "S",
                    ],
                },
                bell: None,
                reply_time: None,
                retry_time: None,
                mcp: {
                    "fetch": "{ args = [\"x\", 1], command = \"uvx\" }",
                },
                instructions: [],
                catalog: Catalog { .. },
            }
        "#]]
        .assert_eq(&format!("{config:#?}\n"));
    }

    #[test]
    fn the_example_has_every_key() {
        let text = include_str!("../../../../docs/config.toml");
        assert_eq!(parse(text, &origin()).1, []);
        let table = DeTable::parse(text).unwrap();
        let has = |table: &DeTable<'_>, keys: &[&str]| keys.iter().all(|key| table.contains_key(*key));
        assert!(has(table.get_ref(), &TOP));
        for (name, keys) in [("budget", BUDGET.as_slice()), ("grant", &GRANT), ("allow", &ALLOW)] {
            assert!(has(table.get_ref()[name].get_ref().as_table().unwrap(), keys), "{name}");
        }
    }

    #[test]
    fn an_unknown_key_is_told_with_the_one_that_was_meant() {
        check(
            "modle = \"x\"\n[budget]\nturn = 1\n[grants]\n",
            expect![[r#"
            1:1: unknown key `modle`: did you mean `model`?
            3:1: unknown key `budget.turn`: did you mean `budget.turns`?
            4:2: unknown key `grants`: did you mean `grant`?
        "#]],
        );
        check(
            "turns = 4\nmax = 1\n  base-url = \"x\"\nnetwork = true\n",
            expect![[r#"
                1:1: unknown key `turns`: did you mean `budget.turns`?
                2:1: unknown key `max`: known here are model, models, fallback, base_url, key_env, approve, allow, sandbox, checks, budget, grant, mcp, bell, reply_time, retry_time
                3:3: unknown key `base-url`: did you mean `base_url`?
                4:1: unknown key `network`: did you mean `grant.network`?
            "#]],
        );
        check(
            "[grant]\nnetwrok = true\nexec = []\nusd = 1\n",
            expect![[r#"
            2:1: unknown key `grant.netwrok`: did you mean `grant.network`?
            3:1: unknown key `grant.exec`: known here are read, write, network, secrets
            4:1: unknown key `grant.usd`: did you mean `budget.usd`?
        "#]],
        );
    }

    #[test]
    fn a_value_of_another_kind_is_told_with_what_is_expected() {
        check(
            "model = 1\nmodels = \"a\"\nsandbox = \"vm\"\napprove = true\nchecks = [\"a\", \" \", 3]\n",
            expect![[r#"
                1:9: `model` is 1: expected a model, as "provider/name"
                2:10: `models` is "a": expected a list of models, each provider/name
                3:11: `sandbox` is "vm": expected "native", "reduced" or "host"
                4:11: `approve` is true: expected "auto" or "ask" or "wait" or "deny"
                5:16: `checks` is " ": expected a list of commands, none of them empty
                5:21: `checks` is 3: expected a list of commands, none of them empty
            "#]],
        );
        check(
            "budget = 3\n[grant]\nnetwork = \"yes\"\nread = \"/\"\n[mcp]\n",
            expect![[r#"
            1:10: `budget` is 3: expected a table, as [budget]
            3:11: `grant.network` is "yes": expected true or false
            4:8: `grant.read` is "/": expected a list of paths: absolute, or from the folder of this file, or from ~/
        "#]],
        );
        check(
            "[budget]\nturns = -1\ntokens = 1.5\nusd = \"1,5\"\ntime = \"soon\"\n",
            expect![[r#"
            2:9: `budget.turns` is -1: expected a whole number
            3:10: `budget.tokens` is 1.5: expected a whole number
            4:7: `budget.usd` is "1,5": expected an amount of dollars, such as 0.50
            5:8: `budget.time` is "soon": expected a length of time, such as "90s", "30m" or "2h"
        "#]],
        );
        check(
            "mcp = 1\n",
            expect![[r#"
            1:7: `mcp` is 1: expected a table for each server, as [mcp.NAME]
        "#]],
        );
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_place() {
        check(
            "model = \"x\"\nchecks = [\n",
            expect![[r#"
            2:11: unclosed array, expected `]`
        "#]],
        );
        check(
            "ä = 1\nmodel = \"x\" y\n",
            expect![[r#"
            2:13: unexpected key or value, expected newline, `#`
        "#]],
        );
        check(
            "model = \"a\"\nmodel = \"b\"\n",
            expect![[r#"
            2:1: duplicate key
        "#]],
        );
        check(
            "\u{0}",
            expect![[r#"
            1:2: key with no value, expected `=`
        "#]],
        );
    }

    #[test]
    fn a_project_does_not_say_which_models_it_may_choose() {
        let project = Origin::Project { folder: Path::new("/work"), user_home: None };
        let text = "models = [\"a/b\"]\nretry_time = \"9h\"\n[grant]\nread = [\"data\", \"~/x\"]\n";
        let (config, problems) = parse(text, &project);
        assert_eq!((config.models.len(), config.retry_time), (0, None));
        assert_eq!(config.grant.read, [PathBuf::from("/work/data")]);
        expect![[r#"
            1:10: `models`: the models that a project may choose are for the person's own configuration to say
            2:14: `retry_time`: how long a model is waited for is for the person's own configuration to say
            4:17: `grant.read` is "~/x": expected a list of paths: absolute, or from the folder of this file, or from ~/
        "#]]
        .assert_eq(&problems.iter().map(|problem| format!("{problem}\n")).collect::<String>());
    }
}
