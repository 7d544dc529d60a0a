//! The DynamoDB door of a server.

use std::sync::Arc;

use anyhow::Result;
use kstone_core::Options;
use kstone_dynamo::{Credential, DoorOptions};
use tokio::runtime::Handle;

use super::backend::Backend;
use super::doors::Doors;
use super::process_status::OpenDoor;
use super::settings::{AccessKey, Listen, Settings};
use super::sockets::{Door, Socket};
use super::{durability_name, file_limit};

const DOOR: Door = Door {
    flag: "--dynamodb",
    secret: "--access-key ID:SECRET",
    secret_is: "key",
    variable: "KSTONE_ACCESS_KEY",
};

/// Opens its socket.
pub async fn listen(settings: &Settings) -> Result<Option<Socket>> {
    match &settings.dynamodb {
        Listen::Off => Ok(None),
        Listen::At(address) => DOOR.listen(address, !settings.keys.is_empty()).await.map(Some),
    }
}

/// Opens the door.
pub fn open(
    socket: Option<Socket>,
    settings: &Settings,
    backend: &Backend,
    doors: &mut Doors,
    threads: &Handle,
) {
    let Some(socket) = socket else { return };
    let mut options =
        DoorOptions { keys: settings.keys.iter().map(credential).collect(), ..Default::default() };
    let wanted = options.limits.connections_max;
    options.limits.connections_max = file_limit::connections_max(wanted, &Options::default());
    let (url, durability) = (socket.url("http"), settings.dynamodb_durability);
    let keys = match settings.keys.len() {
        0 => "any access key".to_owned(),
        1 => "1 access key".to_owned(),
        n => format!("{n} access keys"),
    };
    doors
        .lines
        .push(format!("dynamodb  {url}  durability {}, {keys}", durability_name(durability)));
    let meter = Arc::clone(&options.meter);
    doors.shown.push(OpenDoor::metered("DynamoDB", url, durability, meter));
    let db = backend.db.with_durability(durability);
    let serving = kstone_dynamo::serve(socket.listener, db, options, doors.stop_asked());
    doors.open(serving, threads);
}

fn credential(key: &AccessKey) -> Credential {
    Credential { access_key: key.id.clone(), secret_key: key.secret.clone() }
}
