//! gRPC server reflection, as far as it lists services. A sidecar asks for the list at every socket
//! in its folder of components, to find out what kind of component listens there.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::http::{Request, Response};
use hyper::body::Incoming;
use tonic::body::Body;
use tonic::codegen::tokio_stream::Stream;
use tonic::server::{Grpc, StreamingService};
use tonic::{Code, Status, Streaming};
use tonic_prost::ProstCodec;

use super::messages::reflection::{
    ErrorResponse, ListServiceResponse, ServerReflectionRequest, ServerReflectionResponse,
    ServiceResponse, server_reflection_request::MessageRequest,
    server_reflection_response::MessageResponse,
};

/// The paths of the two versions of the service, which have the same messages.
pub(super) const PATHS: [&str; 2] = [
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
];

/// A request is hardly more than a name.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// Answers the requests of one call, one by one.
pub(super) async fn answer(
    request: Request<Incoming>,
    services: &'static [&'static str],
) -> Response<Body> {
    let codec = ProstCodec::<ServerReflectionResponse, ServerReflectionRequest>::default();
    let mut grpc = Grpc::new(codec).max_decoding_message_size(REQUEST_BYTES_MAX);
    grpc.streaming(Reflection(services), request).await
}

struct Reflection(&'static [&'static str]);

impl StreamingService<ServerReflectionRequest> for Reflection {
    type Response = ServerReflectionResponse;
    type ResponseStream = Responses;
    type Future = std::future::Ready<Result<tonic::Response<Responses>, Status>>;

    fn call(
        &mut self,
        request: tonic::Request<Streaming<ServerReflectionRequest>>,
    ) -> Self::Future {
        let responses = Responses { requests: request.into_inner(), services: self.0 };
        std::future::ready(Ok(tonic::Response::new(responses)))
    }
}

/// The stream of responses: one for each request, as they arrive.
struct Responses {
    requests: Streaming<ServerReflectionRequest>,
    services: &'static [&'static str],
}

impl Stream for Responses {
    type Item = Result<ServerReflectionResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let request = ready!(Pin::new(&mut self.requests).poll_next(context));
        let services = self.services;
        Poll::Ready(request.map(|request| request.map(|request| respond(request, services))))
    }
}

fn respond(request: ServerReflectionRequest, services: &[&str]) -> ServerReflectionResponse {
    let response = match request.message_request {
        Some(MessageRequest::ListServices(_)) => {
            let service = |name: &&str| ServiceResponse { name: (*name).to_owned() };
            let service = services.iter().map(service).collect();
            MessageResponse::ListServicesResponse(ListServiceResponse { service })
        }
        _ => MessageResponse::ErrorResponse(ErrorResponse {
            error_code: Code::Unimplemented.into(),
            error_message: "only the names of services are told".to_owned(),
        }),
    };
    ServerReflectionResponse {
        valid_host: request.host.clone(),
        original_request: Some(request),
        message_response: Some(response),
    }
}
