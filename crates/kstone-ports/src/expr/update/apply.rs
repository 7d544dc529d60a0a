//! Makes an update's changes to an item.
//!
//! First every new value is computed from the item as it is, then all are written. List elements
//! are named by their place before the update, so elements that are added come after all others,
//! in the order of their indexes, and elements are taken out from the last to the first.
//!
//! All of what is computed ends up in the item, so its sizes are added up as it is computed, and an
//! update that names a large list often ends before the copies fill the memory.

use std::borrow::Cow;

use crate::expr::path::{DocumentPath, Step};
use crate::expr::update::arithmetic::{Left, add, delete};
use crate::expr::update::{BoundUpdate, ChangeKind, Source, WRONG_OPERAND};
use crate::request_error::{RequestError, Result};
use crate::value::{Item, Number, NumberError, Value};

/// What is to be written at a target.
enum Write {
    Put(Value),
    Erase,
}

impl BoundUpdate {
    /// Changes the item. It is as it was if there is an error.
    pub fn apply(&self, item: &mut Item) -> Result<()> {
        let mut values = Vec::with_capacity(self.changes.len());
        let mut room = Room(Item::SIZE_MAX);
        for change in self.changes.iter() {
            values.push(match &change.kind {
                ChangeKind::Set(source) => {
                    room.take_name(&change.target)?;
                    Some(source.evaluate_within(item, &mut room)?)
                }
                ChangeKind::Remove | ChangeKind::Add(_) | ChangeKind::Delete(_) => None,
            });
        }
        let mut writes = Vec::with_capacity(self.changes.len());
        for (change, value) in self.changes.iter().zip(values) {
            if !has_place(&change.target, item) {
                return Err(RequestError::invalid(
                    "The document path provided in the update expression is invalid for update",
                ));
            }
            let current = change.target.find_in_tree(item);
            let write = match (&change.kind, current) {
                (ChangeKind::Set(_), _) => value.map(Write::Put),
                (ChangeKind::Remove, current) => current.map(|_| Write::Erase),
                (ChangeKind::Add(more), None) => {
                    room.take_name(&change.target)?;
                    room.take(more)?;
                    Some(Write::Put(Value::clone(more)))
                }
                (ChangeKind::Add(more), Some(current)) => {
                    // Of two sets, what is in both counts once, but the larger one counts whole.
                    room.take(if more.size() > current.size() { more } else { current })?;
                    let sum =
                        add(current, more).ok_or_else(|| RequestError::invalid(self.mismatch))?;
                    Some(Write::Put(sum?))
                }
                (ChangeKind::Delete(_), None) => None,
                (ChangeKind::Delete(less), Some(current)) => {
                    match delete(current, less)
                        .ok_or_else(|| RequestError::invalid(self.mismatch))?
                    {
                        Left::Some(left) => Some(Write::Put(left)),
                        Left::Nothing => Some(Write::Erase),
                    }
                }
            };
            writes.extend(write.map(|write| (&change.target, write)));
        }
        writes.sort_by_key(|(target, _)| *target);
        let mut erased = Vec::new();
        for (target, write) in writes {
            match write {
                Write::Put(value) => put(target, item, value),
                Write::Erase => erased.push(target),
            }
        }
        for target in erased.into_iter().rev() {
            erase(target, item);
        }
        Ok(())
    }
}

/// The bytes, as DynamoDB counts them, that new values may still take.
struct Room(usize);

impl Room {
    fn take(&mut self, value: &Value) -> Result<()> {
        self.take_bytes(value.size())
    }

    fn take_name(&mut self, target: &DocumentPath) -> Result<()> {
        match target.steps().last() {
            Some(Step::Name(name)) => self.take_bytes(name.len()),
            _ => Ok(()),
        }
    }

    fn take_bytes(&mut self, bytes: usize) -> Result<()> {
        self.0 = self.0.checked_sub(bytes).ok_or_else(too_large)?;
        Ok(())
    }
}

/// The message about an update that would make an item larger than DynamoDB stores.
pub fn too_large() -> RequestError {
    RequestError::invalid("Item size to update has exceeded the maximum allowed size")
}

