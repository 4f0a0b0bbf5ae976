//! The providers, a row each, with what is known of their servers and where that was read.

use super::{AfterResults, CallIds, KeyUse, Provider, ReasoningField, Schemas, UsageInStream};
use crate::wire::Wire;
use trace::LargeImages;

/// The row for a server that nothing is known about.
pub(super) const COMPATIBLE: Provider = Provider {
    name: "openai-compatible",
    wire: Wire::OpenAiChat,
    base_url: None,
    form: "http://HOST:PORT/v1",
    base_url_var: None,
    key_var: "AUTOSAGE_API_KEY",
    token_var: None,
    key: KeyUse::Optional,
    models: "openai-compatible",
    max_tokens_field: "max_tokens",
    reasoning: ReasoningField::AsItCame,
    usage: UsageInStream::Asked,
    call_ids: CallIds::Ours,
    after_results: AfterResults::Anyone,
    schemas: Schemas::Told,
    picture_kinds: None,
    max_images: None,
    large_images: None,
    source: "developers.openai.com/api/reference/resources/chat",
};

// How many pictures a request may hold was measured in github.com/earendil-works/pi/pull/120, where nothing else is said.

/// OpenAI's models on Chat Completions. What is said here of that wire also goes for the records of runs which asked
/// `openai/NAME` on it.
const OPENAI_CHAT: Provider = Provider {
    name: "openai-chat",
    base_url: Some("https://api.openai.com/v1"),
    base_url_var: Some("OPENAI_BASE_URL"),
    key_var: "OPENAI_API_KEY",
    key: KeyUse::Required,
    models: "openai",
    max_tokens_field: "max_completion_tokens",
    reasoning: ReasoningField::Never,
    schemas: Schemas::Enforced,
    max_images: Some(500),
    ..COMPATIBLE
};

