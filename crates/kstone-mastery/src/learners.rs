//! Iterates over all learners, using the registration entry written at their first event.

use std::sync::Arc;

use kstone_keyspace::keys::mastery::{LearnerEntry, Shard};
use kstone_keyspace::typed::TypedKey;
use kstone_ports::items::Items;
use kstone_ports::items::{KeyCondition, Placeholders, Query};
use kstone_ports::value::Value;

use crate::engine::Result;

/// The entries are in so many partitions.
pub(crate) const SHARDS: u64 = 16;
const PAGE: u32 = 200;

/// The learners of one shard, a page at a time.
#[derive(Debug)]
pub(crate) struct LearnerPages {
    query: Query,
    items: Arc<dyn Items>,
    is_over: bool,
}

impl LearnerPages {
    pub(crate) fn of(items: &Arc<dyn Items>, shard: u64) -> Result<LearnerPages> {
        let partition = LearnerEntry::partition(&Shard::new(shard)?);
        let query = Query {
            table: LearnerEntry::FACTS.table.unwrap_or_default().to_owned(),
            key_condition: Some(KeyCondition::Text("pk = :pk".to_owned())),
            placeholders: Placeholders {
                names: None,
                values: Some(vec![(":pk".to_owned(), Value::from(partition))]),
            },
            limit: Some(PAGE),
            ..Query::default()
        };
        Ok(LearnerPages { query, items: Arc::clone(items), is_over: false })
    }

    /// Some more of them; `None` when there are no more.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<String>>> {
        if self.is_over {
            return Ok(None);
        }
        let page = self.items.query(&self.query).await?;
        let mut learners = Vec::new();
        for item in page.items.iter().flatten() {
            // What follows the partition is the learner's id.
            if let Some(kstone_ports::value::ValueRef::S(id)) = item.as_ref().get("sk") {
                learners.push(id.to_owned());
            }
        }
        self.is_over = page.next.is_none();
        self.query.start = page.next;
        Ok(Some(learners))
    }
}
