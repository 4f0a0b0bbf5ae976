//! From a name to a model.

use expect_test::{Expect, expect};
use model::catalog::{self, Catalog, Overrides};
use std::collections::BTreeSet;
use trace::{NanoUsd, Price, Usage};

fn at(base_url: &str) -> Overrides {
    Overrides { base_url: Some(base_url.to_owned()), ..Overrides::default() }
}

fn refused(id: &str, overrides: &Overrides, expected: Expect) {
    expected.assert_eq(&catalog::find(id, overrides).unwrap_err().to_string());
}

#[test]
fn a_known_model_has_a_window_a_limit_and_a_price() {
    let spec = catalog::find("openai/gpt-5.1", &Overrides::default()).unwrap();
    assert_eq!((spec.context, spec.max_output), (Some(400_000), 128_000));
    assert_eq!(spec.price, Some(Price { input: 1250, cached: 125, cache_write: 1250, output: 10_000, long: None }));
    assert_eq!(spec.base_url.as_deref(), Some("https://api.openai.com/v1"));
    assert!(spec.table.is_some());
    let chat = catalog::find("openai-chat/gpt-5.1", &Overrides::default()).unwrap();
    assert_eq!((&chat.price, chat.context, &chat.base_url), (&spec.price, spec.context, &spec.base_url));
    assert_eq!((spec.wire.as_str(), chat.wire.as_str()), ("openai-responses", "openai-chat"));
    let dated = catalog::find("openai/gpt-5.1-2025-11-13", &Overrides::default()).unwrap();
    assert_eq!((dated.name.as_str(), dated.price), ("gpt-5.1-2025-11-13", spec.price));
    let haiku = catalog::find("anthropic/claude-haiku-4-5-20251001", &Overrides::default()).unwrap();
    assert_eq!((haiku.context, haiku.max_output, haiku.effort), (Some(200_000), 64_000, None));
    assert_eq!(haiku.price, Some(Price { input: 1000, cached: 100, cache_write: 1250, output: 5000, long: None }));
    let opus = catalog::find("anthropic/claude-opus-5-5", &Overrides::default()).unwrap();
    assert_eq!((opus.wire.as_str(), opus.effort.as_deref()), ("anthropic-messages", Some("medium")));
    assert_eq!(opus.base_url.as_deref(), Some("https://api.anthropic.com"));
}

#[test]
fn a_long_prompt_has_the_price_of_long_prompts() {
    let price = catalog::find("openai/gpt-6-sol", &Overrides::default()).unwrap().price.unwrap();
    let cost = |input, output| price.of(&Usage { input, output, ..Usage::default() });
    assert_eq!(cost(272_000, 1000), NanoUsd(272_000 * 2000 + 1000 * 10_000));
    assert_eq!(cost(272_001, 1000), NanoUsd(272_001 * 4000 + 1000 * 15_000));
}

#[test]
fn an_unknown_model_is_not_guessed() {
    let spec = catalog::find("openai-compatible/org/name:tag", &at("http://127.0.0.1:8901/v1/")).unwrap();
    assert_eq!((spec.name.as_str(), spec.context, spec.max_output, spec.price), ("org/name:tag", None, 8192, None));
    assert_eq!(spec.base_url.as_deref(), Some("http://127.0.0.1:8901/v1"));
    assert_eq!(spec.table, None);
    // A model that another provider serves is not the one in the table.
    assert_eq!(catalog::find("openrouter/gpt-5.1", &Overrides::default()).unwrap().price, None);
}

#[test]
fn a_person_knows_better() {
    let price = catalog::price("0.25, 2").unwrap();
    let overrides = Overrides { price: Some(price), context: Some(10), max_output: Some(5), ..Overrides::default() };
    let spec = catalog::find("openai/gpt-5.1", &overrides).unwrap();
    assert_eq!((spec.price, spec.context, spec.max_output), (Some(price), Some(10), 5));
    assert_eq!((price.input, price.cached, price.output), (250, 250, 2000));
}

#[test]
fn what_is_no_price_is_refused() {
    for text in ["", "1", "1,", ",1", "1,2,3", "-1,2", "1e3,2", "0.0001,2", "1.,2x", "99999999999999999999,1"] {
        assert!(catalog::price(text).is_err(), "{text}");
    }
    assert_eq!(catalog::price("0.005,0").map(|price| (price.input, price.output)), Ok((5, 0)));
}

