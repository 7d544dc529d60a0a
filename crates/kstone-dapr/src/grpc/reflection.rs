//! Which services there are. A sidecar asks it of every socket in its folder, to find out what kind
//! of component listens there.

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
    Answered, Asked, ErrorResponse, ListServiceResponse, ServerReflectionRequest,
    ServerReflectionResponse, ServiceResponse,
};

/// The paths of the two versions of the service, which have the same messages.
pub(super) const PATHS: [&str; 2] = [
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
];

/// A question is a name.
const QUESTION_BYTES_MAX: usize = 64 * 1024;

/// Answers the questions of a call, one by one.
pub(super) async fn answer(
    request: Request<Incoming>,
    services: &'static [&'static str],
) -> Response<Body> {
    let codec = ProstCodec::<ServerReflectionResponse, ServerReflectionRequest>::default();
    let mut grpc = Grpc::new(codec).max_decoding_message_size(QUESTION_BYTES_MAX);
    grpc.streaming(Reflection(services), request).await
}

struct Reflection(&'static [&'static str]);

impl StreamingService<ServerReflectionRequest> for Reflection {
    type Response = ServerReflectionResponse;
    type ResponseStream = Answers;
    type Future = std::future::Ready<Result<tonic::Response<Answers>, Status>>;

    fn call(
        &mut self,
        request: tonic::Request<Streaming<ServerReflectionRequest>>,
    ) -> Self::Future {
        let answers = Answers { questions: request.into_inner(), services: self.0 };
        std::future::ready(Ok(tonic::Response::new(answers)))
    }
}

/// An answer for each question, as they come.
struct Answers {
    questions: Streaming<ServerReflectionRequest>,
    services: &'static [&'static str],
}

impl Stream for Answers {
    type Item = Result<ServerReflectionResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let question = ready!(Pin::new(&mut self.questions).poll_next(context));
        let services = self.services;
        Poll::Ready(question.map(|question| question.map(|question| reply(question, services))))
    }
}

fn reply(question: ServerReflectionRequest, services: &[&str]) -> ServerReflectionResponse {
    let answered = match question.asked {
        Some(Asked::ListServices(_)) => {
            let name = |name: &&str| ServiceResponse { name: (*name).to_owned() };
            Answered::Services(ListServiceResponse { service: services.iter().map(name).collect() })
        }
        _ => Answered::Error(ErrorResponse {
            error_code: Code::Unimplemented.into(),
            error_message: "only the names of services are told".to_owned(),
        }),
    };
    ServerReflectionResponse {
        valid_host: question.host.clone(),
        original_request: Some(question),
        answered: Some(answered),
    }
}
