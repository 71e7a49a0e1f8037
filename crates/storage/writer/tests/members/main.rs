//! The life of a volume's members: they fail, come back, are replaced, and become more.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    reason = "a test may stop at once"
)]

mod clock;
mod clock_histories;
mod discards;
mod erase;
mod exhaustive;
mod expel;
mod grow;
mod late;
mod life;
mod places;
mod ring;
mod rules;
mod waits;
