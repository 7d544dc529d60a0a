//! The port to items on the embedded database.

use kstone_ports::PortFuture;
use kstone_ports::capabilities::{Capabilities, Capability};
use kstone_ports::items::{
    BatchGet, BatchGetOutput, BatchWrite, BatchWriteOutput, DeleteItem, GetItem, GetItemOutput,
    Items, PurgeItems, PurgeReport, PutItem, Query, QueryOutput, Scan, TableDescription, TableSpec,
    TransactGet, TransactGetOutput, TransactWrite, TransactWriteOutput, TtlState, UpdateItem,
    WriteOutput,
};

use crate::database::Database;
use crate::error::{Error, Result};

impl Items for Database {
    fn capabilities(&self) -> Capabilities {
        Capabilities::of(&[
            Capability::PartitionTransactions,
            Capability::Transactions,
            Capability::ConsistentIndexes,
            Capability::ExactExpiry,
            Capability::Purge,
        ])
    }

    fn name(&self) -> String {
        "this database".to_owned()
    }

    fn get<'a>(&'a self, request: &'a GetItem) -> PortFuture<'a, GetItemOutput> {
        Box::pin(async move { self.get_item(request).read().await })
    }

    fn put<'a>(&'a self, request: &'a PutItem) -> PortFuture<'a, WriteOutput> {
        Box::pin(async move { self.put_item(request).written().await })
    }

    fn update<'a>(&'a self, request: &'a UpdateItem) -> PortFuture<'a, WriteOutput> {
        Box::pin(async move { self.update_item(request).written().await })
    }

    fn delete<'a>(&'a self, request: &'a DeleteItem) -> PortFuture<'a, WriteOutput> {
        Box::pin(async move { self.delete_item(request).written().await })
    }

    fn query<'a>(&'a self, request: &'a Query) -> PortFuture<'a, QueryOutput> {
        Box::pin(async move { self.query_items(request).read().await })
    }

    fn scan<'a>(&'a self, request: &'a Scan) -> PortFuture<'a, QueryOutput> {
        Box::pin(async move { self.scan_items(request).read().await })
    }

    fn batch_get<'a>(&'a self, request: &'a BatchGet) -> PortFuture<'a, BatchGetOutput> {
        Box::pin(async move { Database::batch_get(self, request).read().await })
    }

    fn batch_write<'a>(&'a self, request: &'a BatchWrite) -> PortFuture<'a, BatchWriteOutput> {
        Box::pin(async move { Database::batch_write(self, request).written().await })
    }

    fn transact_get<'a>(&'a self, request: &'a TransactGet) -> PortFuture<'a, TransactGetOutput> {
        Box::pin(async move { Database::transact_get(self, request).read().await })
    }

    fn transact_write<'a>(
        &'a self,
        request: &'a TransactWrite,
    ) -> PortFuture<'a, TransactWriteOutput> {
        Box::pin(async move { Database::transact_write(self, request).written().await })
    }

    fn require_table<'a>(
        &'a self,
        spec: &'a TableSpec,
        ttl: Option<&'a str>,
    ) -> PortFuture<'a, ()> {
        Box::pin(async move { Ok(self.require_now(spec, ttl)?) })
    }

    fn tables(&self) -> PortFuture<'_, Vec<String>> {
        Box::pin(async move { Ok(self.list_tables(None, usize::MAX).0) })
    }

    fn describe<'a>(&'a self, table: &'a str) -> PortFuture<'a, TableDescription> {
        Box::pin(async move { Ok(self.describe_table(table)?) })
    }

    fn settle(&self) -> PortFuture<'_, ()> {
        Box::pin(async move { Ok(self.settle_now()?) })
    }

    fn purge<'a>(&'a self, request: &'a PurgeItems) -> PortFuture<'a, PurgeReport> {
        Box::pin(async move { Ok(self.purge_now(request)?) })
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
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use crate::table::{KeyAttribute, KeySchema};
    use crate::value::Item;

    use super::*;

    /// A database in memory owes no disk anything, so its answers come with the first poll.
    fn now<T>(mut answer: PortFuture<'_, T>) -> kstone_ports::Result<T> {
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
