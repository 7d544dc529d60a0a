//! Error details for a sidecar, as messages of `google.rpc` in the status of a call. By one detail
//! a sidecar recognises an ETag mismatch; from another it takes the error that it returns to its own
//! clients.

use std::collections::HashMap;

use prost::Message;
use tonic::{Code, Status};

use super::messages::Any;
use super::messages::rpc::{self, BadRequest, ErrorInfo, bad_request::FieldViolation};
use crate::error::{Error, RequestKind};

/// The domain of the reasons in [`ErrorInfo`].
const DOMAIN: &str = "kstone";

/// The status of a call that failed.
pub(super) fn status(error: &Error, kind: RequestKind) -> Status {
    match error {
        // A transaction is about many keys, so a sidecar expects no detail about the ETag of one.
        Error::EtagMismatch { .. } if kind != RequestKind::Transaction => {
            with_detail(Code::FailedPrecondition, error, bad_etag(error))
        }
        Error::BadEtag { .. } if kind != RequestKind::Transaction => {
            with_detail(Code::InvalidArgument, error, bad_etag(error))
        }
        Error::EtagMismatch { .. } => with_detail(Code::Aborted, error, info(error, kind)),
        Error::TooLarge(_) => with_detail(Code::ResourceExhausted, error, info(error, kind)),
        error if error.is_servers_fault() => Status::new(Code::Internal, error.to_string()),
        _ => with_detail(Code::InvalidArgument, error, info(error, kind)),
    }
}

fn with_detail(code: Code, error: &Error, detail: Any) -> Status {
    let message = error.to_string();
    let status = rpc::Status { code: code.into(), message, details: vec![detail] };
    Status::with_details(code, error.to_string(), status.encode_to_vec().into())
}

fn bad_etag(error: &Error) -> Any {
    let violation = FieldViolation {
        field: "etag".to_owned(),
        description: error.to_string(),
        ..Default::default()
    };
    let detail = BadRequest { field_violations: vec![violation] };
    any("google.rpc.BadRequest", &detail)
}

/// The detail from which a sidecar takes the HTTP status and the error code for its own client.
fn info(error: &Error, kind: RequestKind) -> Any {
    let name = error.code(kind);
    let metadata = HashMap::from([
        ("kit_error".to_owned(), "true".to_owned()),
        ("http_code".to_owned(), error.status().as_u16().to_string()),
        ("tag".to_owned(), name.to_owned()),
    ]);
    let (reason, domain) = (name.to_owned(), DOMAIN.to_owned());
    any("google.rpc.ErrorInfo", &ErrorInfo { reason, domain, metadata })
}

fn any(name: &str, message: &impl Message) -> Any {
    Any { type_url: format!("type.googleapis.com/{name}"), value: message.encode_to_vec().into() }
}
