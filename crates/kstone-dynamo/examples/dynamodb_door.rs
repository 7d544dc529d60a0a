//! Serves a database in memory, or in the folder given, at the port given: for trying clients.
//!
//! `cargo run --release -p kstone-dynamo --example dynamodb_door -- 8000 [FOLDER]`

use kstone_dynamo::{Credential, DoorOptions, serve};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().unwrap_or_else(|| "8000".to_owned());
    let database = match arguments.next() {
        Some(folder) => kstone::Database::open(folder)?,
        None => kstone::Database::memory()?,
    };
    let mut options = DoorOptions::default();
    if let (Ok(access_key), Ok(secret_key)) =
        (std::env::var("DOOR_ACCESS_KEY"), std::env::var("DOOR_SECRET_KEY"))
    {
        options.keys.push(Credential { access_key, secret_key });
    }
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("DynamoDB door at http://{}", listener.local_addr()?);
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    serve(listener, database, options, stop).await;
    Ok(())
}
