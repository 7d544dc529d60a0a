//! Document paths with real names in them.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::value::{Item, ItemRef, Value, ValueRef};

/// How many steps a path can have.
pub(super) const STEPS_MAX: usize = 32;

/// Where something is in an item: an attribute's name, then names in maps and places in lists.
/// Prints as DynamoDB shows it in its messages: `[a, [0], b]`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DocumentPath {
    steps: Arc<[Step]>,
}

/// One step of a [`DocumentPath`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// An attribute of the item, or of a map in it.
    Name(Arc<str>),
    /// An element of a list.
    Index(usize),
}

/// How two paths get in each other's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clash {
    /// One is the other, or leads to it.
    Overlap,
    /// One takes for a map what the other takes for a list.
    Conflict,
}

impl DocumentPath {
    /// A path of one attribute's name.
    pub fn attribute(name: impl Into<Arc<str>>) -> Self {
        DocumentPath { steps: Arc::new([Step::Name(name.into())]) }
    }

    /// `steps` begins with a name.
    pub(super) fn new(steps: Vec<Step>) -> Self {
        debug_assert!(matches!(steps.first(), Some(Step::Name(_))));
        DocumentPath { steps: steps.into() }
    }

    /// The name of the attribute that it is in.
    pub fn attribute_name(&self) -> &str {
        match self.steps.first() {
            Some(Step::Name(name)) => name,
            _ => "",
        }
    }

    /// Whether it leads into an attribute.
    pub fn is_nested(&self) -> bool {
        self.steps.len() > 1
    }

    /// All steps.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What the item has there.
    pub fn find<'a>(&self, item: ItemRef<'a>) -> Option<ValueRef<'a>> {
        self.find_by(|name| item.get(name))
    }

    /// The same, with another way to find the attribute that it is in.
    pub(super) fn find_by<'a>(
        &self,
        attribute: impl FnOnce(&str) -> Option<ValueRef<'a>>,
    ) -> Option<ValueRef<'a>> {
        let (first, rest) = self.steps.split_first()?;
        let Step::Name(name) = first else { return None };
        let mut value = attribute(name)?;
        for step in rest {
            value = match (step, value) {
                (Step::Name(name), ValueRef::M(map)) => map.get(name)?,
                (Step::Index(at), ValueRef::L(list)) => list.get(*at)?,
                _ => return None,
            };
        }
        Some(value)
    }

    /// What the item in its tree form has there.
    pub fn find_in_tree<'t>(&self, item: &'t Item) -> Option<&'t Value> {
        let (first, rest) = self.steps.split_first()?;
        let Step::Name(name) = first else { return None };
        let mut value = item.get(name)?;
        for step in rest {
            value = match (step, value) {
                (Step::Name(name), Value::M(map)) => map.get(name)?,
                (Step::Index(at), Value::L(list)) => list.get(*at)?,
                _ => return None,
            };
        }
        Some(value)
    }

    pub(super) fn clash(&self, other: &DocumentPath) -> Option<Clash> {
        for (ours, theirs) in self.steps.iter().zip(other.steps.iter()) {
            match (ours, theirs) {
                (Step::Name(_), Step::Index(_)) | (Step::Index(_), Step::Name(_)) => {
                    return Some(Clash::Conflict);
                }
                _ if ours.cmp(theirs) != Ordering::Equal => return None,
                _ => {}
            }
        }
        Some(Clash::Overlap)
    }
}

/// Refuses paths that get in each other's way. DynamoDB looks from the last one to the first.
pub(super) fn check_apart(path: &DocumentPath, later: &[DocumentPath]) -> Result<(), String> {
    for other in later {
        if let Some(clash) = path.clash(other) {
            let how = match clash {
                Clash::Overlap => "overlap",
                Clash::Conflict => "conflict",
            };
            return Err(format!(
                "Two document paths {how} with each other; must remove or rewrite one of these \
                 paths; path one: {path}, path two: {other}"
            ));
        }
    }
    Ok(())
}

impl fmt::Display for DocumentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (at, step) in self.steps.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            match step {
                Step::Name(name) => write!(f, "{comma}{name}")?,
                Step::Index(index) => write!(f, "{comma}[{index}]")?,
            }
        }
        f.write_str("]")
    }
}

impl fmt::Debug for DocumentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
