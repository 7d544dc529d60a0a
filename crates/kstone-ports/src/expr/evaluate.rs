//! Evaluates a condition on an item in its compact form.

use crate::expr::ast::Comparator;
use crate::expr::condition::{BoundCondition, Predicate, Term};
use crate::expr::path::DocumentPath;
use crate::request_error::Result;
use crate::value::{ItemRef, Number, ValueRef};

impl BoundCondition {
    /// Whether the condition holds for the item. No item is like one without attributes.
    pub fn matches(&self, item: Option<ItemRef<'_>>) -> Result<bool> {
        let item = item.unwrap_or(ItemRef::EMPTY);
        Ok(self.root.holds(&ConditionItem::new(item, self.paths)))
    }
}

/// With more paths than this the attributes of an item are laid out once, to be searched; with
/// fewer each is looked for from the beginning of the item.
const PATHS_FEW: usize = 16;

/// The item on which a condition is evaluated.
struct ConditionItem<'a> {
    item: ItemRef<'a>,
    /// All attributes, ascending by name, if many are looked for.
    attributes: Option<Vec<(&'a str, ValueRef<'a>)>>,
}

impl<'a> ConditionItem<'a> {
    fn new(item: ItemRef<'a>, paths: usize) -> Self {
        let attributes = (paths > PATHS_FEW).then(|| item.iter().collect());
        ConditionItem { item, attributes }
    }

    fn find(&self, path: &DocumentPath) -> Option<ValueRef<'a>> {
        path.find_by(|name| match &self.attributes {
            None => self.item.get(name),
            Some(attributes) => {
                let at = attributes.binary_search_by(|(have, _)| (*have).cmp(name)).ok()?;
                attributes.get(at).map(|(_, value)| *value)
            }
        })
    }
}

impl Predicate {
    fn holds(&self, item: &ConditionItem<'_>) -> bool {
        match self {
            Predicate::And(parts) => parts.iter().all(|part| part.holds(item)),
            Predicate::Or(parts) => parts.iter().any(|part| part.holds(item)),
            Predicate::Not(inner) => !inner.holds(item),
            Predicate::Compare(comparator, left, right) => {
                compare(*comparator, left.look(item).value(), right.look(item).value())
            }
            Predicate::Between(value, low, high) => {
                let (value, low, high) = (value.look(item), low.look(item), high.look(item));
                compare(Comparator::GreaterOrEqual, value.value(), low.value())
                    && compare(Comparator::LessOrEqual, value.value(), high.value())
            }
            Predicate::In(value, list) => {
                let value = value.look(item);
                list.iter()
                    .any(|term| compare(Comparator::Equal, value.value(), term.look(item).value()))
            }
            Predicate::Exists(path) => item.find(path).is_some(),
            Predicate::NotExists(path) => item.find(path).is_none(),
            Predicate::HasType(term, type_name) => {
                term.look(item).value().is_some_and(|value| value.type_name() == *type_name)
            }
            Predicate::BeginsWith(whole, prefix) => {
                match (whole.look(item).value(), prefix.look(item).value()) {
                    (Some(ValueRef::S(whole)), Some(ValueRef::S(prefix))) => {
                        whole.starts_with(prefix)
                    }
                    (Some(ValueRef::B(whole)), Some(ValueRef::B(prefix))) => {
                        whole.starts_with(prefix)
                    }
                    _ => false,
                }
            }
            Predicate::Contains(whole, part) => {
                match (whole.look(item).value(), part.look(item).value()) {
                    (Some(whole), Some(part)) => contains(whole, part),
                    _ => false,
                }
            }
        }
    }
}

/// The value of a term for an item.
enum TermValue<'a> {
    Nothing,
    Value(ValueRef<'a>),
    Size(Number),
}

impl TermValue<'_> {
    fn value(&self) -> Option<ValueRef<'_>> {
        match self {
            TermValue::Nothing => None,
            TermValue::Value(value) => Some(*value),
            TermValue::Size(size) => Some(ValueRef::N(size.as_number_ref())),
        }
    }
}

impl Term {
    fn look<'a>(&'a self, item: &ConditionItem<'a>) -> TermValue<'a> {
        match self {
            Term::Path(path) => item.find(path).map_or(TermValue::Nothing, TermValue::Value),
            Term::Value(value) => TermValue::Value(value.as_ref()),
            Term::Size(inner) => match inner.look(item).value().and_then(size) {
                Some(size) => TermValue::Size(Number::from(size as u64)),
                None => TermValue::Nothing,
            },
        }
    }
}

/// What is missing, or of another type, is different from everything and has no order.
fn compare(
    comparator: Comparator,
    left: Option<ValueRef<'_>>,
    right: Option<ValueRef<'_>>,
) -> bool {
    let (Some(left), Some(right)) = (left, right) else {
        return comparator == Comparator::NotEqual;
    };
    match comparator {
        Comparator::Equal => left.eq_value(right),
        Comparator::NotEqual => !left.eq_value(right),
        Comparator::Less => left.compare(right).is_some_and(|order| order.is_lt()),
        Comparator::LessOrEqual => left.compare(right).is_some_and(|order| order.is_le()),
        Comparator::Greater => left.compare(right).is_some_and(|order| order.is_gt()),
        Comparator::GreaterOrEqual => left.compare(right).is_some_and(|order| order.is_ge()),
    }
}

fn contains(whole: ValueRef<'_>, part: ValueRef<'_>) -> bool {
    match whole {
        ValueRef::S(whole) => matches!(part, ValueRef::S(part) if whole.contains(part)),
        ValueRef::B(whole) => matches!(part, ValueRef::B(part) if has_slice(whole, part)),
        ValueRef::L(list) => list.iter().any(|element| element.eq_value(part)),
        ValueRef::Ss(set) | ValueRef::Ns(set) | ValueRef::Bs(set) => set.contains(part),
        ValueRef::N(_) | ValueRef::Bool(_) | ValueRef::Null | ValueRef::M(_) => false,
    }
}

fn has_slice(whole: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(whole, part).is_some()
}

/// `size`: numbers, booleans and null have none.
fn size(value: ValueRef<'_>) -> Option<usize> {
    Some(match value {
        ValueRef::S(text) => text.encode_utf16().count(),
        ValueRef::B(bytes) => bytes.len(),
        ValueRef::M(map) => map.len(),
        ValueRef::L(list) => list.len(),
        ValueRef::Ss(set) | ValueRef::Ns(set) | ValueRef::Bs(set) => set.len(),
        ValueRef::N(_) | ValueRef::Bool(_) | ValueRef::Null => return None,
    })
}
