//! A sidecar's side of the component, as far as the tests need it, with the messages from Dapr's own
//! definition; and what only the protocol itself can show.

use std::collections::HashMap;

use prost::{Message, Oneof};
use tonic::client::Grpc;
use tonic::codegen::tokio_stream::{self, StreamExt as _};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::server::Server;

#[derive(Clone, PartialEq, Message)]
pub struct Text {
    #[prost(string, tag = "1")]
    pub value: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Options {
    #[prost(int32, tag = "1")]
    pub concurrency: i32,
    #[prost(int32, tag = "2")]
    pub consistency: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Set {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    pub etag: Option<Text>,
    #[prost(map = "string, string", tag = "4")]
    pub metadata: HashMap<String, String>,
    #[prost(message, optional, tag = "5")]
    pub options: Option<Options>,
    #[prost(string, tag = "6")]
    pub content_type: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Delete {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub etag: Option<Text>,
    #[prost(map = "string, string", tag = "3")]
    pub metadata: HashMap<String, String>,
    #[prost(message, optional, tag = "4")]
    pub options: Option<Options>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Get {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(map = "string, string", tag = "2")]
    pub metadata: HashMap<String, String>,
    #[prost(int32, tag = "3")]
    pub consistency: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Got {
    #[prost(bytes = "vec", tag = "1")]
    pub data: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    pub etag: Option<Text>,
    #[prost(map = "string, string", tag = "3")]
    pub metadata: HashMap<String, String>,
}

/// BulkStateItem, QueryItem.
#[derive(Clone, PartialEq, Message)]
pub struct One {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(bytes = "vec", tag = "2")]
    pub data: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    pub etag: Option<Text>,
    #[prost(string, tag = "4")]
    pub error: String,
    #[prost(map = "string, string", tag = "5")]
    pub metadata: HashMap<String, String>,
}

/// BulkSetRequest.
#[derive(Clone, PartialEq, Message)]
pub struct Sets {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<Set>,
}

/// BulkDeleteRequest.
#[derive(Clone, PartialEq, Message)]
pub struct Deletes {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<Delete>,
}

/// BulkGetRequest.
#[derive(Clone, PartialEq, Message)]
pub struct Gets {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<Get>,
}

/// BulkGetResponse, QueryResponse.
#[derive(Clone, PartialEq, Message)]
pub struct Many {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<One>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Operation {
    #[prost(oneof = "Kind", tags = "1, 2")]
    pub request: Option<Kind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Kind {
    #[prost(message, tag = "1")]
    Delete(Delete),
    #[prost(message, tag = "2")]
    Set(Set),
}

#[derive(Clone, PartialEq, Message)]
pub struct Transaction {
    #[prost(message, repeated, tag = "1")]
    pub operations: Vec<Operation>,
    #[prost(map = "string, string", tag = "2")]
    pub metadata: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Any {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Sorting {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(int32, tag = "2")]
    pub order: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Page {
    #[prost(int64, tag = "1")]
    pub limit: i64,
    #[prost(string, tag = "2")]
    pub token: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Query {
    #[prost(map = "string, message", tag = "1")]
    pub filter: HashMap<String, Any>,
    #[prost(message, repeated, tag = "2")]
    pub sort: Vec<Sorting>,
    #[prost(message, optional, tag = "3")]
    pub page: Option<Page>,
}

#[derive(Clone, PartialEq, Message)]
pub struct QueryRequest {
    #[prost(message, optional, tag = "1")]
    pub query: Option<Query>,
    #[prost(map = "string, string", tag = "2")]
    pub metadata: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct Names {
    #[prost(string, repeated, tag = "1")]
    names: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Number {
    #[prost(int64, tag = "1")]
    number: i64,
}

/// The request of reflection that lists services, or asks for the file of a symbol.
#[derive(Clone, PartialEq, Message)]
struct Question {
    #[prost(string, optional, tag = "4")]
    symbol: Option<String>,
    #[prost(string, optional, tag = "7")]
    list: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(message, optional, tag = "2")]
    question: Option<Question>,
    #[prost(message, optional, tag = "6")]
    services: Option<Services>,
    #[prost(message, optional, tag = "7")]
    error: Option<Number>,
}

#[derive(Clone, PartialEq, Message)]
struct Services {
    #[prost(message, repeated, tag = "1")]
    services: Vec<Text>,
}

/// google.rpc.Status.
#[derive(Clone, PartialEq, Message)]
struct FullStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// google.rpc.BadRequest.
#[derive(Clone, PartialEq, Message)]
struct BadRequest {
    #[prost(message, repeated, tag = "1")]
    violations: Vec<Violation>,
}

#[derive(Clone, PartialEq, Message)]
struct Violation {
    #[prost(string, tag = "1")]
    field: String,
    #[prost(string, tag = "2")]
    description: String,
}

/// google.rpc.ErrorInfo.
#[derive(Clone, PartialEq, Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(map = "string, string", tag = "3")]
    metadata: HashMap<String, String>,
}

/// A sidecar.
#[derive(Clone)]
pub struct Sidecar(Grpc<Channel>);

impl Sidecar {
    pub async fn of(server: &Server) -> Sidecar {
        let endpoint = format!("unix://{}", server.socket.display());
        let endpoint = Endpoint::from_shared(endpoint).unwrap();
        Sidecar(Grpc::new(endpoint.connect().await.unwrap()))
    }

    pub async fn call<M, R>(&self, method: &str, message: M) -> Result<R, Status>
    where
        M: Message + 'static,
        R: Message + Default + 'static,
    {
        let mut client = self.0.clone();
        client.ready().await.unwrap();
        let path = format!("/dapr.proto.components.v1.{method}").parse().unwrap();
        let codec = ProstCodec::<M, R>::default();
        client.unary(Request::new(message), path, codec).await.map(tonic::Response::into_inner)
    }

    pub async fn set(&self, set: Set) -> Result<(), Status> {
        self.call("StateStore/Set", set).await
    }

    pub async fn get(&self, key: &str) -> Got {
        let get = Get { key: key.to_owned(), ..Get::default() };
        self.call("StateStore/Get", get).await.unwrap()
    }

    pub async fn etag(&self, key: &str) -> String {
        self.get(key).await.etag.unwrap().value
    }

    pub async fn delete(&self, delete: Delete) -> Result<(), Status> {
        self.call("StateStore/Delete", delete).await
    }

    pub async fn bulk_set(&self, items: Vec<Set>) -> Result<(), Status> {
        self.call("StateStore/BulkSet", Sets { items }).await
    }

    pub async fn bulk_delete(&self, items: Vec<Delete>) -> Result<(), Status> {
        self.call("StateStore/BulkDelete", Deletes { items }).await
    }

    pub async fn bulk_get(&self, keys: &[&str]) -> Vec<One> {
        let get = |key: &&str| Get { key: (*key).to_owned(), ..Get::default() };
        let gets = Gets { items: keys.iter().map(get).collect() };
        let many: Many = self.call("StateStore/BulkGet", gets).await.unwrap();
        many.items
    }

    pub async fn transact(&self, kinds: Vec<Kind>) -> Result<(), Status> {
        let operation = |kind| Operation { request: Some(kind) };
        let operations = kinds.into_iter().map(operation).collect();
        let transaction = Transaction { operations, metadata: HashMap::new() };
        self.call("TransactionalStateStore/Transact", transaction).await
    }

    pub async fn query(&self, query: Query, metadata: &[(&str, &str)]) -> Vec<One> {
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let metadata = metadata.iter().map(text).collect();
        let request = QueryRequest { query: Some(query), metadata };
        let many: Many = self.call("QueriableStateStore/Query", request).await.unwrap();
        many.items
    }

    async fn reflect(&self, version: &str, questions: Vec<Question>) -> Vec<Answer> {
        let mut client = self.0.clone();
        client.ready().await.unwrap();
        let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
        let codec = ProstCodec::<Question, Answer>::default();
        let request = Request::new(tokio_stream::iter(questions));
        let answers = client.streaming(request, path.parse().unwrap(), codec).await.unwrap();
        answers.into_inner().map(Result::unwrap).collect().await
    }
}

pub fn set(key: &str, value: &[u8]) -> Set {
    Set { key: key.to_owned(), value: value.to_vec(), ..Set::default() }
}

pub fn delete(key: &str) -> Delete {
    Delete { key: key.to_owned(), ..Delete::default() }
}

pub fn etag(value: &str) -> Option<Text> {
    Some(Text { value: value.to_owned() })
}

/// Checks that a sidecar takes a refusal for one of an ETag, and which.
pub fn is_of_etag(refused: Result<(), Status>, code: Code) {
    let status = refused.unwrap_err();
    assert_eq!(status.code(), code, "{status:?}");
    let full = FullStatus::decode(status.details()).unwrap();
    assert_eq!((full.code, full.message.as_str()), (i32::from(code), status.message()));
    let [detail] = &full.details[..] else { panic!("{full:?}") };
    assert_eq!(detail.type_url, "type.googleapis.com/google.rpc.BadRequest");
    let detail = BadRequest::decode(&detail.value[..]).unwrap();
    let [violation] = &detail.violations[..] else { panic!("{detail:?}") };
    assert_eq!(
        (violation.field.as_str(), violation.description.as_str()),
        ("etag", status.message())
    );
}

/// What a sidecar answers its own client with: the status of HTTP, and the name of the error.
fn passed_on(refused: Result<(), Status>) -> (String, String) {
    let status = refused.unwrap_err();
    let full = FullStatus::decode(status.details()).unwrap();
    let [detail] = &full.details[..] else { panic!("{full:?}") };
    assert_eq!(detail.type_url, "type.googleapis.com/google.rpc.ErrorInfo");
    let mut info = ErrorInfo::decode(&detail.value[..]).unwrap();
    assert_eq!(info.metadata["kit_error"], "true");
    (info.metadata.remove("http_code").unwrap(), info.metadata.remove("tag").unwrap())
}

#[tokio::test]
async fn a_sidecar_finds_out_which_services_there_are() {
    let server = Server::start().await;
    let sidecar = Sidecar::of(&server).await;
    for version in ["v1alpha", "v1"] {
        let list = Question { symbol: None, list: Some("*".to_owned()) };
        let symbol = Question { symbol: Some("a.b".to_owned()), list: None };
        let answers = sidecar.reflect(version, vec![list.clone(), symbol, list.clone()]).await;
        let [first, second, third] = &answers[..] else { panic!("{answers:?}") };
        let names = first.services.as_ref().unwrap().services.iter().map(|it| it.value.as_str());
        let names: Vec<&str> = names.collect();
        assert!(names.contains(&"dapr.proto.components.v1.StateStore"), "{names:?}");
        assert!(names.contains(&"dapr.proto.components.v1.TransactionalStateStore"), "{names:?}");
        assert_eq!(
            second.error.as_ref().unwrap().number,
            i64::from(i32::from(Code::Unimplemented))
        );
        assert_eq!((third, first.question.as_ref()), (first, Some(&list)));
    }
}

#[tokio::test]
async fn it_is_asked_what_it_can_do_before_it_is_used() {
    let server = Server::start().await;
    let sidecar = Sidecar::of(&server).await;
    let done: Result<(), Status> = sidecar.call("StateStore/Init", ()).await;
    done.unwrap();
    let done: Result<(), Status> = sidecar.call("StateStore/Ping", ()).await;
    done.unwrap();
    let features: Names = sidecar.call("StateStore/Features", ()).await.unwrap();
    for feature in ["ETAG", "TRANSACTIONAL", "TTL", "QUERY_API"] {
        assert!(features.names.iter().any(|it| it == feature), "{features:?}");
    }
    let most: Number =
        sidecar.call("TransactionalStoreMultiMaxSize/MultiMaxSize", ()).await.unwrap();
    assert_eq!(most.number, 100);
    let other: Result<(), Status> = sidecar.call("PubSub/Publish", ()).await;
    assert_eq!(other.unwrap_err().code(), Code::Unimplemented);
}

#[tokio::test]
async fn what_is_refused_is_passed_on_with_its_name_and_the_status_of_http() {
    let server = Server::start().await;
    let sidecar = Sidecar::of(&server).await;
    let named = |code: &str, name: &str| (code.to_owned(), name.to_owned());
    let large = set("k", &[b'v'; 410_000]);
    assert_eq!(passed_on(sidecar.set(large).await), named("413", "ERR_STATE_SAVE"));
    let no_key = passed_on(sidecar.delete(delete("")).await);
    assert_eq!(no_key, named("400", "ERR_MALFORMED_REQUEST"));
    let stale = Set { etag: etag("1"), ..set("app||k", b"1") };
    let refused = sidecar.transact(vec![Kind::Set(stale)]).await;
    assert_eq!(passed_on(refused), named("409", "ERR_STATE_TRANSACTION"));
    let operation = Operation { request: None };
    let empty = Transaction { operations: vec![operation], metadata: HashMap::new() };
    let refused = sidecar.call("TransactionalStateStore/Transact", empty).await;
    assert_eq!(passed_on(refused), named("400", "ERR_NOT_SUPPORTED_STATE_OPERATION"));
}

#[tokio::test]
async fn a_sidecars_key_is_the_clients_key_behind_the_same_prefix() {
    let options = kstone_dapr::DoorOptions {
        key_prefix: kstone_dapr::KeyPrefix::Text("shop".to_owned()),
        ..Default::default()
    };
    let server = Server::start_with(options).await;
    let sidecar = Sidecar::of(&server).await;
    sidecar.set(set("shop||student:s1:history:full", b"{}")).await.unwrap();
    assert_eq!(server.get("student:s1:history:full").await.text(), "{}");
    server.save(r#"[{"key":"k","value":1}]"#).await.done();
    assert_eq!(sidecar.get("shop||k").await.data, b"1");
    assert_eq!(sidecar.get("k").await, Got::default());
}
