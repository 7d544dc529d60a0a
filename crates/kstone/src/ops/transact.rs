//! TransactGetItems and TransactWriteItems: up to 100 actions, all or nothing.

use std::sync::Arc;

use kstone_core::{Key, Seq, StripeSet};

use crate::cost::Costs;
use crate::database::locking::{Changed, Stop};
use crate::database::{Database, Reply};
use crate::error::{CancellationCode, CancellationReason, Error, Result, table_gone};
use crate::ops::batch::{add_collection, is_batch_too_large};
use crate::ops::binding::{Bound, Unbound, check};
use crate::ops::fingerprint::fingerprint;
use crate::ops::put::{encode_checked, stripes_of_put};
use crate::ops::token::{self, Repeated};
use crate::ops::update::check_keeps_key;
use crate::ops::write_output::collection_metrics;
use crate::ops::{
    TransactAction, TransactGet, TransactGetOutput, TransactKind, TransactWrite,
    TransactWriteOutput,
};
use crate::policy::Effect;
use crate::staging::{Staged, Stored};
use crate::table::live::Table;
use crate::value::ItemBytes;

/// The actions of a transaction.
const ACTIONS_MAX: usize = 100;
/// The bytes of items in a transaction.
const BYTES_MAX: usize = 4 * 1024 * 1024;

impl Database {
    /// Reads up to 100 items as of one moment.
    pub fn transact_get(&self, request: &TransactGet) -> Reply<TransactGetOutput> {
        match self.try_transact_get(request) {
            Ok((result, seq)) => self.reply(result, seq),
            Err(error) => Reply::ready(Err(error)),
        }
    }

    fn try_transact_get(&self, request: &TransactGet) -> Result<(Result<TransactGetOutput>, Seq)> {
        check_count(request.gets.len())?;
        let mut plans = Vec::with_capacity(request.gets.len());
        for get in &request.gets {
            let unbound = Unbound { projection: get.projection.as_ref(), ..Unbound::default() };
            plans.push(self.bind(&unbound, &get.placeholders)?.projection);
        }
        let mut keys: Vec<(Arc<Table>, Key)> = Vec::with_capacity(request.gets.len());
        let mut reasons = Reasons::new(request.gets.len());
        for (at, get) in request.gets.iter().enumerate() {
            let table = self.table_for_items(&get.table)?;
            match table.key_of_tree(&get.key) {
                Ok(key) => keys.push((table, key)),
                Err(error) => reasons.add(at, error)?,
            }
        }
        reasons.check()?;
        refuse_one_item_twice(keys.iter().map(|(table, key)| (&**table, key)))?;
        let snapshot = self.engine().snapshot();
        let mut output = TransactGetOutput::default();
        let mut costs = Costs::reads(request.capacity).transactional();
        let mut bytes = 0;
        for ((table, key), projection) in keys.iter().zip(plans) {
            let record = snapshot.get(table.id(), key).map_err(table_gone)?;
            let item = record.map(|record| ItemBytes::from_bytes(record.value)).transpose()?;
            let size = item.as_ref().map_or(0, ItemBytes::size);
            bytes += size;
            costs.read(table, None, size, true);
            output.items.push(match &projection {
                Some(projection) => item.map(|item| projection.apply(item.as_ref())),
                None => item,
            });
        }
        output.consumed = costs.all();
        let result = match bytes > BYTES_MAX {
            true => Err(too_large()),
            false => Ok(output),
        };
        Ok((result, snapshot.seq()))
    }

    /// Up to 100 writes and checks, all or nothing.
    ///
    /// A conflict with another request, which DynamoDB may answer with, cannot happen here: the
    /// locks of all items are held while the transaction is checked and committed.
    pub fn transact_write(&self, request: &TransactWrite) -> Reply<TransactWriteOutput> {
        match self.try_transact_write(request) {
            Ok(Changed { result, seq, consumed }) => {
                let with_costs = |output| TransactWriteOutput { consumed, ..output };
                self.reply(result.map(with_costs), seq)
            }
            Err(error) => Reply::ready(Err(error)),
        }
    }