/// Every provider that works.
pub(crate) const PROVIDERS: &[Provider] = &[
    Provider {
        name: "openai",
        wire: Wire::OpenAiResponses,
        source: "developers.openai.com/api/reference/resources/responses",
        ..OPENAI_CHAT
    },
    OPENAI_CHAT,
    // Its models with a longer window than 200,000 tokens take 600 pictures, and say so in their own rows
    // (platform.claude.com/docs/en/build-with-claude/vision). With more than 20 a larger one is refused: "image dimensions
    // exceed max allowed size for many-image requests: 2000 pixels" (github.com/anthropics/claude-code/issues/49537).
    Provider {
        name: "anthropic",
        models: "anthropic",
        wire: Wire::AnthropicMessages,
        base_url: Some("https://api.anthropic.com"),
        base_url_var: Some("ANTHROPIC_BASE_URL"),
        key_var: "ANTHROPIC_API_KEY",
        token_var: Some("ANTHROPIC_AUTH_TOKEN"),
        key: KeyUse::Required,
        schemas: Schemas::Enforced,
        max_images: Some(100),
        large_images: Some(LargeImages { above: 2000, most: 20 }),
        source: "platform.claude.com/docs/en/api/messages; the token's variable: docs.rs/crate/adk-anthropic/2.1.0 examples/request_customization.rs",
        ..COMPATIBLE
    },
    Provider {
        name: "gemini",
        models: "gemini",
        wire: Wire::Gemini,
        base_url: Some("https://generativelanguage.googleapis.com"),
        base_url_var: Some("GOOGLE_GEMINI_BASE_URL"),
        key_var: "GEMINI_API_KEY",
        key: KeyUse::Required,
        schemas: Schemas::Enforced,
        source: "ai.google.dev/api/generate-content; the address's variable: github.com/googleapis/python-genai google/genai/_base_url.py",
        ..COMPATIBLE
    },
    // A resource of one's own has an address of its own, and its deployments are called as one likes. 50 pictures are the most
    // for GPT-4o and GPT-4.1, and nothing is said of others (learn.microsoft.com/azure/ai-services/openai/quotas-limits).
    Provider {
        name: "azure",
        models: "azure",
        wire: Wire::OpenAiResponses,
        form: "https://RESOURCE.openai.azure.com/openai/v1",
        key_var: "AZURE_OPENAI_API_KEY",
        key: KeyUse::Required,
        schemas: Schemas::Enforced,
        max_images: Some(50),
        source: "learn.microsoft.com/azure/foundry/openai/api-version-lifecycle",
        ..COMPATIBLE
    },
    Provider {
        name: "openrouter",
        models: "openrouter",
        base_url: Some("https://openrouter.ai/api/v1"),
        base_url_var: Some("OPENROUTER_BASE_URL"),
        key_var: "OPENROUTER_API_KEY",
        key: KeyUse::Required,
        reasoning: ReasoningField::Named("reasoning"),
        source: "openrouter.ai/docs/use-cases/reasoning-tokens",
        ..COMPATIBLE
    },
    // A call that comes back without what was thought before it is refused; so is an empty text in its place
    // (github.com/charmbracelet/crush/issues/2696, github.com/earendil-works/pi/pull/3640).
    Provider {
        name: "deepseek",
        models: "deepseek",
        base_url: Some("https://api.deepseek.com"),
        base_url_var: Some("DEEPSEEK_BASE_URL"),
        key_var: "DEEPSEEK_API_KEY",
        key: KeyUse::Required,
        reasoning: ReasoningField::Needed("reasoning_content"),
        source: "api-docs.deepseek.com/guides/thinking_mode",
        ..COMPATIBLE
    },
    Provider {
        name: "qwen",
        models: "qwen",
        base_url: Some("https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
        base_url_var: Some("DASHSCOPE_BASE_URL"),
        key_var: "DASHSCOPE_API_KEY",
        key: KeyUse::Required,
        source: "alibabacloud.com/help/en/model-studio/compatibility-of-openai-with-dashscope (newer workspaces have a host of their own)",
        ..COMPATIBLE
    },
    // The same: "reasoning_content is missing in assistant tool call message".
    Provider {
        name: "kimi",
        models: "kimi",
        base_url: Some("https://api.moonshot.ai/v1"),
        base_url_var: Some("MOONSHOT_BASE_URL"),
        key_var: "MOONSHOT_API_KEY",
        key: KeyUse::Required,
        reasoning: ReasoningField::Needed("reasoning_content"),
        source: "ai-sdk.dev/providers/ai-sdk-providers/moonshotai; reasoning: librechat.ai/docs/configuration/librechat_yaml/ai_endpoints/moonshot",
        ..COMPATIBLE
    },
    Provider {
        name: "glm",
        models: "glm",
        base_url: Some("https://api.z.ai/api/paas/v4"),
        base_url_var: Some("ZAI_BASE_URL"),
        key_var: "ZAI_API_KEY",
        key: KeyUse::Required,
        source: "hexdocs.pm/req_llm (guides/zai); key and address: docs.openclaw.ai/providers/zai",
        ..COMPATIBLE
    },
    // On Chat Completions it thinks within the text; on this wire thinking is apart.
    Provider {
        name: "minimax",
        models: "minimax",
        wire: Wire::AnthropicMessages,
        base_url: Some("https://api.minimax.io/anthropic"),
        base_url_var: Some("MINIMAX_BASE_URL"),
        key_var: "MINIMAX_API_KEY",
        key: KeyUse::Required,
        source: "docs.litellm.ai/docs/providers/minimax; thinking: platform.minimax.io/docs/api-reference/text-openai-api",
        ..COMPATIBLE
    },
    // Unknown fields are refused with status 422, and with status 400 ids of calls that are not nine letters or digits, and a
    // user's message right after a result: "Unexpected role 'user' after role 'tool'".
    Provider {
        name: "mistral",
        models: "mistral",
        base_url: Some("https://api.mistral.ai/v1"),
        base_url_var: Some("MISTRAL_BASE_URL"),
        key_var: "MISTRAL_API_KEY",
        key: KeyUse::Required,
        reasoning: ReasoningField::Never,
        usage: UsageInStream::Always,
        call_ids: CallIds::Nine,
        after_results: AfterResults::Model,
        max_images: Some(8),
        source: "docs.mistral.ai/api; fields: github.com/avante-corp/avante.nvim/issues/2347; ids and roles: github.com/mistralai/mistral-common (validator)",
        ..COMPATIBLE
    },
    // Llama 4, which is gone there (github.com/MCERQUA/OpenVoiceUI/pull/392), took 5 pictures; what took its place answers "Too
    // many images provided. This model supports up to 3 images". Of a schema in a request with tools: "json mode cannot be
    // combined with tool/function calling" (github.com/vercel/ai/pull/16540).
    Provider {
        name: "groq",
        models: "groq",
        base_url: Some("https://api.groq.com/openai/v1"),
        base_url_var: Some("GROQ_BASE_URL"),
        key_var: "GROQ_API_KEY",
        key: KeyUse::Required,
        max_tokens_field: "max_completion_tokens",
        reasoning: ReasoningField::Never,
        schemas: Schemas::NeverWithTools,
        max_images: Some(3),
        source: "console.groq.com/docs/openai",
        ..COMPATIBLE
    },
    Provider {
        name: "xai",
        models: "xai",
        base_url: Some("https://api.x.ai/v1"),
        base_url_var: Some("XAI_BASE_URL"),
        key_var: "XAI_API_KEY",
        key: KeyUse::Required,
        reasoning: ReasoningField::Never,
        picture_kinds: Some(&["image/png", "image/jpeg"]),
        source: "docs.x.ai/docs/guides/chat; pictures: docs.x.ai/developers/model-capabilities/images/understanding",
        ..COMPATIBLE
    },
    COMPATIBLE,
    Provider {
        name: "ollama",
        models: "ollama",
        base_url: Some("http://127.0.0.1:11434/v1"),
        base_url_var: Some("OLLAMA_BASE_URL"),
        key_var: "OLLAMA_API_KEY",
        reasoning: ReasoningField::Named("reasoning"),
        source: "docs.ollama.com/openai",
        ..COMPATIBLE
    },
    Provider {
        name: "vllm",
        models: "vllm",
        base_url: Some("http://127.0.0.1:8000/v1"),
        base_url_var: Some("VLLM_BASE_URL"),
        key_var: "VLLM_API_KEY",
        source: "docs.vllm.ai/en/latest/serving/openai_compatible_server",
        ..COMPATIBLE
    },
    Provider {
        name: "llamacpp",
        models: "llamacpp",
        base_url: Some("http://127.0.0.1:8080/v1"),
        base_url_var: Some("LLAMACPP_BASE_URL"),
        key_var: "LLAMA_API_KEY",
        reasoning: ReasoningField::Named("reasoning_content"),
        picture_kinds: Some(&["image/png", "image/jpeg", "image/gif"]),
        source: "github.com/ggml-org/llama.cpp tools/server; pictures: github.com/cline/cline/issues/8977",
        ..COMPATIBLE
    },
    Provider {
        name: "lmstudio",
        models: "lmstudio",
        base_url: Some("http://127.0.0.1:1234/v1"),
        base_url_var: Some("LMSTUDIO_BASE_URL"),
        key_var: "LM_API_TOKEN",
        picture_kinds: Some(&["image/png", "image/jpeg", "image/webp"]),
        source: "lmstudio.ai/docs/api/openai-api; pictures: lmstudio.ai/docs/python/llm-prediction/image-input",
        ..COMPATIBLE
    },
];
