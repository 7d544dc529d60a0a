//! A server in this process with all its doors and the shipped catalogues in force, whose clock stands
//! still; and clients that know nothing but its protocols.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use kstone::{Database, DatabaseOptions};
use kstone_core::env::{Env, ManualClock};
use kstone_dapr::{Door, DoorOptions, State};
use kstone_door_tests::http::{Answer, Connection};
use kstone_door_tests::redis::wire::Wire;
use kstone_keyspace::typed::TypedKey;
use kstone_keyspace::{Governor, GovernorOptions};
use serde_json::{Value as Json, json};
use tokio::net::TcpListener;

/// A whole second, at which every test begins: 2026-01-14, 9 o'clock.
pub const START_S: u64 = 1_768_381_200;
pub const DAY_S: u64 = 86_400;

pub struct Doors {
    pub clock: Arc<ManualClock>,
    dynamo: SocketAddr,
    dapr: SocketAddr,
    redis: SocketAddr,
    // Dropping it ends the tasks.
    _runtime: tokio::runtime::Runtime,
}

impl Doors {
    pub fn open() -> Doors {
        let clock = Arc::new(ManualClock::at(START_S * 1000));
        let env = Env { clock: clock.clone(), ..Env::memory() };
        let db = Database::open_with(env, "db", DatabaseOptions::default()).unwrap();
        let keyspace = Arc::new(kstone_keyspace::shipped().unwrap());
        Governor::govern(&db, keyspace.clone(), GovernorOptions::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let bind = || {
            let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
            let address = listener.local_addr().unwrap();
            (listener, address)
        };
        let (listener, redis) = bind();
        let keys = kstone_redis::Redis::open(&db).unwrap();
        runtime.spawn(kstone_resp::serve(listener, keys, std::future::pending()));
        let (listener, dapr) = bind();
        let state = State::new(Arc::new(db.clone()), keyspace, clock.clone());
        let door = Door::new(state, DoorOptions::default());
        runtime.spawn(door.serve_http(listener, std::future::pending()));
        let (listener, dynamo) = bind();
        let options = kstone_dynamo::DoorOptions::default();
        runtime.spawn(kstone_dynamo::serve(listener, db, options, std::future::pending()));
        let doors = Doors { clock, dynamo, dapr, redis, _runtime: runtime };
        doors.dapr().make_table();
        doors
    }

    pub fn dynamo(&self) -> Dynamo {
        Dynamo(Connection::new(self.dynamo))
    }

    pub fn dapr(&self) -> Dapr {
        Dapr(Connection::new(self.dapr))
    }

    pub fn redis(&self) -> Wire {
        Wire::connect(self.redis).unwrap()
    }
}

/// A client of the Dapr door, over HTTP.
pub struct Dapr(Connection);

impl Dapr {
    /// The table is made with the first write.
    fn make_table(&mut self) {
        self.save(&json!([{"key": "made", "value": 1}]));
        self.delete("made");
    }

    fn send(&mut self, target: &str, body: &Json) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.0.send(target, "Content-Type: application/json\r\n", body.as_bytes()).unwrap()
    }

    pub fn get(&mut self, key: &str) -> Answer {
        self.send(&format!("GET /v1.0/state/statestore/{key}"), &Json::Null)
    }

    /// What a key holds, if anything.
    pub fn value(&mut self, key: &str) -> Option<Json> {
        let answer = self.get(key);
        (answer.status == 200).then(|| serde_json::from_slice(&answer.body).unwrap())
    }

    /// Asks for a save, and gives the status.
    pub fn try_save(&mut self, states: &Json) -> u16 {
        self.send("POST /v1.0/state/statestore", states).status
    }

    pub fn save(&mut self, states: &Json) {
        assert_eq!(self.try_save(states), 204, "{states}");
    }

    pub fn save_one(&mut self, key: &impl TypedKey, value: &Json) {
        self.save(&json!([{"key": key.key(), "value": value}]));
    }

    pub fn delete(&mut self, key: &str) {
        let answer = self.send(&format!("DELETE /v1.0/state/statestore/{key}"), &Json::Null);
        assert_eq!(answer.status, 204);
    }

