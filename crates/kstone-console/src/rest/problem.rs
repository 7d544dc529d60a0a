//! Errors as the API tells them: `{"error": {"code", "message", "field", "request_id"}}`.

use std::borrow::Cow;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use kstone_base::field::Invalid;
use kstone_ports::{CancellationCode, CancellationReason};
use serde::Serialize;

use crate::request;

/// What went wrong, for programs. The status of HTTP follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// A field, or part of the address, is not as it must be.
    Invalid,
    /// The body is no JSON, or broke off.
    BadBody,
    /// The token is missing or wrong.
    Unauthorized,
    /// The request was addressed to another machine.
    WrongHost,
    /// A page of another site sent it.
    CrossSite,
    /// It is not allowed: consent is missing, or the person was erased.
    Refused,
    /// There is no such thing.
    NotFound,
    /// Not with this method.
    MethodNotAllowed,
    /// The body did not come in time.
    TooSlow,
    /// Somebody else was quicker: read again and decide again.
    Conflict,
    /// Too little is known yet: later it can be answered.
    TooEarly,
    /// Another request with this idempotency key is under way.
    InFlight,
    /// `If-Match` names another version than the one that is there.
    VersionMismatch,
    /// The body is too long.
    BodyTooLarge,
    /// The body must be `application/json`.
    UnsupportedMediaType,
    /// The idempotency key was used for another request.
    KeyReused,
    /// Too many requests in a minute.
    RateLimited,
    /// The learning platform, or what the call needs of it, is not turned on.
    PlatformOff,
    /// Something cannot be reached now: try again.
    Unavailable,
    /// A defect.
    Internal,
}

impl Code {
    /// The status that says the same in HTTP.
    pub fn status(self) -> StatusCode {
        match self {
            Code::Invalid | Code::BadBody => StatusCode::BAD_REQUEST,
            Code::Unauthorized => StatusCode::UNAUTHORIZED,
            Code::CrossSite | Code::Refused => StatusCode::FORBIDDEN,
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Code::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Code::Conflict | Code::TooEarly | Code::InFlight => StatusCode::CONFLICT,
            Code::VersionMismatch => StatusCode::PRECONDITION_FAILED,
            Code::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Code::WrongHost => StatusCode::MISDIRECTED_REQUEST,
            Code::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Code::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Code::PlatformOff | Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Why a call was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// For programs.
    pub code: Code,
    /// For people: what is wrong, and what to do.
    pub message: Cow<'static, str>,
    /// The field, parameter or header that is wrong.
    pub field: Option<Cow<'static, str>>,
    /// When to try again.
    pub retry_after_s: Option<u64>,
}

/// An error's body.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Error)]
pub struct ErrorBody {
    /// What went wrong.
    error: ErrorDetail,
}

/// What went wrong.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct ErrorDetail {
    /// For programs.
    code: Code,
    /// For people: what is wrong, and what to do.
    message: String,
    /// The field, parameter or header that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// The request's id, as in the header `X-Request-Id`.
    request_id: String,
}

impl Problem {
    /// A problem that no single field has.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Problem {
        Problem { code, message: message.into(), field: None, retry_after_s: None }
    }

    /// A field that is not as it must be.
    pub fn invalid(
        field: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Problem {
        Problem { field: Some(field.into()), ..Problem::new(Code::Invalid, message) }
    }

    /// The same of a field as the domain names it.
    pub fn from_invalid(invalid: Invalid) -> Problem {
        Problem::invalid(invalid.field.clone(), invalid.to_string())
    }

    /// There is no such thing.
    pub fn not_found(what: impl std::fmt::Display) -> Problem {
        Problem::new(Code::NotFound, format!("there is no {what}"))
    }
}

impl From<kstone_base::Error> for Problem {
    fn from(error: kstone_base::Error) -> Problem {
        let code = match error {
            kstone_base::Error::Invalid(invalid) => return Problem::from_invalid(invalid),
            kstone_base::Error::Store(error) => return error.into(),
            kstone_base::Error::NotFound { .. } => Code::NotFound,
            kstone_base::Error::Conflict { .. } => Code::Conflict,
            kstone_base::Error::Refused { .. } => Code::Refused,
            kstone_base::Error::TooEarly { .. } => Code::TooEarly,
            kstone_base::Error::Unavailable(_) => Code::Unavailable,
            _ => Code::Internal,
        };
        Problem::new(code, error.to_string())
    }
}

impl From<kstone_ports::Error> for Problem {
    fn from(error: kstone_ports::Error) -> Problem {
        // A rule that a write breaks, of a person who was erased perhaps, tells so in the reasons.
        if let kstone_ports::Error::TransactionCanceled { reasons } = &error
            && let Some(reason) = reasons.iter().find_map(refusal)
        {
            return Problem::new(Code::Refused, reason);
        }
        let code = match error {
            kstone_ports::Error::Refused(_) => Code::Refused,
            kstone_ports::Error::Invalid(_) => Code::Invalid,
            kstone_ports::Error::TransactionCanceled { .. }
            | kstone_ports::Error::ConditionFailed { .. } => Code::Conflict,
            kstone_ports::Error::TooLarge(_) => Code::Invalid,
            kstone_ports::Error::Reply(_)
            | kstone_ports::Error::Unsupported(_)
            | kstone_ports::Error::Conflict(_)
            | kstone_ports::Error::Throttled(_)
            | kstone_ports::Error::Unavailable(_)
            | kstone_ports::Error::OutcomeUnknown(_) => Code::Unavailable,
            _ => Code::Internal,
        };
        Problem::new(code, error.to_string())
    }
}

fn refusal(reason: &CancellationReason) -> Option<String> {
    (reason.code == CancellationCode::ValidationError).then_some(reason.message.clone())?
}

impl From<Problem> for ErrorDetail {
    fn from(problem: Problem) -> ErrorDetail {
        ErrorDetail {
            code: problem.code,
            message: problem.message.into_owned(),
            field: problem.field.map(Cow::into_owned),
            request_id: request::id(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, retry_after_s) = (self.code.status(), self.retry_after_s);
        let mut response = (status, Json(ErrorBody { error: self.into() })).into_response();
        if let Some(seconds) = retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
