//! The `Items` trait: DynamoDB's operations, independent of where the data is.
//!
//! Everything above the database that is not a door for its own protocol (the Dapr door, the
//! catalogue, erasure, the learning platform) holds an [`Items`] and never asks whether it is the
//! embedded [`Database`] or a DynamoDB endpoint far away. The requests are those of
//! [`ops`](crate::ops), so there is one way to say a thing; a remote adapter writes them down in
//! DynamoDB's JSON.
//!
//! Answers are boxed futures. A remote adapter waits for a network, so the port cannot be
//! synchronous; and its users choose the adapter when they start, so it has to be usable as
//! `Arc<dyn Items>`, which return-position `impl Future` is not. The price is one allocation for
//! each request.
//!
//! What the port promises is what DynamoDB promises, and no more:
//! - An item may be read for a while after its time to live is over. (Never from the embedded
//!   database; up to days from Amazon's.) A caller to which that matters looks at the attribute.
//! - A transaction has at most 100 actions and 4 MB, and names no item twice.
//! - A query or scan answers in pages; go on with [`QueryOutput::next`] until there is none.
//! - A batch may leave something undone, and says what.

use std::fmt::Debug;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::database::Database;
use crate::error::{Error, Result};
use crate::ops::{
    BatchGet, BatchGetOutput, BatchWrite, BatchWriteOutput, DeleteItem, GetItem, GetItemOutput,
    PutItem, Query, QueryOutput, Scan, TransactGet, TransactGetOutput, TransactWrite,
    TransactWriteOutput, UpdateItem, WriteOutput,
};
use crate::table::{TableDescription, TableSpec, TtlState};
use crate::value::{Item, ItemRef, Value};

/// What every call of a port returns: a boxed future, because ports are used as trait objects.
pub type PortFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// Tables of items: the embedded database, or a service that speaks DynamoDB's protocol.
///
/// The embedded database does its work on the thread that first polls the answer, mostly in
/// microseconds; after that only the disk is waited for, and no thread waits with it.
pub trait Items: Debug + Send + Sync {
    /// Reads one item by its key.
    fn get<'a>(&'a self, request: &'a GetItem) -> PortFuture<'a, GetItemOutput>;

    /// Writes an item, if the one in its place meets the condition.
    fn put<'a>(&'a self, request: &'a PutItem) -> PortFuture<'a, WriteOutput>;

    /// Changes an item, or makes it, if it meets the condition.
    fn update<'a>(&'a self, request: &'a UpdateItem) -> PortFuture<'a, WriteOutput>;

    /// Deletes an item, if it meets the condition.
    fn delete<'a>(&'a self, request: &'a DeleteItem) -> PortFuture<'a, WriteOutput>;

    /// Reads one page of a partition.
    fn query<'a>(&'a self, request: &'a Query) -> PortFuture<'a, QueryOutput>;

    /// Reads one page of a whole table.
    fn scan<'a>(&'a self, request: &'a Scan) -> PortFuture<'a, QueryOutput>;

    /// Reads up to 100 items, each for itself.
    fn batch_get<'a>(&'a self, request: &'a BatchGet) -> PortFuture<'a, BatchGetOutput>;

    /// Puts and deletes up to 25 items, each for itself.
    fn batch_write<'a>(&'a self, request: &'a BatchWrite) -> PortFuture<'a, BatchWriteOutput>;

    /// Reads up to 100 items as of one moment.
    fn transact_get<'a>(&'a self, request: &'a TransactGet) -> PortFuture<'a, TransactGetOutput>;

