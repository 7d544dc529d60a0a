//! Query: the items of one partition, of a table or of an index, in the order of the sort key.

use std::collections::BTreeSet;
use std::ops::Bound;

use kstone_core::{Key, Seq, Snapshot};

use crate::cost::Costs;
use crate::database::{Database, Reply};
use crate::error::{Error, Result, table_gone};
use crate::expr::{BoundCondition, BoundProjection};
use crate::ops::binding::{Bound as Bindings, Unbound};
use crate::ops::plan::{SortRange, plan};
use crate::ops::{Condition, Projection, Query, QueryOutput, Select};
use crate::table::live::{Index, Scope, Table};
use crate::table::{IndexProjection, Status};
use crate::value::{Item, ItemBytes, ItemRef};

/// The bytes of items, as DynamoDB counts them, that one page looks at.
pub(crate) const PAGE_BYTES_MAX: usize = 1024 * 1024;

impl Database {
    /// Reads the items of one partition: one page of them.
    pub fn query_items(&self, request: &Query) -> Reply<QueryOutput> {
        self.reply_read(&request.table, || self.try_query(request))
    }

    fn try_query(&self, request: &Query) -> Result<(QueryOutput, Seq)> {
        let unbound = Unbound {
            key_condition: request.key_condition.as_ref(),
            filter: request.filter.as_ref(),
            projection: request.projection.as_ref(),
            ..Unbound::default()
        };
        let bound = self.bind(&unbound, &request.placeholders)?;
        let Some(condition) = &bound.key_condition else {
            return Err(Error::validation(
                "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
            ));
        };
        if condition.clauses.is_empty() {
            return Err(Error::validation("Conditions must be at least length 1"));
        }
        let table = self.table_for_items(&request.table)?;
        let source = Source::find(&table, request.index.as_deref(), request.consistent_read)?;
        check_select(request.select, request.projection.as_ref(), request.index.as_deref())?;
        let plan = plan(&table, source.index, condition)?;
        check_filter(&source, request.filter.as_ref(), bound.condition.as_ref())?;
        let mut range = plan.range;
        if let Some(start) = &request.start {
            let start = source.start_key(start)?;
            let sk = start.sk.unwrap_or_default().to_vec();
            let has_sort_key = source.index.is_some() || !table.key().range.is_empty();
            if has_sort_key && !range.contains(&sk) {
                return Err(Error::validation(
                    "The provided starting key does not match the range key predicate",
                ));
            }
            if start.pk != plan.pk {
                return Err(Error::validation(
                    "The provided starting key is outside query boundaries based on provided conditions",
                ));
            }
            // A partition without sort keys holds one item, and it was in the page before.
            range = match has_sort_key {
                true => range.after(sk, request.backward),
                false => {
                    SortRange { low: Bound::Excluded(vec![0]), high: Bound::Excluded(vec![0]) }
                }
            };
        }
        let select = source.select(request.select, &bound)?;
        let snapshot = self.engine().snapshot();
        let seq = snapshot.seq();
        let mut page = Page::new(source, select, bound, &snapshot, request.limit);
        page.costs = Costs::reads(request.capacity);
        if !range.is_empty() {
            let partition = snapshot.partition(plan.table, plan.pk).range((range.low, range.high));
            let partition = if request.backward { partition.reverse() } else { partition };
            let mut items = partition.iter().map_err(table_gone)?;
            while let Some(record) = items.next_ref()? {
                if page.add(record.value)? == Full::Yes {
                    break;
                }
            }
        }
        Ok((page.finish(request.consistent_read)?, seq))
    }
}

/// A table or an index, as a query or scan reads it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub table: &'a Table,
    pub index: Option<&'a Index>,
}

/// What a page returns of each item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Returns {
    Count,
    /// What is stored where the page reads.
    Stored,
    /// The item of the table, which the local index does not hold whole.
    Fetched,
}

/// Whether a page takes more items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    Yes,
    No,
}

impl<'a> Source<'a> {
    pub fn find(table: &'a Table, index: Option<&str>, consistent: bool) -> Result<Self> {
        let Some(name) = index else { return Ok(Source { table, index: None }) };
        let Some(index) = table.index(name) else {
            return Err(Error::validation(format!(
                "The table does not have the specified index: {name}"
            )));
        };
        if index.status == Status::Creating {
            return Err(Error::validation(format!(
                "Cannot read from backfilling global secondary index: {name}"
            )));
        }
        if consistent && index.scope == Scope::Global {
            return Err(Error::validation(
                "Consistent reads are not supported on global secondary indexes",
            ));
        }
        Ok(Source { table, index: Some(index) })
    }

