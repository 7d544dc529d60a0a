//! On the remote store, which is the DynamoDB door of a database in this process.

use std::net::SocketAddr;
use std::sync::Arc;

use kstone::Database;
use kstone_contract::items::Store;
use kstone_dynamo::{DoorOptions, serve};
use kstone_remote_items::{Login, RemoteItems, RemoteItemsOptions};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A door at a free port of loopback, with an empty database behind it.
pub struct Door {
    pub address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Door {
    pub async fn open() -> Door {
        let database = Database::memory().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(serve(listener, database, DoorOptions::default(), async {
            let _ = stopped.await;
        }));
        Door { address, stop, served }
    }

    /// Stops serving, and waits until that is done.
    pub async fn close(self) {
        self.stop.send(()).unwrap();
        self.served.await.unwrap();
    }
}

/// How the tests reach a store at this address.
pub fn options(address: SocketAddr) -> RemoteItemsOptions {
    RemoteItemsOptions::new(format!("http://{address}"), "us-east-1", Login::key("test", "secret"))
}

macro_rules! tests {
    ($($module:ident :: $case:ident)*) => {
        $(
            #[tokio::test]
            async fn $case() {
                let door = Door::open().await;
                let items = RemoteItems::new(options(door.address)).unwrap();
                let store = Store::new(Arc::new(items), "door");
                kstone_contract::items::$module::$case(&store).await;
                drop(store);
                door.close().await;
            }
        )*
    };
}

kstone_contract::items_cases!(tests);
