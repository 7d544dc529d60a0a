//! With keys configured, the SDK's own signatures are checked.

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use kstone_dynamo::{Credential, DoorOptions};

use crate::rust_sdk::support::Door;

#[tokio::test(flavor = "multi_thread")]
async fn the_right_key_passes_and_a_wrong_secret_or_id_is_refused() {
    let key =
        Credential { access_key: "AKIDEXAMPLE".to_owned(), secret_key: "the secret".to_owned() };
    let options = DoorOptions { keys: vec![key], ..DoorOptions::default() };
    let door = Door::with_options(options).await;
    let code = async |id: &str, secret: &str| {
        let client = door.client_with_key(id, secret);
        match client.list_tables().send().await {
            Ok(_) => None,
            Err(error) => error.into_service_error().code().map(str::to_owned),
        }
    };
    assert_eq!(code("AKIDEXAMPLE", "the secret").await, None);
    let wrong_secret = code("AKIDEXAMPLE", "another").await;
    assert_eq!(wrong_secret.as_deref(), Some("InvalidSignatureException"));
    let wrong_id = code("SOMEBODY", "the secret").await;
    assert_eq!(wrong_id.as_deref(), Some("UnrecognizedClientException"));
    door.close().await;
}
