//! Providers as rows of data: where they are, which variables they want, and what their servers take.

mod rows;

use crate::wire::Wire;
use rows::COMPATIBLE;
pub(crate) use rows::PROVIDERS;
use trace::LargeImages;

/// A provider of models, and what its requests must look like.
#[derive(Debug)]
pub struct Provider {
    /// The name before the slash of a model id.
    pub name: &'static str,
    /// The wire that it speaks.
    pub(crate) wire: Wire,
    /// Its address, if it has a usual one, as people name it: with the version (`/v1`) where that is usual; without a slash
    /// at the end.
    pub base_url: Option<&'static str>,
    /// What another address of it looks like.
    pub form: &'static str,
    /// The variable that names another address. Nothing here reads it.
    pub base_url_var: Option<&'static str>,
    /// The variable that holds the key. Nothing here reads it.
    pub key_var: &'static str,
    /// The variable that holds a token which stands for the key, and is sent as `authorization: Bearer`. Nothing here reads it.
    pub token_var: Option<&'static str>,
    /// Whether it answers without a key.
    pub key: KeyUse,
    /// The provider whose rows in the table of models it has: its own name, where it is not another way to the same models.
    pub(crate) models: &'static str,
    /// The field that limits the output; of OpenAI's chat, as the next one.
    pub(crate) max_tokens_field: &'static str,
    /// The field in which reasoning goes back.
    pub(crate) reasoning: ReasoningField,
    /// Whether a stream has to be asked for its usage.
    pub(crate) usage: UsageInStream,
    /// The ids that calls go back under.
    pub(crate) call_ids: CallIds,
    /// Who may speak after the results of calls.
    pub(crate) after_results: AfterResults,
    /// Whether its models are usually held to the schema of an answer.
    pub(crate) schemas: Schemas,
    /// The kinds of pictures that it takes, where they are fewer than its wire has.
    pub(crate) picture_kinds: Option<&'static [&'static str]>,
    /// The most pictures of a request, where that is limited.
    pub(crate) max_images: Option<u64>,
    /// The most where one of them is large.
    pub(crate) large_images: Option<LargeImages>,
    /// Where all this was read, for people.
    pub source: &'static str,
}

/// Whether a provider answers without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
    /// It does not.
    Required,
    /// It may: a server of one's own.
    Optional,
}

/// How a key is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyForm {
    /// In the header of the wire.
    #[default]
    Own,
    /// As `authorization: Bearer`, whatever the wire: a token in the place of a key.
    Bearer,
}

/// How reasoning goes back to the server that sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReasoningField {
    /// Not at all: the server keeps or ignores it.
    Never,
    /// In this field, whichever it came in.
    Named(&'static str),
    /// The same, and a reply without it is refused.
    Needed(&'static str),
    /// In the field in which it came.
    AsItCame,
}

/// Whether a stream has to be asked for its usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsageInStream {
    /// It has to be.
    Asked,
    /// It always comes, and asking for it is refused.
    Always,
}

/// Whether a schema that is sent along is enforced on answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schemas {
    /// It is, by most models of the provider.
    Enforced,
    /// Nobody knows: it is told in words only.
    Told,
    /// The same; and a request with tools is refused if one is sent along.
    NeverWithTools,
}

/// Who may speak after the results of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterResults {
    /// Anyone.
    Anyone,
    /// The model alone: a word of its own has to stand between results and what a user says.
    Model,
}

/// The ids that calls go back under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallIds {
    /// Ours.
    Ours,
    /// Nine letters or digits, made of ours.
    Nine,
}

impl Provider {
    /// Whether `base_url` lies on the provider's own host, so that its key may be sent there.
    pub fn is_at(&self, base_url: &str) -> bool {
        let place = |url: &str| reqwest::Url::parse(url).ok().map(|url| url.origin());
        self.base_url.and_then(place).is_some_and(|own| Some(own) == place(base_url))
    }
}

/// The row called `name`.
pub(crate) fn find(name: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|row| row.name == name)
}

