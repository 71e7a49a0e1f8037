//! The crate from outside: rows into bytes and back, sizes, segments found and retired.

#[cfg(test)]
mod arbitrary;
#[cfg(test)]
mod catalog;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod forged;
#[cfg(test)]
mod groups;
#[cfg(test)]
mod parts;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod sizes;
