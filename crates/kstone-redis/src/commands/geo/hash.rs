//! Positions as numbers of 52 bits, so that what is near on earth is mostly near in a sorted set;
//! and the distance between two positions.
//!
//! Longitude and latitude are each halved 26 times; the bits that say which half are interleaved,
//! latitude in the even ones. A [`Cell`] of fewer bits is a rectangle on the map: all positions in
//! it are one range of scores.

/// How far positions reach, in degrees: where the Mercator projection is a square.
const LATITUDE_MAX: f64 = 85.05112878;
const LONGITUDE_MAX: f64 = 180.0;
/// How often each coordinate is halved.
const STEPS_MAX: u32 = 26;
const EARTH_RADIUS_M: f64 = 6372797.560856;
/// Half the length of the equator in the Mercator projection.
const MERCATOR_MAX_M: f64 = 20037726.37;
const LATITUDE_BITS: u64 = 0x5555_5555_5555_5555;
const LONGITUDE_BITS: u64 = 0xaaaa_aaaa_aaaa_aaaa;

/// A position on earth, in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Position {
    pub(super) longitude: f64,
    pub(super) latitude: f64,
}

impl Position {
    /// Whether it can be kept: not too near to the poles.
    pub(super) fn is_valid(self) -> bool {
        self.longitude.abs() <= LONGITUDE_MAX && self.latitude.abs() <= LATITUDE_MAX
    }

    /// Its number.
    pub(super) fn score(self) -> f64 {
        Cell::around(self, STEPS_MAX).bits as f64
    }

    /// The position of a number: the middle of what is rounded to it.
    pub(super) fn of_score(score: f64) -> Position {
        let area = Cell { bits: score as u64, steps: STEPS_MAX }.area();
        let middle = |low: f64, high: f64, max: f64| ((low + high) / 2.0).clamp(-max, max);
        Position {
            longitude: middle(area.west, area.east, LONGITUDE_MAX),
            latitude: middle(area.south, area.north, LATITUDE_MAX),
        }
    }

    /// The distance in metres to another one, on a sphere.
    pub(super) fn distance_m(self, to: Position) -> f64 {
        let v = ((to.longitude.to_radians() - self.longitude.to_radians()) / 2.0).sin();
        if v == 0.0 {
            return latitude_distance_m(self.latitude, to.latitude);
        }
        let (from_lat, to_lat) = (self.latitude.to_radians(), to.latitude.to_radians());
        let u = ((to_lat - from_lat) / 2.0).sin();
        let a = u * u + from_lat.cos() * to_lat.cos() * v * v;
        2.0 * EARTH_RADIUS_M * a.sqrt().asin()
    }

    /// As the rest of the world writes it: eleven characters, over latitudes of 90 degrees.
    pub(super) fn geohash(self) -> [u8; 11] {
        const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        let bits = interleave(self, 90.0, STEPS_MAX);
        std::array::from_fn(|at| {
            // The eleventh would need 55 bits.
            let index = if at == 10 { 0 } else { (bits >> (52 - (at + 1) * 5)) & 31 };
            ALPHABET.get(index as usize).copied().unwrap_or(b'0')
        })
    }
}

/// The distance of two positions with the same longitude.
pub(super) fn latitude_distance_m(one: f64, other: f64) -> f64 {
    EARTH_RADIUS_M * (other.to_radians() - one.to_radians()).abs()
}

fn interleave(position: Position, latitude_max: f64, steps: u32) -> u64 {
    let scale = (1u64 << steps) as f64;
    let latitude = (position.latitude + latitude_max) / (2.0 * latitude_max) * scale;
    let longitude = (position.longitude + LONGITUDE_MAX) / (2.0 * LONGITUDE_MAX) * scale;
    spread(latitude as u32) | spread(longitude as u32) << 1
}

