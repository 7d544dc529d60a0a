//! Items and maps: attributes by name.

use crate::value::Value;

/// Attributes by name, kept in the byte order of the names. An item, or a map inside one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Item {
    attributes: Vec<(String, Value)>,
}

impl Item {
    /// The largest item that DynamoDB stores, as [`size`](Item::size) counts.
    pub const SIZE_MAX: usize = 400 * 1024;

    /// The longest name of an attribute.
    pub const NAME_BYTES_MAX: usize = 65_535;

    /// No attributes.
    pub fn new() -> Self {
        Item::default()
    }

    /// The attribute with this name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.position(name).ok().and_then(|at| self.attributes.get(at)).map(|(_, value)| value)
    }

    /// The attribute with this name, to change in place.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        let at = self.position(name).ok()?;
        self.attributes.get_mut(at).map(|(_, value)| value)
    }

    /// Sets an attribute; gives back what it replaced.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        let (name, value) = (name.into(), value.into());
        match self.position(&name) {
            Ok(at) => Some(std::mem::replace(&mut self.attributes[at].1, value)),
            Err(at) => {
                self.attributes.insert(at, (name, value));
                None
            }
        }
    }

    /// Removes an attribute and gives it back.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.position(name).ok().map(|at| self.attributes.remove(at).1)
    }

    /// The same item with one more attribute: for building items in one expression.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.insert(name, value);
        self
    }

    /// How many attributes.
    pub fn len(&self) -> usize {
        self.attributes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.attributes.is_empty()
    }

    /// The attributes in the order of their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.attributes.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The attributes in the order of their names, to change in place.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&str, &mut Value)> {
        self.attributes.iter_mut().map(|(name, value)| (name.as_str(), value))
    }

    /// Its size as DynamoDB counts it: the bytes of names and values.
    pub fn size(&self) -> usize {
        self.iter().map(|(name, value)| name.len() + value.size()).sum()
    }

    /// From attributes whose names ascend; `None` if they do not.
    pub(super) fn from_sorted(attributes: Vec<(String, Value)>) -> Option<Item> {
        let ascending = attributes.is_sorted_by(|(a, _), (b, _)| a < b);
        ascending.then_some(Item { attributes })
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        // Attributes mostly arrive in order: look at the end first.
        match self.attributes.last() {
            Some((last, _)) if last.as_str() < name => Err(self.attributes.len()),
            None => Err(0),
            _ => self.attributes.binary_search_by(|(have, _)| have.as_str().cmp(name)),
        }
    }
}

impl<N: Into<String>, V: Into<Value>> FromIterator<(N, V)> for Item {
    /// Later attributes replace earlier ones of the same name.
    fn from_iter<I: IntoIterator<Item = (N, V)>>(attributes: I) -> Self {
        let pairs = attributes.into_iter().map(|(name, value)| (name.into(), value.into()));
        let mut attributes: Vec<(String, Value)> = pairs.collect();
        if !attributes.is_sorted_by(|(a, _), (b, _)| a < b) {
            // Reversed and sorted stably, the last of several with one name comes first and stays.
            attributes.reverse();
            attributes.sort_by(|(a, _), (b, _)| a.cmp(b));
            attributes.dedup_by(|(a, _), (b, _)| a == b);
        }
        Item { attributes }
    }
}

impl IntoIterator for Item {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.attributes.into_iter()
    }
}
