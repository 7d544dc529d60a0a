//! What is done to an embedded database, what of it is timed, and how its answers are checked.

use super::{Durability, Embedded, EmbeddedName, Shape, Task};
use crate::items::posts::{self, PER_DAY, Post};
use crate::machine::{disk_bytes, peak_memory_bytes};
use crate::random::{Rng, shuffled};
use crate::{Outcome, child};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmbeddedWorkload {
    /// Random gets from a database in memory.
    GetMemory,
    /// Random gets from a database on disk.
    Get,
    /// The same, every attribute decoded.
    GetDecoded,
    /// The 20 posts of a random day.
    Query,
    /// The same, every attribute decoded.
    QueryDecoded,
    /// Overwrites of random posts, not synced one by one.
    PutInterval,
    /// Overwrites of random posts, each synced.
    PutSync,
}

/// One run: of which workload, on what, and how much.
#[derive(Serialize, Deserialize)]
pub struct Request {
    /// With which database.
    pub database: EmbeddedName,
    /// Which workload.
    pub workload: EmbeddedWorkload,
    /// In which folder, which does not exist yet.
    pub dir: PathBuf,
    /// Posts in the database.
    pub posts: u32,
    /// For how long, in milliseconds.
    pub timed_ms: u64,
    /// The same for all databases of a round.
    pub seed: u64,
}

/// What a run found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// Requests per second.
    pub per_second: f64,
    /// The size of the folder after the database was closed.
    pub disk_bytes: u64,
    /// The most memory the process had.
    pub peak_memory_bytes: u64,
}

/// Requests that are made at once, before the clock goes on.
const CHUNK_LEN: u32 = 500;

impl EmbeddedWorkload {
    /// In the order in which they are printed.
    pub const ALL: &[EmbeddedWorkload] = &[
        EmbeddedWorkload::GetMemory,
        EmbeddedWorkload::Get,
        EmbeddedWorkload::GetDecoded,
        EmbeddedWorkload::Query,
        EmbeddedWorkload::QueryDecoded,
        EmbeddedWorkload::PutInterval,
        EmbeddedWorkload::PutSync,
    ];

    /// The name that is printed and parsed.
    pub fn as_str(self) -> &'static str {
        match self {
            EmbeddedWorkload::GetMemory => "embedded get, in memory",
            EmbeddedWorkload::Get => "embedded get",
            EmbeddedWorkload::GetDecoded => "embedded get, decoded",
            EmbeddedWorkload::Query => "embedded query of 20",
            EmbeddedWorkload::QueryDecoded => "embedded query of 20, decoded",
            EmbeddedWorkload::PutInterval => "embedded put, interval",
            EmbeddedWorkload::PutSync => "embedded put, sync",
        }
    }

    /// Who plays it.
    pub fn databases(self) -> &'static [EmbeddedName] {
        match self {
            EmbeddedWorkload::PutInterval => {
                &[EmbeddedName::Keystone, EmbeddedName::Dynoxide, EmbeddedName::DynoxideUnsynced]
            }
            _ => &[EmbeddedName::Keystone, EmbeddedName::Dynoxide],
        }
    }
}

impl Request {
    /// Starts a child, waits for it, and removes what it left.
    pub fn run_in_child(&self) -> Outcome<Run> {
        let who = self.database.as_str();
        let what = self.workload.as_str();
        child::run("items", self, &self.dir)
            .map_err(|failure| format!("{who}: {what}: {failure}").into())
    }

    /// Does the work in this process and prints the result.
    pub fn serve(self) -> Outcome<()> {
        let dir = self.dir.clone();
        let per_second = self.database.dispatch(self)?;
        let run = Run {
            per_second,
            disk_bytes: disk_bytes(&dir)?,
            peak_memory_bytes: peak_memory_bytes(),
        };
        println!("{}", serde_json::to_string(&run)?);
        Ok(())
    }

    fn timed(&self) -> Duration {
        Duration::from_millis(self.timed_ms)
    }
}

impl Task for Request {
    type Output = Outcome<f64>;

