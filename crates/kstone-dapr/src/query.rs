//! Dapr's query API: filters keys by the JSON in their values, sorts them, and returns pages.
//!
//! There is no index of values, so a query reads every key of the store, or of one partition if it
//! names one. A sorted query has to find all matches before it can return the first.

use std::cmp::Ordering;
use std::collections::HashMap;

use kstone_ports::items::{self, KeyCondition, Placeholders, QueryOutput, Scan};
use kstone_ports::value::{Item, Value};
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use crate::entry::{self, Entry, PK};
use crate::error::{Error, Result};
use crate::key::{ItemKey, SEPARATOR, TABLE};
use crate::lookup::empty_if_no_table;
use crate::state::State;
use crate::write::Operation;

/// The limits of one page, and of all matches of a sorted query.
const FOUND_MAX: usize = 10_000;
const FOUND_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The metadata that limits a query to keys with a prefix. An extension: Dapr cannot list keys.
const KEY_PREFIX: &str = "keyPrefix";
/// The metadata that limits a query to one partition, under the name that Dapr's own stores use.
const PARTITION: &str = "partitionKey";

/// A query, parsed.
#[derive(Debug)]
pub(crate) struct Query {
    filter: Filter,
    /// Fields to sort by, each with whether it is descending.
    order: Vec<(String, bool)>,
    limit: usize,
    token: Option<String>,
    key_prefix: String,
    partition: Option<String>,
}

/// One page of a query's result.
#[derive(Debug, Default)]
pub(crate) struct QueryPage {
    pub(crate) entries: Vec<(String, Entry)>,
    /// The token to request the next page with; `None` on the last one.
    pub(crate) token: Option<String>,
}

#[derive(Debug)]
enum Filter {
    All(Vec<Filter>),
    Any(Vec<Filter>),
    Equal(String, Vec<Json>),
    NotEqual(String, Json),
    Compare(String, Json, &'static [Ordering]),
}

#[derive(Debug, Deserialize)]
struct Body {
    #[serde(default)]
    filter: Map<String, Json>,
    #[serde(default)]
    sort: Vec<Sort>,
    #[serde(default)]
    page: Page,
}

#[derive(Debug, Deserialize)]
struct Sort {
    key: String,
    #[serde(default)]
    order: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Page {
    #[serde(default)]
    limit: usize,
    #[serde(default)]
    token: String,
}

/// The error for a query that is not valid JSON.
pub(crate) fn not_json(error: serde_json::Error) -> Error {
    Error::malformed(format!("failed deserializing the query: {error}"))
}

impl Query {
    pub(crate) fn parse(body: &[u8], metadata: &HashMap<String, String>) -> Result<Query> {
        let body: Map<String, Json> = serde_json::from_slice(body).map_err(not_json)?;
        let body: Body = serde_json::from_value(Json::Object(body)).map_err(not_json)?;
        let order = body.sort.into_iter().map(|sort| match sort.order.as_deref() {
            None | Some("ASC" | "") => Ok((sort.key, false)),
            Some("DESC") => Ok((sort.key, true)),
            Some(other) => {
                Err(Error::malformed(format!("sort order `{other}` is not ASC or DESC")))
            }
        });
        let order = order.collect::<Result<_>>()?;
        Query::new(body.filter, order, body.page.limit, body.page.token, metadata)
    }

    /// A query with this filter, sorted by fields (each with whether it is descending). A limit of
    /// zero means as much as a page holds.
    pub(crate) fn new(
        filter: Map<String, Json>,
        order: Vec<(String, bool)>,
        limit: usize,
        token: String,
        metadata: &HashMap<String, String>,
    ) -> Result<Query> {
        Ok(Query {
            filter: match filter.is_empty() {
                true => Filter::All(Vec::new()),
                false => Filter::parse(filter)?,
            },
            order,
            limit: if limit == 0 { FOUND_MAX } else { limit.min(FOUND_MAX) },
            token: Some(token).filter(|token| !token.is_empty()),
            key_prefix: metadata.get(KEY_PREFIX).cloned().unwrap_or_default(),
            partition: metadata.get(PARTITION).filter(|it| !it.is_empty()).cloned(),
        })
    }

    /// Limits the query to the keys of a store, all of which have this prefix.
    pub(crate) fn of_store(mut self, prefix: &str) -> Query {
        self.key_prefix.insert_str(0, prefix);
        if let Some(partition) = &mut self.partition {
            partition.insert_str(0, prefix);
        }
        self
    }