    /// Up to 100 writes and checks, all or nothing.
    fn transact_write<'a>(
        &'a self,
        request: &'a TransactWrite,
    ) -> PortFuture<'a, TransactWriteOutput>;

    /// Makes sure that there is a table with this key, whose items expire by the attribute `ttl`.
    /// Makes it if it is missing; refuses one that is different, and changes nothing then.
    fn require_table<'a>(&'a self, spec: &'a TableSpec, ttl: Option<&'a str>)
    -> PortFuture<'a, ()>;

    /// The names of all tables, in order.
    fn tables(&self) -> PortFuture<'_, Vec<String>>;

    /// What a table is like.
    fn describe<'a>(&'a self, table: &'a str) -> PortFuture<'a, TableDescription>;

    /// Answers once every write that began before is committed. Who changes what a policy says and
    /// then settles knows that all writes from then on obey it.
    fn settle(&self) -> PortFuture<'_, ()>;

    /// Deletes items and removes their bytes from every file that can hold them: their index
    /// entries, the records that change streams keep of them, older versions, the log and the
    /// checkpoints included. Streams do not tell of it. Asked for again, also for what is gone
    /// already, it does again what is left to do.
    ///
    /// Only a database in this process can promise this. A remote adapter answers with an error.
    fn purge<'a>(&'a self, request: &'a PurgeItems) -> PortFuture<'a, PurgeReport>;
}

/// What [`Items::purge`] removes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PurgeItems {
    /// Tables with the keys of single items.
    pub items: Vec<(String, Item)>,
    /// Tables with values of the partition key: all items of these partitions.
    pub partitions: Vec<(String, Value)>,
    /// Whether the bytes of everything that nobody can read any more go too: of items and of keys of
    /// Redis that were deleted, changed or expired at any time before, and of indexes and tables
    /// that were dropped. Rewrites all files.
    pub remains: bool,
    /// Which records of change streams go too, of whatever items.
    pub stream_images: Option<StreamImageFilter>,
}

/// Decides for each image in a change stream whether its record is removed.
#[derive(Clone)]
pub struct StreamImageFilter(pub Arc<dyn Fn(&StreamImage<'_>) -> bool + Send + Sync>);

/// An item as a change stream's record shows it.
#[derive(Debug, Clone, Copy)]
pub struct StreamImage<'t> {
    /// The table's name.
    pub table: &'t str,
    /// The partition key's bytes: of a string its text, of a number its decimal digits.
    pub pk: &'t [u8],
    /// The sort key's bytes, if the table has one.
    pub sk: Option<&'t [u8]>,
    /// The item as it was or as it became, or only its key.
    pub image: ItemRef<'t>,
}

impl Debug for StreamImageFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamImageFilter")
    }
}

impl PartialEq for StreamImageFilter {
    fn eq(&self, other: &StreamImageFilter) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What a purge did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// How many stored records were deleted: items, index entries, stream records.
    pub records: u64,
    /// How many stripes were rewritten.
    pub stripes: u64,
    /// How many checkpoints were purged.
    pub checkpoints: u64,
    /// Checkpoints that were made from this database and are not where they were made. If they were
    /// moved and not deleted, they have to be purged where they are.
    pub missing_checkpoints: Vec<PathBuf>,
    /// The database's sequence number of the first delete.
    pub first_seq: u64,
    /// The database's sequence number of the last one.
    pub last_seq: u64,
    /// Bytes of files that were read to rewrite them, without the checkpoints'.
    pub read_bytes: u64,
    /// How long the files took.
    pub took: Duration,
}

impl Items for Database {
    fn get<'a>(&'a self, request: &'a GetItem) -> PortFuture<'a, GetItemOutput> {
        Box::pin(async move { self.get_item(request).await })
    }

    fn put<'a>(&'a self, request: &'a PutItem) -> PortFuture<'a, WriteOutput> {
        Box::pin(async move { self.put_item(request).await })
    }

    fn update<'a>(&'a self, request: &'a UpdateItem) -> PortFuture<'a, WriteOutput> {
        Box::pin(async move { self.update_item(request).await })
    }

    fn delete<'a>(&'a self, request: &'a DeleteItem) -> PortFuture<'a, WriteOutput> {
        Box::pin(async move { self.delete_item(request).await })
    }

    fn query<'a>(&'a self, request: &'a Query) -> PortFuture<'a, QueryOutput> {
        Box::pin(async move { self.query_items(request).await })
    }

    fn scan<'a>(&'a self, request: &'a Scan) -> PortFuture<'a, QueryOutput> {
        Box::pin(async move { self.scan_items(request).await })
    }

    fn batch_get<'a>(&'a self, request: &'a BatchGet) -> PortFuture<'a, BatchGetOutput> {
        Box::pin(async move { Database::batch_get(self, request).await })
    }

