//! Writes of several items that must agree, which are often only one.

use crate::items::{
    DeleteItem, Items, PutItem, TransactAction, TransactKind, TransactWrite, UpdateItem,
    WriteOutput,
};
use crate::value::ItemBytes;
use crate::{CancellationCode, CancellationReason, Error, Result};

/// Carries out all of these actions or none. One alone is a plain write, which costs a remote store
/// half of what a transaction does.
///
/// # Errors
/// [`Error::TransactionCanceled`], also for one action alone, if a condition does not hold, a rule
/// refuses the write, or somebody else is changing the item.
pub async fn write_together(items: &dyn Items, mut actions: Vec<TransactAction>) -> Result<()> {
    let is_plain =
        matches!(actions.as_slice(), [one] if !matches!(one.kind, TransactKind::Check(_)));
    let Some(action) = actions.pop_if(|_| is_plain) else {
        let request = TransactWrite { actions, ..TransactWrite::default() };
        return items.transact_write(&request).await.map(drop);
    };
    match write_plainly(items, action).await {
        Ok(_) => Ok(()),
        Err(error) => Err(match error {
            Error::ConditionFailed { item } => {
                let message = "The conditional request failed".to_owned();
                canceled(CancellationCode::ConditionalCheckFailed, message, item)
            }
            Error::Refused(rule) => canceled(CancellationCode::ValidationError, rule, None),
            Error::Conflict(why) => canceled(CancellationCode::TransactionConflict, why, None),
            Error::Throttled(why) => canceled(CancellationCode::Throttled, why, None),
            error => error,
        }),
    }
}

/// What a transaction of this one action would answer.
fn canceled(code: CancellationCode, message: String, item: Option<ItemBytes>) -> Error {
    let reasons = vec![CancellationReason { code, message: Some(message), item }];
    Error::TransactionCanceled { reasons }
}

async fn write_plainly(items: &dyn Items, action: TransactAction) -> Result<WriteOutput> {
    let TransactAction { table, kind, condition, placeholders, return_on_failure } = action;
    match kind {
        TransactKind::Put(item) => {
            let request = PutItem {
                table,
                item,
                condition,
                placeholders,
                return_on_failure,
                ..PutItem::default()
            };
            items.put(&request).await
        }
        TransactKind::Delete(key) => {
            let request = DeleteItem {
                table,
                key,
                condition,
                placeholders,
                return_on_failure,
                ..DeleteItem::default()
            };
            items.delete(&request).await
        }
        TransactKind::Update(key, update) => {
            let request = UpdateItem {
                table,
                key,
                update: Some(update),
                condition,
                placeholders,
                return_on_failure,
                ..UpdateItem::default()
            };
            items.update(&request).await
        }
        TransactKind::Check(_) => Err(Error::invalid("a check alone is no write")),
    }
}
