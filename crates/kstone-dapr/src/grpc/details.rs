//! Errors as a sidecar understands them. It tells ETags that do not fit from other errors by a
//! detail of the status, and takes over an answer for its own clients from another.

use std::collections::HashMap;

use prost::Message;
use tonic::{Code, Status};

use super::messages::rpc::{self, Any, BadRequest, ErrorInfo, FieldViolation};
use crate::error::{Doing, Error};

/// Where our reasons come from.
const DOMAIN: &str = "kstone";

/// The status of a call that failed.
pub(super) fn status(error: &Error, doing: Doing) -> Status {
    match error {
        // A transaction has many keys; a sidecar expects no word about one of them.
        Error::EtagMismatch { .. } if doing != Doing::Transaction => {
            with_detail(Code::FailedPrecondition, error, bad_etag(error))
        }
        Error::BadEtag { .. } if doing != Doing::Transaction => {
            with_detail(Code::InvalidArgument, error, bad_etag(error))
        }
        Error::EtagMismatch { .. } => with_detail(Code::Aborted, error, info(error, doing)),
        Error::TooLarge(_) => with_detail(Code::ResourceExhausted, error, info(error, doing)),
        error if error.is_servers_fault() => Status::new(Code::Internal, error.to_string()),
        _ => with_detail(Code::InvalidArgument, error, info(error, doing)),
    }
}

fn with_detail(code: Code, error: &Error, detail: Any) -> Status {
    let message = error.to_string();
    let status = rpc::Status { code: code.into(), message, details: vec![detail] };
    Status::with_details(code, error.to_string(), status.encode_to_vec().into())
}

fn bad_etag(error: &Error) -> Any {
    let violation = FieldViolation { field: "etag".to_owned(), description: error.to_string() };
    let detail = BadRequest { field_violations: vec![violation] };
    any("google.rpc.BadRequest", &detail)
}

/// What makes a sidecar answer its own client with our status of HTTP and our name for the error.
fn info(error: &Error, doing: Doing) -> Any {
    let name = error.code(doing);
    let metadata = HashMap::from([
        ("kit_error".to_owned(), "true".to_owned()),
        ("http_code".to_owned(), error.status().as_u16().to_string()),
        ("tag".to_owned(), name.to_owned()),
    ]);
    let (reason, domain) = (name.to_owned(), DOMAIN.to_owned());
    any("google.rpc.ErrorInfo", &ErrorInfo { reason, domain, metadata })
}

fn any(name: &str, message: &impl Message) -> Any {
    Any { type_url: format!("type.googleapis.com/{name}"), value: message.encode_to_vec() }
}
