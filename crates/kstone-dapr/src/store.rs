//! A store of the door: state under a name, with what stands before its keys.
//!
//! Dapr puts the name of an application, or another prefix, before each key, with `||` between, so
//! that several applications share a store. A sidecar does so by itself. Without one the door does,
//! if it is told to; by default a key is what the client says.

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::key::SEPARATOR;
use crate::query::{Found, Query};
use crate::state::State;
use crate::write::Operation;

/// What stands before each key: Dapr's `keyPrefix`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeyPrefix {
    /// Nothing: keys are what clients say.
    #[default]
    None,
    /// The name of the store.
    Store,
    /// This text: an application's name, say.
    Text(String),
}

/// A strategy cannot be followed, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoKeyPrefix(String);

impl KeyPrefix {
    /// What one of Dapr's strategies comes to: `none`, `name`, `appid`, `namespace`, or a text of
    /// its own, which Dapr takes in small letters.
    ///
    /// # Errors
    /// If the strategy needs the name of an application and there is none, or has `||` in it.
    pub fn of_strategy(
        strategy: &str,
        app_id: Option<&str>,
        namespace: Option<&str>,
    ) -> Result<KeyPrefix, NoKeyPrefix> {
        let strategy = strategy.to_lowercase();
        let app_id = app_id.filter(|app_id| !app_id.is_empty()).ok_or_else(|| {
            NoKeyPrefix(format!("`{strategy}` needs the application's name, its app id"))
        });
        let text = match strategy.as_str() {
            "none" | "" => return Ok(KeyPrefix::None),
            "name" => return Ok(KeyPrefix::Store),
            "appid" => app_id?.to_owned(),
            "namespace" => match namespace.filter(|namespace| !namespace.is_empty()) {
                Some(namespace) => format!("{namespace}.{}", app_id?),
                None => app_id?.to_owned(),
            },
            _ => strategy,
        };
        match text.contains(SEPARATOR) {
            true => Err(NoKeyPrefix(format!("`{text}` has {SEPARATOR} in it"))),
            false => Ok(KeyPrefix::Text(text)),
        }
    }
}

/// State with what stands before its keys.
#[derive(Debug)]
pub(crate) struct Store<'d> {
    state: &'d State,
    /// Empty, or ends with the separator.
    prefix: String,
}

impl Store<'_> {
    pub(crate) fn new<'d>(state: &'d State, name: &str, prefix: &KeyPrefix) -> Store<'d> {
        let prefix = match prefix {
            KeyPrefix::None => String::new(),
            KeyPrefix::Store => format!("{name}{SEPARATOR}"),
            KeyPrefix::Text(text) => format!("{text}{SEPARATOR}"),
        };
        Store { state, prefix }
    }

    /// The key as it is stored.
    fn whole(&self, key: &str) -> Result<String> {
        match key.contains(SEPARATOR) {
            true => Err(Error::malformed(format!("key '{key}' can't contain '{SEPARATOR}'"))),
            false if key.is_empty() => Err(Error::malformed("a key must not be empty")),
            false => Ok(format!("{}{key}", self.prefix)),
        }
    }

    fn all_whole(&self, mut operations: Vec<Operation>) -> Result<Vec<Operation>> {
        for operation in &mut operations {
            operation.key = self.whole(&operation.key)?;
        }
        Ok(operations)
    }

    pub(crate) async fn get(&self, key: &str) -> Result<Option<Entry>> {
        self.state.get(&self.whole(key)?).await
    }

    pub(crate) async fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Entry>>> {
        let keys: Vec<String> = keys.iter().map(|key| self.whole(key)).collect::<Result<_>>()?;
        self.state.get_many(&keys).await
    }

    pub(crate) async fn write(&self, operations: Vec<Operation>) -> Result<()> {
        self.state.write(self.all_whole(operations)?).await
    }

    pub(crate) async fn transact(&self, operations: Vec<Operation>) -> Result<()> {
        self.state.transact(self.all_whole(operations)?).await
    }

    /// What a query finds among the keys of this store, under the names that clients know.
    pub(crate) async fn query(&self, query: Query) -> Result<Found> {
        let mut found = self.state.query(&query.of_store(&self.prefix)).await?;
        for (key, _) in &mut found.entries {
            *key = key.split_off(self.prefix.len());
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_daprs() {
        let of = |strategy, app, namespace| KeyPrefix::of_strategy(strategy, app, namespace);
        let text = |text: &str| Ok(KeyPrefix::Text(text.to_owned()));
        assert_eq!(of("none", None, None), Ok(KeyPrefix::None));
        assert_eq!(of("name", None, None), Ok(KeyPrefix::Store));
        assert_eq!(of("appid", Some("Shop"), None), text("Shop"));
        assert_eq!(of("namespace", Some("Shop"), Some("prod")), text("prod.Shop"));
        assert_eq!(of("namespace", Some("Shop"), None), text("Shop"));
        assert_eq!(of("School", None, None), text("school"));
        for (strategy, app) in
            [("appid", None), ("namespace", None), ("a||b", None), ("appid", Some("a||b"))]
        {
            assert!(of(strategy, app, None).is_err(), "{strategy}");
        }
    }
}
