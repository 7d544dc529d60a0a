//! On DynamoDB Local, where its jar is to be had: the variable `DYNAMODB_LOCAL_JAR` says where, as for
//! `kstone-door-tests differential`. Without it, or without `java`, nothing is tested.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use kstone_contract::items::Store;
use kstone_remote_items::RemoteItems;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::door::options;

/// How long it may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Its process; killed when dropped.
struct DynamoDbLocal {
    child: Child,
    address: SocketAddr,
}

impl DynamoDbLocal {
    async fn start(jar: &Path) -> std::io::Result<DynamoDbLocal> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let folder = jar.parent().unwrap();
        let child = Command::new("java")
            .arg(format!("-Djava.library.path={}", folder.join("DynamoDBLocal_lib").display()))
            .args(["-Xmx512m", "-jar"])
            .arg(jar)
            .args(["-inMemory", "-sharedDb", "-disableTelemetry", "-port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut local = DynamoDbLocal { child, address };
        let listens = async {
            while TcpStream::connect(address).await.is_err() {
                assert!(local.child.try_wait().unwrap().is_none(), "DynamoDB Local ended");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(START_TIMEOUT, listens).await?;
        Ok(local)
    }
}

impl Drop for DynamoDbLocal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What differs from DynamoDB, by the case's name; none at present.
const DEVIATIONS: [&str; 0] = [];

macro_rules! run_all {
    ($($module:ident :: $case:ident)*) => {
        async fn run_all(store: Store) {
            let mut running = JoinSet::new();
            $(
                if !DEVIATIONS.contains(&stringify!($case)) {
                    let store = store.clone();
                    running.spawn(async move {
                        // Its panic names the line; this names the case.
                        let case = tokio::spawn(async move {
                            kstone_contract::items::$module::$case(&store).await;
                        });
                        (stringify!($case), case.await.is_ok())
                    });
                }
            )*
            let ended = running.join_all().await;
            let failed: Vec<&str> =
                ended.iter().filter(|(_, passed)| !passed).map(|(case, _)| *case).collect();
            assert!(failed.is_empty(), "{failed:?} of {} failed", ended.len());
        }
    };
}

kstone_contract::items_cases!(run_all);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dynamodb_local_keeps_the_contract() {
    let Some(jar) = std::env::var_os("DYNAMODB_LOCAL_JAR").map(PathBuf::from) else {
        println!("skipped: DYNAMODB_LOCAL_JAR does not say where DynamoDBLocal.jar is");
        return;
    };
    let local = match DynamoDbLocal::start(&jar).await {
        Ok(local) => local,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!("skipped: there is no java");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let items = RemoteItems::new(options(local.address)).unwrap();
    run_all(Store::new(Arc::new(items), "local")).await;
}
