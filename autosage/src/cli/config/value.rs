//! From the value of a key to what it says.

use super::keys::Origin;
use crate::cli::args;
use std::path::PathBuf;
use std::time::Duration;
use toml::de::{DeArray, DeTable, DeValue};

/// A text with something in it.
pub fn text(value: &DeValue<'_>) -> Option<String> {
    value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A whole number, in whichever notation.
pub fn number(value: &DeValue<'_>) -> Option<u64> {
    let number = value.as_integer()?;
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// A length of time.
pub fn length(value: &DeValue<'_>) -> Option<Duration> {
    args::duration(&typed(value)?).ok()
}

/// A number or text, as it would be typed on the command line.
pub fn typed(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// A path of the file, made absolute by words alone.
pub fn absolute(path: &str, origin: &Origin<'_>) -> Option<PathBuf> {
    let (Origin::Person { folder, user_home } | Origin::Project { folder, user_home }) = origin;
    match path.strip_prefix("~/").or((path == "~").then_some("")) {
        Some(below) => user_home.map(|home| home.join(below)),
        None => Some(folder.join(path)),
    }
}

/// A value on one line, whole.
pub fn shown(value: &DeValue<'_>) -> String {
    let list = |items: &DeArray<'_>| items.iter().map(|item| shown(item.get_ref())).collect::<Vec<_>>().join(", ");
    let fields = |table: &DeTable<'_>| {
        table.iter().map(|(key, value)| format!("{} = {}", key.get_ref(), shown(value.get_ref()))).collect::<Vec<_>>().join(", ")
    };
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(items) => format!("[{}]", list(items)),
        DeValue::Table(table) => format!("{{ {} }}", fields(table)),
    }
}
