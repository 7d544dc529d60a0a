//! Extractors that parse bodies, parameters and paths into types. What does not fit is refused with its
//! field's name.

use std::convert::Infallible;

use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::problem::{Code, Problem};

/// A body of JSON.
#[derive(Debug)]
pub(super) struct Body<T>(pub T);

/// What stands after the question mark.
#[derive(Debug)]
pub(super) struct Params<T>(pub T);

/// What the placeholders of a path stand for.
#[derive(Debug)]
pub(super) struct Address<T>(pub T);

impl<T> std::ops::Deref for Address<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// The request's `Idempotency-Key`, if it has one: what the request makes is named after it, so that a
/// repetition makes nothing more.
#[derive(Debug, Clone)]
pub(super) struct IdempotencyKey(pub Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<IdempotencyKey>().cloned().unwrap_or(IdempotencyKey(None)))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        check_type(&request)?;
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|_| Problem::new(Code::BadBody, "the body broke off"))?;
        read(&bytes).map(Body)
    }
}

/// A form that a page of another site can send is never JSON.
fn check_type(request: &Request) -> Result<(), Problem> {
    let said = request.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = said.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    match kind == "application/json"
        || (kind.starts_with("application/") && kind.ends_with("+json"))
    {
        true => Ok(()),
        false => Err(Problem {
            field: Some("Content-Type".into()),
            ..Problem::new(Code::UnsupportedMediaType, "send the body as application/json")
        }),
    }
}

/// Reads JSON.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let (path, error) = (error.path().to_string(), error.into_inner());
        match error.classify() {
            serde_json::error::Category::Data => misfit(&path, &error.to_string()),
            _ => Problem::new(Code::BadBody, format!("the body is no JSON: {error}")),
        }
    })?;
    json.end().map_err(|error| {
        Problem::new(Code::BadBody, format!("something comes after the JSON: {error}"))
    })?;
    Ok(value)
}

/// A value that is JSON, but not what is asked for.
pub(super) fn misfit(path: &str, message: &str) -> Problem {
    // Where a field is missing or unknown, its name is in the message and not in the path.
    let named = ["missing field `", "unknown field `"].iter().find_map(|begin| {
        let (_, rest) = message.split_once(begin)?;
        rest.split_once('`').map(|(name, _)| name)
    });
    // The domain's own words begin with the field: `quiz_id is missing`.
    let named = named.or_else(|| {
        let (word, rest) = message.split_once(' ')?;
        let is_name =
            word.bytes().all(|it| it.is_ascii_lowercase() || b"_.[]0123456789".contains(&it));
        (is_name && (rest.starts_with("is ") || rest.starts_with("must "))).then_some(word)
    });
    let field = match (path, named) {
        ("." | "?" | "", Some(name)) => Some(name.to_owned()),
        (path, Some(name)) if !path.ends_with(name) => Some(format!("{path}.{name}")),
        ("." | "?" | "", None) => None,
        (path, _) => Some(path.to_owned()),
    };
    // The place in the text says less than the name.
    let message = message.split(" at line ").next().unwrap_or(message).to_owned();
    Problem { field: field.map(Into::into), ..Problem::new(Code::Invalid, message) }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let query = parts.uri.query().unwrap_or_default();
        let pairs = serde_urlencoded::Deserializer::new(form_pairs(query));
        serde_path_to_error::deserialize(pairs).map(Params).map_err(|error| {
            let path = error.path().to_string();
            misfit(&path, &error.into_inner().to_string())
        })
    }
}

fn form_pairs(query: &str) -> form_urlencoded::Parse<'_> {
    form_urlencoded::parse(query.as_bytes())
}

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Address<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(it)| Address(it)).map_err(|rejected| match rejected {
            PathRejection::FailedToDeserializePathParams(error) => {
                Problem::new(Code::Invalid, format!("the path is not as it must be: {error}"))
            }
            error => Problem::new(Code::Invalid, error.to_string()),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only reading it matters")]
    struct Outer {
        inner: Inner,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only reading it matters")]
    struct Inner {
        number: f64,
    }

    #[test]
    fn what_does_not_fit_is_named_by_its_path() {
        let field = |text: &str| read::<Outer>(text.as_bytes()).unwrap_err().field;
        assert_eq!(field("{}").as_deref(), Some("inner"));
        assert_eq!(field(r#"{"inner":{}}"#).as_deref(), Some("inner.number"));
        assert_eq!(field(r#"{"inner":{"number":"a"}}"#).as_deref(), Some("inner.number"));
        assert_eq!(field(r#"{"inner":{"number":1,"b":2}}"#).as_deref(), Some("inner.b"));
        assert_eq!(field("[]"), None);
    }

    #[test]
    fn what_is_no_json_is_told_apart_from_what_does_not_fit() {
        let code = |text: &str| read::<Outer>(text.as_bytes()).unwrap_err().code;
        for broken in ["", "{", "nonsense", r#"{"inner":{"number":1}} x"#, "\u{0}"] {
            assert_eq!(code(broken), Code::BadBody, "{broken}");
        }
        assert_eq!(code("[]"), Code::Invalid);
        assert!(read::<Outer>(br#" {"inner":{"number":1}} "#).is_ok());
    }
}