#[test]
fn what_is_no_model_is_explained() {
    let none = Overrides::default();
    refused(
        "gpt-5.1",
        &none,
        expect![
            "`gpt-5.1` is not a model: `provider/name` is expected, such as openai/NAME or ollama/NAME (providers: openai, openai-chat, anthropic, gemini, azure, openrouter, deepseek, qwen, kimi, glm, minimax, mistral, groq, xai, openai-compatible, ollama, vllm, llamacpp, lmstudio)"
        ],
    );
    refused(
        "openai/",
        &none,
        expect![
            "`openai/` is not a model: `provider/name` is expected, such as openai/NAME or ollama/NAME (providers: openai, openai-chat, anthropic, gemini, azure, openrouter, deepseek, qwen, kimi, glm, minimax, mistral, groq, xai, openai-compatible, ollama, vllm, llamacpp, lmstudio)"
        ],
    );
    refused(
        "opnai/gpt-5.1",
        &none,
        expect![
            "there is no provider `opnai`; there are: openai, openai-chat, anthropic, gemini, azure, openrouter, deepseek, qwen, kimi, glm, minimax, mistral, groq, xai, openai-compatible, ollama, vllm, llamacpp, lmstudio. Any other server that speaks OpenAI's chat is openai-compatible/NAME with --base-url"
        ],
    );
    refused(
        "azure/gpt-5",
        &none,
        expect!["`azure/gpt-5` needs an address: --base-url https://RESOURCE.openai.azure.com/openai/v1"],
    );
    refused("openai-compatible/m", &none, expect!["`openai-compatible/m` needs an address: --base-url http://HOST:PORT/v1"]);
    refused(
        "ollama/m",
        &at("localhost:11434"),
        expect!["`localhost:11434` cannot be a base URL: it must begin with http:// or https://"],
    );
    refused(
        "ollama/m",
        &at("http://me:secret@host/v1"),
        expect!["`host/v1` cannot be a base URL: it may hold no user, password, query or fragment; a key is given by a variable"],
    );
    refused(
        "ollama/m",
        &at("http://host/v1?key=secret"),
        expect![
            "`http://host/v1` cannot be a base URL: it may hold no user, password, query or fragment; a key is given by a variable"
        ],
    );
}

#[test]
fn a_provider_names_its_variables_and_knows_its_own_host() {
    let openai = catalog::provider_of("openai/gpt-5.1").unwrap();
    assert_eq!((openai.key_var, openai.base_url_var), ("OPENAI_API_KEY", Some("OPENAI_BASE_URL")));
    assert!(openai.is_at("https://api.openai.com/v2"));
    for elsewhere in
        ["http://api.openai.com/v1", "https://api.openai.com:444/v1", "https://api.openai.com.evil.example/v1", "no url"]
    {
        assert!(!openai.is_at(elsewhere), "{elsewhere}");
    }
    assert!(!catalog::provider_of("openai-compatible/m").unwrap().is_at("http://127.0.0.1/v1"));
}

/// The table with the rows of `text`, or what is wrong with them.
fn with(text: &str) -> Result<Catalog, String> {
    Catalog::default().with(text, "models.toml").map_err(|error| error.to_string())
}

#[test]
fn a_table_of_ones_own_goes_before_the_one_that_is_built_in_key_by_key() {
    let text = r#"
        [[model]]
        provider = "openai"
        name = "gpt-5.1"
        context = 300000
        cached = "0.5"
        images = true
        [[model]]
        provider = "openai-compatible"
        name = "mine"
        context = 65536
    "#;
    let catalog = with(text).unwrap();
    let (own, built_in) = (catalog.find("openai/gpt-5.1", &Overrides::default()).unwrap(), find("openai/gpt-5.1"));
    assert_eq!((own.context, own.max_output, own.images), (Some(300_000), 128_000, Some(true)));
    assert_eq!(own.price, built_in.price.map(|price| Price { cached: 500, ..price }));
    let source = catalog.known("openai-chat/gpt-5.1").unwrap().source.clone().unwrap();
    assert!(source.starts_with("models.toml; ") && source.contains("genai-prices"), "{source}");
    let mine = catalog.find("openai-compatible/mine", &at("http://127.0.0.1:1/v1")).unwrap();
    assert_eq!((mine.context, mine.window(), mine.price), (Some(65_536), 65_536, None));
    // A record says which tables it was made with.
    assert!(own.table.is_some() && own.table != built_in.table && own.table == mine.table);
    assert_eq!(with("").unwrap().models(), Catalog::default().models());
}

