//! What a path and its parameters mean.

use std::collections::HashMap;

use http::Method;
use percent_encoding::percent_decode_str;

use crate::error::{Doing, Error, Result};

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    Health,
    Metadata,
    /// A store as a whole.
    Store(String),
    /// A key of a store. Some words mean something else to POST.
    Key(String, String),
    /// The query of a store, in the API's first version.
    Query(String),
}

impl Address {
    pub(super) fn parse(path: &str) -> Option<Address> {
        match path.trim_end_matches('/') {
            "/v1.0/healthz" | "/v1.0/healthz/outbound" => return Some(Address::Health),
            "/v1.0/metadata" => return Some(Address::Metadata),
            _ => {}
        }
        if let Some(rest) = path.strip_prefix("/v1.0-alpha1/state/") {
            let store = rest.strip_suffix("/query")?;
            return Some(Address::Query(decode(store, false)?));
        }
        let rest = path.strip_prefix("/v1.0/state/")?;
        match rest.split_once('/') {
            Some((store, key)) if !key.is_empty() => {
                Some(Address::Key(decode(store, false)?, decode(key, false)?))
            }
            Some((store, _)) => Some(Address::Store(decode(store, false)?)),
            None => Some(Address::Store(decode(rest, false)?)),
        }
    }

    /// What a method does to it.
    pub(super) fn doing(&self, method: &Method) -> Option<Doing> {
        let is_write = *method == Method::POST || *method == Method::PUT;
        match self {
            Address::Store(_) if is_write => Some(Doing::Save),
            Address::Key(..) if *method == Method::GET => Some(Doing::Get),
            Address::Key(..) if *method == Method::DELETE => Some(Doing::Delete),
            Address::Key(_, word) if is_write && word == "bulk" => Some(Doing::BulkGet),
            Address::Key(_, word) if is_write && word == "transaction" => Some(Doing::Transaction),
            Address::Query(_) if is_write => Some(Doing::Query),
            _ => None,
        }
    }

    pub(super) fn store_and_key(self) -> (String, String) {
        match self {
            Address::Key(store, key) => (store, key),
            Address::Store(store) | Address::Query(store) => (store, String::new()),
            Address::Health | Address::Metadata => Default::default(),
        }
    }
}

/// What stands behind the `?`.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    plain: HashMap<String, String>,
    /// Those that begin with `metadata.`, without it.
    pub(super) metadata: HashMap<String, String>,
}

impl Parameters {
    pub(super) fn parse(query: Option<&str>) -> Result<Parameters> {
        let mut parameters = Parameters::default();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(name), Some(value)) = (decode(name, true), decode(value, true)) else {
                return Err(Error::malformed(format!("the parameter `{pair}` is no text")));
            };
            match name.strip_prefix("metadata.") {
                Some(name) => parameters.metadata.insert(name.to_owned(), value),
                None => parameters.plain.insert(name, value),
            };
        }
        Ok(parameters)
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.plain.get(name).map(String::as_str)
    }
}

/// Text with its escapes (`%2F`) undone; `None` if it is no text then.
fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    let is_hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    let mut escapes = text.as_bytes().split(|byte| *byte == b'%').skip(1);
    if !escapes.all(|escape| escape.get(..2).is_some_and(is_hex)) {
        return None;
    }
    let spaced = plus_is_space.then(|| text.replace('+', " "));
    let decoded = percent_decode_str(spaced.as_deref().unwrap_or(text)).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(store: &str, key: &str) -> Option<Address> {
        Some(Address::Key(store.to_owned(), key.to_owned()))
    }

    #[test]
    fn a_key_is_all_that_follows_the_store_with_its_escapes_undone() {
        let parse = Address::parse;
        assert_eq!(parse("/v1.0/state/s/student:s1:mastery"), key("s", "student:s1:mastery"));
        assert_eq!(parse("/v1.0/state/s/a%20b%2Fc+d/e"), key("s", "a b/c+d/e"));
        assert_eq!(parse("/v1.0/state/s/"), Some(Address::Store("s".to_owned())));
        assert_eq!(parse("/v1.0/state/s"), Some(Address::Store("s".to_owned())));
        assert_eq!(parse("/v1.0-alpha1/state/s/query"), Some(Address::Query("s".to_owned())));
        for wrong in
            ["/", "/v1.0/state", "/v1.0/state/s/%zz", "/v1.0/state/s/%ff", "/v1.0/publish/a"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn parameters_are_plain_or_metadata() {
        let parameters =
            Parameters::parse(Some("consistency=strong&metadata.a=1+%2B&flag&&x=")).unwrap();
        assert_eq!(parameters.get("consistency"), Some("strong"));
        assert_eq!(parameters.get("flag"), Some(""));
        assert_eq!(parameters.metadata["a"], "1 +");
        assert!(Parameters::parse(Some("a=%f")).is_err());
    }
}