    fn try_transact_write(&self, request: &TransactWrite) -> Result<Changed<TransactWriteOutput>> {
        check_count(request.actions.len())?;
        let mut actions = Vec::with_capacity(request.actions.len());
        let mut bytes = 0;
        for action in &request.actions {
            let action = self.bind_action(action)?;
            bytes += action.item.size();
            actions.push(action);
        }
        if bytes > BYTES_MAX {
            return Err(too_large());
        }
        let token = request.token.as_ref().map(|token| (token.as_str(), fingerprint(request)));
        loop {
            let (writes, mut stripes) = self.locate_actions(&actions)?;
            if let Some((token, _)) = token {
                stripes.insert(token::key(token).stripe());
            }
            let costs = || Costs::writes(request.capacity).transactional();
            let changed = self.change(stripes, costs, |staged| {
                if let Some((token, fingerprint)) = token {
                    match token::claim(staged, token, fingerprint)? {
                        Repeated::No => {}
                        Repeated::Yes => {
                            // Nothing is written: what it costs is to look at the items.
                            staged.costs = Costs::reads(request.capacity).transactional();
                            for (table, key) in &writes {
                                let stored = staged.stored(table.id(), key)?;
                                let live = stored.as_ref().and_then(Stored::live);
                                let bytes = live.map_or(0, ItemBytes::size);
                                staged.costs.read(table, None, bytes, true);
                            }
                            return Ok(TransactWriteOutput::default());
                        }
                    }
                }
                let mut reasons = Reasons::new(actions.len());
                let mut output = TransactWriteOutput::default();
                let mut bytes = 0;
                for (at, (action, (table, key))) in actions.iter().zip(&writes).enumerate() {
                    Stop::unless_current(table)?;
                    match action.stage(staged, table, key) {
                        Ok(written) => bytes += written,
                        Err(error) if is_batch_too_large(&error) => return Err(too_large().into()),
                        Err(error) => reasons.add(at, error)?,
                    }
                    // What updates make of the items is known only now.
                    if bytes > BYTES_MAX {
                        return Err(too_large().into());
                    }
                    let metrics =
                        collection_metrics(table, &action.item, request.collection_metrics);
                    add_collection(&mut output.collections, metrics);
                }
                reasons.check()?;
                Ok(output)
            })?;
            if let Some(changed) = changed {
                return Ok(changed);
            }
        }
    }

    /// Whether an action makes sense by itself.
    pub(crate) fn check_action(&self, action: &TransactAction) -> Result<()> {
        self.bind_action(action).map(drop)
    }

    fn bind_action<'r>(&self, action: &'r TransactAction) -> Result<BoundAction<'r>> {
        let (item, update) = match &action.kind {
            TransactKind::Check(item) | TransactKind::Put(item) | TransactKind::Delete(item) => {
                (item, None)
            }
            TransactKind::Update(key, update) => (key, Some(update)),
        };
        let condition = action.condition.as_ref();
        let unbound = Unbound { condition, update, ..Unbound::default() };
        let bound = self.bind(&unbound, &action.placeholders)?;
        let item = encode_checked(item)?;
        Ok(BoundAction { action, bound, item })
    }

    /// The table and key of each action, and the stripes to lock.
    fn locate_actions(&self, actions: &[BoundAction<'_>]) -> Result<(Vec<ItemAddress>, StripeSet)> {
        let mut reasons = Reasons::new(actions.len());
        let mut places = Vec::with_capacity(actions.len());
        let mut stripes = StripeSet::EMPTY;
        for (at, action) in actions.iter().enumerate() {
            let table = match action.action.kind {
                TransactKind::Check(_) => self.table_for_items(&action.action.table)?,
                _ => self.table_to_write(&action.action.table)?,
            };
            match action.key(&table) {
                Ok(key) => {
                    stripes.insert(key.stripe());
                    if matches!(action.action.kind, TransactKind::Put(_)) {
                        stripes.extend_with(&stripes_of_put(&table, &key, &action.item));
                    }
                    places.push((table, key));
                }
                Err(error) => reasons.add(at, error)?,
            }
        }
        reasons.check()?;
        refuse_one_item_twice(places.iter().map(|(table, key)| (&**table, key)))?;
        Ok((places, stripes))
    }
}

