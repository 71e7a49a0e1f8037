//! What calls do to descriptors.

use crate::descriptors::{Descriptors, new_socket};
use crate::target::{Target, address};
use crate::text::{F_DUPFD, Made, descriptor, error, int, path};
use observe::tracepoints::calls::Pointed;

/// `EINPROGRESS`: the connection is being made.
const IN_PROGRESS: i32 = 115;

/// Takes in what a call has done, which gave `value`.
pub(crate) fn apply(descriptors: &mut Descriptors, name: &str, made: &Made<'_>, value: i64) {
    let [first, second, ..] = *made.arguments;
    let (process, new) = (made.process, u32::try_from(value).ok());
    let is_done = error(value).is_none();
    match (name, descriptor(first), new) {
        ("open" | "openat" | "openat2" | "creat", _, Some(new)) => match path(made.pointed) {
            // Of a relative one the folder is asked for by the descriptor.
            Some(path) if path.starts_with('/') => {
                descriptors.open(process, new, Target::of_link(&path).0);
            }
            _ => descriptors.close(process, new..=new),
        },
        ("socket", _, Some(new)) => descriptors.open(process, new, new_socket(first)),
        ("connect", Some(number), _) if is_done || error(value) == Some(IN_PROGRESS) => {
            addressed(descriptors, made, number);
        }
        // Addresses are of the caller of sendto; a socket that is connected has none.
        ("sendto", Some(number), _) if is_done => addressed(descriptors, made, number),
        ("close", Some(number), _) => descriptors.close(process, number..=number),
        ("close_range", Some(number), _) if is_done => {
            let last = u32::try_from(second & 0xffff_ffff).unwrap_or(u32::MAX);
            descriptors.close(process, number..=last.max(number));
        }
        ("dup" | "dup2" | "dup3", Some(number), Some(new)) => {
            descriptors.duplicate(process, number, new);
        }
        ("fcntl", Some(number), Some(new)) if F_DUPFD.contains(&int(second)) => {
            descriptors.duplicate(process, number, new);
        }
        (
            "accept" | "accept4" | "eventfd" | "eventfd2" | "epoll_create" | "epoll_create1"
            | "timerfd_create" | "inotify_init" | "inotify_init1" | "signalfd4" | "memfd_create"
            | "pidfd_open" | "io_uring_setup" | "pidfd_getfd",
            _,
            Some(new),
        ) => descriptors.close(process, new..=new),
        _ => {}
    }
}

fn addressed(descriptors: &mut Descriptors, made: &Made<'_>, number: u32) {
    if let Some(Pointed::Address(bytes)) = made.pointed
        && let Some(target) = address(bytes)
    {
        descriptors.connect(made.process, number, target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_follow_the_calls_that_open_copy_and_close_them() {
        let mut descriptors = Descriptors::default();
        let mut call = |name: &str, given: [u64; 2], pointed: Option<Pointed>, value: i64| {
            let arguments = [given[0], given[1], 0, 0, 0, 0];
            let made = Made { process: 7, arguments: &arguments, pointed: pointed.as_ref() };
            apply(&mut descriptors, name, &made, value);
            (0..9).filter_map(|number| descriptors.known(7, number)).count()
        };
        let path = Some(Pointed::Path(b"/data/a".to_vec()));
        assert_eq!(call("openat", [0, 0], path.clone(), 3), 1);
        assert_eq!(call("openat", [0, 0], path, -2), 1, "it failed");
        assert_eq!(call("dup2", [3, 5], None, 5), 2);
        assert_eq!(call("socket", [2, 2], None, 6), 3);
        let address = Some(Pointed::Address([2, 0, 0, 53, 127, 0, 0, 1].to_vec()));
        assert_eq!(call("connect", [6, 0], address, -115), 3);
        assert_eq!(call("close", [3, 0], None, 0), 2);
        let remote = descriptors.known(7, 6).and_then(|place| descriptors.target(place)?.remote());
        assert_eq!(remote.map(|it| it.port()), Some(53));
    }
}