    /// What each of the keys holds, if anything.
    pub fn get_many(&mut self, keys: &[String]) -> Vec<Option<Json>> {
        let answer = self.send("POST /v1.0/state/statestore/bulk", &json!({"keys": keys}));
        assert_eq!(answer.status, 200);
        let all: Vec<Json> = serde_json::from_slice(&answer.body).unwrap();
        let found: Vec<&str> = all.iter().map(|it| it["key"].as_str().unwrap()).collect();
        assert_eq!(found, keys.iter().map(String::as_str).collect::<Vec<_>>());
        all.iter().map(|it| it.get("data").cloned()).collect()
    }

    /// Asks for a transaction of upserts, and gives the status.
    pub fn transact(&mut self, upserts: &[(String, Json)]) -> u16 {
        let upsert = |(key, value): &(String, Json)| json!({"operation": "upsert", "request": {"key": key, "value": value}});
        let operations: Vec<Json> = upserts.iter().map(upsert).collect();
        let body = json!({ "operations": operations });
        self.send("POST /v1.0/state/statestore/transaction", &body).status
    }

    /// All keys that begin so, with what they hold.
    pub fn list(&mut self, prefix: &str) -> Vec<(String, Json)> {
        let path = "POST /v1.0-alpha1/state/statestore/query?metadata.keyPrefix=";
        let answer = self.send(&format!("{path}{prefix}"), &json!({"filter": {}}));
        if answer.status == 204 {
            return Vec::new();
        }
        assert_eq!(answer.status, 200);
        let page: Json = serde_json::from_slice(&answer.body).unwrap();
        assert!(page.get("token").is_none(), "all of it is one page");
        let results = page["results"].as_array().unwrap();
        results
            .iter()
            .map(|it| (it["key"].as_str().unwrap().to_owned(), it["data"].clone()))
            .collect()
    }
}

/// A client of the DynamoDB door, and of the table `state`.
pub struct Dynamo(Connection);

impl Dynamo {
    /// The answer, or the name of its error.
    pub fn call(&mut self, operation: &str, mut request: Json) -> Result<Json, String> {
        request["TableName"] = json!("state");
        self.call_all(operation, request)
    }

    /// [`call`](Self::call) for operations whose request names its tables within.
    pub fn call_all(&mut self, operation: &str, request: Json) -> Result<Json, String> {
        let target = format!("DynamoDB_20120810.{operation}");
        let answer = self.0.post(&target, request.to_string().as_bytes()).unwrap();
        let body: Json = serde_json::from_slice(&answer.body).unwrap();
        match answer.status {
            200 => Ok(body),
            _ => Err(body["__type"].as_str().unwrap().rsplit('#').next().unwrap().to_owned()),
        }
    }

    /// The item of a key, if there is one.
    pub fn item(&mut self, key: &impl TypedKey) -> Option<Json> {
        let request = json!({"Key": place(key), "ConsistentRead": true});
        self.call("GetItem", request).unwrap().get("Item").cloned()
    }

    /// Items of a partition, in order: all, or those that a condition on the sort key chooses.
    pub fn query(&mut self, partition: &str, sk: &str, values: &[(&str, &str)]) -> Vec<Json> {
        let condition =
            if sk.is_empty() { "pk = :pk".into() } else { format!("pk = :pk AND {sk}") };
        let mut given = json!({":pk": {"S": partition}});
        for (name, value) in values {
            given[name] = json!({"S": value});
        }
        let request =
            json!({"KeyConditionExpression": condition, "ExpressionAttributeValues": given});
        self.call("Query", request).unwrap()["Items"].as_array().unwrap().clone()
    }
}

/// The key attributes of an item.
pub fn place(key: &impl TypedKey) -> Json {
    json!({"pk": {"S": key.partition_key()}, "sk": {"S": key.sort_key()}})
}

/// An item as any client of DynamoDB puts it.
pub fn item(key: &impl TypedKey, value: &Json) -> Json {
    let mut item = place(key);
    item["value"] = json!({"S": value.to_string()});
    item
}

/// What a text attribute holds.
pub fn text<'a>(item: &'a Json, name: &str) -> &'a str {
    item[name]["S"].as_str().unwrap_or_else(|| panic!("no text {name} in {item}"))
}

/// The value of an item, as Dapr knows it.
pub fn value(item: &Json) -> Json {
    serde_json::from_str(text(item, "value")).unwrap()
}

/// The whole key of an item.
pub fn key_of(item: &Json) -> String {
    match (text(item, "pk"), text(item, "sk")) {
        (pk, "#") => pk.to_owned(),
        (pk, sk) => format!("{pk}:{sk}"),
    }
}