/// Where an action's item is.
type ItemAddress = (Arc<Table>, Key);

/// An action with its expressions bound and its item or key encoded.
struct BoundAction<'r> {
    action: &'r TransactAction,
    bound: Bound,
    item: ItemBytes,
}

impl BoundAction<'_> {
    fn key(&self, table: &Table) -> Result<Key> {
        match self.action.kind {
            TransactKind::Put(_) => {
                let key = table.key_of_item(self.item.as_ref())?;
                table.check_index_keys(self.item.as_ref())?;
                Ok(key)
            }
            TransactKind::Update(..) => {
                let key = table.key_of_request(self.item.as_ref())?;
                check_keeps_key(table, self.bound.update.as_ref())?;
                Ok(key)
            }
            TransactKind::Check(_) | TransactKind::Delete(_) => {
                table.key_of_request(self.item.as_ref())
            }
        }
    }

    /// Gives the bytes of the item that it writes, as DynamoDB counts them.
    fn stage(&self, staged: &mut Staged<'_>, table: &Table, key: &Key) -> Result<usize> {
        let old = staged.stored(table.id(), key)?;
        let before = old.as_ref().and_then(Stored::live);
        check(self.bound.condition.as_ref(), before, self.action.return_on_failure)?;
        match &self.action.kind {
            TransactKind::Check(_) => {
                staged.costs.write(table, None, before.map_or(0, ItemBytes::size));
                Ok(0)
            }
            TransactKind::Put(_) => {
                staged.put(table, key, old.as_ref(), &self.item, Effect::Makes)?;
                Ok(self.item.size())
            }
            TransactKind::Delete(_) => {
                staged.delete_asked(table, key, old.as_ref())?;
                Ok(0)
            }
            TransactKind::Update(..) => {
                let update = self.bound.update.as_ref();
                let after = staged.update(table, key, &self.item, old.as_ref(), update)?;
                Ok(after.map_or(0, |after| after.size()))
            }
        }
    }
}

fn too_large() -> Error {
    Error::validation("Collective size of items in the transaction exceeds the limit of 4 MB")
}

/// Why a transaction is canceled, action by action.
struct Reasons {
    reasons: Vec<CancellationReason>,
    any: bool,
}

impl Reasons {
    fn new(actions: usize) -> Self {
        Reasons { reasons: vec![CancellationReason::none(); actions], any: false }
    }

    /// Notes why an action does not pass; what is no fault of the action is given back.
    fn add(&mut self, at: usize, error: Error) -> Result<()> {
        let reason = match error {
            Error::ConditionFailed { item } => CancellationReason {
                code: CancellationCode::ConditionalCheckFailed,
                message: Some("The conditional request failed".to_owned()),
                item,
            },
            Error::Validation(message) | Error::Refused(message) => CancellationReason {
                code: CancellationCode::ValidationError,
                message: Some(message),
                item: None,
            },
            other => return Err(other),
        };
        if let Some(slot) = self.reasons.get_mut(at) {
            *slot = reason;
        }
        self.any = true;
        Ok(())
    }

    fn check(self) -> Result<()> {
        if self.any {
            return Err(Error::TransactionCanceled { reasons: self.reasons });
        }
        Ok(())
    }
}

fn check_count(actions: usize) -> Result<()> {
    if actions == 0 || actions > ACTIONS_MAX {
        let bound =
            if actions == 0 { "greater than or equal to 1" } else { "less than or equal to 100" };
        return Err(Error::validation(format!(
            "1 validation error detected: Value at 'transactItems' failed to satisfy constraint: Member must have length {bound}"
        )));
    }
    Ok(())
}

fn refuse_one_item_twice<'a>(items: impl Iterator<Item = (&'a Table, &'a Key)>) -> Result<()> {
    let mut keys: Vec<_> = items.map(|(table, key)| (table.id(), &key.pk, &key.sk)).collect();
    keys.sort_unstable();
    if keys.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Error::validation(
            "Transaction request cannot include multiple operations on one item",
        ));
    }
    Ok(())
}
