//! Refusals of what a model itself said before: its reasoning, encrypted or signed.

/// What such refusals speak of, in small letters. As users met them: OpenAI's "The encrypted content … could not be verified"
/// (github.com/openai/codex/issues/8145), Anthropic's "Invalid `signature` in `thinking` block" and "`thinking` … blocks in the
/// latest assistant message cannot be modified" (github.com/anomalyco/opencode/issues/16748), Google's "is missing a
/// thought_signature", Cerebras's "reasoning_content … unsupported" (github.com/QwenLM/qwen-code/issues/11045).
const THOUGHTS: [&str; 5] = ["encrypted", "signature", "thinking", "thought", "reasoning"];

/// Whether a server that refuses a request speaks of thoughts in it.
pub fn names_thoughts(message: &str) -> bool {
    let message = message.to_lowercase();
    THOUGHTS.iter().any(|word| message.contains(word))
}
