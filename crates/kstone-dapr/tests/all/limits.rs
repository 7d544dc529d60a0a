//! Silent connections do not block the gRPC port.

use std::time::Duration;

use kstone_dapr::DoorOptions;
use tokio::net::TcpStream;
use tonic::Request;
use tonic::client::Grpc;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;

use crate::server::Server;

#[tokio::test]
async fn silent_connections_do_not_hold_the_grpc_port() {
    let mut options = DoorOptions::default();
    options.limits.connections_max = 2;
    options.limits.handshake_timeout = Duration::from_millis(100);
    let server = Server::start_with(options).await;
    let silent = [(); 2].map(|()| TcpStream::connect(server.grpc));
    let [first, second] = silent;
    let silent = (first.await.unwrap(), second.await.unwrap());
    let endpoint = Endpoint::from_shared(format!("http://{}", server.grpc)).unwrap();
    let mut client = Grpc::new(endpoint.connect().await.unwrap());
    client.ready().await.unwrap();
    let path = "/dapr.proto.runtime.v1.Dapr/GetMetadata".parse().unwrap();
    let codec = ProstCodec::<(), ()>::default();
    client.unary(Request::new(()), path, codec).await.unwrap();
    drop(silent);
}
