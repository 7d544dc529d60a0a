//! The client side of the component, as a sidecar calls it; and tests of the protocol itself.

use std::collections::HashMap;

use kstone_dapr::messages::components::{
    BulkDeleteRequest, BulkGetRequest, BulkGetResponse, BulkSetRequest, BulkStateItem,
    DeleteRequest, Etag, FeaturesResponse, GetRequest, GetResponse, MultiMaxSizeResponse, Query,
    QueryItem, QueryRequest, QueryResponse, SetRequest, TransactionalStateOperation,
    TransactionalStateRequest, transactional_state_operation::Request as Change,
};
use kstone_dapr::messages::reflection::{
    ServerReflectionRequest, ServerReflectionResponse, server_reflection_request::MessageRequest,
    server_reflection_response::MessageResponse,
};
use kstone_dapr::messages::rpc::{self, BadRequest, ErrorInfo};
use prost::Message;
use tonic::client::Grpc;
use tonic::codegen::tokio_stream::{self, StreamExt as _};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::server::Server;

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

    pub async fn set(&self, set: SetRequest) -> Result<(), Status> {
        self.call("StateStore/Set", set).await
    }

    pub async fn get(&self, key: &str) -> GetResponse {
        let get = GetRequest { key: key.to_owned(), ..GetRequest::default() };
        self.call("StateStore/Get", get).await.unwrap()
    }

    pub async fn etag(&self, key: &str) -> String {
        self.get(key).await.etag.unwrap().value
    }

    pub async fn delete(&self, delete: DeleteRequest) -> Result<(), Status> {
        self.call("StateStore/Delete", delete).await
    }

    pub async fn bulk_set(&self, items: Vec<SetRequest>) -> Result<(), Status> {
        self.call("StateStore/BulkSet", BulkSetRequest { items, options: None }).await
    }

    pub async fn bulk_delete(&self, items: Vec<DeleteRequest>) -> Result<(), Status> {
        self.call("StateStore/BulkDelete", BulkDeleteRequest { items, options: None }).await
    }

    pub async fn bulk_get(&self, keys: &[&str]) -> Vec<BulkStateItem> {
        let get = |key: &&str| GetRequest { key: (*key).to_owned(), ..GetRequest::default() };
        let gets = BulkGetRequest { items: keys.iter().map(get).collect(), options: None };
        let many: BulkGetResponse = self.call("StateStore/BulkGet", gets).await.unwrap();
        many.items
    }

    pub async fn transact(&self, changes: Vec<Change>) -> Result<(), Status> {
        let operation = |change| TransactionalStateOperation { request: Some(change) };
        let operations = changes.into_iter().map(operation).collect();
        let transaction = TransactionalStateRequest { operations, metadata: HashMap::new() };
        self.call("TransactionalStateStore/Transact", transaction).await
    }

    pub async fn query(&self, query: Query, metadata: &[(&str, &str)]) -> Vec<QueryItem> {
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let metadata = metadata.iter().map(text).collect();
        let request = QueryRequest { query: Some(query), metadata };
        let many: QueryResponse = self.call("QueriableStateStore/Query", request).await.unwrap();
        many.items
    }

    async fn reflect(
        &self,
        version: &str,
        requests: Vec<ServerReflectionRequest>,
    ) -> Vec<ServerReflectionResponse> {
        let mut client = self.0.clone();
        client.ready().await.unwrap();
        let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
        let codec = ProstCodec::<ServerReflectionRequest, ServerReflectionResponse>::default();
        let request = Request::new(tokio_stream::iter(requests));
        let answers = client.streaming(request, path.parse().unwrap(), codec).await.unwrap();
        answers.into_inner().map(Result::unwrap).collect().await
    }
}

pub fn set(key: &str, value: &[u8]) -> SetRequest {
    SetRequest { key: key.to_owned(), value: value.to_vec().into(), ..SetRequest::default() }
}

pub fn delete(key: &str) -> DeleteRequest {
    DeleteRequest { key: key.to_owned(), ..DeleteRequest::default() }
}

