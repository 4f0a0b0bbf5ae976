//! Carries new lines over to a place whose indentation is not the one that they were written for.

/// The lines `new`, which were meant to replace `old`, as they must stand where `found` stands now: `found` is `old`,
/// whitespace aside. Lines that `old` and `new` share at the beginning and the end stay as they were found. `None`
/// where the indentations of `old` and `found` are not related in one way that also tells where each new line goes.
pub fn reindent(old: &[&str], found: &[&str], new: &[&str]) -> Option<Vec<String>> {
    let before = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - before;
    let after = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count().min(most);
    let pairs: Vec<(&str, &str)> =
        old.iter().zip(found).filter(|(line, _)| !is_blank(line)).map(|(a, b)| (indent(a), indent(b))).collect();
    let changed = &new[before..new.len() - after];
    let placed = relations(&pairs).into_iter().find_map(|relation| {
        let place = |line: &&str| match is_blank(line) {
            true => Some(String::new()),
            false => relation.apply(indent(line), &pairs).map(|there| there + &line[indent(line).len()..]),
        };
        changed.iter().map(place).collect::<Option<Vec<String>>>()
    })?;
    let kept = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    Some([kept(&found[..before]), placed, kept(&found[found.len() - after..])].concat())
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// How an indentation became another one.
enum Relation<'a> {
    /// The same whitespace was put before every line.
    Added(&'a str),
    /// The same whitespace was taken from every line.
    Removed(&'a str),
    /// So many of one character stand for so many of another.
    Scaled { from: char, each: usize, to: char, gives: usize },
    /// No rule, but each indentation became one other.
    Listed,
}

/// The relations that hold for all of `pairs`, the simplest first.
fn relations<'a>(pairs: &[(&'a str, &'a str)]) -> Vec<Relation<'a>> {
    let Some(&(old, there)) = pairs.first() else { return Vec::new() };
    let added = there.strip_suffix(old).map(Relation::Added);
    let removed = old.strip_suffix(there).map(Relation::Removed);
    let scaled = pairs.iter().find_map(|(old, there)| {
        let (from, to) = (old.chars().next()?, there.chars().next()?);
        Some(Relation::Scaled { from, each: old.chars().count(), to, gives: there.chars().count() })
    });
    let holds = |relation: &Relation| pairs.iter().all(|(old, there)| relation.apply(old, pairs).as_deref() == Some(*there));
    [added, removed, scaled, Some(Relation::Listed)].into_iter().flatten().filter(holds).collect()
}

impl Relation<'_> {
    fn apply(&self, indent: &str, pairs: &[(&str, &str)]) -> Option<String> {
        match *self {
            Relation::Added(more) => Some(format!("{more}{indent}")),
            Relation::Removed(less) => indent.strip_prefix(less).map(str::to_owned),
            Relation::Scaled { from, each, to, gives } => {
                let length = indent.chars().count();
                let fits = indent.chars().all(|c| c == from) && (length * gives).is_multiple_of(each);
                fits.then(|| to.to_string().repeat(length * gives / each))
            }
            Relation::Listed => pairs.iter().find(|(old, _)| *old == indent).map(|(_, there)| (*there).to_owned()),
        }
    }
}
