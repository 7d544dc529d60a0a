//! [`Entity`]: what the four kinds of items have in common. Each item names its kind.

use kstone::{Item, Value};

use crate::{Album, EntityType, Execution, Metrics, Task};
use kstone_base::field::{Invalid, Problem, required};

/// One kind of item of the workflow table.
pub trait Entity: Sized {
    /// Which kind.
    const TYPE: EntityType;

    /// The key of its item.
    fn key(&self) -> Item;

    /// Refuses what must not be stored; the error names the field.
    fn validate(&self) -> Result<(), Invalid>;

    /// What it is ordered by among its kind in one execution.
    #[doc(hidden)]
    fn sort_value(&self) -> u32 {
        0
    }

    /// The attributes that are its own fields.
    #[doc(hidden)]
    fn fields(&self) -> Item;

    /// Reads what [`fields`](Entity::fields) wrote.
    #[doc(hidden)]
    fn from_fields(item: &Item) -> Result<Self, Invalid>;

    /// The whole item, if the entity is valid.
    fn to_item(&self) -> Result<Item, Invalid> {
        self.validate()?;
        Ok(self.fields().into_iter().chain(derived(self)).collect())
    }

    /// The entity in an item. Attributes that it does not know are passed over; one that it does
    /// know and that is missing, of the wrong type, not valid or at odds with another is an error.
    fn from_item(item: &Item) -> Result<Self, Invalid> {
        let found: EntityType = required(item, "entityType")?;
        if found != Self::TYPE {
            return Err(Invalid::value("entityType", Self::TYPE, found));
        }
        let entity = Self::from_fields(item)?;
        entity.validate()?;
        for (name, expected) in derived(&entity) {
            match item.get(&name) {
                Some(found) if *found == expected => {}
                Some(found) => {
                    return Err(Invalid::value(&name, shown(&expected), shown(found)));
                }
                None => return Err(Invalid::new(name, Problem::Missing)),
            }
        }
        Ok(entity)
    }
}

/// The attributes that are derived from the fields: kind, index keys, averages.
fn derived(entity: &impl Entity) -> Item {
    entity.key().with("entityType", type_of(entity)).with("sortValue", entity.sort_value())
}

fn type_of<E: Entity>(_: &E) -> EntityType {
    E::TYPE
}

fn shown(value: &Value) -> String {
    match value {
        Value::S(text) => format!("`{text}`"),
        Value::N(number) => number.to_string(),
        other => format!("of type {}", other.type_name()),
    }
}

/// An item of the workflow table, whichever kind it is.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyEntity {
    /// An execution.
    Execution(Execution),
    /// An album.
    Album(Album),
    /// A task.
    Task(Task),
    /// Metrics.
    Metrics(Metrics),
}

impl AnyEntity {
    /// Reads an item as the kind that it names.
    pub fn from_item(item: &Item) -> Result<Self, Invalid> {
        Ok(match required(item, "entityType")? {
            EntityType::Execution => AnyEntity::Execution(Execution::from_item(item)?),
            EntityType::Album => AnyEntity::Album(Album::from_item(item)?),
            EntityType::Task => AnyEntity::Task(Task::from_item(item)?),
            EntityType::Metrics => AnyEntity::Metrics(Metrics::from_item(item)?),
        })
    }

    /// The whole item, if the entity is valid.
    pub fn to_item(&self) -> Result<Item, Invalid> {
        match self {
            AnyEntity::Execution(entity) => entity.to_item(),
            AnyEntity::Album(entity) => entity.to_item(),
            AnyEntity::Task(entity) => entity.to_item(),
            AnyEntity::Metrics(entity) => entity.to_item(),
        }
    }
}
