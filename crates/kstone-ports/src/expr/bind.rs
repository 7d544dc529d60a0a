//! Puts the real names and values into the expressions of one request, and checks what can be
//! checked before an item is seen, in DynamoDB's order and words.

use std::collections::HashMap;
use std::sync::Arc;

use crate::expr::ast::{Path, Segment};
use crate::expr::cache::ExpressionCache;
use crate::expr::condition::BoundCondition;
use crate::expr::key_condition::BoundKeyCondition;
use crate::expr::parse::too_many_operators;
use crate::expr::path::{DocumentPath, STEPS_MAX, Step};
use crate::expr::projection::BoundProjection;
use crate::expr::token::{EXPRESSION_BYTES_MAX, TEXT_BYTES_MAX};
use crate::expr::update::BoundUpdate;
use crate::items::Placeholders;
use crate::request_error::{RequestError, Result};
use crate::value::{EncodedValue, Item, Value};

/// How many operators and functions an expression can have.
const OPERATORS_MAX: usize = 300;

/// The longest placeholder, with its sign.
const PLACEHOLDER_BYTES_MAX: usize = 255;

/// The longest attribute name.
const NAME_BYTES_MAX: usize = Item::NAME_BYTES_MAX;

/// What all names and values of a request may take together, with their placeholders.
const PLACEHOLDERS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Up to this many placeholders are looked through one by one: it takes less than to sort them.
const SEARCHED_MAX: usize = 16;

/// Which parameter of a request an expression is: what the messages call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `ConditionExpression`
    Condition,
    /// `FilterExpression`
    Filter,
    /// `KeyConditionExpression`
    KeyCondition,
    /// `ProjectionExpression`
    Projection,
    /// `UpdateExpression`
    Update,
}

impl Kind {
    /// The parameter's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Condition => "ConditionExpression",
            Kind::Filter => "FilterExpression",
            Kind::KeyCondition => "KeyConditionExpression",
            Kind::Projection => "ProjectionExpression",
            Kind::Update => "UpdateExpression",
        }
    }

    fn invalid(self, message: String) -> RequestError {
        RequestError::Invalid(format!("Invalid {}: {message}", self.as_str()))
    }
}

/// Binds the expressions of one request. DynamoDB reads them in this order: the update, the
/// condition, the key condition, the filter, the projection. [`finish`](Binder::finish) comes last.
#[derive(Debug)]
pub struct Binder<'a> {
    cache: &'a ExpressionCache,
    placeholders: Bindings<'a>,
    text_bytes_max: usize,
    /// What is wrong with a key condition that is a good condition otherwise. DynamoDB tells it
    /// only after it has read all expressions.
    key_condition_error: Option<String>,
}

impl<'a> Binder<'a> {
    /// Checks the placeholders themselves.
    pub fn new(cache: &'a ExpressionCache, placeholders: &'a Placeholders) -> Result<Self> {
        let names = placeholders.names.as_deref();
        let values = placeholders.values.as_deref();
        check_keys("ExpressionAttributeNames", '#', names)?;
        for (placeholder, name) in names.unwrap_or_default() {
            check_name(placeholder, name)?;
        }
        check_keys("ExpressionAttributeValues", ':', values)?;
        check_bytes(names.unwrap_or_default(), values.unwrap_or_default())?;
        for (_, value) in values.unwrap_or_default() {
            value.check_sets()?;
        }
        let placeholders = Bindings {
            names: Entries::new(names.unwrap_or_default()),
            values: Entries::new(values.unwrap_or_default()),
        };
        let text_bytes_max = EXPRESSION_BYTES_MAX;
        Ok(Binder { cache, placeholders, text_bytes_max, key_condition_error: None })
    }

    /// Takes texts that are longer than a request's: those that PartiQL statements stand for, which
    /// have a limit of their own.
    #[must_use]
    pub fn for_statement(self) -> Self {
        Binder { text_bytes_max: TEXT_BYTES_MAX, ..self }
    }

    /// Binds a condition or a filter.
    pub fn condition(&mut self, kind: Kind, text: &str) -> Result<BoundCondition> {
        self.in_kind(kind, |binder| {
            let tree = binder.cache.condition(text, binder.text_bytes_max)?;
            let bound = BoundCondition::bind(&tree, &mut binder.placeholders)?;
            check_operators(tree.operators())?;
            Ok(bound)
        })
    }