/// The row called `name`; for a name from elsewhere (a recording, a later version) the one that suits any server.
pub(crate) fn row(name: &str) -> &'static Provider {
    find(name).unwrap_or(&COMPATIBLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn every_row_stands_for_itself() {
        let mut table = String::new();
        for row in PROVIDERS {
            let Provider { name, wire, base_url, base_url_var, key_var, key, models, .. } = row;
            let (base_url, variable) = (base_url.unwrap_or("-"), base_url_var.unwrap_or("-"));
            table += &format!("{name}: {} {base_url} ({variable}) {key_var} {key:?}", wire.name());
            if *wire == Wire::OpenAiChat {
                table += &format!(" | {} {:?} {:?} {:?}", row.max_tokens_field, row.reasoning, row.usage, row.call_ids);
            }
            let (most, large) = (row.max_images, row.large_images.map(|large| (large.most, large.above)));
            table += &most.map(|most| format!(" | {most} pictures")).unwrap_or_default();
            table += &large.map(|(most, above)| format!(", {most} if above {above} pixels")).unwrap_or_default();
            let of_models = if models == name { String::new() } else { format!(" | models of {models}") };
            table += &format!("{of_models}\n    {}\n", row.source);
            assert!(!row.source.is_empty() && PROVIDERS.iter().filter(|other| other.name == *name).count() == 1, "{name}");
            assert!(find(models).is_some(), "{name} has the models of {models}");
        }
        expect![[r#"
            openai: openai-responses https://api.openai.com/v1 (OPENAI_BASE_URL) OPENAI_API_KEY Required | 500 pictures
                developers.openai.com/api/reference/resources/responses
            openai-chat: openai-chat https://api.openai.com/v1 (OPENAI_BASE_URL) OPENAI_API_KEY Required | max_completion_tokens Never Asked Ours | 500 pictures | models of openai
                developers.openai.com/api/reference/resources/chat
            anthropic: anthropic-messages https://api.anthropic.com (ANTHROPIC_BASE_URL) ANTHROPIC_API_KEY Required | 100 pictures, 20 if above 2000 pixels
                platform.claude.com/docs/en/api/messages; the token's variable: docs.rs/crate/adk-anthropic/2.1.0 examples/request_customization.rs
            gemini: gemini https://generativelanguage.googleapis.com (GOOGLE_GEMINI_BASE_URL) GEMINI_API_KEY Required
                ai.google.dev/api/generate-content; the address's variable: github.com/googleapis/python-genai google/genai/_base_url.py
            azure: openai-responses - (-) AZURE_OPENAI_API_KEY Required | 50 pictures
                learn.microsoft.com/azure/foundry/openai/api-version-lifecycle
            openrouter: openai-chat https://openrouter.ai/api/v1 (OPENROUTER_BASE_URL) OPENROUTER_API_KEY Required | max_tokens Named("reasoning") Asked Ours
                openrouter.ai/docs/use-cases/reasoning-tokens
            deepseek: openai-chat https://api.deepseek.com (DEEPSEEK_BASE_URL) DEEPSEEK_API_KEY Required | max_tokens Needed("reasoning_content") Asked Ours
                api-docs.deepseek.com/guides/thinking_mode
            qwen: openai-chat https://dashscope-intl.aliyuncs.com/compatible-mode/v1 (DASHSCOPE_BASE_URL) DASHSCOPE_API_KEY Required | max_tokens AsItCame Asked Ours
                alibabacloud.com/help/en/model-studio/compatibility-of-openai-with-dashscope (newer workspaces have a host of their own)
            kimi: openai-chat https://api.moonshot.ai/v1 (MOONSHOT_BASE_URL) MOONSHOT_API_KEY Required | max_tokens Needed("reasoning_content") Asked Ours
                ai-sdk.dev/providers/ai-sdk-providers/moonshotai; reasoning: librechat.ai/docs/configuration/librechat_yaml/ai_endpoints/moonshot
            glm: openai-chat https://api.z.ai/api/paas/v4 (ZAI_BASE_URL) ZAI_API_KEY Required | max_tokens AsItCame Asked Ours
                hexdocs.pm/req_llm (guides/zai); key and address: docs.openclaw.ai/providers/zai
            minimax: anthropic-messages https://api.minimax.io/anthropic (MINIMAX_BASE_URL) MINIMAX_API_KEY Required
                docs.litellm.ai/docs/providers/minimax; thinking: platform.minimax.io/docs/api-reference/text-openai-api
            mistral: openai-chat https://api.mistral.ai/v1 (MISTRAL_BASE_URL) MISTRAL_API_KEY Required | max_tokens Never Always Nine | 8 pictures
                docs.mistral.ai/api; fields: github.com/avante-corp/avante.nvim/issues/2347; ids and roles: github.com/mistralai/mistral-common (validator)
            groq: openai-chat https://api.groq.com/openai/v1 (GROQ_BASE_URL) GROQ_API_KEY Required | max_completion_tokens Never Asked Ours | 3 pictures
                console.groq.com/docs/openai
            xai: openai-chat https://api.x.ai/v1 (XAI_BASE_URL) XAI_API_KEY Required | max_tokens Never Asked Ours
                docs.x.ai/docs/guides/chat; pictures: docs.x.ai/developers/model-capabilities/images/understanding
            openai-compatible: openai-chat - (-) AUTOSAGE_API_KEY Optional | max_tokens AsItCame Asked Ours
                developers.openai.com/api/reference/resources/chat
            ollama: openai-chat http://127.0.0.1:11434/v1 (OLLAMA_BASE_URL) OLLAMA_API_KEY Optional | max_tokens Named("reasoning") Asked Ours
                docs.ollama.com/openai
            vllm: openai-chat http://127.0.0.1:8000/v1 (VLLM_BASE_URL) VLLM_API_KEY Optional | max_tokens AsItCame Asked Ours
                docs.vllm.ai/en/latest/serving/openai_compatible_server
            llamacpp: openai-chat http://127.0.0.1:8080/v1 (LLAMACPP_BASE_URL) LLAMA_API_KEY Optional | max_tokens Named("reasoning_content") Asked Ours
                github.com/ggml-org/llama.cpp tools/server; pictures: github.com/cline/cline/issues/8977
            lmstudio: openai-chat http://127.0.0.1:1234/v1 (LMSTUDIO_BASE_URL) LM_API_TOKEN Optional | max_tokens AsItCame Asked Ours
                lmstudio.ai/docs/api/openai-api; pictures: lmstudio.ai/docs/python/llm-prediction/image-input
        "#]].assert_eq(&table);
    }
}
