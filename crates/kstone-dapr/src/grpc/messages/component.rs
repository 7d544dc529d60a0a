//! The messages of `dapr.proto.components.v1` that are about state stores.

use std::collections::HashMap;

use bytes::Bytes;
use prost::{Message, Oneof};

use super::rpc::Any;
pub(crate) use super::runtime::{Etag, StateOptions};

/// A request, or an answer, in which nothing is said that matters here.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Nothing {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FeaturesResponse {
    #[prost(string, repeated, tag = "1")]
    pub features: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetRequest {
    #[prost(string, tag = "1")]
    pub key: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetResponse {
    #[prost(bytes = "bytes", tag = "1")]
    pub data: Bytes,
    #[prost(message, optional, tag = "2")]
    pub etag: Option<Etag>,
    #[prost(map = "string, string", tag = "3")]
    pub metadata: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeleteRequest {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub etag: Option<Etag>,
    #[prost(map = "string, string", tag = "3")]
    pub metadata: HashMap<String, String>,
    #[prost(message, optional, tag = "4")]
    pub options: Option<StateOptions>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SetRequest {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
    #[prost(message, optional, tag = "3")]
    pub etag: Option<Etag>,
    #[prost(map = "string, string", tag = "4")]
    pub metadata: HashMap<String, String>,
    #[prost(message, optional, tag = "5")]
    pub options: Option<StateOptions>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BulkDeleteRequest {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<DeleteRequest>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BulkSetRequest {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<SetRequest>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BulkGetRequest {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<GetRequest>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BulkStateItem {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub data: Bytes,
    #[prost(message, optional, tag = "3")]
    pub etag: Option<Etag>,
    #[prost(map = "string, string", tag = "5")]
    pub metadata: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BulkGetResponse {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<BulkStateItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TransactionalStateOperation {
    #[prost(oneof = "Request", tags = "1, 2")]
    pub request: Option<Request>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Request {
    #[prost(message, tag = "1")]
    Delete(DeleteRequest),
    #[prost(message, tag = "2")]
    Set(SetRequest),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TransactionalStateRequest {
    #[prost(message, repeated, tag = "1")]
    pub operations: Vec<TransactionalStateOperation>,
    #[prost(map = "string, string", tag = "2")]
    pub metadata: HashMap<String, String>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct MultiMaxSizeResponse {
    #[prost(int64, tag = "1")]
    pub max_size: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Sorting {
    #[prost(string, tag = "1")]
    pub key: String,
    /// 0 is ascending, 1 is descending.
    #[prost(int32, tag = "2")]
    pub order: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Pagination {
    #[prost(int64, tag = "1")]
    pub limit: i64,
    #[prost(string, tag = "2")]
    pub token: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Query {
    /// Each with JSON for its value, and no type.
    #[prost(map = "string, message", tag = "1")]
    pub filter: HashMap<String, Any>,
    #[prost(message, repeated, tag = "2")]
    pub sort: Vec<Sorting>,
    #[prost(message, optional, tag = "3")]
    pub pagination: Option<Pagination>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct QueryRequest {
    #[prost(message, optional, tag = "1")]
    pub query: Option<Query>,
    #[prost(map = "string, string", tag = "2")]
    pub metadata: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct QueryItem {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub data: Bytes,
    #[prost(message, optional, tag = "3")]
    pub etag: Option<Etag>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct QueryResponse {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<QueryItem>,
    #[prost(string, tag = "2")]
    pub token: String,
}