    fn run<D: Embedded>(self) -> Outcome<f64> {
        match self.workload {
            EmbeddedWorkload::GetMemory => gets::<D>(&self, None, Shape::OneAttribute),
            EmbeddedWorkload::Get => gets::<D>(&self, Some(&self.dir), Shape::OneAttribute),
            EmbeddedWorkload::GetDecoded => gets::<D>(&self, Some(&self.dir), Shape::Decoded),
            EmbeddedWorkload::Query => queries::<D>(&self, Shape::OneAttribute),
            EmbeddedWorkload::QueryDecoded => queries::<D>(&self, Shape::Decoded),
            EmbeddedWorkload::PutInterval => puts::<D>(&self, Durability::Interval),
            EmbeddedWorkload::PutSync => puts::<D>(&self, Durability::Sync),
        }
    }
}

/// Makes requests for random posts and plays them, in turns, until playing took `timed`; gives
/// back how many it played in a second.
fn play<T>(
    request: &Request,
    timed: Duration,
    mut prepare: impl FnMut(u32) -> T,
    mut play: impl FnMut(u32, T) -> Outcome<()>,
) -> Outcome<f64> {
    let mut rng = Rng::new(request.seed);
    let (mut played, mut elapsed) = (0u32, Duration::ZERO);
    let mut chunk = Vec::with_capacity(CHUNK_LEN as usize);
    while elapsed < timed {
        for _ in 0..CHUNK_LEN {
            let id = rng.below(request.posts);
            chunk.push((id, prepare(id)));
        }
        let start = Instant::now();
        for (id, one) in chunk.drain(..) {
            play(id, one)?;
        }
        elapsed += start.elapsed();
        played += CHUNK_LEN;
    }
    Ok(f64::from(played) / elapsed.as_secs_f64())
}

/// A database with every post, each compared with what was written.
fn loaded<D: Embedded>(
    request: &Request,
    dir: Option<&Path>,
    durability: Durability,
) -> Outcome<D> {
    let database = D::open(dir, durability)?;
    let posts: Vec<Post> =
        shuffled(request.posts, request.seed).into_iter().map(Post::new).collect();
    database.load(&posts)?;
    posts.iter().try_for_each(|post| expect(&database, post))?;
    if database.item(request.posts)?.is_some() {
        return Err("a post exists that was never written".into());
    }
    Ok(database)
}

fn expect<D: Embedded>(database: &D, post: &Post) -> Outcome<()> {
    match database.item(post.id)? {
        Some(item) if item == post.to_json() => Ok(()),
        found => Err(format!("{post:?}: found {found:?}").into()),
    }
}

fn gets<D: Embedded>(request: &Request, dir: Option<&Path>, shape: Shape) -> Outcome<f64> {
    let database: D = loaded(request, dir, Durability::Interval)?;
    let get = |id: u32, one: D::Get| match database.get(one, shape, posts::number_in)? {
        Some(Some(found)) if found == id => Ok(()),
        found => Err(format!("a get of post {id} found {found:?}").into()),
    };
    play(request, request.timed() / 4, D::prepare_get, get)?;
    play(request, request.timed(), D::prepare_get, get)
}

fn queries<D: Embedded>(request: &Request, shape: Shape) -> Outcome<f64> {
    let database: D = loaded(request, Some(&request.dir), Durability::Interval)?;
    let query = |id: u32, one: D::Query| {
        let first = posts::first_of_day(id);
        let (mut next, mut in_order) = (first, true);
        database.query(one, shape, |text| {
            in_order &= posts::number_in(text) == Some(next);
            next += 1;
        })?;
        match in_order && next == first + PER_DAY {
            true => Ok(()),
            false => Err(format!("a query for the day of post {id} found something else").into()),
        }
    };
    play(request, request.timed() / 4, D::prepare_query, query)?;
    play(request, request.timed(), D::prepare_query, query)
}

fn puts<D: Embedded>(request: &Request, durability: Durability) -> Outcome<f64> {
    let database: D = loaded(request, Some(&request.dir), durability)?;
    let mut versions = vec![0u32; request.posts as usize];
    let prepare = |id: u32| {
        let version = &mut versions[id as usize];
        *version += 1;
        D::prepare_put(&Post { id, version: *version })
    };
    let speed = play(request, request.timed(), prepare, |_, one| database.put(one))?;

    // Every post is at its last version for who opens the database next.
    drop(database);
    let database = D::open(Some(&request.dir), durability)?;
    for (id, &version) in (0u32..).zip(&versions) {
        expect(&database, &Post { id, version })?;
    }
    Ok(speed)
}