    fn accepts(&self, key: &str, value: impl FnOnce() -> Json) -> bool {
        key.starts_with(&self.key_prefix)
            && (matches!(&self.filter, Filter::All(all) if all.is_empty())
                || self.filter.accepts(&value()))
    }
}

impl Filter {
    fn parse(filter: Map<String, Json>) -> Result<Filter> {
        let mut clauses = filter.into_iter();
        let (Some((operator, operand)), None) = (clauses.next(), clauses.next()) else {
            return Err(Error::malformed("a filter is an object with one operator"));
        };
        match operator.as_str() {
            "AND" => Ok(Filter::All(Filter::list(operand)?)),
            "OR" => Ok(Filter::Any(Filter::list(operand)?)),
            "EQ" => Filter::field(operand).map(|(field, value)| Filter::Equal(field, vec![value])),
            "NEQ" => Filter::field(operand).map(|(field, value)| Filter::NotEqual(field, value)),
            "IN" => match Filter::field(operand)? {
                (field, Json::Array(values)) => Ok(Filter::Equal(field, values)),
                _ => Err(Error::malformed("IN takes a field and an array")),
            },
            _ => {
                let orders: &[Ordering] = match operator.as_str() {
                    "GT" => &[Ordering::Greater],
                    "GTE" => &[Ordering::Greater, Ordering::Equal],
                    "LT" => &[Ordering::Less],
                    "LTE" => &[Ordering::Less, Ordering::Equal],
                    _ => {
                        return Err(Error::malformed(format!(
                            "unsupported filter `{operator}`: it is AND, OR, EQ, NEQ, IN, GT, GTE, \
                             LT or LTE"
                        )));
                    }
                };
                let (field, value) = Filter::field(operand)?;
                Ok(Filter::Compare(field, value, orders))
            }
        }
    }

    fn list(operand: Json) -> Result<Vec<Filter>> {
        let wrong = || Error::malformed("AND and OR take an array of filters");
        let Json::Array(list) = operand else { return Err(wrong()) };
        let filter = |filter| match filter {
            Json::Object(filter) => Filter::parse(filter),
            _ => Err(wrong()),
        };
        list.into_iter().map(filter).collect()
    }

    fn field(operand: Json) -> Result<(String, Json)> {
        let one = match operand {
            Json::Object(fields) if fields.len() == 1 => fields.into_iter().next(),
            _ => None,
        };
        one.ok_or_else(|| Error::malformed("a comparison is an object with one field"))
    }

    fn accepts(&self, value: &Json) -> bool {
        match self {
            Filter::All(filters) => filters.iter().all(|filter| filter.accepts(value)),
            Filter::Any(filters) => filters.iter().any(|filter| filter.accepts(value)),
            Filter::Equal(field, wanted) => {
                at(value, field).is_some_and(|found| wanted.iter().any(|it| equal(found, it)))
            }
            Filter::NotEqual(field, wanted) => {
                !at(value, field).is_some_and(|found| equal(found, wanted))
            }
            Filter::Compare(field, wanted, orders) => at(value, field)
                .and_then(|found| compare(found, wanted))
                .is_some_and(|order| orders.contains(&order)),
        }
    }
}

/// The field at a path such as `person.org`.
fn at<'j>(value: &'j Json, path: &str) -> Option<&'j Json> {
    path.split('.').try_fold(value, |value, name| value.get(name))
}

fn equal(a: &Json, b: &Json) -> bool {
    a == b || compare(a, b) == Some(Ordering::Equal)
}

