//! A named state store of the door, with the prefix of its keys.
//!
//! Dapr puts the name of an application, or another prefix, and `||` before each key, so that several
//! applications can share a store. A sidecar does so itself. Without a sidecar the door does, if it
//! is told to; by default a key is stored as the client sends it.

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::key::SEPARATOR;
use crate::query::{Query, QueryPage};
use crate::state::State;
use crate::write::Operation;

/// The prefix that the door puts before each key: Dapr's `keyPrefix`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeyPrefix {
    /// None: keys are stored as clients send them.
    #[default]
    None,
    /// The name of the store.
    Store,
    /// This text, such as an application's name.
    Text(String),
}

/// Why a prefix strategy cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidKeyPrefix(String);

impl KeyPrefix {
    /// The prefix for one of Dapr's strategies: `none`, `name`, `appid`, `namespace`, or a prefix of
    /// one's own, which Dapr converts to lower case.
    ///
    /// # Errors
    /// If the strategy needs the name of an application and there is none, or has `||` in it.
    pub fn of_strategy(
        strategy: &str,
        app_id: Option<&str>,
        namespace: Option<&str>,
    ) -> Result<KeyPrefix, InvalidKeyPrefix> {
        let strategy = strategy.to_lowercase();
        let app_id = app_id.filter(|app_id| !app_id.is_empty()).ok_or_else(|| {
            InvalidKeyPrefix(format!("`{strategy}` needs the application's name, its app id"))
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
            true => Err(InvalidKeyPrefix(format!("`{text}` has {SEPARATOR} in it"))),
            false => Ok(KeyPrefix::Text(text)),
        }
    }
}

/// State whose keys have a prefix.
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

    /// The key with its prefix, as it is stored.
    fn stored_key(&self, key: &str) -> Result<String> {
        match key.contains(SEPARATOR) {
            true => Err(Error::malformed(format!("key '{key}' can't contain '{SEPARATOR}'"))),
            false if key.is_empty() => Err(Error::malformed("a key must not be empty")),
            false => Ok(format!("{}{key}", self.prefix)),
        }
    }

    fn with_stored_keys(&self, mut operations: Vec<Operation>) -> Result<Vec<Operation>> {
        for operation in &mut operations {
            operation.key = self.stored_key(&operation.key)?;
        }
        Ok(operations)
    }

    pub(crate) async fn get(&self, key: &str) -> Result<Option<Entry>> {
        self.state.get(&self.stored_key(key)?).await
    }

    pub(crate) async fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Entry>>> {
        let keys: Vec<String> =
            keys.iter().map(|key| self.stored_key(key)).collect::<Result<_>>()?;
        self.state.get_many(&keys).await
    }

    pub(crate) async fn write(&self, operations: Vec<Operation>) -> Result<()> {
        self.state.write(self.with_stored_keys(operations)?).await
    }

    pub(crate) async fn transact(&self, operations: Vec<Operation>) -> Result<()> {
        self.state.transact(self.with_stored_keys(operations)?).await
    }

    /// A page of a query over the keys of this store, which are returned without their prefix.
    pub(crate) async fn query(&self, query: Query) -> Result<QueryPage> {
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
