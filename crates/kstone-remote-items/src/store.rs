//! [`RemoteItems`].

use std::fmt;

use aws_sdk_dynamodb::Client;
use kstone_ports::capabilities::{Capabilities, Capability};
use kstone_ports::items::{
    BatchGet, BatchGetOutput, BatchWrite, BatchWriteOutput, DeleteItem, GetItem, GetItemOutput,
    Items, PurgeItems, PurgeReport, PutItem, Query, QueryOutput, Scan, TableDescription, TableSpec,
    TransactGet, TransactGetOutput, TransactWrite, TransactWriteOutput, UpdateItem, WriteOutput,
};
use kstone_ports::{Error, PortFuture, Result};

use crate::attempts::Attempts;
use crate::options::RemoteItemsOptions;

/// Tables of items in a store that speaks DynamoDB's protocol. A handle: clones share connections.
#[derive(Clone)]
pub struct RemoteItems {
    pub(crate) client: Client,
    pub(crate) attempts: Attempts,
    pub(crate) options: RemoteItemsOptions,
}

impl RemoteItems {
    /// A store, which is not asked anything yet: whether it is there shows with the first call.
    ///
    /// # Errors
    /// [`Error::Invalid`], when the address is none that this program can speak to.
    pub fn new(options: RemoteItemsOptions) -> Result<RemoteItems> {
        options.check()?;
        let attempts = Attempts {
            max: options.attempts,
            pause: options.pause,
            pause_max: options.pause_max,
            random: options.random.clone(),
        };
        Ok(RemoteItems { client: options.client(), attempts, options })
    }

    /// A token that no other transaction has.
    pub(crate) fn token(&self) -> String {
        let random = &self.options.random;
        format!("{:016x}{:016x}", random.next_u64(), random.next_u64())
    }
}

impl fmt::Debug for RemoteItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteItems").field(&self.options.url).finish()
    }
}

impl Items for RemoteItems {
    fn capabilities(&self) -> Capabilities {
        match self.options.transactions {
            true => {
                Capabilities::of(&[Capability::PartitionTransactions, Capability::Transactions])
            }
            false => Capabilities::default(),
        }
    }

    fn name(&self) -> String {
        self.options.url.clone()
    }

    fn get<'a>(&'a self, request: &'a GetItem) -> PortFuture<'a, GetItemOutput> {
        Box::pin(self.get_item(request))
    }

    fn put<'a>(&'a self, request: &'a PutItem) -> PortFuture<'a, WriteOutput> {
        Box::pin(self.put_item(request))
    }

    fn update<'a>(&'a self, request: &'a UpdateItem) -> PortFuture<'a, WriteOutput> {
        Box::pin(self.update_item(request))
    }

    fn delete<'a>(&'a self, request: &'a DeleteItem) -> PortFuture<'a, WriteOutput> {
        Box::pin(self.delete_item(request))
    }

    fn query<'a>(&'a self, request: &'a Query) -> PortFuture<'a, QueryOutput> {
        Box::pin(self.query_page(request))
    }

    fn scan<'a>(&'a self, request: &'a Scan) -> PortFuture<'a, QueryOutput> {
        Box::pin(self.scan_page(request))
    }

    fn batch_get<'a>(&'a self, request: &'a BatchGet) -> PortFuture<'a, BatchGetOutput> {
        Box::pin(self.get_batch(request))
    }

    fn batch_write<'a>(&'a self, request: &'a BatchWrite) -> PortFuture<'a, BatchWriteOutput> {
        Box::pin(self.write_batch(request))
    }

    fn transact_get<'a>(&'a self, request: &'a TransactGet) -> PortFuture<'a, TransactGetOutput> {
        Box::pin(self.get_together(request))
    }

    fn transact_write<'a>(
        &'a self,
        request: &'a TransactWrite,
    ) -> PortFuture<'a, TransactWriteOutput> {
        Box::pin(self.write_together(request))
    }

    fn require_table<'a>(
        &'a self,
        spec: &'a TableSpec,
        ttl: Option<&'a str>,
    ) -> PortFuture<'a, ()> {
        Box::pin(self.require(spec, ttl))
    }

    fn tables(&self) -> PortFuture<'_, Vec<String>> {
        Box::pin(self.list_tables())
    }

    fn describe<'a>(&'a self, table: &'a str) -> PortFuture<'a, TableDescription> {
        Box::pin(self.describe_table(table))
    }

    /// Answers at once. A write of this handle is over when its call answers, and no remote store
    /// tells of the writes of others: whoever needs those settled has to wait for them.
    fn settle(&self) -> PortFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn purge<'a>(&'a self, _: &'a PurgeItems) -> PortFuture<'a, PurgeReport> {
        let refused = Error::Unsupported(format!(
            "{} cannot remove the bytes of deleted items from its files; they go when it sees fit",
            self.options.url
        ));
        Box::pin(async { Err(refused) })
    }
}
