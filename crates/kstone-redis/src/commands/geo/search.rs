//! GEOSEARCH, GEOSEARCHSTORE, and GEORADIUS and its kind, which they have replaced.

use std::ops::ControlFlow;

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::geo::hash::{Position, Shape};
use crate::commands::geo::places::{
    find_position, position, unit_m, write_distance, write_position,
};
use crate::commands::sorted_sets::{ScoreRange, SortedSet, Walk, Window, store_result};
use crate::fault::{Fault, Result};

/// Which command it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// GEORADIUS.
    Radius {
        may_store: bool,
    },
    /// GEORADIUSBYMEMBER.
    RadiusByMember {
        may_store: bool,
    },
    Search,
    SearchStore,
}

impl Form {
    fn may_store(self) -> bool {
        match self {
            Form::Radius { may_store } | Form::RadiusByMember { may_store } => may_store,
            Form::Search | Form::SearchStore => false,
        }
    }

    fn is_search(self) -> bool {
        matches!(self, Form::Search | Form::SearchStore)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    NearestFirst,
    FarthestFirst,
}

/// What is searched for, and which fields are returned.
#[derive(Debug, Default)]
struct Query<'a> {
    center: Option<Center>,
    shape: Option<Shape>,
    /// Metres in the unit of the reply.
    unit_m: f64,
    with_distance: bool,
    with_hash: bool,
    with_position: bool,
    /// As many as that; 0 is all.
    count: usize,
    /// Any of them, not the nearest.
    any: bool,
    order: Option<Order>,
    target: Option<&'a [u8]>,
    stores_distance: bool,
}

/// Where the middle of a search is.
#[derive(Debug, Clone, Copy)]
enum Center {
    At(Position),
    /// At a member of a set that is not there, so nothing is found.
    Nowhere,
}

/// A place that was found.
#[derive(Debug)]
struct Found {
    member: Vec<u8>,
    score: f64,
    distance_m: f64,
}

pub(super) fn georadius(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    search(context, args, Form::Radius { may_store: true })
}

pub(super) fn georadius_ro(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    search(context, args, Form::Radius { may_store: false })
}

pub(super) fn georadiusbymember(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    search(context, args, Form::RadiusByMember { may_store: true })
}

pub(super) fn georadiusbymember_ro(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    search(context, args, Form::RadiusByMember { may_store: false })
}

pub(super) fn geosearch(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    search(context, args, Form::Search)
}

pub(super) fn geosearchstore(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    search(context, args, Form::SearchStore)
}

/// The keys of GEORADIUS and GEORADIUSBYMEMBER: the first, and what comes after the last STORE.
pub(super) fn radius_keys(args: &[&[u8]]) -> Vec<usize> {
    let (mut at, mut target) = (5, None);
    while let Some(option) = args.get(at) {
        // A target may be called like an option.
        if (args::is(option, "store") || args::is(option, "storedist")) && at + 1 < args.len() {
            at += 1;
            target = Some(at);
        }
        at += 1;
    }
    std::iter::once(1).chain(target).collect()
}

fn search(context: &mut Context<'_, '_>, args: &[&[u8]], form: Form) -> Result<Flow> {
    let key = args.get(if form == Form::SearchStore { 2 } else { 1 }).copied();
    let key = key.unwrap_or_default();
    let set = SortedSet::find(context.txn, key)?;
    let query = parse(context, args, form, key, set.as_ref())?;
    let found = match (&set, query.center, query.shape) {
        (Some(set), Some(Center::At(center)), Some(shape)) => {
            find(context, key, set, &query, center, shape)?
        }
        _ => Vec::new(),
    };
    if let Some(target) = query.target {
        let event = if form.is_search() { "geosearchstore" } else { "georadiusstore" };
        let scored = |place: Found| match query.stores_distance {
            true => (place.member, place.distance_m / query.unit_m),
            false => (place.member, place.score),
        };
        let members: Vec<_> = found.into_iter().map(scored).collect();
        store_result(context, target, &members, event, members.len() as u64)?;
        return Ok(Flow::Done);
    }
    write_reply(context, &query, &found);
    Ok(Flow::Done)
}