/// Compares two numbers or two texts. Other values have no order.
fn compare(a: &Json, b: &Json) -> Option<Ordering> {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
        },
        (Json::String(a), Json::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn json(entry: &Entry) -> Json {
    serde_json::from_slice(&entry.value).unwrap_or(Json::Null)
}

impl State {
    /// One page of a query's result.
    pub(crate) async fn query(&self, query: &Query) -> Result<QueryPage> {
        match query.order.is_empty() {
            true => self.unsorted_page(query).await,
            false => self.sorted_page(query).await,
        }
    }

    /// A page of an unsorted query: as many items as fit, in the table's order, sorted by key within
    /// the page. The token is the primary key of its last item.
    async fn unsorted_page(&self, query: &Query) -> Result<QueryPage> {
        let start = match &query.token {
            Some(token) => Some(serde_json::from_str(token).map_err(|_| bad_token(token))?),
            None => None,
        };
        let start: Option<(String, String)> = start;
        let start = start.map(|(pk, sk)| ItemKey { pk, sk }.to_item());
        let mut found = QueryPage::default();
        self.collect_matches(start, query, query.limit, &mut found).await?;
        found.entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(found)
    }

    /// A page of a sorted query. The token is how many matches were on the pages before.
    async fn sorted_page(&self, query: &Query) -> Result<QueryPage> {
        let skip: usize = match &query.token {
            Some(token) => token.parse().map_err(|_| bad_token(token))?,
            None => 0,
        };
        let mut found = QueryPage::default();
        self.collect_matches(None, query, FOUND_MAX, &mut found).await?;
        if found.token.is_some() {
            return Err(Error::TooLarge(format!(
                "more than {FOUND_MAX} keys or {FOUND_BYTES_MAX} bytes are too many to put in order"
            )));
        }
        let mut all: Vec<(Json, (String, Entry))> =
            found.entries.into_iter().map(|it| (json(&it.1), it)).collect();
        all.sort_by(|(a, (a_key, _)), (b, (b_key, _))| {
            let by = |(field, descending): &(String, bool)| {
                let order = match (at(a, field), at(b, field)) {
                    (Some(a), Some(b)) => compare(a, b).unwrap_or(Ordering::Equal),
                    (a, b) => a.is_some().cmp(&b.is_some()),
                };
                if *descending { order.reverse() } else { order }
            };
            let order = query.order.iter().map(by).find(|order| order.is_ne());
            order.unwrap_or_else(|| a_key.cmp(b_key))
        });
        let end = skip.saturating_add(query.limit);
        let token = (end < all.len()).then(|| end.to_string());
        let entries = all.into_iter().skip(skip).take(query.limit).map(|(_, it)| it).collect();
        Ok(QueryPage { entries, token })
    }

    /// Reads the next items that may match the query.
    async fn read_candidates(&self, query: &Query, start: Option<Item>) -> Result<QueryOutput> {
        let (table, consistent_read) = (TABLE.to_owned(), true);
        let page = match &query.partition {
            None => {
                let scan = Scan { table, start, consistent_read, ..Scan::default() };
                self.items().scan(&scan).await
            }
            Some(pk) => {
                let condition = KeyCondition::Text("#pk = :pk".to_owned());
                let query = items::Query {
                    table,
                    key_condition: Some(condition),
                    placeholders: Placeholders {
                        names: Some(vec![("#pk".to_owned(), PK.to_owned())]),
                        values: Some(vec![(":pk".to_owned(), Value::from(pk.as_str()))]),
                    },
                    start,
                    consistent_read,
                    ..items::Query::default()
                };
                self.items().query(&query).await
            }
        };
        Ok(empty_if_no_table(page)?)
    }

    /// Deletes all keys of one owner, as Dapr does: those that begin with the prefix and `||`, and
    /// have no further `||` after it. Returns how many there were.
    ///
    /// # Errors
    /// If the prefix is empty, or the database refuses something or fails. Some keys may have been
    /// deleted then.
    pub async fn delete_with_prefix(&self, prefix: &str) -> Result<u64> {
        let owner = prefix.strip_suffix(SEPARATOR).unwrap_or(prefix);
        if owner.is_empty() {
            return Err(Error::malformed("a prefix is required"));
        }
        let mut query = Query::new(Map::new(), Vec::new(), 0, String::new(), &HashMap::new())?;
        query.key_prefix = format!("{owner}{SEPARATOR}");
        let mut deleted: u64 = 0;
        loop {
            let found = self.query(&query).await?;
            let rest =
                |key: &str| key.get(query.key_prefix.len()..).map(|it| it.contains(SEPARATOR));
            let own = found.entries.into_iter().filter(|(key, _)| rest(key) == Some(false));
            let operations: Vec<Operation> = own.map(|(key, _)| Operation::delete(key)).collect();
            deleted += operations.len() as u64;
            self.write(operations).await?;
            match found.token {
                Some(token) => query.token = Some(token),
                None => return Ok(deleted),
            }
        }
    }

    /// Adds matches until there are enough, or the page is full.
    async fn collect_matches(
        &self,
        mut start: Option<Item>,
        query: &Query,
        enough: usize,
        found: &mut QueryPage,
    ) -> Result<()> {
        let mut bytes = 0;
        loop {
            let page = self.read_candidates(query, start).await?;
            let (items, next) = (page.items.unwrap_or_default(), page.next);
            let mut items = items.into_iter().peekable();
            while let Some(item) = items.next() {
                let item = item.decode().map_err(kstone_ports::Error::from)?;
                let Some(item_key) = ItemKey::from_item(&item) else { continue };
                let Some(key) = item_key.state_key(self.keyspace()) else { continue };
                let Some(entry) = entry::read(item, self.now_ms()) else { continue };
                if !query.accepts(&key, || json(&entry)) {
                    continue;
                }
                bytes += key.len() + entry.value.len();
                found.entries.push((key, entry));
                let is_enough = found.entries.len() >= enough || bytes >= FOUND_BYTES_MAX;
                if is_enough && (items.peek().is_some() || next.is_some()) {
                    found.token = serde_json::to_string(&(item_key.pk, item_key.sk)).ok();
                    return Ok(());
                }
            }
            match next {
                Some(next) => start = Some(next),
                None => return Ok(()),
            }
            // A long scan lets other tasks run in between.
            tokio::task::yield_now().await;
        }
    }
}

fn bad_token(token: &str) -> Error {
    Error::malformed(format!("`{token}` is no token of this query"))
}