    /// Binds a key condition. What is wrong with it only because it is one, such as an `OR`, is
    /// told by [`finish`](Binder::finish); its clauses must not be used before that.
    pub fn key_condition(&mut self, text: &str) -> Result<BoundKeyCondition> {
        self.in_kind(Kind::KeyCondition, |binder| {
            let tree = binder.cache.condition(text, binder.text_bytes_max)?;
            // As a condition first, for the errors that all conditions have.
            BoundCondition::bind(&tree, &mut binder.placeholders)?;
            check_operators(tree.operators())?;
            match BoundKeyCondition::bind(&tree, &mut binder.placeholders) {
                Ok(bound) => Ok(bound),
                Err(message) => {
                    binder.key_condition_error = Some(message);
                    Ok(BoundKeyCondition { clauses: Vec::new() })
                }
            }
        })
    }

    /// Binds an update.
    pub fn update(&mut self, text: &str) -> Result<BoundUpdate> {
        self.in_kind(Kind::Update, |binder| {
            let tree = binder.cache.update(text, binder.text_bytes_max)?;
            let bound = BoundUpdate::bind(&tree, &mut binder.placeholders)?;
            check_operators(tree.operators())?;
            Ok(bound)
        })
    }

    /// Binds a projection.
    pub fn projection(&mut self, text: &str) -> Result<BoundProjection> {
        self.in_kind(Kind::Projection, |binder| {
            let tree = binder.cache.projection(text, binder.text_bytes_max)?;
            BoundProjection::bind(&tree, &mut binder.placeholders)
        })
    }

    /// Refuses placeholders that no expression used.
    pub fn finish(self) -> Result<()> {
        let unused = |parameter: &str, keys: Vec<&str>| match keys.is_empty() {
            true => Ok(()),
            false => Err(RequestError::Invalid(format!(
                "Value provided in {parameter} unused in expressions: keys: {{{}}}",
                keys.join(", ")
            ))),
        };
        unused("ExpressionAttributeNames", self.placeholders.names.left())?;
        unused("ExpressionAttributeValues", self.placeholders.values.left())?;
        self.key_condition_error.map_or(Ok(()), |message| Err(RequestError::Invalid(message)))
    }

    fn in_kind<T>(
        &mut self,
        kind: Kind,
        bind: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T> {
        bind(self).map_err(|message| kind.invalid(message))
    }
}

/// What the placeholders stand for, and which of them were used. However often an expression names
/// one, its name or value is made ready once and shared.
#[derive(Debug)]
pub(super) struct Bindings<'a> {
    names: Entries<'a, String, Arc<str>>,
    values: Entries<'a, Value, Shared>,
}

/// A value as bound forms have it.
#[derive(Debug, Default)]
struct Shared {
    encoded: Option<EncodedValue>,
    tree: Option<Arc<Value>>,
}

impl<'a> Bindings<'a> {
    /// The path with its real names.
    pub(super) fn path(&mut self, path: &Path) -> Result<DocumentPath, String> {
        let mut steps = Vec::with_capacity(path.segments.len());
        for segment in &path.segments {
            steps.push(match segment {
                Segment::Name(name) => Step::Name(name.as_str().into()),
                Segment::Index(index) => Step::Index(*index as usize),
                Segment::Placeholder(key) => match self.names.find(key) {
                    Some(entry) => {
                        let name = entry.ready.get_or_insert_with(|| entry.target.as_str().into());
                        Step::Name(Arc::clone(name))
                    }
                    None => {
                        return Err(format!(
                            "An expression attribute name used in the document path is not \
                             defined; attribute name: {key}"
                        ));
                    }
                },
            });
        }
        if steps.len() > STEPS_MAX {
            return Err(format!(
                "The document path has too many nesting levels; nesting levels: {}",
                steps.len()
            ));
        }
        Ok(DocumentPath::new(steps))
    }

    /// The value.
    pub(super) fn value(&mut self, key: &str) -> Result<&'a Value, String> {
        Ok(self.entry(key)?.target)
    }

    /// The value in its compact form.
    pub(super) fn encoded(&mut self, key: &str) -> Result<EncodedValue, String> {
        let Entry { target, ready, .. } = self.entry(key)?;
        let encoded = &mut ready.get_or_insert_default().encoded;
        Ok(encoded.get_or_insert_with(|| EncodedValue::new(target)).clone())
    }

    /// The value in its tree form.
    pub(super) fn tree(&mut self, key: &str) -> Result<Arc<Value>, String> {
        let Entry { target, ready, .. } = self.entry(key)?;
        let tree = &mut ready.get_or_insert_default().tree;
        Ok(Arc::clone(tree.get_or_insert_with(|| Arc::new(target.clone()))))
    }

    fn entry(&mut self, key: &str) -> Result<&mut Entry<'a, Value, Shared>, String> {
        self.values.find(key).ok_or_else(|| {
            format!(
                "An expression attribute value used in expression is not defined; attribute \
                 value: {key}"
            )
        })
    }
}

