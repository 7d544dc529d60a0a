//! The messages of the gRPC APIs, generated from the definitions in `proto/` by `build.rs`.
#![allow(missing_docs, clippy::all, reason = "generated code")]

include!(concat!(env!("OUT_DIR"), "/messages.rs"));

pub use self::dapr::proto::{
    common::v1 as common, components::v1 as components, runtime::v1 as runtime,
};
pub use self::google::{protobuf::Any, rpc};
pub use self::grpc::reflection::v1alpha as reflection;
