//! The list of what is known about models, a row each, as wide as the terminal.

use super::dollars;
use crate::Parts;
use crate::cli::args::ListArgs;
use crate::cli::config::Config;
use crate::cli::print;
use crate::cli::prose::{clean, columns, counted, grouped, wrapped};
use crate::cli::thinker;
use crate::cli::view::room;
use model::KeyUse;
use model::catalog::{self, Known};
use serde::Serialize;
use trace::Price;

/// Lists what is known, all of it or what has the text in its name.
pub fn list(args: &ListArgs, config: &Config, parts: &Parts) -> u8 {
    let wanted = args.text.as_deref().unwrap_or_default().to_lowercase();
    let fits = |listed: &Listed<'_>| listed.id.to_lowercase().contains(&wanted);
    let listed: Vec<Listed<'_>> =
        config.catalog.models().iter().filter_map(|known| Listed::of(known, parts)).filter(fits).collect();
    if args.json {
        // Plain texts and numbers always become JSON.
        let lines = listed.iter().map(|listed| serde_json::to_string(listed).unwrap_or_default() + "\n");
        print(&parts.out, &lines.collect::<String>());
        return 0;
    }
    let width = room(parts);
    print(&parts.out, &laid_out(&listed, width));
    let count = counted(listed.len() as u64, "model");
    let name = &parts.name;
    let told = [
        format!("{count}; prices are dollars for a million tokens. Any other name is sent as it is."),
        format!(
            "{name} models show PROVIDER/NAME says where a row was read, {name} models check PROVIDER/NAME whether it works."
        ),
    ];
    let told = told.iter().flat_map(|line| wrapped(line, width.unwrap_or(usize::MAX)));
    print(&parts.err, &told.map(|line| line + "\n").collect::<String>());
    0
}

/// A model of the list.
#[derive(Serialize)]
struct Listed<'a> {
    id: String,
    context: Option<u64>,
    max_output: Option<u64>,
    /// In nano-dollars a token.
    price: Option<Price>,
    reasons: Option<bool>,
    images: Option<bool>,
    structured: Option<bool>,
    key_var: &'a str,
    /// Whether it is set, or not needed.
    key: bool,
    source: Option<&'a str>,
    read: Option<&'a str>,
}

impl<'a> Listed<'a> {
    fn of(known: &'a Known, parts: &Parts) -> Option<Listed<'a>> {
        let id = known.to_string();
        let provider = catalog::provider_of(&id).ok()?;
        let key_var = thinker::own_variable(provider, parts);
        let key = provider.key == KeyUse::Optional || parts.variable(key_var).is_some();
        Some(Listed {
            context: known.context,
            max_output: known.max_output,
            price: known.price(),
            reasons: known.reasons,
            images: known.images,
            structured: known.structured,
            key_var,
            key,
            source: known.source.as_deref(),
            read: known.read.as_deref(),
            id,
        })
    }

    /// What stands below the [`HEAD`].
    fn cells(&self, key: Key) -> [String; 8] {
        let number = |number: Option<u64>| number.map_or("?".to_owned(), grouped);
        let [input, cached, output] = match self.price {
            Some(price) => [price.input, price.cached, price.output].map(dollars),
            None => ["?", "?", "?"].map(str::to_owned),
        };
        let pictures = match self.images {
            Some(true) => "yes",
            Some(false) => "no",
            None => "?",
        };
        let key = match (self.key, key) {
            (true, Key::Named) => "there".to_owned(),
            (false, Key::Named) => format!("{} is not set", self.key_var),
            (true, Key::Short) => "yes".to_owned(),
            (false, Key::Short) => "no".to_owned(),
        };
        [self.id.clone(), number(self.context), number(self.max_output), input, cached, output, pictures.to_owned(), key]
            .map(|cell| clean(&cell))
    }
}

/// How a key that is not there is told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    /// With the variable that it is missing from.
    Named,
    Short,
}

/// Where a model's name stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    /// In the first column.
    Beside,
    /// In a line above the others.
    Above,
}

const HEAD: [&str; 8] = ["model", "window", "output", "$ in", "cached", "$ out", "pictures", "key"];
/// The columns that go where there is no room, and the order in which they do.
const GOING: [&str; 3] = ["pictures", "output", "cached"];

/// The rows as lines of at most `width` columns, as far as names allow it.
fn laid_out(listed: &[Listed<'_>], width: Option<usize>) -> String {
    let rows = |key| -> Vec<[String; 8]> {
        std::iter::once(HEAD.map(str::to_owned)).chain(listed.iter().map(|listed| listed.cells(key))).collect()
    };
    let (named, short) = (rows(Key::Named), rows(Key::Short));
    let less = |most| (0..=most).map(|gone| (&short, Name::Beside, &GOING[..gone]));
    let above = (0..=GOING.len()).map(|gone| (&short, Name::Above, &GOING[..gone]));
    let layouts = std::iter::once((&named, Name::Beside, &GOING[..0])).chain(less(GOING.len())).chain(above);
    let mut last = String::new();
    for (rows, name, gone) in layouts {
        let shown: Vec<usize> = (0..HEAD.len()).filter(|at| !gone.contains(&HEAD[*at])).collect();
        last = table(rows, name, &shown);
        let is_name = |line: &&str| name == Name::Above && !line.starts_with(' ');
        if width.is_none_or(|width| last.lines().filter(|line| !is_name(line)).all(|line| columns(line) <= width)) {
            break;
        }
    }
    last
}

/// The columns that are `shown`, each as wide as its widest cell.
fn table(rows: &[[String; 8]], name: Name, shown: &[usize]) -> String {
    let widest = |at: usize| rows.iter().map(|row| columns(&row[at])).max().unwrap_or_default();
    let widths: [usize; 8] = std::array::from_fn(widest);
    let mut text = String::new();
    for row in rows {
        let cells = shown.iter().filter(|at| name == Name::Beside || **at > 0).map(|at| match HEAD[*at] {
            "model" => format!("{}{}", row[*at], " ".repeat(widths[*at] - columns(&row[*at]))),
            "key" => row[*at].clone(),
            _ => format!("{:>width$}", row[*at], width = widths[*at]),
        });
        let cells = cells.collect::<Vec<_>>().join("  ");
        text.push_str(&match name {
            Name::Beside => format!("{cells}\n"),
            Name::Above => format!("{}\n  {cells}\n", row[0]),
        });
    }
    text
}
