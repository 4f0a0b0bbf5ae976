//! Finds a tool call that a model wrote as text instead of making it (bug class A8 of agent harnesses).

/// Marks that models put around calls when the server's template does not turn them into calls.
const MARKS: &[&str] =
    &["<tool_call>", "<function=", "<function_call>", "<tool_use>", "[TOOL_CALLS]", "<|tool_call", "<invoke name="];

/// Whether `text`, a reply without calls, is a call of one of `tools` in disguise.
pub(crate) fn is_call_as_text<'a>(text: &str, mut tools: impl Iterator<Item = &'a str>) -> bool {
    let text = text.trim();
    if outside_fences(text).any(|line| MARKS.iter().any(|mark| line.starts_with(mark))) {
        return true;
    }
    // A reply that is one JSON object naming a tool and its arguments, with or without a code fence.
    let bare = text.strip_prefix("```json").or_else(|| text.strip_prefix("```")).map_or(text, |rest| rest.trim_end_matches('`'));
    match serde_json::from_str::<serde_json::Value>(bare.trim()) {
        Ok(serde_json::Value::Object(object)) => {
            let name = object.get("name").or_else(|| object.get("tool")).and_then(serde_json::Value::as_str);
            let arguments = object.contains_key("arguments") || object.contains_key("parameters");
            arguments && name.is_some_and(|name| tools.any(|tool| tool == name))
        }
        _ => false,
    }
}

/// The lines of `text` that stand in no code fence, without their indentation: what is quoted is talked about.
fn outside_fences(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().map(str::trim_start).filter(move |line| {
        let fence = line.starts_with("```");
        inside ^= fence;
        !fence && !inside
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_disguise_are_told_from_answers() {
        let found = |text| is_call_as_text(text, ["bash", "read"].into_iter());
        for call in [
            "<tool_call><function=bash><parameter=command>ls</parameter></function></tool_call>",
            "I will look.\n[TOOL_CALLS][{\"name\": \"bash\"}]",
            "```json\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n```",
            "{\"tool\": \"read\", \"parameters\": {}}",
        ] {
            assert!(found(call), "{call}");
        }
        let quoted = "A call looks so:\n```\n<tool_call>\n```\nand `<tool_call>` begins it.";
        for answer in
            [quoted, "Done.", "{\"name\": \"Ada\", \"arguments\": []}", "The function `bash` lists files.", "{\"a\": 1}"]
        {
            assert!(!found(answer), "{answer}");
        }
    }
}
