//! The two ports, confined to the keys of one tenant.
//!
//! A catalogue says which segment of a key names the tenant: `school:{school_id}:…`. A holder of a
//! [`TenantItems`] or [`TenantKeys`] reaches the keys of its tenant and no others, by any operation:
//! not those of another tenant, not those that no tenant owns, and not those that no pattern
//! declares. What cannot be shown to keep to that, by looking at the request alone, is refused.
//! Nothing is read first and filtered afterwards, so neither time nor size of an answer tells of
//! others; the one exception is a walk over the keys of Redis, whose pages are filtered.
//!
//! Both are ports themselves, so code that was written for a port works for a tenant as it is.

mod items;
mod keys;

pub use items::TenantItems;
pub use keys::TenantKeys;

use std::sync::Arc;

use kstone_ports::items::Items;
use kstone_ports::keys::Keys;

use crate::keyspace::{KeyStore, Keyspace, Tenancy};

/// One tenant of a keyspace.
#[derive(Debug, Clone)]
pub struct Tenant {
    keyspace: Arc<Keyspace>,
    id: Arc<str>,
}

impl Tenant {
    /// The tenant with this id, as it is without escapes: `university_abc`.
    pub fn new(keyspace: Arc<Keyspace>, id: &str) -> Tenant {
        Tenant { keyspace, id: id.into() }
    }

    /// The tenant's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its items.
    pub fn items(&self, items: Arc<dyn Items>) -> TenantItems {
        TenantItems::new(self.clone(), items)
    }

    /// Its keys.
    pub fn keys(&self, keys: Arc<dyn Keys>) -> TenantKeys {
        TenantKeys::new(self.clone(), keys)
    }

    fn owns_key(&self, key: &[u8]) -> bool {
        self.keyspace.tenancy(KeyStore::Redis, key, &self.id) == Tenancy::Own
    }

    /// Why a key is out of reach. Does not tell whether there is such a key.
    fn out_of_reach(&self, key: &[u8]) -> String {
        let shown = String::from_utf8_lossy(key);
        format!("`{shown}` is not declared as a key of the tenant `{}`", self.id)
    }

    fn refuses(&self, what: &str, why: &str) -> String {
        format!("{what} is refused to the tenant `{}`: {why}", self.id)
    }
}