    /// What to return, if the index can give it.
    pub fn select(&self, select: Option<Select>, bound: &Bindings) -> Result<Returns> {
        let projection = bound.projection.as_ref();
        let invalid = |message: String| {
            Err(Error::validation(format!("One or more parameter values were invalid: {message}")))
        };
        let Some(index) = self.index else {
            return Ok(if select == Some(Select::Count) {
                Returns::Count
            } else {
                Returns::Stored
            });
        };
        match select {
            Some(Select::Count) => Ok(Returns::Count),
            Some(Select::AllAttributes) if index.projection != IndexProjection::All => {
                if index.scope == Scope::Local {
                    return Ok(Returns::Fetched);
                }
                invalid(format!(
                    "Select type ALL_ATTRIBUTES is not supported for global secondary index {} because its projection type is not ALL",
                    index.name
                ))
            }
            _ => {
                let mut missing = projection
                    .into_iter()
                    .flat_map(BoundProjection::top_level_names)
                    .filter(|name| !index.holds(name))
                    .peekable();
                match (missing.peek().is_some(), index.scope) {
                    (false, _) => Ok(Returns::Stored),
                    (true, Scope::Local) => Ok(Returns::Fetched),
                    (true, Scope::Global) => invalid(format!(
                        "Global secondary index {} does not project [{}]",
                        index.name,
                        missing.collect::<Vec<_>>().join(", ")
                    )),
                }
            }
        }
    }

    /// The engine's key of the item that a page ended with.
    pub fn start_key(&self, start: &Item) -> Result<Key> {
        let invalid = || Error::validation("The provided starting key is invalid");
        let bytes = ItemBytes::encode(start);
        let table_key = bytes.as_ref().filter(|name| self.table.key().contains(name));
        let Some(index) = self.index else {
            return self.table.key_of_request(bytes.as_ref()).map_err(|_| {
                Error::validation(
                    "The provided starting key is invalid: The provided key element does not match the schema",
                )
            });
        };
        let wanted = index.position_attributes(self.table.key(), bytes.as_ref());
        let key_names = |name: &str| self.table.key().contains(name) || index.key.contains(name);
        let expected = self
            .table
            .key()
            .attributes()
            .chain(index.key.attributes().filter(|a| !self.table.key().contains(&a.name)))
            .count();
        if wanted.is_none_or(|wanted| wanted.len() != expected)
            || !start.iter().all(|(name, _)| key_names(name))
        {
            return Err(invalid());
        }
        let base = self.table.key_of_request(table_key.as_ref()).map_err(|_| invalid())?;
        index.entry_key(&base, bytes.as_ref()).ok_or_else(invalid)
    }
}

/// Checks that what to return is given once, and makes sense.
pub(crate) fn check_select(
    select: Option<Select>,
    projection: Option<&Projection>,
    index: Option<&str>,
) -> Result<()> {
    let invalid = |message: &str| {
        Err(Error::validation(format!("One or more parameter values were invalid: {message}")))
    };
    match (select, projection) {
        (Some(Select::SpecificAttributes), None) => invalid(
            "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES",
        ),
        (Some(Select::AllProjectedAttributes), _) if index.is_none() => {
            invalid("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
        }
        (Some(select), Some(projection)) if select != Select::SpecificAttributes => {
            let name = match select {
                Select::AllAttributes => "ALL_ATTRIBUTES",
                Select::AllProjectedAttributes => "ALL_PROJECTED_ATTRIBUTES",
                Select::Count => "only the Count",
                Select::SpecificAttributes => "SPECIFIC_ATTRIBUTES",
            };
            let parameter = match projection {
                Projection::Attributes(_) => "AttributesToGet",
                Projection::Text(_) => "ProjectionExpression",
            };
            Err(Error::validation(format!(
                "Cannot specify the {parameter} when choosing to get {name}"
            )))
        }
        _ => Ok(()),
    }
}

/// A query's filter must leave the keys to the key condition, and name only what the index holds.
fn check_filter(
    source: &Source<'_>,
    asked: Option<&Condition>,
    filter: Option<&BoundCondition>,
) -> Result<()> {
    let schema = source.index.map_or(source.table.key(), |index| &index.key);
    let key = filter
        .into_iter()
        .flat_map(BoundCondition::top_level_names)
        .find(|name| schema.contains(name));
    if let Some(key) = key {
        let parameter = match asked {
            Some(Condition::Built(_)) => "QueryFilter",
            _ => "Filter Expression",
        };
        return Err(Error::validation(format!(
            "{parameter} can only contain non-primary key attributes: Primary key attribute: {key}"
        )));
    }
    let Some(index) = source.index else { return Ok(()) };
    // In the order of the names; PartiQL tells them in the order of the text.
    let names: BTreeSet<&str> =
        filter.into_iter().flat_map(BoundCondition::top_level_names).collect();
    check_holds_filter(index, names)
}

/// Refuses a filter on attributes that an index does not hold: it would never see them.
pub(crate) fn check_holds_filter<'n>(
    index: &Index,
    names: impl IntoIterator<Item = &'n str>,
) -> Result<()> {
    let mut missing: Vec<&str> = Vec::new();
    for name in names.into_iter().filter(|name| !index.holds(name)) {
        if !missing.contains(&name) {
            missing.push(name);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::validation(format!(
        "One or more parameter values were invalid: Secondary index {} does not project one or more filter attributes: [{}]",
        index.name,
        missing.join(", ")
    )))
}

/// One page of a query or scan as it fills.
pub(crate) struct Page<'a> {
    source: Source<'a>,
    returns: Returns,
    bound: Bindings,
    snapshot: &'a Snapshot,
    limit: Option<u32>,
    pub costs: Costs,
    items: Vec<ItemBytes>,
    count: u32,
    scanned: u32,
    /// Of what was looked at, as it is billed.
    bytes: usize,
    /// Of what was looked at and fetched.
    bytes_held: usize,
    fetched_bytes: Vec<usize>,
    /// The last item that was looked at.
    last: Vec<u8>,
    full: Full,
}

