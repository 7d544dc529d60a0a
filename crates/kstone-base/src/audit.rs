//! The audit log: who did what, and to whose data.

use std::sync::Arc;

use kstone_core::env::Random;
use kstone_keyspace::keys::platform::{Audit, AuditId};
use kstone_ports::items::Items;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::page::{Page, PageRequest};
use crate::store::{Range, Store, parse, put};
use crate::time::{Date, Moment};

/// One entry of the audit log: who did what, and to whose data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditEntry {
    /// What was done: `erasure`, `consent`.
    pub action: String,
    /// By whom, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// To whose data. When they are erased, the entry goes too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub student_id: Option<String>,
    /// What else is worth knowing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// When.
    pub at: Moment,
}

/// The audit log of all systems. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AuditLog {
    store: Store,
    random: Arc<dyn Random>,
}

impl AuditLog {
    /// A log that is stored through this port.
    pub fn new(items: Arc<dyn Items>, random: Arc<dyn Random>) -> AuditLog {
        AuditLog { store: Store::new(items), random }
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// If the store refuses.
    pub async fn add(&self, entry: &AuditEntry) -> Result<()> {
        let date = entry.at.date();
        let audit_id = AuditId::new(format!("{:016x}", self.random.next_u64()))?;
        let key = Audit { date, at: entry.at.millis(), audit_id };
        self.store.put(put(&key, entry)?).await
    }

    /// The entries of a day, the newest first.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn of_day(&self, date: Date, page: &PageRequest) -> Result<Page<AuditEntry>> {
        let range = Range::with_prefix::<Audit>(Audit::partition(&date), "")
            .newest_first()
            .limit(page.limit())
            .after(page.cursor.clone());
        let (rows, more) = self.store.list(&range).await?;
        let next = rows.last().filter(|_| more).map(|row| row.sk.clone());
        Ok(Page { items: rows.iter().map(parse).collect::<Result<_>>()?, next })
    }
}