/// Moves the bits of a number apart: each gets a zero before it.
fn spread(number: u32) -> u64 {
    let mut bits = u64::from(number);
    for (shift, mask) in [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, LATITUDE_BITS),
    ] {
        bits = (bits | bits << shift) & mask;
    }
    bits
}

/// The even bits of a number, moved together.
fn gather(bits: u64) -> u32 {
    let mut bits = bits & LATITUDE_BITS;
    for (shift, mask) in [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0f0f_0f0f_0f0f_0f0f),
        (4, 0x00ff_00ff_00ff_00ff),
        (8, 0x0000_ffff_0000_ffff),
        (16, 0x0000_0000_ffff_ffff),
    ] {
        bits = (bits | bits >> shift) & mask;
    }
    bits as u32
}

/// A rectangle on the map whose positions share their first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    bits: u64,
    steps: u32,
}

/// Where a cell is, in degrees.
#[derive(Debug, Clone, Copy)]
struct Area {
    west: f64,
    east: f64,
    south: f64,
    north: f64,
}

impl Cell {
    fn around(position: Position, steps: u32) -> Cell {
        Cell { bits: interleave(position, LATITUDE_MAX, steps), steps }
    }

    fn area(self) -> Area {
        let scale = (1u64 << self.steps) as f64;
        let (latitude, longitude) = (gather(self.bits), gather(self.bits >> 1));
        let at = |index: f64, max: f64| -max + index / scale * (2.0 * max);
        Area {
            south: at(f64::from(latitude), LATITUDE_MAX),
            north: at(f64::from(latitude) + 1.0, LATITUDE_MAX),
            west: at(f64::from(longitude), LONGITUDE_MAX),
            east: at(f64::from(longitude) + 1.0, LONGITUDE_MAX),
        }
    }

    /// The cell next to it, to the east and to the north (or, if negative, to the west and to the
    /// south), around the map's edges.
    fn neighbor(self, east: i8, north: i8) -> Cell {
        let all = u64::MAX >> (64 - self.steps * 2);
        let moved = |axis: u64, by: i8| {
            let (here, one) = (self.bits & axis, axis & axis.wrapping_neg());
            match by {
                // With the other axis' bits filled, a carry runs through them.
                1 => ((here | !axis) & all).wrapping_add(one) & axis,
                -1 => here.wrapping_sub(one) & axis,
                _ => here,
            }
        };
        let bits = moved(LONGITUDE_BITS & all, east) | moved(LATITUDE_BITS & all, north);
        Cell { bits, steps: self.steps }
    }

    /// The scores of its positions: from the first on, below the second.
    pub(super) fn scores(self) -> (f64, f64) {
        let shift = 52 - self.steps * 2;
        ((self.bits << shift) as f64, ((self.bits + 1) << shift) as f64)
    }
}

/// Where to search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Shape {
    Circle { radius_m: f64 },
    Box { width_m: f64, height_m: f64 },
}

impl Shape {
    /// The distance in metres of a position from the middle, if it is inside.
    pub(super) fn distance_m(self, middle: Position, position: Position) -> Option<f64> {
        match self {
            Shape::Circle { radius_m } => {
                Some(middle.distance_m(position)).filter(|distance| *distance <= radius_m)
            }
            Shape::Box { width_m, height_m } => {
                let is_inside = latitude_distance_m(position.latitude, middle.latitude)
                    <= height_m / 2.0
                    && position.distance_m(Position { latitude: position.latitude, ..middle })
                        <= width_m / 2.0;
                is_inside.then(|| middle.distance_m(position))
            }
        }
    }

