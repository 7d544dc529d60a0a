//! [`TenantItems`]: the items port, confined to one tenant.

use std::sync::Arc;

use kstone_ports::capabilities::Capabilities;
use kstone_ports::expr::{Binder, ExpressionCache, KeyOp};
use kstone_ports::items::{
    BatchGet, BatchGetOutput, BatchWrite, BatchWriteOutput, DeleteItem, GetItem, GetItemOutput,
    IndexState, Items, KeyCondition, KeySchema, KeyType, PurgeItems, PurgeReport, PutItem, Query,
    QueryOutput, Scan, TableDescription, TableSpec, TransactGet, TransactGetOutput, TransactKind,
    TransactWrite, TransactWriteOutput, TtlState, UpdateItem, WriteOutput, WriteRequest,
};
use kstone_ports::value::{Item, Value, ValueRef};
use kstone_ports::{Error, PortFuture, Result};
use sha2::{Digest as _, Sha256};

use crate::keyspace::{ItemKeyParts, KeyStore, Tenancy, WHOLE_KEY};
use crate::tenant::Tenant;

/// How many key conditions are kept parsed.
const CONDITIONS_MAX: usize = 64;

/// A port to items that reaches those of one tenant.
///
/// An item is the tenant's if its key attributes say so, by a pattern of its table. So:
/// - Whatever names whole keys (get, put, update, delete, batches, transactions) is done if all of
///   them are the tenant's; a transaction with one that is not is refused as a whole.
/// - A query is done if its partition key alone says that everything in the partition is the
///   tenant's, on the table or on a local index. A global index has other partitions.
/// - A scan goes through everybody's items, and is refused.
/// - Tables are described without counts, which are of all tenants, and not made. Those are listed
///   that hold declared items.
#[derive(Debug, Clone)]
pub struct TenantItems {
    tenant: Tenant,
    items: Arc<dyn Items>,
    conditions: Arc<ExpressionCache>,
}

impl TenantItems {
    pub(super) fn new(tenant: Tenant, items: Arc<dyn Items>) -> TenantItems {
        TenantItems { tenant, items, conditions: Arc::new(ExpressionCache::new(CONDITIONS_MAX)) }
    }

    /// The key attributes of a table. They are asked for each time: a table that was made again with
    /// others would have other owners.
    async fn describe_own(&self, table: &str) -> Result<TableDescription> {
        if !self.tenant.keyspace.has_patterns_in(KeyStore::Table(table)) {
            let what = format!("the table `{table}`");
            return Err(self.refuse(&what, "no pattern says whose its items are"));
        }
        self.items.describe(table).await
    }

    fn refuse(&self, what: &str, why: &str) -> Error {
        Error::Refused(self.tenant.refuses(what, why))
    }

    /// Whether the tenant owns the item with these key attributes. There may be others beside them.
    fn check_item(&self, table: &str, schema: &KeySchema, item: &Item) -> Result<()> {
        let [hash] = schema.hash.as_slice() else {
            return Err(self.refuse("the table", "its key has several attributes"));
        };
        let text = |name: &str| match item.get(name) {
            Some(Value::S(text)) => Ok(text.as_bytes()),
            _ => Err(self.refuse("the item", "its key is not of strings")),
        };
        let pk = text(&hash.name)?;
        let sk = match schema.range.as_slice() {
            [] => WHOLE_KEY,
            [range] => text(&range.name)?,
            _ => return Err(self.refuse("the table", "its key has several attributes")),
        };
        let parts = ItemKeyParts { pk, sk };
        let found = self.tenant.keyspace.find_item(table, parts);
        match found.map(|found| found.tenancy(self.tenant.id())) {
            Some(Tenancy::Own) => Ok(()),
            _ => Err(Error::Refused(self.tenant.out_of_reach(&parts.key()))),
        }
    }

    async fn check(&self, table: &str, items: impl Iterator<Item = &Item>) -> Result<()> {
        let schema = self.describe_own(table).await?.spec.key;
        items.into_iter().try_for_each(|item| self.check_item(table, &schema, item))
    }

