//! The contract of the port to items: each case is a function that any store has to pass.
//!
//! A case asks the store's capabilities where the port leaves it a choice. It makes its own tables,
//! so cases and runs may share a store and happen at the same time.
//! [`items_cases!`](crate::items_cases) lists the cases.

pub mod batches;
pub mod conditions;
pub mod expiry;
pub mod pages;
pub mod tables;
pub mod transactions;
pub mod updates;
pub mod values;

use std::sync::Arc;
use std::time::Duration;

use kstone_ports::items::{
    Condition, GetItem, Items, KeyAttribute, KeySchema, Placeholders, PutItem, TableSpec,
};
use kstone_ports::value::{Item, Value};

/// How long a store may take to show what it only promises to show in the end.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// A store to be tested.
#[derive(Debug, Clone)]
pub struct Store {
    /// It.
    pub items: Arc<dyn Items>,
    /// What the names of all tables begin with: no other run on the same store has it.
    pub prefix: String,
}

/// The attribute that says when an item expires.
pub const TTL: &str = "expires";

impl Store {
    /// A store with a prefix that no other run has.
    pub fn new(items: Arc<dyn Items>, prefix: impl Into<String>) -> Store {
        Store { items, prefix: prefix.into() }
    }

    /// The name of one of this run's tables.
    pub fn name(&self, table: &str) -> String {
        format!("{}-{table}", self.prefix)
    }

    /// Makes a table whose items have the keys `pk` and `sk`, both strings. Gives its name.
    pub async fn table(&self, table: &str) -> String {
        let spec = TableSpec { name: self.name(table), key: pk_and_sk(), ..TableSpec::default() };
        self.items.require_table(&spec, Some(TTL)).await.unwrap();
        spec.name
    }

    /// Writes an item.
    pub async fn put(&self, table: &str, item: Item) {
        let put = PutItem { table: table.to_owned(), item, ..PutItem::default() };
        self.items.put(&put).await.unwrap();
    }

    /// Reads the item that [`key`] names, as it is now.
    pub async fn get(&self, table: &str, key: Item) -> Option<Item> {
        let get =
            GetItem { table: table.to_owned(), key, consistent_read: true, ..GetItem::default() };
        let item = self.items.get(&get).await.unwrap().item;
        item.map(|item| item.decode().unwrap())
    }
}

/// The key of the tables that [`Store::table`] makes.
pub fn pk_and_sk() -> KeySchema {
    KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::string("sk"))
}

/// The key of one item.
pub fn key(pk: &str, sk: &str) -> Item {
    Item::new().with("pk", pk).with("sk", sk)
}

/// A condition or filter.
pub fn condition(text: &str) -> Option<Condition> {
    Some(Condition::Text(text.to_owned()))
}

/// Placeholders of values.
pub fn values<V: Into<Value>>(pairs: impl IntoIterator<Item = (&'static str, V)>) -> Placeholders {
    let pairs = pairs.into_iter().map(|(name, value)| (name.to_owned(), value.into()));
    Placeholders { names: None, values: Some(pairs.collect()) }
}

/// Calls a macro with the paths of all cases: `async` functions that take a [`Store`] and panic where
/// the store breaks the contract.
#[macro_export]
macro_rules! items_cases {
    ($with:ident) => {
        $with! {
            batches::a_hundred_items_are_read_and_the_missing_left_out
            batches::puts_and_deletes_of_two_tables_go_in_one_batch
            conditions::an_item_is_put_only_where_there_is_none
            conditions::a_version_that_has_moved_on_fails_the_condition
            conditions::a_failed_condition_brings_the_item_if_asked
            conditions::a_delete_with_a_condition_keeps_what_does_not_meet_it
            conditions::of_racing_puts_exactly_one_wins
            expiry::an_expired_item_is_not_returned_where_expiry_is_exact
            pages::a_partition_is_read_in_pages_forward_and_backward
            pages::a_range_a_filter_a_projection_and_a_count_of_a_partition
            pages::a_scan_sees_every_item_once_in_pages_and_in_segments
            pages::an_index_shows_what_was_written_and_changed
            tables::a_table_is_required_twice_and_refused_with_another_key
            tables::an_unknown_table_is_not_found
            tables::a_table_is_listed_and_described
            transactions::all_or_nothing
            transactions::reasons_come_in_the_order_of_the_actions
            transactions::a_repeated_token_does_nothing_and_succeeds
            transactions::a_token_of_another_transaction_is_refused
            transactions::items_are_read_as_of_one_moment
            updates::attributes_are_set_removed_added_and_deleted
            updates::an_update_of_nothing_makes_the_item
            updates::increments_of_one_item_at_the_same_time_add_up
            values::every_type_comes_back
            values::numbers_keep_38_digits
            values::a_large_item_is_kept_and_one_too_large_refused
        }
    };
}
