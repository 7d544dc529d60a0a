//! Tags of tables: names with values that mean nothing to the database. They are kept with the
//! table and go with it.

use std::collections::HashSet;

use crate::database::Database;
use crate::error::{Error, Result};
use crate::table::no_such_table;

/// Tags of one table.
const TAGS_MAX: usize = 50;
/// Characters of a tag's key, and of its value.
const KEY_CHARS_MAX: usize = 128;
const VALUE_CHARS_MAX: usize = 256;

impl Database {
    /// Gives a table tags; a key that it has already gets the new value.
    pub fn tag(&self, table: &str, tags: &[(String, String)]) -> Result<()> {
        if tags.is_empty() {
            return Err(Error::validation("Atleast one Tag needs to be provided as Input."));
        }
        check(tags)?;
        self.change_tags(table, |kept| {
            for (key, value) in tags {
                match kept.iter_mut().find(|(known, _)| known == key) {
                    Some((_, old)) => old.clone_from(value),
                    None => kept.push((key.clone(), value.clone())),
                }
            }
        })
    }

    /// Takes tags off a table; keys that it does not have are passed over.
    pub fn untag(&self, table: &str, keys: &[String]) -> Result<()> {
        if keys.is_empty() {
            return Err(Error::validation("Atleast one Tag Key needs to be provided as Input."));
        }
        keys.iter().try_for_each(|key| check_key(key))?;
        self.change_tags(table, |kept| kept.retain(|(key, _)| !keys.contains(key)))
    }

    /// A table's tags, in the order in which they were given.
    pub fn tags(&self, table: &str) -> Result<Vec<(String, String)>> {
        let table = self.inner().catalog.get(table).ok_or_else(|| no_such_table(table))?;
        Ok(table.record.spec.tags.clone())
    }

    fn change_tags(
        &self,
        table: &str,
        change: impl FnOnce(&mut Vec<(String, String)>),
    ) -> Result<()> {
        let inner = self.inner();
        let changing = inner.catalog.change(&inner.engine);
        let table = changing.get(table).ok_or_else(|| no_such_table(table))?;
        let mut record = table.record.clone();
        change(&mut record.spec.tags);
        within_limit(&record.spec.tags)?;
        if record != table.record {
            changing.put(record, &[])?;
        }
        Ok(())
    }
}

/// Refuses tags that DynamoDB would refuse.
pub(crate) fn check(tags: &[(String, String)]) -> Result<()> {
    let mut keys = HashSet::new();
    for (key, value) in tags {
        check_key(key)?;
        if value.chars().count() > VALUE_CHARS_MAX || !value.chars().all(allowed) {
            return Err(Error::validation(format!(
                "The Tag Value provided is invalid, Value: {value}"
            )));
        }
        if !keys.insert(key) {
            return Err(Error::validation(format!(
                "Duplicate Tag Keys provided as input: Duplicate Tag Key found {key}"
            )));
        }
    }
    within_limit(tags)
}

fn check_key(key: &str) -> Result<()> {
    if key.is_empty() || key.chars().count() > KEY_CHARS_MAX || !key.chars().all(allowed) {
        return Err(Error::validation(format!("The Tag Key provided is invalid, Key: {key}")));
    }
    if key.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("aws:")) {
        return Err(Error::validation(format!("Tag Key cannot be prefixed with aws:, Key: {key}")));
    }
    Ok(())
}

fn within_limit(tags: &[(String, String)]) -> Result<()> {
    if tags.len() > TAGS_MAX {
        return Err(Error::validation(
            "Number of Tags exceed the current limit for the provided ResourceArn",
        ));
    }
    Ok(())
}

fn allowed(c: char) -> bool {
    c.is_alphanumeric() || c.is_whitespace() || "_.:/=+-@".contains(c)
}