    /// Cells that together cover the shape: the one in its middle first, none twice.
    pub(super) fn cells(self, middle: Position) -> Vec<Cell> {
        let (half_width, half_height, radius_m) = match self {
            Shape::Circle { radius_m } => (radius_m, radius_m, radius_m),
            Shape::Box { width_m, height_m } => {
                let (width, height) = (width_m / 2.0, height_m / 2.0);
                (width, height, (width * width + height * height).sqrt())
            }
        };
        let north_south = (half_height / EARTH_RADIUS_M).to_degrees();
        let away = if middle.latitude < 0.0 { -north_south } else { north_south };
        let narrowest = (middle.latitude + away).to_radians().cos();
        let east_west = (half_width / EARTH_RADIUS_M / narrowest).to_degrees();
        let bounds = Area {
            west: middle.longitude - east_west,
            east: middle.longitude + east_west,
            south: middle.latitude - north_south,
            north: middle.latitude + north_south,
        };
        let mut steps = steps_for(radius_m, middle.latitude);
        let mut cell = Cell::around(middle, steps);
        let is_too_small = cell.neighbor(0, 1).area().north < bounds.north
            || cell.neighbor(0, -1).area().south > bounds.south
            || cell.neighbor(1, 0).area().east < bounds.east
            || cell.neighbor(-1, 0).area().west > bounds.west;
        if steps > 1 && is_too_small {
            steps -= 1;
            cell = Cell::around(middle, steps);
        }
        let area = cell.area();
        let mut cells = Vec::with_capacity(9);
        for (east, north) in
            [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)]
        {
            let is_useless = steps >= 2
                && ((north < 0 && area.south < bounds.south)
                    || (north > 0 && area.north > bounds.north)
                    || (east < 0 && area.west < bounds.west)
                    || (east > 0 && area.east > bounds.east));
            let neighbor = cell.neighbor(east, north);
            // Around a small map a neighbour can be met twice.
            if !is_useless && !cells.contains(&neighbor) {
                cells.push(neighbor);
            }
        }
        cells
    }
}

/// How small cells may be so that nine of them cover a circle.
fn steps_for(radius_m: f64, latitude: f64) -> u32 {
    if radius_m == 0.0 {
        return STEPS_MAX;
    }
    let (mut steps, mut covered) = (1i32, radius_m);
    while covered < MERCATOR_MAX_M {
        covered *= 2.0;
        steps += 1;
    }
    // Nine cells cover most circles so; towards the poles cells are narrower.
    steps -= 2;
    if latitude.abs() > 66.0 {
        steps -= 1;
        if latitude.abs() > 80.0 {
            steps -= 1;
        }
    }
    steps.clamp(1, STEPS_MAX as i32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const PALERMO: Position = Position { longitude: 13.361389, latitude: 38.115556 };
    const CATANIA: Position = Position { longitude: 15.087269, latitude: 37.502669 };

    #[test]
    fn positions_become_the_numbers_that_redis_keeps() {
        assert_eq!(PALERMO.score(), 3479099956230698.0);
        assert_eq!(CATANIA.score(), 3479447370796909.0);
        let back = Position::of_score(PALERMO.score());
        assert!((back.longitude - PALERMO.longitude).abs() < 1e-5);
        assert!((back.latitude - PALERMO.latitude).abs() < 1e-5);
        assert_eq!(&Position::of_score(PALERMO.score()).geohash(), b"sqc8b49rny0");
    }

    #[test]
    fn distances_are_those_of_a_sphere() {
        let from = Position::of_score(PALERMO.score());
        let to = Position::of_score(CATANIA.score());
        assert!((from.distance_m(to) - 166274.1516).abs() < 0.001);
    }

    #[test]
    fn a_neighbor_of_a_neighbor_is_where_it_began() {
        let cell = Cell::around(PALERMO, 10);
        for (east, north) in [(1, 0), (0, 1), (1, 1), (1, -1)] {
            let there = cell.neighbor(east, north);
            assert_ne!(there, cell);
            assert_eq!(there.neighbor(-east, -north), cell);
        }
        let area = cell.area();
        assert_eq!(cell.neighbor(1, 0).area().west, area.east);
        assert_eq!(cell.neighbor(0, -1).area().north, area.south);
        let edge = Cell::around(Position { longitude: 179.99, latitude: 0.1 }, 4);
        assert_eq!(edge.neighbor(1, 0).area().west, -180.0);
    }
}