/// Placeholders in the order of the request.
#[derive(Debug)]
struct Entries<'a, T, R> {
    entries: Vec<Entry<'a, T, R>>,
    /// Where each is, if there are many.
    places: HashMap<&'a str, usize>,
}

#[derive(Debug)]
struct Entry<'a, T, R> {
    key: &'a str,
    target: &'a T,
    used: bool,
    /// Made when it is first used.
    ready: Option<R>,
}

impl<'a, T, R> Entries<'a, T, R> {
    fn new(given: &'a [(String, T)]) -> Self {
        let entry =
            |(key, target): &'a (String, T)| Entry { key, target, used: false, ready: None };
        let mut places = HashMap::new();
        if given.len() > SEARCHED_MAX {
            // Backwards, so that the first of a name is the one that stays.
            places.extend(given.iter().enumerate().rev().map(|(at, (key, _))| (key.as_str(), at)));
        }
        Entries { entries: given.iter().map(entry).collect(), places }
    }

    fn find(&mut self, key: &str) -> Option<&mut Entry<'a, T, R>> {
        let at = match self.places.is_empty() {
            true => self.entries.iter().position(|entry| entry.key == key),
            false => self.places.get(key).copied(),
        };
        let entry = self.entries.get_mut(at?)?;
        entry.used = true;
        Some(entry)
    }

    fn left(&self) -> Vec<&'a str> {
        self.entries.iter().filter(|entry| !entry.used).map(|entry| entry.key).collect()
    }
}

/// Refuses more than DynamoDB takes in one request.
fn check_bytes(names: &[(String, String)], values: &[(String, Value)]) -> Result<()> {
    let names: usize = names.iter().map(|(key, name)| key.len() + name.len()).sum();
    let values: usize = values.iter().map(|(key, value)| key.len() + value.size()).sum();
    let what = if names > PLACEHOLDERS_BYTES_MAX {
        "ExpressionAttributeNames"
    } else if values > PLACEHOLDERS_BYTES_MAX {
        "ExpressionAttributeValues"
    } else if names + values > PLACEHOLDERS_BYTES_MAX {
        "Combined size of ExpressionAttributeNames and ExpressionAttributeValues"
    } else {
        return Ok(());
    };
    Err(RequestError::Invalid(format!("{what} exceeds max size")))
}

fn check_operators(count: usize) -> Result<(), String> {
    match count > OPERATORS_MAX {
        true => Err(too_many_operators(count)),
        false => Ok(()),
    }
}

fn check_keys<T>(parameter: &str, sign: char, entries: Option<&[(String, T)]>) -> Result<()> {
    let Some(entries) = entries else { return Ok(()) };
    if entries.is_empty() {
        return Err(RequestError::Invalid(format!("{parameter} must not be empty")));
    }
    for (key, _) in entries {
        let problem = if key.is_empty() {
            "The expression attribute map contains an empty key;".to_owned()
        } else if key.len() > PLACEHOLDER_BYTES_MAX {
            format!(
                "The expression attribute map contains a key that is too long; size of key: {}",
                key.len()
            )
        } else if !is_placeholder(key, sign) {
            format!("Syntax error; key: \"{key}\"")
        } else {
            continue;
        };
        return Err(RequestError::Invalid(format!("{parameter} contains invalid key: {problem}")));
    }
    Ok(())
}

fn is_placeholder(key: &str, sign: char) -> bool {
    key.strip_prefix(sign).is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

fn check_name(placeholder: &str, name: &str) -> Result<()> {
    let problem = if name.is_empty() {
        "Empty attribute name"
    } else if name.len() > NAME_BYTES_MAX {
        "Attribute name is too large, must be less than 65536 bytes"
    } else {
        return Ok(());
    };
    Err(RequestError::Invalid(format!(
        "ExpressionAttributeNames contains invalid value: {problem} for key {placeholder}"
    )))
}
