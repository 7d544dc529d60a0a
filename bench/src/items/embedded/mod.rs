//! The databases as libraries: one trait, one file for each, and the workloads.

mod dynoxide;
pub mod keystone;
mod workload;

pub use dynoxide::open as open_dynoxide;
pub use workload::{EmbeddedWorkload, Request, Run};

use crate::Outcome;
use crate::items::posts::Post;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a returned put promises.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A loss of power may take it back, for about a second.
    Interval,
    /// It survives a loss of power.
    Sync,
}

/// What a reader wants of an item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One attribute; a database that can leave the rest as it is stored may do so.
    OneAttribute,
    /// Every attribute, as values of the language.
    Decoded,
}

/// A database as the workloads see it. Requests are made before the clock starts and given away,
/// because that is how a peer's calls take them.
pub trait Embedded: Sized {
    /// A request for one item.
    type Get;
    /// A request to write one.
    type Put;
    /// A request for the 20 of a day.
    type Query;

    /// Opens the database in `dir`, or in memory, with an empty table if it is new.
    fn open(dir: Option<&Path>, durability: Durability) -> Outcome<Self>;

    /// A request for the post `id`.
    fn prepare_get(id: u32) -> Self::Get;
    /// A request to write `post`.
    fn prepare_put(post: &Post) -> Self::Put;
    /// A request for all posts of the day of post `id`.
    fn prepare_query(id: u32) -> Self::Query;

    /// Writes an item.
    fn put(&self, put: Self::Put) -> Outcome<()>;
    /// Writes many as fast as the database can, before anything is timed.
    fn load(&self, posts: &[Post]) -> Outcome<()>;
    /// Lends the item's `text` to `read`; `None` if there is no such item.
    fn get<R>(
        &self,
        get: Self::Get,
        shape: Shape,
        read: impl FnOnce(&str) -> R,
    ) -> Outcome<Option<R>>;
    /// Lends the `text` of each item found, in order.
    fn query(&self, query: Self::Query, shape: Shape, visit: impl FnMut(&str)) -> Outcome<()>;

    /// The whole item in DynamoDB's JSON, for the checks that are not timed.
    fn item(&self, id: u32) -> Outcome<Option<serde_json::Value>>;
}

/// Names a database on the command line and in results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmbeddedName {
    /// Ours.
    Keystone,
    /// Dynoxide as it opens: SQLite with a log, synced at every commit.
    Dynoxide,
    /// Dynoxide told to leave syncing to SQLite's checkpoints.
    DynoxideUnsynced,
}

impl EmbeddedName {
    /// The name that is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            EmbeddedName::Keystone => "keystone",
            EmbeddedName::Dynoxide => "dynoxide",
            EmbeddedName::DynoxideUnsynced => "dynoxide-unsynced",
        }
    }

    /// Runs `task` on the database's type, so that its calls are direct and can be inlined.
    pub fn dispatch<T: Task>(self, task: T) -> T::Output {
        match self {
            EmbeddedName::Keystone => task.run::<keystone::Keystone>(),
            EmbeddedName::Dynoxide => task.run::<dynoxide::Dynoxide<true>>(),
            EmbeddedName::DynoxideUnsynced => task.run::<dynoxide::Dynoxide<false>>(),
        }
    }
}

/// Something to do with a database whose type is known only from its name.
pub trait Task {
    /// What it gives back.
    type Output;
    /// Does it.
    fn run<D: Embedded>(self) -> Self::Output;
}
