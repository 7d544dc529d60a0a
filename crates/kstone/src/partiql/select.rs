//! Runs a `SELECT`: one query for each partition that its condition names, or a scan.

use crate::database::Database;
use crate::error::{Error, Result};
use crate::expr::{BoundCondition, BoundKeyCondition, KeyClause, KeyOp};
use crate::ops::{
    Consumed, KeyCondition, Query, QueryOutput, Scan, Select as Returned, add_consumed,
    check_holds_filter,
};
use crate::partiql::ast::{self, ExprKind};
use crate::partiql::keys::{Reads, reads};
use crate::partiql::page_token::{self, Position};
use crate::partiql::prepare::{Prepared, refuse_several_attributes};
use crate::partiql::projection::Projection;
use crate::partiql::request::{Statement, StatementOutput};
use crate::table::KeySchema;
use crate::table::live::{Index, Scope, Table};
use crate::value::{EncodedValue, ItemBytes, Value};

/// The bytes of items after which no further partition is begun. Within one, the query's own page
/// of 1 MB ends.
const PAGE_BYTES_MAX: usize = 1024 * 1024;

/// A `SELECT` that is ready to run.
struct Plan {
    table: String,
    index: Option<String>,
    hash: String,
    reads: Reads,
    filter: Option<BoundCondition>,
    projection: Option<Projection>,
    returned: Option<Returned>,
    backward: bool,
}

impl Database {
    pub(super) fn select(
        &self,
        request: &Statement,
        prepared: &Prepared<'_>,
        select: &ast::Select,
    ) -> Result<StatementOutput> {
        let plan = self.plan_select(request, prepared, select)?;
        let mut at = page_token::decode(request)?;
        let mut page = Page::new(request.limit);
        match &plan.reads.partitions {
            None => {
                let scan = Scan {
                    table: plan.table.clone(),
                    index: plan.index.clone(),
                    select: plan.returned,
                    limit: request.limit,
                    start: at.key.take(),
                    consistent_read: request.consistent_read,
                    capacity: request.capacity,
                    ..Scan::default()
                };
                page.add(0, self.scan_items(&scan).early()?, &plan)?;
            }
            Some(partitions) => {
                for (n, partition) in partitions.iter().enumerate().skip(at.partition as usize) {
                    let Ok(n) = u32::try_from(n) else { break };
                    if page.is_full() {
                        page.end = Some(Position { partition: n, key: None });
                        break;
                    }
                    let query = Query {
                        start: at.key.take(),
                        limit: page.left,
                        consistent_read: request.consistent_read,
                        capacity: request.capacity,
                        ..plan.query(partition)
                    };
                    page.add(n, self.query_items(&query).early()?, &plan)?;
                    if page.end.is_some() {
                        break;
                    }
                }
            }
        }
        Ok(StatementOutput {
            next_token: page.end.as_ref().map(|end| page_token::encode(end, request)),
            last_evaluated_key: page.end.and_then(|end| end.key),
            items: page.items,
            consumed: page.consumed.into_iter().next(),
        })
    }

    fn plan_select(
        &self,
        request: &Statement,
        prepared: &Prepared<'_>,
        select: &ast::Select,
    ) -> Result<Plan> {
        let table = self.table_of(prepared)?;
        let index = index_of(&table, select.source.index.as_deref(), request.consistent_read)?;
        let condition = select.condition.as_ref();
        let filter = match condition {
            Some(condition) => self.bind_where(condition, prepared.parameters)?,
            None => None,
        };
        let projection = select.projection.as_deref().map(Projection::new).transpose()?;
        let schema = index.map_or(table.key(), |index| &index.key);
        let mut reads = reads(condition, schema, prepared.parameters)?;
        let returned = match index {
            Some(index) => returned(index, &reads, filter.as_ref(), projection.as_ref())?,
            None => None,
        };
        let backward = order(select, schema, &mut reads)?;
        Ok(Plan {
            table: select.source.table.clone(),
            index: select.source.index.clone(),
            hash: schema.hash.first().map(|hash| hash.name.clone()).unwrap_or_default(),
            filter: filter.filter(|_| !reads.exact),
            reads,
            projection,
            returned,
            backward,
        })
    }
}

impl Plan {
    fn query(&self, partition: &Value) -> Query {
        let equal = KeyOp::Eq(EncodedValue::new(partition));
        let clauses = std::iter::once(KeyClause { name: self.hash.clone(), op: equal })
            .chain(self.reads.range.clone())
            .collect();
        Query {
            table: self.table.clone(),
            index: self.index.clone(),
            key_condition: Some(KeyCondition::Built(BoundKeyCondition { clauses })),
            select: self.returned,
            backward: self.backward,
            ..Query::default()
        }
    }
}

