//! What answers are made of, as far as their order says it.

/// What has a place in an order.
pub trait Ranked: Send {
    /// Its place.
    type Key: Ord + Clone + Send;

    /// Its place.
    fn key(&self) -> Self::Key;

    /// Memory that it takes while it waits.
    fn bytes(&self) -> usize;
}

/// What is known again when it comes a second time.
pub trait Identified: Ranked {
    /// What it is known by, at its sensor.
    fn id(&self) -> &str;
}