fn write_reply(context: &mut Context<'_, '_>, query: &Query<'_>, found: &[Found]) {
    let details = [query.with_distance, query.with_hash, query.with_position];
    let details = details.into_iter().filter(|with| *with).count();
    context.out.array(found.len());
    for place in found {
        if details > 0 {
            context.out.array(details + 1);
        }
        context.out.bulk(&place.member);
        if query.with_distance {
            write_distance(context.out, place.distance_m / query.unit_m);
        }
        if query.with_hash {
            context.out.integer(place.score as i64);
        }
        if query.with_position {
            let position = Position::of_score(place.score);
            write_position(context.out, context.client.resp3, position);
        }
    }
}

/// Everything inside the shape, or as much of it as was asked for.
fn find(
    context: &mut Context<'_, '_>,
    key: &[u8],
    set: &SortedSet,
    query: &Query<'_>,
    center: Position,
    shape: Shape,
) -> Result<Vec<Found>> {
    let enough = if query.any { query.count } else { usize::MAX };
    let mut found: Vec<Found> = Vec::new();
    for cell in shape.cells(center) {
        if found.len() >= enough {
            break;
        }
        let (min, max) = cell.scores();
        let range = ScoreRange { min, max, min_open: false, max_open: true };
        let mut walk = Walk::new(context.txn, key, set);
        walk.by_score(&range, false, Window::ALL, |member, score| {
            if let Some(distance_m) = shape.distance_m(center, Position::of_score(score)) {
                found.push(Found { member: member.to_vec(), score, distance_m });
            }
            if found.len() >= enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
    }
    // The nearest so many cannot be told without an order.
    let is_cut = query.count > 0 && !query.any;
    match query.order.or(is_cut.then_some(Order::NearestFirst)) {
        Some(Order::NearestFirst) => {
            found.sort_by(|a, b| a.distance_m.total_cmp(&b.distance_m));
        }
        Some(Order::FarthestFirst) => {
            found.sort_by(|a, b| b.distance_m.total_cmp(&a.distance_m));
        }
        None => {}
    }
    if query.count > 0 {
        found.truncate(query.count);
    }
    Ok(found)
}

fn parse<'a>(
    context: &Context<'_, '_>,
    args: &[&'a [u8]],
    form: Form,
    key: &[u8],
    set: Option<&SortedSet>,
) -> Result<Query<'a>> {
    let mut query = Query { unit_m: 1.0, ..Query::default() };
    let around = |member: &[u8]| match set {
        None => Ok(Center::Nowhere),
        Some(_) => find_position(context, key, set, member)?
            .map(Center::At)
            .ok_or(Fault::fixed("ERR could not decode requested zset member")),
    };
    let mut rest = match (form, args) {
        (Form::Radius { .. }, [_, _, longitude, latitude, radius, unit, rest @ ..]) => {
            query.center = Some(Center::At(position(longitude, latitude)?));
            query.set_circle(radius, unit)?;
            rest
        }
        (Form::RadiusByMember { .. }, [_, _, member, radius, unit, rest @ ..]) => {
            query.center = Some(around(member)?);
            // What is wrong with the radius is not looked at where there is nothing to search.
            if set.is_some() {
                query.set_circle(radius, unit)?;
            }
            rest
        }
        (Form::Search, [_, _, rest @ ..]) => rest,
        (Form::SearchStore, [_, target, _, rest @ ..]) => {
            query.target = Some(target);
            rest
        }
        _ => return Err(Fault::SYNTAX),
    };
    let (mut is_from_member, mut is_from_position) = (false, false);
    while let [option, after @ ..] = rest {
        let is = |name| args::is(option, name);
        let is_box = matches!(query.shape, Some(Shape::Box { .. }));
        let is_circle = matches!(query.shape, Some(Shape::Circle { .. }));
        rest = after;
        match after {
            _ if is("withdist") => query.with_distance = true,
            _ if is("withhash") => query.with_hash = true,
            _ if is("withcoord") => query.with_position = true,
            _ if is("any") => query.any = true,
            _ if is("asc") => query.order = Some(Order::NearestFirst),
            _ if is("desc") => query.order = Some(Order::FarthestFirst),
            [count, after @ ..] if is("count") => {
                let count = args::integer(count)?;
                if count <= 0 {
                    return Err(Fault::fixed("ERR COUNT must be > 0"));
                }
                query.count = usize::try_from(count).unwrap_or(usize::MAX);
                rest = after;
            }
            [target, after @ ..] if form.may_store() && (is("store") || is("storedist")) => {
                query.target = Some(target);
                query.stores_distance = is("storedist");
                rest = after;
            }
            _ if form == Form::SearchStore && is("storedist") => query.stores_distance = true,
            [member, after @ ..] if form.is_search() && is("frommember") && !is_from_position => {
                query.center = Some(around(member)?);
                is_from_member = true;
                rest = after;
            }
            [longitude, latitude, after @ ..]
                if form.is_search() && is("fromlonlat") && !is_from_member =>
            {
                query.center = Some(Center::At(position(longitude, latitude)?));
                is_from_position = true;
                rest = after;
            }
            [radius, unit, after @ ..] if form.is_search() && is("byradius") && !is_box => {
                query.set_circle(radius, unit)?;
                rest = after;
            }
            [width, height, unit, after @ ..] if form.is_search() && is("bybox") && !is_circle => {
                query.set_box(width, height, unit)?;
                rest = after;
            }
            _ => return Err(Fault::SYNTAX),
        }
    }
    query.check(args.first().copied().unwrap_or_default(), form)?;
    Ok(query)
}

impl Query<'_> {
    fn set_circle(&mut self, radius: &[u8], unit: &[u8]) -> Result<()> {
        let radius = args::parse_float(radius).ok_or(Fault::fixed("ERR need numeric radius"))?;
        if radius < 0.0 {
            return Err(Fault::fixed("ERR radius cannot be negative"));
        }
        self.unit_m = unit_m(unit)?;
        self.shape = Some(Shape::Circle { radius_m: radius * self.unit_m });
        Ok(())
    }

    fn set_box(&mut self, width: &[u8], height: &[u8], unit: &[u8]) -> Result<()> {
        let width = args::parse_float(width).ok_or(Fault::fixed("ERR need numeric width"))?;
        let height = args::parse_float(height).ok_or(Fault::fixed("ERR need numeric height"))?;
        if width < 0.0 || height < 0.0 {
            return Err(Fault::fixed("ERR height or width cannot be negative"));
        }
        self.unit_m = unit_m(unit)?;
        let (width_m, height_m) = (width * self.unit_m, height * self.unit_m);
        self.shape = Some(Shape::Box { width_m, height_m });
        Ok(())
    }

    /// Whether the options go together.
    fn check(&self, name: &[u8], form: Form) -> Result<()> {
        if self.target.is_some() && (self.with_distance || self.with_hash || self.with_position) {
            let what = match form {
                Form::SearchStore => "GEOSEARCHSTORE",
                _ => "STORE option in GEORADIUS",
            };
            return Err(Fault::new(format!(
                "ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        let name = args::shown(name);
        if form.is_search() && self.center.is_none() {
            return Err(Fault::new(format!(
                "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {name}"
            )));
        }
        if form.is_search() && self.shape.is_none() {
            return Err(Fault::new(format!(
                "ERR exactly one of BYRADIUS and BYBOX can be specified for {name}"
            )));
        }
        if self.any && self.count == 0 {
            return Err(Fault::fixed("ERR the ANY argument requires COUNT argument"));
        }
        Ok(())
    }
}
