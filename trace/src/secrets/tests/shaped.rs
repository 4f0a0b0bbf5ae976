//! What is a secret by its shape, and what only looks like one.

use super::{key, kinds, letters, secrets};
use expect_test::{Expect, expect};

#[test]
fn every_shape_is_hidden_wherever_it_stands() {
    let hex = "0123456789abcdef".repeat(4);
    let tokens = [
        ("github-token", format!("ghp_{}", letters(36))),
        ("github-token", format!("gho_{}", letters(36))),
        ("github-token", format!("ghu_{}", letters(36))),
        ("github-token", format!("ghs_{}", letters(36))),
        ("github-token", format!("ghs_12345_{}.{}.{}", letters(40), letters(200), letters(80))),
        ("github-token", format!("ghr_{}", letters(76))),
        ("github-token", format!("github_pat_{}_{}", letters(22), letters(59))),
        ("gitlab-token", format!("glpat-{}", letters(20))),
        ("gitlab-token", format!("glpat-{}.01.{}", letters(27), letters(9))),
        ("anthropic-key", format!("sk-ant-api03-{}-_{}AA", letters(60), letters(30))),
        ("openai-key", format!("sk-proj-{}_-{}", letters(70), letters(70))),
        ("openrouter-key", format!("sk-or-v1-{hex}")),
        ("api-key", format!("sk-{}", letters(48))),
        ("api-key", format!("sk-{}", &hex[..32])),
        ("groq-key", format!("gsk_{}", letters(52))),
        ("xai-key", format!("xai-{}", letters(80))),
        ("huggingface-token", format!("hf_{}", letters(34))),
        ("aws-key", "AKIAIOSFODNN7EXAMPLE".to_owned()),
        ("aws-key", "ASIAIOSFODNN7EXAMPLE".to_owned()),
        ("google-key", format!("AIza{}", letters(35))),
        ("google-secret", format!("GOCSPX-{}", letters(28))),
        ("slack-token", format!("xoxb-123456789012-1234567890123-{}", letters(24))),
        ("slack-token", format!("xoxp-1-{}", letters(40))),
        ("stripe-key", format!("sk_live_{}", letters(24))),
        ("npm-token", format!("npm_{}", letters(36))),
        ("pypi-token", format!("pypi-AgEIcHlwaS5vcmc{}", letters(80))),
        ("docker-token", format!("dckr_pat_{}", letters(27))),
        ("digitalocean-token", format!("dop_v1_{hex}")),
        ("vault-token", format!("hvs.{}", letters(90))),
        ("sendgrid-key", format!("SG.{}.{}", letters(22), letters(43))),
        ("grafana-token", format!("glsa_{}_{}", letters(32), &hex[..8])),
    ];
    let around = [
        ("", ""),
        ("TOKEN=", "\n"),
        ("token: \"", "\","),
        ("'", "'"),
        ("Authorization: Bearer ", "\r\n"),
        ("https://x-access-token:", "@github.com/a/b.git"),
        ("curl 'https://api.example/v1?apikey=", "&q=1'"),
        ("\\n", "\\n"),
        ("a%3D", "%26"),
        ("\u{1b}[32m", "\u{1b}[0m"),
        ("\\u001b[1;32m", "\\u001b[0m"),
        ("<b>", "</b>"),
        ("It is ", ". Then"),
        ("é", "é"),
    ];
    for (kind, token) in &tokens {
        for (before, after) in around {
            let text = format!("{before}{token}{after}");
            assert_eq!(kinds(&text), format!("{before}<secret:{kind}>{after}"), "{text}");
        }
    }
}

#[test]
fn words_are_left_alone() {
    let long = letters(2000);
    for text in [
        "pip install sk-learn scikit-learn",
        "task-0123456789abcdef0123456789 desk-aaaaaaaaaaaaaaaaaaaa1",
        "sk-implementationofaverylongname",
        "sk-a-branch-name-with-many-words-2026",
        "AKIAlice AKIA AKIAIOSFODNN7EXAMPL AKIAIOSFODNN7EXAMPLEXY xAKIAIOSFODNN7EXAMPLE",
        "ghp_short ghp_ and `ghp_` are prefixes",
        "github_pat_ is another; glpat-xxxx too, xoxb-1",
        "npm_config_registry npm_lifecycle_event npm_package_json",
        "hf_hub_download hf_transformers_cache_of_a_user",
        "AIza is how they begin",
        "SG.1 is a section, hvs.x",
        "-----BEGIN CERTIFICATE-----\nMIIBhTCCASugAwIBAgIQIRi6zePL6mKjOipn+dNuaTAKBggqhkjOPQQDAjASMRAw\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----",
        "a PEM file begins with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----.",
        "<secret:github-token:0123abcd> stands already",
        "commit 0123456789abcdef0123456789abcdef01234567",
    ] {
        assert_eq!(secrets().hide(text), text);
    }
    // What is longer than any token is none.
    for text in [format!("sk-{long}"), format!("ghp_{long}"), format!("xoxb-{long}")] {
        assert_eq!(kinds(&text), text);
    }
}

#[test]
fn a_private_key_is_one_secret() {
    let check = |text: &str, expected: Expect| expected.assert_eq(&kinds(text));
    check(
        &format!("before\n{}\nafter", key(25)),
        expect![[r#"
        before
        <secret:private-key>
        after"#]],
    );
    check(
        &serde_json::json!({"private_key": key(3), "id": 1}).to_string(),
        expect![[r#"{"id":1,"private_key":"<secret:private-key>"}"#]],
    );
    check(&format!("{:?}", serde_json::json!({"k": key(3)}).to_string()), expect![[r#""{\"k\":\"<secret:private-key>\"}""#]]);
    check(&key(3).replace('\n', "\r\n"), expect!["<secret:private-key>"]);
    // A difference, an indented block, one with headers, one of OpenPGP, one that was cut off.
    check(
        &key(3).replace('\n', "\n-"),
        expect![[r#"
        <secret:private-key>
        ------END RSA PRIVATE KEY-----"#]],
    );
    check(&key(3).replace('\n', "\n    | "), expect!["<secret:private-key>"]);
    // With the numbers of its lines, as `cat -n` and `grep -n` show it.
    for behind in ["\t", ":"] {
        let numbered: Vec<String> = key(12).lines().zip(1..).map(|(line, at)| format!("{at:>6}{behind}{line}")).collect();
        assert_eq!(kinds(&numbered.join("\n")), format!("     1{behind}<secret:private-key>"));
    }
    // Fields without end are none of a key.
    let fields = |count: usize| key(3).replacen('\n', &format!("\n{}\n", "Comment: a\n".repeat(count)), 1);
    assert_eq!(kinds(&fields(10)), "<secret:private-key>");
    assert_eq!(kinds(&fields(1000)), fields(1000));
    let headers = key(3).replacen('\n', "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0011\n\n", 1);
    check(&headers, expect!["<secret:private-key>"]);
    let pgp = format!(
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{0}\n{0}\nabc=\n=Ab1/\n-----END PGP PRIVATE KEY BLOCK-----\n",
        letters(64)
    );
    check(
        &pgp,
        expect![[r#"
        <secret:private-key>
    "#]],
    );
    check(
        &format!("{}\n\n[exit code 1]", &key(3)[..150]),
        expect![[r#"
        <secret:private-key>

        [exit code 1]"#]],
    );
    // One without end is hidden in pieces.
    let endless = format!("-----BEGIN PRIVATE KEY-----\n{}", letters(150_000));
    check(&endless, expect!["<secret:private-key><secret:private-key><secret:private-key>"]);
}