impl<'a> Page<'a> {
    pub fn new(
        source: Source<'a>,
        returns: Returns,
        bound: Bindings,
        snapshot: &'a Snapshot,
        limit: Option<u32>,
    ) -> Self {
        Page {
            source,
            returns,
            bound,
            snapshot,
            limit,
            costs: Costs::default(),
            items: Vec::new(),
            count: 0,
            scanned: 0,
            bytes: 0,
            bytes_held: 0,
            fetched_bytes: Vec::new(),
            last: Vec::new(),
            full: Full::No,
        }
    }

    /// Looks at one stored item.
    pub fn add(&mut self, stored: &[u8]) -> Result<Full> {
        let item = ItemRef::from_slice(stored)?;
        let size = item.size();
        if self.scanned > 0 && self.bytes_held + size > PAGE_BYTES_MAX {
            self.full = Full::Yes;
            return Ok(Full::Yes);
        }
        self.bytes += size;
        self.scanned += 1;
        let fetched = match self.returns {
            Returns::Fetched => self.fetch(item)?,
            Returns::Count | Returns::Stored => None,
        };
        // What is fetched counts, too, or a page of small entries could return gigabytes.
        self.bytes_held += fetched.as_ref().map_or(size, ItemBytes::size);
        let whole = fetched.as_ref().map_or(item, ItemBytes::as_ref);
        let passes = match &self.bound.condition {
            Some(filter) => filter.matches(Some(whole))?,
            None => true,
        };
        if passes {
            self.count += 1;
            if self.returns != Returns::Count {
                self.items.push(match (&self.bound.projection, &fetched) {
                    (Some(projection), _) => projection.apply(whole),
                    (None, Some(fetched)) => fetched.clone(),
                    (None, None) => ItemBytes::copy_from_slice(stored)?,
                });
            }
        }
        self.last.clear();
        self.last.extend_from_slice(stored);
        if self.limit.is_some_and(|limit| self.scanned >= limit) {
            self.full = Full::Yes;
        }
        Ok(self.full)
    }

    /// The table's item for an entry of a local index.
    fn fetch(&mut self, entry: ItemRef<'_>) -> Result<Option<ItemBytes>> {
        let table = self.source.table;
        let keys = entry.filter(|name| table.key().contains(name));
        let key = table.key_of_request(keys.as_ref())?;
        let record = self.snapshot.get(table.id(), &key).map_err(table_gone)?;
        let Some(record) = record else { return Ok(None) };
        let item = ItemBytes::from_bytes(record.value)?;
        self.fetched_bytes.push(item.size());
        Ok(Some(item))
    }

    pub fn finish(mut self, consistent: bool) -> Result<QueryOutput> {
        self.costs.read(self.source.table, self.source.index, self.bytes, consistent);
        for bytes in std::mem::take(&mut self.fetched_bytes) {
            self.costs.read(self.source.table, None, bytes, consistent);
        }
        let next = match self.full {
            Full::Yes => Some(self.position()?),
            Full::No => None,
        };
        Ok(QueryOutput {
            items: (self.returns != Returns::Count).then_some(self.items),
            count: self.count,
            scanned: self.scanned,
            next,
            consumed: self.costs.one(),
        })
    }

    /// The attributes that say where the page ended.
    fn position(&self) -> Result<Item> {
        let table = self.source.table.key();
        let index = self.source.index.map(|index| &index.key);
        let names =
            |name: &str| table.contains(name) || index.is_some_and(|index| index.contains(name));
        Ok(ItemRef::from_slice(&self.last)?.filter(names).decode()?)
    }
}
