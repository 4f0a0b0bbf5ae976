//! A table of a configuration file: what its keys hold, and all that is wrong in it.

use super::value::shown;
use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Something that is wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, counted from one.
    pub line: usize,
    /// The column in characters, counted from one.
    pub column: usize,
    /// What it is.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.text)
    }
}

/// The text that is read, and what is wrong with it.
pub struct Findings<'a> {
    text: &'a str,
    problems: Vec<Problem>,
}

impl<'a> Findings<'a> {
    /// Nothing is wrong in `text` so far.
    pub fn of(text: &'a str) -> Findings<'a> {
        Findings { text, problems: Vec::new() }
    }

    /// All that was found, from the start of the file to its end.
    pub fn in_order(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| (problem.line, problem.column));
        self.problems
    }

    /// Something is wrong at a byte of the text.
    pub fn add(&mut self, offset: usize, text: String) {
        let before = &self.text[..self.text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = before.matches('\n').count() + 1;
        self.problems.push(Problem { line, column: before[line_start..].chars().count() + 1, text });
    }

    /// The `value` of `key` is none of its kind, which is described by `what`.
    pub fn expected(&mut self, key: &str, what: &str, value: &DeValue<'_>, offset: usize) {
        self.add(offset, format!("`{key}` is {}: expected {what}", shown(value)));
    }
}

/// A table of the file; `name` is empty for the file itself.
pub struct Section<'t, 'i> {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub table: &'t DeTable<'i>,
}

impl<'t, 'i> Section<'t, 'i> {
    /// The whole name of a key.
    pub fn full(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// Says of a key that is there why it must not be.
    pub fn refuse(&self, key: &str, why: &str, found: &mut Findings<'_>) {
        if let Some(value) = self.table.get(key) {
            found.add(value.span().start, format!("`{}`: {why}", self.full(key)));
        }
    }

    /// What `read` makes of the value of `key`, which is described by `what`; `None` where it is not there, or is told of.
    pub fn get<T>(&self, key: &str, what: &str, found: &mut Findings<'_>, read: impl Fn(&DeValue<'i>) -> Option<T>) -> Option<T> {
        self.one(self.table.get(key)?, key, what, found, read)
    }

    /// The same of each item of a list.
    pub fn list<T>(&self, key: &str, what: &str, found: &mut Findings<'_>, read: impl Fn(&DeValue<'i>) -> Option<T>) -> Vec<T> {
        let Some(value) = self.table.get(key) else { return Vec::new() };
        match value.get_ref() {
            DeValue::Array(items) => items.iter().filter_map(|item| self.one(item, key, what, found, &read)).collect(),
            other => {
                found.expected(&self.full(key), what, other, value.span().start);
                Vec::new()
            }
        }
    }

    fn one<T>(
        &self,
        value: &Spanned<DeValue<'i>>,
        key: &str,
        what: &str,
        found: &mut Findings<'_>,
        read: impl Fn(&DeValue<'i>) -> Option<T>,
    ) -> Option<T> {
        let result = read(value.get_ref());
        if result.is_none() {
            found.expected(&self.full(key), what, value.get_ref(), value.span().start);
        }
        result
    }

    /// The table called `name` in it.
    pub fn below(&self, name: &'static str, found: &mut Findings<'_>) -> Option<Section<'t, 'i>> {
        let value = self.table.get(name)?;
        match value.get_ref() {
            DeValue::Table(table) => Some(Section { name, table }),
            other => {
                found.expected(name, &format!("a table, as [{name}]"), other, value.span().start);
                None
            }
        }
    }
}