    fn check_partition(&self, table: &str, pk: &[u8]) -> Result<()> {
        match self.tenant.keyspace.is_tenants_partition(table, pk, self.tenant.id()) {
            true => Ok(()),
            false => Err(Error::Refused(self.tenant.out_of_reach(pk))),
        }
    }

    async fn check_query(&self, request: &Query) -> Result<()> {
        let spec = self.describe_own(&request.table).await?.spec;
        if let Some(name) = &request.index
            && !spec.local.iter().any(|index| index.name == *name)
        {
            let what = format!("a query of the index `{name}`");
            return Err(self.refuse(&what, "its partitions hold items of others"));
        }
        let [hash] = spec.key.hash.as_slice() else {
            return Err(self.refuse("the table", "its key has several attributes"));
        };
        let bound = match &request.key_condition {
            Some(KeyCondition::Text(text)) => {
                Binder::new(&self.conditions, &request.placeholders)?.key_condition(text)?
            }
            Some(KeyCondition::Built(built)) => built.clone(),
            None => return Err(self.refuse("a query", "it names no partition")),
        };
        let mut named = bound.clauses.iter().filter(|clause| clause.name == hash.name);
        let (Some(clause), None) = (named.next(), named.next()) else {
            return Err(self.refuse("a query", "it does not name one partition"));
        };
        match &clause.op {
            KeyOp::Eq(value) => match (value.as_ref(), hash.kind) {
                (ValueRef::S(pk), KeyType::S) => {
                    self.check_partition(&request.table, pk.as_bytes())
                }
                _ => Err(self.refuse("a query", "its partition key is no string")),
            },
            _ => Err(self.refuse("a query", "it does not name one partition")),
        }
    }

    async fn check_purge(&self, request: &PurgeItems) -> Result<()> {
        if request.remains {
            return Err(self.refuse("a purge of all that was deleted", "it rewrites all files"));
        }
        if request.stream_images.is_some() {
            return Err(self.refuse("a purge of what streams told", "it looks at all streams"));
        }
        for (table, key) in &request.items {
            self.check(table, std::iter::once(key)).await?;
        }
        for (table, pk) in &request.partitions {
            self.describe_own(table).await?;
            match pk {
                Value::S(pk) => self.check_partition(table, pk.as_bytes())?,
                _ => return Err(self.refuse("a purge", "the partition key is no string")),
            }
        }
        Ok(())
    }

    /// The client token with the tenant mixed in, so that tokens of two tenants never collide. As
    /// long as DynamoDB allows.
    fn own_token(&self, token: &str) -> String {
        let mut digest = Sha256::new();
        digest.update((self.tenant.id().len() as u64).to_be_bytes());
        digest.update(self.tenant.id());
        digest.update(token);
        hex::encode(&digest.finalize()[..16])
    }
}

impl Items for TenantItems {
    fn capabilities(&self) -> Capabilities {
        self.items.capabilities()
    }

    fn name(&self) -> String {
        self.items.name()
    }

    fn get<'a>(&'a self, request: &'a GetItem) -> PortFuture<'a, GetItemOutput> {
        Box::pin(async move {
            self.check(&request.table, std::iter::once(&request.key)).await?;
            self.items.get(request).await
        })
    }

    fn put<'a>(&'a self, request: &'a PutItem) -> PortFuture<'a, WriteOutput> {
        Box::pin(async move {
            self.check(&request.table, std::iter::once(&request.item)).await?;
            self.items.put(request).await
        })
    }

    fn update<'a>(&'a self, request: &'a UpdateItem) -> PortFuture<'a, WriteOutput> {
        Box::pin(async move {
            self.check(&request.table, std::iter::once(&request.key)).await?;
            self.items.update(request).await
        })
    }

    fn delete<'a>(&'a self, request: &'a DeleteItem) -> PortFuture<'a, WriteOutput> {
        Box::pin(async move {
            self.check(&request.table, std::iter::once(&request.key)).await?;
            self.items.delete(request).await
        })
    }