    fn batch_write<'a>(&'a self, request: &'a BatchWrite) -> PortFuture<'a, BatchWriteOutput> {
        Box::pin(async move { Database::batch_write(self, request).await })
    }

    fn transact_get<'a>(&'a self, request: &'a TransactGet) -> PortFuture<'a, TransactGetOutput> {
        Box::pin(async move { Database::transact_get(self, request).await })
    }

    fn transact_write<'a>(
        &'a self,
        request: &'a TransactWrite,
    ) -> PortFuture<'a, TransactWriteOutput> {
        Box::pin(async move { Database::transact_write(self, request).await })
    }

    fn require_table<'a>(
        &'a self,
        spec: &'a TableSpec,
        ttl: Option<&'a str>,
    ) -> PortFuture<'a, ()> {
        Box::pin(async move { self.require_now(spec, ttl) })
    }

    fn tables(&self) -> PortFuture<'_, Vec<String>> {
        Box::pin(async move { Ok(self.list_tables(None, usize::MAX).0) })
    }

    fn describe<'a>(&'a self, table: &'a str) -> PortFuture<'a, TableDescription> {
        Box::pin(async move { self.describe_table(table) })
    }

    fn settle(&self) -> PortFuture<'_, ()> {
        Box::pin(async move { self.settle_now() })
    }

    fn purge<'a>(&'a self, request: &'a PurgeItems) -> PortFuture<'a, PurgeReport> {
        Box::pin(async move { self.purge_now(request) })
    }
}

impl Database {
    pub(crate) fn require_now(&self, spec: &TableSpec, ttl: Option<&str>) -> Result<()> {
        let known = match self.describe_table(&spec.name) {
            Err(Error::NotFound(_)) => match self.create_table(spec) {
                // Somebody else was quicker: then theirs is looked at.
                Err(Error::InUse(_)) => self.describe_table(&spec.name)?,
                made => made?,
            },
            known => known?,
        };
        if known.spec.key != spec.key {
            return Err(Error::validation(format!(
                "the table `{}` is there with another key; rename one of the two",
                spec.name
            )));
        }
        let Some(ttl) = ttl else { return Ok(()) };
        match &known.ttl {
            TtlState::On(now) | TtlState::Enabling(now) if now == ttl => Ok(()),
            _ => self.update_ttl(&spec.name, ttl, true),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use crate::table::{KeyAttribute, KeySchema};
    use crate::value::Item;

    use super::*;

    /// A database in memory owes no disk anything, so its answers come with the first poll.
    fn now<T>(mut answer: PortFuture<'_, T>) -> Result<T> {
        match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => panic!("it waits for something"),
        }
    }

    fn spec(key: KeySchema) -> TableSpec {
        TableSpec { name: "state".to_owned(), key, ..TableSpec::default() }
    }

    #[test]
    fn a_table_is_made_once_and_one_with_another_key_is_refused() {
        let db = Database::memory().unwrap().with_durability(crate::Durability::Os);
        let items: Arc<dyn Items> = Arc::new(db.clone());
        let pair =
            spec(KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::string("sk")));
        now(items.require_table(&pair, Some("ttl"))).unwrap();
        let item = Item::new().with("pk", "a").with("sk", "b");
        let put = PutItem { table: "state".to_owned(), item: item.clone(), ..PutItem::default() };
        now(items.put(&put)).unwrap();
        now(items.require_table(&pair, Some("ttl"))).unwrap();
        let get = GetItem { table: "state".to_owned(), key: item.clone(), ..GetItem::default() };
        assert_eq!(now(items.get(&get)).unwrap().item.unwrap().decode().unwrap(), item);
        assert_eq!(now(items.tables()).unwrap(), ["state"]);
        let other = spec(KeySchema::hash(KeyAttribute::string("key")));
        let refused = now(items.require_table(&other, Some("ttl"))).unwrap_err();
        assert!(refused.to_string().contains("another key"), "{refused}");
        let refused = now(items.require_table(&pair, Some("expires"))).unwrap_err();
        assert!(refused.to_string().contains("different AttributeName"), "{refused}");
    }
}
