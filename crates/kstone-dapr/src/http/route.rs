//! Routes: parses the path and the query string of a request.

use std::collections::HashMap;

use http::Method;
use percent_encoding::percent_decode_str;

use crate::error::{Error, RequestKind, Result};

/// The resource that a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    Health,
    Metadata,
    /// A store as a whole.
    Store(String),
    /// A store and a key. For POST some words are not keys: `bulk` and `transaction`.
    Key(String, String),
    /// The query endpoint of a store.
    Query(String),
}

impl Route {
    pub(super) fn parse(path: &str) -> Option<Route> {
        match path.trim_end_matches('/') {
            "/v1.0/healthz" | "/v1.0/healthz/outbound" => return Some(Route::Health),
            "/v1.0/metadata" => return Some(Route::Metadata),
            _ => {}
        }
        if let Some(rest) = path.strip_prefix("/v1.0-alpha1/state/") {
            let store = rest.strip_suffix("/query")?;
            return Some(Route::Query(decode(store, false)?));
        }
        let rest = path.strip_prefix("/v1.0/state/")?;
        match rest.split_once('/') {
            Some((store, key)) if !key.is_empty() => {
                Some(Route::Key(decode(store, false)?, decode(key, false)?))
            }
            Some((store, _)) => Some(Route::Store(decode(store, false)?)),
            None => Some(Route::Store(decode(rest, false)?)),
        }
    }

    /// The kind of a request with this method; `None` if it is not about state.
    pub(super) fn request_kind(&self, method: &Method) -> Option<RequestKind> {
        let is_write = *method == Method::POST || *method == Method::PUT;
        match self {
            Route::Store(_) if is_write => Some(RequestKind::Save),
            Route::Key(..) if *method == Method::GET => Some(RequestKind::Get),
            Route::Key(..) if *method == Method::DELETE => Some(RequestKind::Delete),
            Route::Key(_, word) if is_write && word == "bulk" => Some(RequestKind::BulkGet),
            Route::Key(_, word) if is_write && word == "transaction" => {
                Some(RequestKind::Transaction)
            }
            Route::Query(_) if is_write => Some(RequestKind::Query),
            _ => None,
        }
    }

    pub(super) fn store_and_key(self) -> (String, String) {
        match self {
            Route::Key(store, key) => (store, key),
            Route::Store(store) | Route::Query(store) => (store, String::new()),
            Route::Health | Route::Metadata => Default::default(),
        }
    }
}

/// The query string.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    plain: HashMap<String, String>,
    /// The parameters that begin with `metadata.`, by the rest of their names.
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

/// Decodes percent-encoded text (`%2F`); `None` if the result is not UTF-8.
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

    fn key(store: &str, key: &str) -> Option<Route> {
        Some(Route::Key(store.to_owned(), key.to_owned()))
    }

    #[test]
    fn a_key_is_all_that_follows_the_store_with_its_escapes_undone() {
        let parse = Route::parse;
        assert_eq!(parse("/v1.0/state/s/student:s1:mastery"), key("s", "student:s1:mastery"));
        assert_eq!(parse("/v1.0/state/s/a%20b%2Fc+d/e"), key("s", "a b/c+d/e"));
        assert_eq!(parse("/v1.0/state/s/"), Some(Route::Store("s".to_owned())));
        assert_eq!(parse("/v1.0/state/s"), Some(Route::Store("s".to_owned())));
        assert_eq!(parse("/v1.0-alpha1/state/s/query"), Some(Route::Query("s".to_owned())));
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
