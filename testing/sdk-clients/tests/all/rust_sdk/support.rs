//! A door in this process, and a client of it.

use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::{Client, Config};
use kstone::Database;
use kstone_dynamo::{DoorOptions, serve};
use kstone_workflows::{AnyEntity, sample, table_spec};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::rust_sdk::translate::{attributes, create_table};

pub const TABLE: &str = "workflows";

/// A door and the database behind it. Dropped without [`close`](Door::close), it ends with the
/// test's runtime.
pub struct Door {
    pub db: Database,
    pub client: Client,
    url: String,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Door {
    pub async fn open() -> Door {
        Door::with_options(DoorOptions::default()).await
    }

    pub async fn with_options(options: DoorOptions) -> Door {
        let db = Database::memory().unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(serve(listener, db.clone(), options, async {
            let _ = stopped.await;
        }));
        let client = client(&url, "any-id", "any secret");
        Door { db, client, url, stop, served }
    }

    /// A door with the workflow table, made and filled through the SDK.
    pub async fn with_workflows(entities: &[AnyEntity]) -> Door {
        let door = Door::open().await;
        create_table(&door.client, &table_spec(TABLE)).await.unwrap();
        for entity in entities {
            let item = attributes(&entity.to_item().unwrap());
            door.client.put_item().table_name(TABLE).set_item(Some(item)).send().await.unwrap();
        }
        door
    }

    /// Another client, which signs with this key.
    pub fn client_with_key(&self, id: &str, secret: &str) -> Client {
        client(&self.url, id, secret)
    }

    /// Stops serving, and waits until that is done.
    pub async fn close(self) {
        self.stop.send(()).unwrap();
        self.served.await.unwrap();
    }
}

fn client(url: &str, id: &str, secret: &str) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .endpoint_url(url)
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new(id, secret, None, None, "the test"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .build();
    Client::from_conf(config)
}

/// Executions of both engines with all that belongs to them.
pub fn entities() -> Vec<AnyEntity> {
    sample("2025-01-15T10:30:00Z".parse().unwrap(), 12).unwrap()
}
