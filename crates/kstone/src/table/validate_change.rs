//! Validates a change of a table, in DynamoDB's words and in its order of checks:
//! first at the request alone, then at the table.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::table::constraint::Constraints;
use crate::table::raw::{BillingMode, RawIndex, RawIndexChange, RawTableChange};
use crate::table::record::IndexRecord;
use crate::table::validate::{self, GLOBAL_MAX, invalid};
use crate::table::{IndexProjection, KeyAttribute, Status, TableSpec, Throughput};

/// What can be changed, as DynamoDB lists it when nothing is.
const NOTHING: &str = "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, \
    GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, \
    ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, \
    WarmThroughput or TableClass is required";

/// Refuses a change that no table could be asked for.
pub(crate) fn request(raw: &RawTableChange) -> Result<()> {
    constraints(raw)?;
    let parts = Parts::of(raw);
    if parts.count() == 0 {
        return Err(Error::validation(NOTHING));
    }
    if raw.global.as_ref().is_some_and(Vec::is_empty) {
        return Err(invalid("List of GlobalSecondaryIndexUpdates is empty"));
    }
    parts.go_together()?;
    match (raw.billing, raw.throughput) {
        (Some(BillingMode::Provisioned), None) => {
            return Err(invalid(
                "ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
            ));
        }
        (Some(BillingMode::PayPerRequest), Some(_)) => return Err(validate::throughput_on_demand()),
        (_, Some(units)) => validate::units_in_bounds(units)?,
        (_, None) => {}
    }
    validate::on_demand_range(raw.on_demand, -1)?;
    validate::table_class(raw.table_class.as_deref())?;
    index_entries(raw)?;
    one_thing_at_a_time(raw)?;
    match raw.stream.map(|stream| (stream.enabled, stream.view)) {
        Some((true, None)) => {
            Err(invalid("If stream is being enabled then UpdateViewType is required"))
        }
        Some((false, Some(_))) => {
            Err(invalid("If stream is being disabled, then UpdateViewType must not be specified"))
        }
        _ => Ok(()),
    }
}

/// Refuses a change that this table cannot be asked for. The indexes' states are in the order of
/// `spec.global`.
pub(crate) fn on_table(
    spec: &TableSpec,
    states: &[IndexRecord],
    raw: &RawTableChange,
) -> Result<()> {
    billing_on_table(spec, raw)?;
    if raw.encryption == Some(false) && spec.encryption != Some(true) {
        return Err(invalid("Table is already encrypted by default"));
    }
    match raw.stream.map(|stream| stream.enabled) {
        Some(true) if spec.stream.is_some() => {
            return Err(Error::validation(format!(
                "Table already has an enabled stream: TableName: {}",
                spec.name
            )));
        }
        Some(false) if spec.stream.is_none() => {
            return Err(Error::validation(format!(
                "Table has no stream to disable: TableName: {}",
                spec.name
            )));
        }
        _ => {}
    }
    for entry in raw.global.iter().flatten() {
        if let Some((name, _)) = &entry.update {
            existing(spec, name, "update")?;
        }
        if let Some(name) = &entry.delete {
            existing(spec, name, "delete")?;
        }
        if let Some(index) = &entry.create {
            new_index(spec, raw, index)?;
        }
    }
    one_index_at_a_time(spec, states, raw)
}

fn constraints(raw: &RawTableChange) -> Result<()> {
    let mut found = Constraints::default();
    for (at, attribute) in (1..).zip(raw.attributes.iter().flatten()) {
        let member = format!("attributeDefinitions.{at}.member.attributeName");
        found.attribute_name(&member, &attribute.name);
    }
    found.throughput("provisionedThroughput", raw.throughput);
    for (at, entry) in (1..).zip(raw.global.iter().flatten()) {
        let member = format!("globalSecondaryIndexUpdates.{at}.member");
        if let Some((name, units)) = &entry.update {
            found.resource_name(&format!("{member}.update.indexName"), name);
            found.throughput(&format!("{member}.update.provisionedThroughput"), *units);
        }
        if let Some(index) = &entry.create {
            found.index(&format!("{member}.create"), index, 8);
        }
        if let Some(name) = &entry.delete {
            found.resource_name(&format!("{member}.delete.indexName"), name);
        }
    }
    found.refuse()
}

/// Which parts of a table a request changes.
struct Parts {
    throughput: bool,
    billing: bool,
    stream: bool,
    indexes: bool,
    encryption: bool,
    protection: bool,
    on_demand: bool,
    class: bool,
}