    fn query<'a>(&'a self, request: &'a Query) -> PortFuture<'a, QueryOutput> {
        Box::pin(async move {
            self.check_query(request).await?;
            self.items.query(request).await
        })
    }

    fn scan<'a>(&'a self, _: &'a Scan) -> PortFuture<'a, QueryOutput> {
        Box::pin(async move {
            Err(self.refuse("a scan", "it goes through the items of others; query a partition"))
        })
    }

    fn batch_get<'a>(&'a self, request: &'a BatchGet) -> PortFuture<'a, BatchGetOutput> {
        Box::pin(async move {
            for table in &request.tables {
                self.check(&table.table, table.keys.iter()).await?;
            }
            self.items.batch_get(request).await
        })
    }

    fn batch_write<'a>(&'a self, request: &'a BatchWrite) -> PortFuture<'a, BatchWriteOutput> {
        Box::pin(async move {
            for (table, writes) in &request.tables {
                let items = writes.iter().map(|write| match write {
                    WriteRequest::Put(item) | WriteRequest::Delete(item) => item,
                });
                self.check(table, items).await?;
            }
            self.items.batch_write(request).await
        })
    }

    fn transact_get<'a>(&'a self, request: &'a TransactGet) -> PortFuture<'a, TransactGetOutput> {
        Box::pin(async move {
            for get in &request.gets {
                self.check(&get.table, std::iter::once(&get.key)).await?;
            }
            self.items.transact_get(request).await
        })
    }

    fn transact_write<'a>(
        &'a self,
        request: &'a TransactWrite,
    ) -> PortFuture<'a, TransactWriteOutput> {
        Box::pin(async move {
            for action in &request.actions {
                let item = match &action.kind {
                    TransactKind::Check(item)
                    | TransactKind::Put(item)
                    | TransactKind::Delete(item)
                    | TransactKind::Update(item, _) => item,
                };
                self.check(&action.table, std::iter::once(item)).await?;
            }
            let Some(token) = &request.token else {
                return self.items.transact_write(request).await;
            };
            // Otherwise one tenant could tell that another has used a token.
            let own = TransactWrite { token: Some(self.own_token(token)), ..request.clone() };
            self.items.transact_write(&own).await
        })
    }

    fn require_table<'a>(
        &'a self,
        spec: &'a TableSpec,
        ttl: Option<&'a str>,
    ) -> PortFuture<'a, ()> {
        Box::pin(async move {
            let known = self.describe_own(&spec.name).await?;
            let is_as_required = known.spec.key == spec.key
                && match (&known.ttl, ttl) {
                    (_, None) => true,
                    (TtlState::On(have) | TtlState::Enabling(have), Some(ttl)) => have == ttl,
                    _ => false,
                };
            let what = format!("the table `{}`", spec.name);
            match is_as_required {
                true => Ok(()),
                false => Err(self.refuse(&what, "it is different, and not one tenant's to change")),
            }
        })
    }

    fn tables(&self) -> PortFuture<'_, Vec<String>> {
        Box::pin(async move {
            let mut tables = self.items.tables().await?;
            tables.retain(|table| self.tenant.keyspace.has_patterns_in(KeyStore::Table(table)));
            Ok(tables)
        })
    }

    fn describe<'a>(&'a self, table: &'a str) -> PortFuture<'a, TableDescription> {
        Box::pin(async move {
            let known = self.describe_own(table).await?;
            let uncounted = |states: &[IndexState]| {
                let uncounted =
                    states.iter().map(|state| IndexState { items: 0, bytes: 0, ..state.clone() });
                uncounted.collect()
            };
            Ok(TableDescription {
                items: 0,
                bytes: 0,
                global: uncounted(&known.global),
                local: uncounted(&known.local),
                ..known
            })
        })
    }

    fn settle(&self) -> PortFuture<'_, ()> {
        self.items.settle()
    }

    fn purge<'a>(&'a self, request: &'a PurgeItems) -> PortFuture<'a, PurgeReport> {
        Box::pin(async move {
            self.check_purge(request).await?;
            self.items.purge(request).await
        })
    }
}