/// What a statement answers with, as it fills.
struct Page {
    items: Vec<ItemBytes>,
    /// How many more items to look at.
    left: Option<u32>,
    bytes: usize,
    end: Option<Position>,
    consumed: Vec<Consumed>,
}

impl Page {
    fn new(limit: Option<u32>) -> Self {
        Page { items: Vec::new(), left: limit, bytes: 0, end: None, consumed: Vec::new() }
    }

    /// Takes over what an operation found.
    fn add(&mut self, partition: u32, found: QueryOutput, plan: &Plan) -> Result<()> {
        if let Some(consumed) = found.consumed {
            add_consumed(&mut self.consumed, consumed);
        }
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(found.scanned);
        }
        self.end = found.next.map(|key| Position { partition, key: Some(key) });
        for item in found.items.into_iter().flatten() {
            self.bytes += item.as_slice().len();
            if let Some(filter) = &plan.filter
                && !filter.matches(Some(item.as_ref()))?
            {
                continue;
            }
            self.items.push(match &plan.projection {
                Some(projection) => projection.apply(item.as_ref()),
                None => item,
            });
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.left == Some(0) || self.bytes >= PAGE_BYTES_MAX
    }
}

fn index_of<'t>(
    table: &'t Table,
    name: Option<&str>,
    consistent: bool,
) -> Result<Option<&'t Index>> {
    let Some(name) = name else { return Ok(None) };
    let Some(index) = table.index(name) else {
        return Err(Error::validation("The table does not have the specified index"));
    };
    refuse_several_attributes(table, name)?;
    if consistent && index.scope == Scope::Global {
        return Err(Error::validation(
            "Strongly consistent read is not supported on Global Secondary Indexes",
        ));
    }
    Ok(Some(index))
}

/// What to read of an index: `None` for what it holds.
fn returned(
    index: &Index,
    reads: &Reads,
    filter: Option<&BoundCondition>,
    projection: Option<&Projection>,
) -> Result<Option<Returned>> {
    let invalid = |what: String| {
        Err(Error::validation(format!("One or more parameter values were invalid: {what}")))
    };
    let lacks = |name: &&str| !index.holds(name);
    if reads.keyed
        && let Some(filter) = filter
    {
        check_holds_filter(index, filter.top_level_names())?;
    }
    let names = projection.into_iter().flat_map(Projection::top_level_names);
    let names: Vec<&str> = names.filter(lacks).collect();
    match (names.is_empty(), index.scope) {
        (true, _) => Ok(None),
        (false, Scope::Local) => Ok(Some(Returned::AllAttributes)),
        (false, Scope::Global) => invalid(format!(
            "Global secondary index {} does not project [{}]",
            index.name,
            names.join(", ")
        )),
    }
}

/// Puts the partitions in order, and says whether each is read from its end.
fn order(select: &ast::Select, schema: &KeySchema, reads: &mut Reads) -> Result<bool> {
    if select.order.is_empty() {
        return Ok(false);
    }
    if select.condition.is_none() {
        return Err(Error::validation(
            "Must have WHERE clause in the statement when using ORDER BY clause.",
        ));
    }
    let (mut by_hash, mut by_range) = (None, None);
    for order in &select.order {
        let name = match &order.by.kind {
            ExprKind::Path(path) if path.steps.is_empty() => &path.root,
            other => {
                let kind = match other {
                    ExprKind::Path(_) => "PATH".to_owned(),
                    ExprKind::String(text) => format!("\"{text}\""),
                    _ => order.by.to_string(),
                };
                return Err(Error::validation(format!(
                    "Argument to ORDER BY must be of type VariableReference. Type: {kind}"
                )));
            }
        };
        let named = |key: &[crate::table::KeyAttribute]| key.iter().any(|key| key.name == *name);
        if named(&schema.hash) {
            by_hash.get_or_insert(order.descending);
        } else if named(&schema.range) {
            by_range.get_or_insert(order.descending);
        } else {
            return Err(Error::validation(format!(
                "Variable reference {name} in ORDER BY clause must be part of the primary key"
            )));
        }
    }
    let Some(partitions) = &mut reads.partitions else {
        return Err(Error::validation(
            "Must have at least one non-optional hash key condition in WHERE clause when using \
             ORDER BY clause.",
        ));
    };
    if by_hash == Some(true) {
        partitions.reverse();
    }
    Ok(by_range == Some(true))
}