pub fn etag(value: &str) -> Option<Etag> {
    Some(Etag { value: value.to_owned() })
}

/// Checks that a sidecar takes a refusal for one of an ETag, and which.
pub fn is_of_etag(refused: Result<(), Status>, code: Code) {
    let status = refused.unwrap_err();
    assert_eq!(status.code(), code, "{status:?}");
    let full = rpc::Status::decode(status.details()).unwrap();
    assert_eq!((full.code, full.message.as_str()), (i32::from(code), status.message()));
    let [detail] = &full.details[..] else { panic!("{full:?}") };
    assert_eq!(detail.type_url, "type.googleapis.com/google.rpc.BadRequest");
    let detail = BadRequest::decode(detail.value.clone()).unwrap();
    let [violation] = &detail.field_violations[..] else { panic!("{detail:?}") };
    assert_eq!(
        (violation.field.as_str(), violation.description.as_str()),
        ("etag", status.message())
    );
}

/// What a sidecar answers its own client with: the status of HTTP, and the name of the error.
fn passed_on(refused: Result<(), Status>) -> (String, String) {
    let status = refused.unwrap_err();
    let full = rpc::Status::decode(status.details()).unwrap();
    let [detail] = &full.details[..] else { panic!("{full:?}") };
    assert_eq!(detail.type_url, "type.googleapis.com/google.rpc.ErrorInfo");
    let mut info = ErrorInfo::decode(detail.value.clone()).unwrap();
    assert_eq!(info.metadata["kit_error"], "true");
    (info.metadata.remove("http_code").unwrap(), info.metadata.remove("tag").unwrap())
}

#[tokio::test]
async fn a_sidecar_finds_out_which_services_there_are() {
    let server = Server::start().await;
    let sidecar = Sidecar::of(&server).await;
    let request =
        |request| ServerReflectionRequest { host: String::new(), message_request: Some(request) };
    for version in ["v1alpha", "v1"] {
        let list = request(MessageRequest::ListServices("*".to_owned()));
        let symbol = request(MessageRequest::FileContainingSymbol("a.b".to_owned()));
        let answers = sidecar.reflect(version, vec![list.clone(), symbol, list.clone()]).await;
        let [first, second, third] = &answers[..] else { panic!("{answers:?}") };
        let Some(MessageResponse::ListServicesResponse(services)) = &first.message_response else {
            panic!("{first:?}")
        };
        let names: Vec<&str> = services.service.iter().map(|it| it.name.as_str()).collect();
        assert!(names.contains(&"dapr.proto.components.v1.StateStore"), "{names:?}");
        assert!(names.contains(&"dapr.proto.components.v1.TransactionalStateStore"), "{names:?}");
        let Some(MessageResponse::ErrorResponse(error)) = &second.message_response else {
            panic!("{second:?}")
        };
        assert_eq!(error.error_code, i32::from(Code::Unimplemented));
        assert_eq!((third, first.original_request.as_ref()), (first, Some(&list)));
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
    let features: FeaturesResponse = sidecar.call("StateStore/Features", ()).await.unwrap();
    for feature in ["ETAG", "TRANSACTIONAL", "TTL", "QUERY_API"] {
        assert!(features.features.iter().any(|it| it == feature), "{features:?}");
    }
    let most: MultiMaxSizeResponse =
        sidecar.call("TransactionalStoreMultiMaxSize/MultiMaxSize", ()).await.unwrap();
    assert_eq!(most.max_size, 100);
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
    let stale = SetRequest { etag: etag("1"), ..set("app||k", b"1") };
    let refused = sidecar.transact(vec![Change::Set(stale)]).await;
    assert_eq!(passed_on(refused), named("409", "ERR_STATE_TRANSACTION"));
    let operation = TransactionalStateOperation { request: None };
    let empty = TransactionalStateRequest { operations: vec![operation], metadata: HashMap::new() };
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
    assert_eq!(sidecar.get("shop||k").await.data, "1");
    assert_eq!(sidecar.get("k").await, GetResponse::default());
}
