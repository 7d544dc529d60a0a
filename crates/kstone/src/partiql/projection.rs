//! The projection of a `SELECT`. Unlike a projection expression, it lifts what a path
//! leads to up to the top: `SELECT a.b` gives an attribute `b`.

use crate::error::{Error, Result};
use crate::partiql::ast::{Expr, ExprKind, Path, Step};
use crate::value::{EncodedValue, Item, ItemBuilder, ItemBytes, ItemRef, Value, ValueRef};

/// The attributes to return, sorted by the names they get.
#[derive(Debug)]
pub(super) struct Projection {
    columns: Vec<Column>,
}

#[derive(Debug)]
struct Column {
    name: String,
    path: Path,
    /// The last steps, which stay in the value: all after the first into a list.
    kept: usize,
}

impl Projection {
    pub fn new(paths: &[Expr]) -> Result<Self> {
        let mut columns = Vec::with_capacity(paths.len());
        for expr in paths {
            match &expr.kind {
                ExprKind::Path(path) => columns.push(Column::new(path)),
                ExprKind::Everything(_) => {
                    return Err(Error::validation(
                        "Changing item's hierarchy while reading isn't supported",
                    ));
                }
                _ => {
                    return Err(Error::validation(format!(
                        "Unexpected path component at {}",
                        expr.at
                    )));
                }
            }
        }
        columns.sort_by(|a: &Column, b: &Column| a.name.cmp(&b.name));
        match columns.windows(2).find(|pair| pair[0].name == pair[1].name) {
            Some(pair) => Err(Error::validation(format!(
                "Duplicate identifiers in select clause: {}",
                pair[0].name
            ))),
            None => Ok(Projection { columns }),
        }
    }

    /// The attributes of the item that it looks at.
    pub fn top_level_names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.path.root.as_str())
    }

    pub fn apply(&self, item: ItemRef<'_>) -> ItemBytes {
        let mut out = ItemBuilder::new();
        for column in &self.columns {
            let Some(value) = find(item, &column.path) else { continue };
            match column.kept {
                0 => out.push(&column.name, value),
                kept => {
                    if let Some(wrapped) = column.wrapped(value, kept) {
                        out.push(&column.name, wrapped.as_ref());
                    }
                }
            }
        }
        out.finish()
    }
}

impl Column {
    fn new(path: &Path) -> Self {
        let steps = &path.steps;
        let lifted = match steps.iter().position(|step| matches!(step, Step::Index(_))) {
            None => steps.len(),
            Some(first) => {
                let more = steps.iter().skip(first);
                first + more.take_while(|step| matches!(step, Step::Index(_))).count()
            }
        };
        let mut name = path.root.clone();
        for step in steps.iter().take(lifted) {
            match step {
                Step::Name(step) => name.clone_from(step),
                Step::Index(index) => name = format!("{name}[{index}]"),
            }
        }
        Column { name, path: path.clone(), kept: steps.len() - lifted }
    }

    /// A value inside the maps and lists of the steps that are kept.
    fn wrapped(&self, value: ValueRef<'_>, kept: usize) -> Option<EncodedValue> {
        let mut value = value.decode().ok()?;
        for step in self.path.steps.iter().rev().take(kept) {
            value = match step {
                Step::Name(name) => Value::M(Item::new().with(name.clone(), value)),
                Step::Index(_) => Value::L(vec![value]),
            };
        }
        Some(EncodedValue::new(&value))
    }
}

fn find<'a>(item: ItemRef<'a>, path: &Path) -> Option<ValueRef<'a>> {
    let mut value = item.get(&path.root)?;
    for step in &path.steps {
        value = match (step, value) {
            (Step::Name(name), ValueRef::M(map)) => map.get(name)?,
            (Step::Index(index), ValueRef::L(list)) => list.get(*index as usize)?,
            _ => return None,
        };
    }
    Some(value)
}
