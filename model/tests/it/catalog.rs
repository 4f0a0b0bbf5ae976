//! From a name to a model.

use expect_test::{Expect, expect};
use model::catalog::{self, Overrides};
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
