//! [`TenantKeys`]: the Redis keys port, confined to one tenant.

use std::sync::Arc;

use bytes::Bytes;
use kstone_ports::capabilities::Capabilities;
use kstone_ports::items::PurgeReport;
use kstone_ports::keys::{Keys, KeysPage, PortCommand, PurgeKeys, Reply, ScanKeys, Value, Watch};
use kstone_ports::{Error, PortFuture, Result};

use crate::keyspace::KeyStore;
use crate::tenant::Tenant;

/// A port to keys that reaches those of one tenant.
///
/// A command is done if it is one of those known to touch nothing but the keys it names, and all of
/// them are the tenant's; a pipeline or transaction with one that is not is refused as a whole.
/// Scripts are programs, and refused. A scan shows only the tenant's keys.
#[derive(Debug, Clone)]
pub struct TenantKeys {
    tenant: Tenant,
    keys: Arc<dyn Keys>,
}

impl TenantKeys {
    pub(super) fn new(tenant: Tenant, keys: Arc<dyn Keys>) -> TenantKeys {
        TenantKeys { tenant, keys }
    }

    /// What to look for if the caller does not say: the keys that can be the tenant's, if they all
    /// begin alike.
    fn own_pattern(&self) -> Option<Bytes> {
        let prefixes = self.tenant.keyspace.tenant_prefixes(KeyStore::Redis, self.tenant.id());
        let [prefix] = prefixes.as_slice() else { return None };
        let mut pattern = Vec::with_capacity(prefix.len() + 1);
        for byte in prefix.bytes() {
            if b"*?[]^\\-".contains(&byte) {
                pattern.push(b'\\');
            }
            pattern.push(byte);
        }
        pattern.push(b'*');
        Some(pattern.into())
    }
}

fn check(tenant: &Tenant, given: &[Bytes]) -> Result<()> {
    let asked = PortCommand::of(given)?;
    let name = asked.name.to_ascii_uppercase().replace('|', " ");
    if !asked.is_confined {
        return Err(refuse(tenant, &name, "it may reach further than the keys that it names"));
    }
    let keys = asked.keys.iter().filter_map(|at| given.get(*at));
    check_keys(tenant, keys)
}

fn check_keys<'k>(tenant: &Tenant, mut keys: impl Iterator<Item = &'k Bytes>) -> Result<()> {
    match keys.find(|key| !tenant.owns_key(key)) {
        None => Ok(()),
        Some(key) => Err(Error::Refused(format!("ERR {}", tenant.out_of_reach(key)))),
    }
}

fn check_all(tenant: &Tenant, commands: &[Vec<Bytes>]) -> Result<()> {
    commands.iter().try_for_each(|given| check(tenant, given))
}

fn refuse(tenant: &Tenant, what: &str, why: &str) -> Error {
    Error::Refused(format!("ERR {}", tenant.refuses(what, why)))
}

impl Keys for TenantKeys {
    fn capabilities(&self) -> Capabilities {
        self.keys.capabilities()
    }

    fn name(&self) -> String {
        self.keys.name()
    }

    fn database(&self, db: u8) -> Option<Arc<dyn Keys>> {
        let keys = self.keys.database(db)?;
        Some(Arc::new(TenantKeys { tenant: self.tenant.clone(), keys }))
    }

    fn db(&self) -> u8 {
        self.keys.db()
    }

    fn command<'a>(&'a self, args: &'a [Bytes]) -> PortFuture<'a, Value> {
        Box::pin(async move {
            check(&self.tenant, args)?;
            self.keys.command(args).await
        })
    }

    fn pipeline<'a>(&'a self, commands: &'a [Vec<Bytes>]) -> PortFuture<'a, Vec<Reply>> {
        Box::pin(async move {
            check_all(&self.tenant, commands)?;
            self.keys.pipeline(commands).await
        })
    }

    fn transaction<'a>(&'a self, commands: &'a [Vec<Bytes>]) -> PortFuture<'a, Vec<Reply>> {
        Box::pin(async move {
            check_all(&self.tenant, commands)?;
            self.keys.transaction(commands).await
        })
    }

    fn watch<'a>(&'a self, keys: &'a [Bytes]) -> PortFuture<'a, Box<dyn Watch>> {
        Box::pin(async move {
            check_keys(&self.tenant, keys.iter())?;
            let watch = self.keys.watch(keys).await?;
            Ok(Box::new(TenantWatch { tenant: self.tenant.clone(), watch }) as Box<dyn Watch>)
        })
    }

    fn scan<'a>(&'a self, request: &'a ScanKeys) -> PortFuture<'a, KeysPage> {
        Box::pin(async move {
            let pattern = request.pattern.clone().or_else(|| self.own_pattern());
            let request = ScanKeys { pattern, ..request.clone() };
            let mut page = self.keys.scan(&request).await?;
            page.keys.retain(|key| self.tenant.owns_key(key));
            Ok(page)
        })
    }

    fn settle(&self) -> PortFuture<'_, ()> {
        self.keys.settle()
    }

    fn purge<'a>(&'a self, request: &'a PurgeKeys) -> PortFuture<'a, PurgeReport> {
        Box::pin(async move {
            if request.remains {
                let what = "a purge of all that was deleted";
                return Err(refuse(&self.tenant, what, "it rewrites all files"));
            }
            let keys = request.keys.iter().map(|(_, key)| key);
            check_keys(&self.tenant, keys.chain(request.members.iter().map(|(_, key, _)| key)))?;
            self.keys.purge(request).await
        })
    }
}

#[derive(Debug)]
struct TenantWatch {
    tenant: Tenant,
    watch: Box<dyn Watch>,
}

impl Watch for TenantWatch {
    fn command<'a>(&'a mut self, args: &'a [Bytes]) -> PortFuture<'a, Value> {
        Box::pin(async move {
            check(&self.tenant, args)?;
            self.watch.command(args).await
        })
    }

    fn commit<'a>(
        self: Box<Self>,
        commands: &'a [Vec<Bytes>],
    ) -> PortFuture<'a, Option<Vec<Reply>>> {
        Box::pin(async move {
            check_all(&self.tenant, commands)?;
            self.watch.commit(commands).await
        })
    }
}
