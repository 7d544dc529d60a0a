//! Projections: the parts of an item to return.

use std::sync::Arc;

use crate::expr::ast::Projection;
use crate::expr::bind::Bindings;
use crate::expr::path::{DocumentPath, Step, check_apart};
use crate::request_error::RequestError;
use crate::value::{
    EncodedValue, ItemBuilder, ItemBytes, ItemRef, ListBuilder, ValueRef, check_name,
};

/// Which parts of an item to return. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct BoundProjection {
    paths: Arc<[DocumentPath]>,
    /// By name, ascending, as items have them.
    attributes: Arc<[(Arc<str>, Part)]>,
}

/// What to take of a value.
#[derive(Debug, Clone)]
enum Part {
    Whole,
    /// Of a map these attributes, ascending.
    Attributes(Vec<(Arc<str>, Part)>),
    /// Of a list these elements, ascending.
    Elements(Vec<(usize, Part)>),
}

impl BoundProjection {
    pub(super) fn bind(tree: &Projection, bindings: &mut Bindings<'_>) -> Result<Self, String> {
        // From the last to the first, as DynamoDB does: it shows in its messages.
        let mut paths = Vec::with_capacity(tree.paths.len());
        for path in tree.paths.iter().rev() {
            let path = bindings.path(path)?;
            check_apart(&path, &paths)?;
            paths.push(path);
        }
        paths.reverse();
        Ok(BoundProjection::of_paths(paths))
    }

    /// `AttributesToGet`: whole attributes.
    pub fn from_attributes(names: &[String]) -> Result<BoundProjection, RequestError> {
        names.iter().try_for_each(|name| check_name(name))?;
        let paths = names.iter().map(|name| DocumentPath::attribute(name.as_str()));
        Ok(BoundProjection::of_paths(paths.collect()))
    }

    /// No path clashes with another, or is at most the same.
    pub(super) fn of_paths(paths: Vec<DocumentPath>) -> BoundProjection {
        let mut sorted: Vec<&[Step]> = paths.iter().map(DocumentPath::steps).collect();
        sorted.sort_unstable();
        let attributes = match part(&sorted) {
            Part::Attributes(attributes) => attributes,
            Part::Whole | Part::Elements(_) => Vec::new(),
        };
        BoundProjection { paths: paths.into(), attributes: attributes.into() }
    }

    /// The parts of the item that it names, as far as they are there. An element keeps its place
    /// relative to the others, not its index.
    pub fn apply(&self, item: ItemRef<'_>) -> ItemBytes {
        attributes_of(&self.attributes, item).finish()
    }

    /// The paths, in the order of the text.
    pub fn paths(&self) -> impl Iterator<Item = &DocumentPath> {
        self.paths.iter()
    }

    /// The names of the attributes that it takes from; one may come several times.
    pub fn top_level_names(&self) -> impl Iterator<Item = &str> {
        self.paths().map(DocumentPath::attribute_name)
    }
}

/// The part that these paths take together, ascending.
fn part(mut paths: &[&[Step]]) -> Part {
    let mut attributes = Vec::new();
    let mut elements = Vec::new();
    while let Some(first) = paths.first() {
        let Some(step) = first.first() else { return Part::Whole };
        let count = paths.iter().take_while(|path| path.first() == Some(step)).count();
        let (same, others) = paths.split_at(count);
        let rest: Vec<&[Step]> = same.iter().map(|path| &path[1..]).collect();
        match step {
            Step::Name(name) => attributes.push((name.clone(), part(&rest))),
            Step::Index(index) => elements.push((*index, part(&rest))),
        }
        paths = others;
    }
    if elements.is_empty() { Part::Attributes(attributes) } else { Part::Elements(elements) }
}

/// Both ascend by name, so one pass over both finds what they share, however many there are.
fn attributes_of(attributes: &[(Arc<str>, Part)], map: ItemRef<'_>) -> ItemBuilder {
    let mut builder = ItemBuilder::new();
    let mut wanted = attributes.iter().peekable();
    for (have, value) in map.iter() {
        while wanted.next_if(|(name, _)| **name < *have).is_some() {}
        let Some((name, part)) = wanted.peek() else { break };
        if **name != *have {
            continue;
        }
        match part {
            Part::Whole => builder.push(name, value),
            _ => {
                if let Some(value) = part_of(part, value) {
                    builder.push(name, value.as_ref());
                }
            }
        }
    }
    builder
}

/// A map or list with only the wanted parts; nothing if it has none of them.
fn part_of(part: &Part, value: ValueRef<'_>) -> Option<EncodedValue> {
    match (part, value) {
        (Part::Whole, value) => Some(value.into()),
        (Part::Attributes(attributes), ValueRef::M(map)) => {
            let builder = attributes_of(attributes, map);
            (!builder.is_empty()).then(|| builder.finish_map())
        }
        (Part::Elements(elements), ValueRef::L(list)) => {
            let mut builder = ListBuilder::new();
            for (index, part) in elements {
                let Some(element) = list.get(*index) else { break };
                if let Some(element) = part_of(part, element) {
                    builder.push(element.as_ref());
                }
            }
            (!builder.is_empty()).then(|| builder.finish())
        }
        _ => None,
    }
}
