//! What `top` reads and looks at, in threads of their own.

pub mod feed;
pub mod watcher;
pub mod watchers;