fn find(id: &str) -> trace::ModelSpec {
    catalog::find(id, &Overrides::default()).unwrap()
}

#[test]
fn what_is_wrong_in_a_table_is_told_with_its_place_and_what_was_meant() {
    let row = |more: &str| format!("[[model]]\nprovider = \"openai\"\nname = \"new\"\n{more}\n");
    let told = |text: &str, expected: Expect| expected.assert_eq(&with(text).unwrap_err());
    told(&row("contxt = 5"), expect!["4:1: unknown key `contxt`: did you mean `context`?"]);
    told(&row("large_images = { above = 2000, mots = 20 }"), expect!["4:32: unknown key `mots`: did you mean `most`?"]);
    told(&row("large_images = { above = 2000 }"), expect!["4:16: missing field `most`"]);
    told("[[models]]", expect!["1:3: unknown key `models`: did you mean `model`?"]);
    told(
        &row("input = \"a lot\""),
        expect![[r#"4:9: `a lot` is no price: dollars for a million tokens are expected, such as "1.25""#]],
    );
    told(
        &row("input = \"0.0625\""),
        expect![[
            r#"4:9: `0.0625` is too fine a price (three digits behind the point are kept: 0.001 is the least): dollars for a million tokens are expected, such as "1.25""#
        ]],
    );
    told(
        &row("input = \"18446744073709552\""),
        expect![[
            r#"4:9: `18446744073709552` is too high a price (18446744073709551 is the most): dollars for a million tokens are expected, such as "1.25""#
        ]],
    );
    assert!(with(&row("input = \"18446744073709551.615\"\noutput = \"1.2500\"")).is_ok(), "zeros say nothing");
    told(
        &row("input = 2"),
        expect![[r#"4:9: invalid type: integer `2`, expected a text with the dollars for a million tokens, such as "1.25""#]],
    );
    told(
        &row("long = { above = 5, input = 2.5, output = \"3\" }"),
        expect![[
            r#"4:29: invalid type: floating point `2.5`, expected a text with the dollars for a million tokens, such as "1.25""#
        ]],
    );
    told(
        &format!("{}\n{}", row("context = 5"), row("output = \"5\"")),
        expect!["6:1: openai/new has a row in line 1 already: write one row of both"],
    );
    told(
        "[[model]]\nprovider = \"openai\"\nname = \"\"",
        expect!["1:1: a row of openai has an empty name: `name` is what requests carry"],
    );
    told(
        &row("context = 1000\nmax_output = 1001"),
        expect!["1:1: openai/new has a `max_output` of 1001, which is more than its `context` of 1000"],
    );
    assert!(with(&row("context = 1000\nmax_output = 1000")).is_ok());
    told(&row("input = \"1.25\""), expect!["1:1: openai/new has only half a price: both `input` and `output` are needed"]);
    told(&row("context = 0"), expect!["4:11: invalid value: integer `0`, expected a nonzero u64"]);
    told(&row("context = \"big\""), expect![[r#"4:11: invalid type: string "big", expected a nonzero u64"#]]);
    told(
        "[[model]]\nprovider = \"openai-chat\"\nname = \"x\"",
        expect![[r#"2:12: no models are kept under the provider "openai-chat": did you mean "openai"?"#]],
    );
    told(
        "[[model]]\nprovider = \"antropic\"\nname = \"x\"",
        expect![[r#"2:12: no models are kept under the provider "antropic": did you mean "anthropic"?"#]],
    );
    told("[[model]]\nprovider = \"nobody\"\nname = \"x\"", expect![[r#"2:12: no models are kept under the provider "nobody""#]]);
    told("[[model]]\nname = \"x\"", expect!["1:1: missing field `provider`"]);
    told("model = ", expect!["1:9: string values must be quoted, expected literal string"]);
}

#[test]
fn the_keys_that_are_told_are_those_that_are_read() {
    let mut read = BTreeSet::new();
    for row in ["zzzzzzzz = 1", "long = { zzzzzzzz = 1 }", "large_images = { zzzzzzzz = 1 }"] {
        let refused = Catalog::default().with(&format!("[[model]]\n{row}\n"), "here").unwrap_err().text;
        read.extend(refused.split('`').skip(1).step_by(2).filter(|word| *word != "zzzzzzzz").map(str::to_owned));
    }
    assert_eq!(read, catalog::KEYS.map(str::to_owned).into());
}