impl Parts {
    fn of(raw: &RawTableChange) -> Parts {
        Parts {
            throughput: raw.throughput.is_some(),
            billing: raw.billing.is_some(),
            stream: raw.stream.is_some(),
            indexes: raw.global.as_ref().is_some_and(|entries| !entries.is_empty()),
            encryption: raw.encryption.is_some(),
            protection: raw.deletion_protection.is_some(),
            on_demand: raw.on_demand.is_some(),
            class: raw.table_class.is_some(),
        }
    }

    fn count(&self) -> usize {
        let others = [self.throughput, self.billing, self.stream, self.indexes];
        let alone = [self.encryption, self.protection, self.on_demand, self.class];
        others.into_iter().chain(alone).filter(|part| *part).count()
    }

    /// Some parts are changed alone.
    fn go_together(&self) -> Result<()> {
        let alone = [
            (self.encryption, "Server-Side Encryption"),
            (self.class, "TableClass"),
            (self.protection, "DeletionProtection"),
        ];
        for (part, name) in alone {
            if part && self.count() > 1 {
                return Err(invalid(format!(
                    "{name} modification must be the only operation in the request"
                )));
            }
        }
        if self.on_demand && (self.throughput || self.stream || self.indexes) {
            return Err(invalid(
                "OnDemandThroughput can only be combined with BillingMode in an UpdateTable request",
            ));
        }
        Ok(())
    }
}

fn index_entries(raw: &RawTableChange) -> Result<()> {
    let mut names = HashSet::new();
    for entry in raw.global.iter().flatten() {
        let named = [
            entry.update.as_ref().map(|(name, _)| name),
            entry.create.as_ref().map(|index| &index.name),
            entry.delete.as_ref(),
        ];
        let mut named = named.into_iter().flatten();
        let Some(name) = named.next() else {
            return Err(invalid(
                "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, \
                 GlobalSecondaryIndexUpdate.Delete must not be null",
            ));
        };
        if named.next().is_some() {
            return Err(invalid(
                "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate \
                 object",
            ));
        }
        if !names.insert(name) {
            return Err(invalid(format!(
                "Only one global secondary index update per index is allowed simultaneously. \
                 Index: {name}"
            )));
        }
    }
    Ok(())
}

/// Throughput, the stream and the set of indexes are changed one after another.
fn one_thing_at_a_time(raw: &RawTableChange) -> Result<()> {
    let throughput = raw.throughput.is_some();
    let indexes = raw.global.iter().flatten().any(makes_or_drops);
    if throughput && raw.stream.is_some() {
        return Err(invalid("You cannot modify stream status while updating table IOPS"));
    }
    if throughput && indexes {
        return Err(invalid("You cannot create or delete index while updating table IOPS"));
    }
    if raw.stream.is_some() && indexes {
        return Err(invalid("You cannot create or delete index while changing stream status"));
    }
    Ok(())
}

fn makes_or_drops(entry: &RawIndexChange) -> bool {
    entry.create.is_some() || entry.delete.is_some()
}

fn billing_on_table(spec: &TableSpec, raw: &RawTableChange) -> Result<()> {
    let provisioned = match raw.billing {
        Some(mode) => mode == BillingMode::Provisioned,
        None => spec.throughput.is_some(),
    };
    if provisioned {
        validate::maximum_on_provisioned(raw.on_demand)?;
    } else if raw.throughput.is_some() {
        return Err(validate::throughput_on_demand());
    }
    if let (Some(current), Some(asked)) = (spec.throughput, raw.throughput) {
        will_change("the table", "the table", current, asked)?;
    }
    let updates = || raw.global.iter().flatten().filter_map(|entry| entry.update.as_ref());
    for (name, units) in updates() {
        let Some(asked) = units else { continue };
        if !provisioned {
            return Err(invalid(format!(
                "The only Updates for index: {name} when TableThroughputMode is PAY_PER_REQUEST \
                 can be to OnDemandThroughput, WarmThroughput"
            )));
        }
        validate::units_in_bounds(*asked)?;
        let index = spec.global.iter().find(|index| index.name == *name);
        if let Some(current) = index.and_then(|index| index.throughput) {
            will_change(&format!("the index {name}"), &format!("index {name}"), current, *asked)?;
        }
    }
    if provisioned && spec.throughput.is_none() {
        let missing: Vec<&str> = spec
            .global
            .iter()
            .map(|index| index.name.as_str())
            .filter(|name| !updates().any(|(updated, units)| updated == name && units.is_some()))
            .collect();
        if !missing.is_empty() {
            return Err(invalid(format!(
                "ProvisionedThroughput must be specified for index: {}",
                missing.join(",")
            )));
        }
    }
    Ok(())
}

