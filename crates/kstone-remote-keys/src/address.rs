//! Where a store is: [`Address`], as a URL says it.

use kstone_ports::{Error, Result};
use percent_encoding::percent_decode_str;

/// The port that Redis listens at when a URL names none.
const USUAL_PORT: u16 = 6379;

/// One server, or some nodes of a cluster, and who we are there.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// The servers that are asked first, as `host:port`. A cluster tells of the others.
    pub seeds: Vec<String>,
    /// Whether they are a cluster's.
    pub is_cluster: bool,
    /// The database; a cluster has only 0.
    pub db: u8,
    /// The user, unless it is the default one.
    pub user: Option<String>,
    /// The password, if one is wanted.
    pub password: Option<String>,
}

impl Address {
    /// Reads `redis://[user:password@]host[:port][/db]`, or
    /// `redis-cluster://[user:password@]host[:port][,host[:port]…]`.
    pub fn parse(url: &str) -> Result<Address> {
        let wrong = |what: &str| Error::invalid(format!("the URL of the keys {what}"));
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(wrong("must begin with redis:// or redis-cluster://"));
        };
        let is_cluster = match scheme {
            "redis" => false,
            "redis-cluster" => true,
            "rediss" => return Err(Error::Unsupported("keys over TLS are not supported".into())),
            _ => return Err(wrong("must begin with redis:// or redis-cluster://")),
        };
        let (who, place) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (user, password) = who.split_once(':').unwrap_or(("", who));
        let decoded = |part: &str| match part {
            "" => Ok(None),
            part => match percent_decode_str(part).decode_utf8() {
                Ok(text) => Ok(Some(text.into_owned())),
                Err(_) => Err(wrong("has a user or password that is not UTF-8")),
            },
        };
        let (hosts, db) = place.split_once('/').unwrap_or((place, ""));
        let db = match db {
            "" => 0,
            db => match db.parse() {
                Ok(db) if db < 16 => db,
                _ => return Err(wrong("names a database that is not one of 0 to 15")),
            },
        };
        let seeds = hosts.split(',').map(with_port).collect::<Option<Vec<_>>>();
        let seeds = seeds.ok_or_else(|| wrong("names no host, or a port that is no number"))?;
        if is_cluster && db != 0 {
            return Err(Error::Unsupported("a cluster has only database 0".into()));
        }
        if !is_cluster && seeds.len() > 1 {
            return Err(wrong("names several servers, which redis-cluster:// is for"));
        }
        Ok(Address { seeds, is_cluster, db, user: decoded(user)?, password: decoded(password)? })
    }

    /// The URL without the password, for messages and pages.
    pub fn without_password(&self) -> String {
        let scheme = if self.is_cluster { "redis-cluster" } else { "redis" };
        let user = self.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        let db = if self.db > 0 { format!("/{}", self.db) } else { String::new() };
        format!("{scheme}://{user}{}{db}", self.seeds.join(","))
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.without_password())
    }
}

/// `host:port` of a host that may name its port.
fn with_port(host: &str) -> Option<String> {
    let named = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.1.strip_prefix(':'),
        None => host.split_once(':').map(|(_, port)| port),
    };
    match named {
        _ if host.is_empty() || host.starts_with(':') => None,
        None => Some(format!("{host}:{USUAL_PORT}")),
        Some(port) => port.parse::<u16>().ok().map(|_| host.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_and_who_and_hides_the_password() {
        let one = Address::parse("redis://ann:p%40ss@db.example:7000/3").unwrap();
        assert_eq!((one.seeds.join(","), one.db), ("db.example:7000".to_owned(), 3));
        assert_eq!(one.password.as_deref(), Some("p@ss"));
        assert_eq!(one.without_password(), "redis://ann@db.example:7000/3");
        assert_eq!(format!("{one:?}"), one.without_password());
        let many = Address::parse("redis-cluster://a,b:7001,[::1]:7002").unwrap();
        assert_eq!(many.seeds, ["a:6379", "b:7001", "[::1]:7002"]);
        assert_eq!(Address::parse("redis://:secret@h").unwrap().user, None);
        for wrong in [
            "h:1",
            "http://h",
            "redis://",
            "redis://h:x",
            "redis://h/16",
            "redis://a,b",
            "rediss://h",
        ] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Address::parse("redis-cluster://h/1").is_err());
    }
}
