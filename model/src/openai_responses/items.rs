//! The items of one reply, each found again when more of it comes.
//!
//! The rule is: `output_index` is an item's place in the closing list. Servers break it: they count from 1, count what they
//! do not send, give several items one index, or none. So an item is known by its `id`, then by its `call_id`, and only
//! then by its place. Some change the `id` from event to event, or give all items the same: an item that is whole takes
//! nothing that does not name both it and its place.

use super::read::Item;
use serde_json::{Value, json};

/// The most items that a reply may have.
const MOST: usize = 1000;

/// That a reply has more items than can be told of.
#[derive(Debug)]
pub(super) struct TooMany;

/// The items, in the order in which they are said.
#[derive(Default)]
pub(super) struct Items {
    list: Vec<Item>,
}

/// What an item is called; empty where nothing is said.
#[derive(Clone, Copy)]
struct Names<'a> {
    id: &'a str,
    call: &'a str,
    kind: &'a str,
}

impl<'a> Names<'a> {
    fn of(item: &'a Value) -> Names<'a> {
        let text = |field: &str| item[field].as_str().unwrap_or_default();
        Names { id: text("id"), call: text("call_id"), kind: text("type") }
    }

    /// Whether both may be one item, whatever their ids.
    fn fits(self, other: Names<'_>) -> bool {
        let fit = |a: &str, b: &str| a.is_empty() || b.is_empty() || a == b;
        fit(self.call, other.call) && fit(self.kind, other.kind)
    }

    fn same_id(self, other: Names<'_>) -> bool {
        !self.id.is_empty() && self.id == other.id
    }

    fn same_call(self, other: Names<'_>) -> bool {
        !self.call.is_empty() && self.call == other.call
    }

    fn other_id(self, other: Names<'_>) -> bool {
        !self.id.is_empty() && !other.id.is_empty() && self.id != other.id
    }
}

impl Items {
    /// The item that `value` begins, at `index`.
    pub(super) fn begun(&mut self, value: &Value, index: Option<u64>) -> Result<&mut Item, TooMany> {
        let names = Names::of(value);
        let is = |item: &Item| {
            let known = Names::of(&item.value);
            let here = index.is_none_or(|index| index == item.index);
            let same = known.same_id(names) || (index.is_some() && !item.whole && !known.other_id(names));
            here && same && known.fits(names)
        };
        let place = self.list.iter().rposition(is);
        self.at(place, names.id, index)
    }

    /// The item that an event with the item `value`, or of the item called `id`, belongs to.
    pub(super) fn named(&mut self, value: &Value, id: &str, index: Option<u64>) -> Result<&mut Item, TooMany> {
        let mut names = Names::of(value);
        if names.id.is_empty() {
            names.id = id;
        }
        let fitting = self.list.iter().enumerate().filter_map(|(place, item)| {
            let known = Names::of(&item.value);
            let here = index.is_none_or(|index| index == item.index);
            let (id, call) = (known.same_id(names), known.same_call(names));
            let is = if item.whole { here && (id || call) } else { here || id || call };
            (is && known.fits(names)).then_some(((id, !item.whole, call, here), place))
        });
        let place = fitting.max().map(|(_, place)| place);
        self.at(place, names.id, index)
    }

    /// The item at `place`, or a new one called `id`, behind those with its index or a lower one.
    fn at(&mut self, place: Option<usize>, id: &str, index: Option<u64>) -> Result<&mut Item, TooMany> {
        let place = match place {
            Some(place) => place,
            None if self.list.len() >= MOST => return Err(TooMany),
            None => {
                let index = index.or(self.list.last().map(|item| item.index)).unwrap_or_default();
                let place = self.list.iter().rposition(|item| item.index <= index).map_or(0, |before| before + 1);
                let value = if id.is_empty() { json!({}) } else { json!({"id": id}) };
                self.list.insert(place, Item { value, index, ..Item::default() });
                place
            }
        };
        Ok(&mut self.list[place])
    }

    /// Takes the closing list: each item of it, the one that was seen or a new one, is given to `put`. What was seen and
    /// stands not in it stays behind what it came after.
    pub(super) fn close(&mut self, values: &[Value], put: impl Fn(&mut Item, &Value)) -> Result<(), TooMany> {
        let entries = self.entries(values);
        let new = (0..values.len()).filter(|place| values[*place].is_object() && !entries.contains(&Some(*place)));
        let mut order = 0;
        let mut ordered = Vec::new();
        for (item, entry) in std::mem::take(&mut self.list).into_iter().zip(&entries) {
            order = entry.map_or(order, |place| place + 1);
            ordered.push((order, item, *entry));
        }
        ordered.extend(new.map(|place| (place + 1, Item::default(), Some(place))));
        if ordered.len() > MOST {
            return Err(TooMany);
        }
        ordered.sort_by_key(|(order, ..)| *order);
        for (_, mut item, entry) in ordered {
            if let Some(place) = entry {
                put(&mut item, &values[place]);
            }
            self.list.push(item);
        }
        Ok(())
    }

    /// The place in the closing list of each item that was seen: by its id, by its `call_id`, where it should be, and last
    /// by its rank among those of its kind.
    fn entries(&self, values: &[Value]) -> Vec<Option<usize>> {
        let rules: [fn(Names<'_>, Names<'_>, bool) -> bool; 4] = [
            |known, names, _| known.same_id(names),
            |known, names, _| known.same_call(names),
            |_, _, here| here,
            |known, names, _| !known.other_id(names),
        ];
        let mut entries = vec![None; self.list.len()];
        let mut left: Vec<usize> = (0..values.len()).filter(|place| values[*place].is_object()).collect();
        for rule in rules {
            for (item, entry) in self.list.iter().zip(&mut entries).filter(|(_, entry)| entry.is_none()) {
                let known = Names::of(&item.value);
                let is = |place: &usize| {
                    let names = Names::of(&values[*place]);
                    known.fits(names) && rule(known, names, item.index == *place as u64)
                };
                *entry = left.iter().position(is).map(|at| left.remove(at));
            }
        }
        entries
    }

    /// Each of them, in order.
    pub(super) fn into_iter(self) -> impl Iterator<Item = Item> {
        self.list.into_iter()
    }
}