fn will_change(what: &str, of_what: &str, current: Throughput, asked: Throughput) -> Result<()> {
    if current != asked {
        return Ok(());
    }
    Err(Error::validation(format!(
        "The provisioned throughput for {what} will not change. The requested value equals the \
         current value. Current ReadCapacityUnits provisioned for {of_what}: {}. Requested \
         ReadCapacityUnits: {}. Current WriteCapacityUnits provisioned for {of_what}: {}. \
         Requested WriteCapacityUnits: {}. Refer to the Amazon DynamoDB Developer Guide for \
         current limits and how to request higher limits.",
        current.read, asked.read, current.write, asked.write
    )))
}

/// The index that is to be changed is there, and can be.
fn existing(spec: &TableSpec, name: &str, verb: &str) -> Result<()> {
    if spec.global.iter().any(|index| index.name == name) {
        return Ok(());
    }
    if spec.local.iter().any(|index| index.name == name) {
        return Err(Error::validation(format!(
            "Cannot {verb} an index that is not a GlobalSecondaryIndex: {name}"
        )));
    }
    Err(Error::NotFound(format!(
        "Requested resource not found: Index {name} for table {}",
        spec.name
    )))
}

fn new_index(spec: &TableSpec, raw: &RawTableChange, index: &RawIndex) -> Result<()> {
    let given = raw.attributes.as_deref().unwrap_or_default();
    if given.is_empty() {
        return Err(invalid(format!(
            "AttributeDefinitions is not specified for index: {}",
            index.name
        )));
    }
    validate::defined_once(given)?;
    let mut attributes: Vec<KeyAttribute> = given.to_vec();
    for known in spec.key_attributes() {
        match attributes.iter().find(|attribute| attribute.name == known.name) {
            // The rest of what is given is not looked at: it may be left over from an index that
            // is gone.
            Some(again) if again.kind != known.kind && uses(index, &known.name) => {
                return Err(Error::validation(format!(
                    "Attribute Name is duplicated: {}",
                    known.name
                )));
            }
            Some(_) => {}
            None => attributes.push(known.clone()),
        }
    }
    validate::defined(&index.key, &attributes)?;
    validate::global_key(&index.key)?;
    validate::projection(index)?;
    let provisioned = match raw.billing {
        Some(mode) => mode == BillingMode::Provisioned,
        None => spec.throughput.is_some(),
    };
    match index.throughput {
        Some(_) if !provisioned => {
            return Err(invalid(format!(
                "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: {} \
                 when BillingMode is PAY_PER_REQUEST",
                index.name
            )));
        }
        None if provisioned => {
            return Err(invalid(format!(
                "Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: {}",
                index.name
            )));
        }
        Some(units) => validate::units_in_bounds(units)?,
        None => {}
    }
    if spec.local.iter().chain(&spec.global).any(|known| known.name == index.name) {
        return Err(Error::validation("Attempting to create an index which already exists"));
    }
    let known = spec.local.iter().chain(&spec.global).map(|known| match &known.projection {
        IndexProjection::Include(names) => Some(names.as_slice()),
        _ => None,
    });
    validate::included(known.chain([index.non_key.as_deref()]))
}

fn uses(index: &RawIndex, name: &str) -> bool {
    index.key.iter().any(|element| element.name == name)
}

/// One index is made or dropped at a time. One that is being made can be dropped.
fn one_index_at_a_time(
    spec: &TableSpec,
    states: &[IndexRecord],
    raw: &RawTableChange,
) -> Result<()> {
    let asked: Vec<&RawIndexChange> =
        raw.global.iter().flatten().filter(|entry| makes_or_drops(entry)).collect();
    let making = spec.global.iter().zip(states).find(|(_, s)| s.status == Status::Creating);
    let busy = making.is_some_and(|(index, _)| {
        asked.iter().any(|entry| entry.delete.as_ref() != Some(&index.name))
    });
    if asked.len() > 1 || busy {
        return Err(Error::LimitExceeded(
            "Subscriber limit exceeded: Only 1 online index can be created or deleted \
             simultaneously per table"
                .to_owned(),
        ));
    }
    let created = asked.iter().any(|entry| entry.create.is_some());
    if created && spec.global.len() >= GLOBAL_MAX {
        return Err(Error::LimitExceeded(format!(
            "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table \
             limit of {GLOBAL_MAX}"
        )));
    }
    Ok(())
}