impl Source {
    /// The value, if there is room for it. Lists are measured before they are put together.
    fn evaluate_within(&self, item: &Item, room: &mut Room) -> Result<Value> {
        if let Source::ListAppend(lists) = self {
            for list in lists.iter() {
                room.take(&*list.evaluate(item)?)?;
            }
            return Ok(self.evaluate(item)?.into_owned());
        }
        let value = self.evaluate(item)?;
        room.take(&value)?;
        Ok(value.into_owned())
    }

    fn evaluate<'t>(&'t self, item: &'t Item) -> Result<Cow<'t, Value>> {
        Ok(match self {
            Source::Value(value) => Cow::Borrowed(value),
            Source::Path(path) => match path.find_in_tree(item) {
                Some(value) => Cow::Borrowed(value),
                None => {
                    return Err(RequestError::invalid(
                        "The provided expression refers to an attribute that does not exist in \
                         the item",
                    ));
                }
            },
            Source::IfNotExists(path, otherwise) => match path.find_in_tree(item) {
                Some(value) => Cow::Borrowed(value),
                None => otherwise.evaluate(item)?,
            },
            Source::ListAppend(lists) => {
                let [first, second] = &**lists;
                let (first, second) = (first.evaluate(item)?, second.evaluate(item)?);
                let (Value::L(first), Value::L(second)) = (&*first, &*second) else {
                    return Err(wrong_operand());
                };
                Cow::Owned(Value::L(first.iter().chain(second).cloned().collect()))
            }
            Source::Sum(numbers) => arithmetic(numbers, item, Number::checked_add)?,
            Source::Difference(numbers) => arithmetic(numbers, item, Number::checked_sub)?,
        })
    }
}

fn arithmetic<'t>(
    [left, right]: &'t [Source; 2],
    item: &'t Item,
    operator: fn(Number, Number) -> Result<Number, NumberError>,
) -> Result<Cow<'t, Value>> {
    let (left, right) = (left.evaluate(item)?, right.evaluate(item)?);
    match (&*left, &*right) {
        (Value::N(left), Value::N(right)) => Ok(Cow::Owned(Value::N(operator(*left, *right)?))),
        _ => Err(wrong_operand()),
    }
}

fn wrong_operand() -> RequestError {
    RequestError::invalid(WRONG_OPERAND)
}

/// A map or list that the last step of a path leads into.
enum Parent<'t> {
    Map(&'t mut Item),
    List(&'t mut Vec<Value>),
}

/// Whether the last step leads into a map or list of the item that fits it.
fn has_place(target: &DocumentPath, item: &Item) -> bool {
    let mut steps = target.steps().iter();
    let Some(Step::Name(name)) = steps.next() else { return false };
    let mut value = item.get(name);
    for step in steps {
        value = match (step, value) {
            (Step::Name(name), Some(Value::M(map))) => map.get(name),
            (Step::Index(at), Some(Value::L(list))) => list.get(*at),
            _ => return false,
        };
    }
    true
}

fn parent<'t>(target: &DocumentPath, item: &'t mut Item) -> Option<Parent<'t>> {
    let (_, before) = target.steps().split_last()?;
    let mut parent = Parent::Map(item);
    for step in before {
        let value = match (step, parent) {
            (Step::Name(name), Parent::Map(map)) => map.get_mut(name)?,
            (Step::Index(at), Parent::List(list)) => list.get_mut(*at)?,
            _ => return None,
        };
        parent = match value {
            Value::M(map) => Parent::Map(map),
            Value::L(list) => Parent::List(list),
            _ => return None,
        };
    }
    Some(parent)
}

fn put(target: &DocumentPath, item: &mut Item, value: Value) {
    match (parent(target, item), target.steps().last()) {
        (Some(Parent::Map(map)), Some(Step::Name(name))) => {
            map.insert(&**name, value);
        }
        (Some(Parent::List(list)), Some(Step::Index(at))) => match list.get_mut(*at) {
            Some(element) => *element = value,
            None => list.push(value),
        },
        _ => {}
    }
}

fn erase(target: &DocumentPath, item: &mut Item) {
    match (parent(target, item), target.steps().last()) {
        (Some(Parent::Map(map)), Some(Step::Name(name))) => {
            map.remove(name);
        }
        (Some(Parent::List(list)), Some(Step::Index(at))) if *at < list.len() => {
            list.remove(*at);
        }
        _ => {}
    }
}
