//! What differs between two runs of one conversation and means nothing, taken out of a request before it is compared.

/// Values by the names that stand for them: folders, the run's name, the day. What is empty or a single slash hides
/// nothing.
#[derive(Clone, Debug, Default)]
pub struct Masks(Vec<(String, &'static str)>);

impl Masks {
    /// Hides each value behind its name. A value that holds another one is hidden first.
    pub fn new(values: impl IntoIterator<Item = (&'static str, String)>) -> Masks {
        let mut list: Vec<(String, &'static str)> = Vec::new();
        for (name, value) in values {
            let value = value.trim_end_matches('/');
            // In a body a value stands as JSON writes it, and in the arguments of a call, which are JSON within, twice so.
            let once = escaped(value);
            list.extend([escaped(&once), once].into_iter().filter(|value| !value.is_empty()).map(|value| (value, name)));
        }
        list.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
        list.dedup();
        Masks(list)
    }

    /// `body` with names in the places of values. What stands for a secret differs between runs as well.
    pub(crate) fn hide(&self, body: &str) -> String {
        let body = &without_secrets(body);
        self.0.iter().fold(body.to_owned(), |body, (value, name)| match body.contains(value) {
            true => body.replace(value, &format!("<{name}>")),
            false => body,
        })
    }
}

/// `text` as it stands within a string of JSON.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// `body` with `<secret:KIND>` for `<secret:KIND:8 hex>`.
fn without_secrets(body: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(body.len()), body);
    while let Some(at) = rest.find("<secret:") {
        let end = rest[at..].find('>').map(|length| at + length);
        let hash = end.and_then(|end| rest[at..end].rsplit_once(':'));
        match (end, hash) {
            (Some(end), Some((kind, hash))) if hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                out.push_str(&rest[..at]);
                out.push_str(kind);
                rest = &rest[end..];
            }
            _ => {
                let (before, after) = rest.split_at(at + 1);
                out.push_str(before);
                rest = after;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_value_is_hidden_first_and_in_every_form() {
        let values = [("home", "/h".to_owned()), ("workspace", "/h/a \"b\"/".to_owned()), ("none", "/".to_owned())];
        let masks = Masks::new(values);
        let hidden = masks.hide(r#"{"a":"/h/a \"b\"/c /h/x / /","b":"{\"path\":\"/h/a \\\"b\\\"\"}"}"#);
        assert_eq!(hidden, r#"{"a":"<workspace>/c <home>/x / /","b":"{\"path\":\"<workspace>\"}"}"#);
        assert_eq!(Masks::default().hide("/h"), "/h");
    }

    #[test]
    fn a_secret_is_the_same_in_every_run() {
        let hide = |body| Masks::default().hide(body);
        assert_eq!(hide("a <secret:github-token:0123abcd> b<secret:x:89abcdef>"), "a <secret:github-token> b<secret:x>");
        for other in ["<secret:", "<secret:x>", "<secret:x:12345>", "<secret:<secret:y:0123456z>", "<secret:ä"] {
            assert_eq!(hide(other), other);
        }
    }
}
