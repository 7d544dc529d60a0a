//! Places on earth, as clients see them.

use crate::support::{Client, bulk, bulks, error, int};
use kstone_ports::keys::Value;

fn sicily() -> Client {
    let mut client = Client::new();
    let added = client.say("GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania");
    assert_eq!(added, int(2));
    client
}

#[test]
fn places_have_positions_distances_and_hashes() {
    let mut client = sicily();
    assert_eq!(client.say("GEODIST Sicily Palermo Catania"), bulk("166274.1516"));
    assert_eq!(client.say("GEODIST Sicily Palermo Catania km"), bulk("166.2742"));
    assert_eq!(client.say("GEODIST Sicily Palermo nowhere"), Value::Null);
    assert_eq!(
        client.say("GEOHASH Sicily Palermo Catania"),
        bulks(&["sqc8b49rny0", "sqdtr74hyu0"])
    );
    let expected = Value::Array(vec![
        bulks(&["13.36138933897018433", "38.11555639549629859"]),
        Value::NullArray,
    ]);
    assert_eq!(client.say("GEOPOS Sicily Palermo nowhere"), expected);
}

#[test]
fn a_search_finds_what_is_inside_and_nothing_else() {
    let mut client = sicily();
    client.say("GEOADD Sicily 12.758489 38.788135 edge1 17.241510 38.788135 edge2");
    assert_eq!(
        client.say("GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km ASC"),
        bulks(&["Catania", "Palermo"])
    );
    assert_eq!(
        client.say("GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 400 km DESC"),
        bulks(&["edge1", "edge2", "Palermo", "Catania"])
    );
    assert_eq!(
        client.say("GEORADIUSBYMEMBER Sicily Palermo 0 m WITHHASH"),
        Value::Array(vec![Value::Array(vec![bulk("Palermo"), int(3479099956230698)])])
    );
    assert_eq!(client.say("GEOSEARCH nothing FROMMEMBER x BYRADIUS 1 m"), Value::Array(vec![]));
}

#[test]
fn a_search_is_stored_with_positions_or_with_distances() {
    let mut client = sicily();
    let search = "FROMLONLAT 15 37 BYRADIUS 200 km";
    assert_eq!(client.say(&format!("GEOSEARCHSTORE near Sicily {search} STOREDIST")), int(2));
    assert_eq!(client.say("ZRANGEBYSCORE near 0 100"), bulks(&["Catania"]));
    assert_eq!(client.say("GEORADIUS Sicily 15 37 200 km COUNT 1 STORE near"), int(1));
    assert_eq!(client.say("ZSCORE near Catania"), Value::Double(3479447370796909.0));
    assert_eq!(client.say("GEORADIUS nothing 15 37 200 km STORE near"), int(0));
    assert_eq!(client.say("EXISTS near"), int(0));
}

#[test]
fn what_is_no_place_is_refused() {
    let mut client = sicily();
    assert_eq!(
        error(client.say("GEOADD Sicily 200 100 x")),
        "ERR invalid longitude,latitude pair 200.000000,100.000000"
    );
    assert!(error(client.say("GEOADD Sicily 13 37")).contains("wrong number of arguments"));
    assert!(error(client.say("GEODIST Sicily Palermo Catania miles")).contains("unsupported unit"));
    for (search, expected) in [
        ("BYRADIUS 1 m ASC ASC", "exactly one of FROMMEMBER or FROMLONLAT"),
        ("FROMLONLAT 1 1 ASC ASC", "exactly one of BYRADIUS and BYBOX"),
        ("FROMLONLAT 1 1 BYRADIUS -1 m", "radius cannot be negative"),
        ("FROMLONLAT 1 1 BYBOX 1 a m", "need numeric height"),
        ("FROMLONLAT 1 1 BYRADIUS 1 m ANY", "requires COUNT"),
        ("FROMLONLAT 1 1 BYRADIUS 1 m COUNT 0", "COUNT must be > 0"),
        ("FROMMEMBER nobody BYRADIUS 1 m", "could not decode"),
    ] {
        let reply = error(client.say(&format!("GEOSEARCH Sicily {search}")));
        assert!(reply.contains(expected), "{search}: {reply}");
    }
}
