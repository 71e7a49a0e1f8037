//! Calls in words.

use observe::tracepoints::calls::{Pointed, open_flags};

use crate::descriptors::Descriptors;
use crate::names::error_label;
use crate::shape::{Argument, Shape};
use crate::target::address;

/// A relative path is below this folder of the process (`AT_FDCWD`).
const WORKING_FOLDER: i32 = -100;

/// A call as it was made.
#[derive(Clone, Debug)]
pub(crate) struct Made<'a> {
    pub(crate) process: u32,
    pub(crate) arguments: &'a [u64; 6],
    pub(crate) pointed: Option<&'a Pointed>,
}

/// The lower half, as a number with a sign.
pub(crate) fn int(argument: u64) -> i32 {
    let low = u32::try_from(argument & 0xffff_ffff).unwrap_or(0);
    low.cast_signed()
}

/// A descriptor, if it can be one.
pub(crate) fn descriptor(argument: u64) -> Option<u32> {
    u32::try_from(int(argument)).ok()
}

pub(crate) fn path(pointed: Option<&Pointed>) -> Option<String> {
    match pointed {
        Some(Pointed::Path(path)) => Some(String::from_utf8_lossy(path).into_owned()),
        _ => None,
    }
}

/// The descriptors of a call that polls.
pub(crate) fn polled(pointed: Option<&Pointed>) -> Vec<u32> {
    let Some(Pointed::Polled(bytes)) = pointed else { return Vec::new() };
    // A descriptor of four bytes, and what is asked of it and answered.
    let each = bytes.as_chunks::<8>().0.iter();
    each.filter_map(|poll| {
        let [one, two, three, four, ..] = *poll;
        u32::try_from(host::native::i32_of([one, two, three, four])).ok()
    })
    .collect()
}

/// The descriptor of the first request that is submitted (`struct iocb` of `linux/aio_abi.h`).
pub(crate) fn submitted(pointed: Option<&Pointed>) -> Option<u32> {
    const DESCRIPTOR: usize = 20;
    let Some(Pointed::Submitted(bytes)) = pointed else { return None };
    u32::try_from(host::native::i32_of(*bytes.get(DESCRIPTOR..)?.first_chunk()?)).ok()
}

/// The arguments, as far as they say something.
pub(crate) fn arguments(made: &Made<'_>, shape: Shape, descriptors: &Descriptors) -> String {
    let each = shape.arguments.iter().zip(made.arguments);
    let words = each.filter_map(|(kind, value)| argument(made, *kind, *value, descriptors));
    words.collect::<Vec<_>>().join(", ")
}

fn argument(
    made: &Made<'_>,
    kind: Argument,
    value: u64,
    descriptors: &Descriptors,
) -> Option<String> {
    let leads = |number: u32| match descriptors.known(made.process, number) {
        Some(place) => {
            let target = descriptors.target(place).map(ToString::to_string);
            format!("{number} <{}>", target.unwrap_or_default())
        }
        None => number.to_string(),
    };
    Some(match kind {
        Argument::Descriptor => descriptor(value).map_or_else(|| "-1".to_owned(), leads),
        Argument::Folder if int(value) == WORKING_FOLDER => return None,
        Argument::Folder => format!("below {}", descriptor(value).map(leads)?),
        Argument::Path => match path(made.pointed) {
            Some(path) => format!("\"{path}\""),
            None => "a path that is not known".to_owned(),
        },
        Argument::Length => format!("{value} bytes"),
        Argument::Offset => format!("at {value}"),
        Argument::OpenFlags => open_flags(value),
        Argument::Number => (value & 0xffff_ffff).to_string(),
        Argument::Signed => int(value).to_string(),
        Argument::Hex => format!("{value:#x}"),
        Argument::Address => match made.pointed {
            Some(Pointed::Address(bytes)) => address(bytes)?.to_string(),
            _ => return None,
        },
        Argument::Polled => {
            let all = polled(made.pointed);
            let words: Vec<String> = all.into_iter().map(leads).collect();
            format!("[{}]", words.join(", "))
        }
        Argument::FutexOperation => futex(value).to_owned(),
        Argument::FcntlOperation => fcntl(int(value)),
        Argument::LockOperation => match int(value) & 0xf {
            1 => "LOCK_SH".to_owned(),
            2 => "LOCK_EX".to_owned(),
            8 => "LOCK_UN".to_owned(),
            _ => "LOCK_NB".to_owned(),
        },
        Argument::Buffer => return None,
    })
}

/// `linux/futex.h`, without the marks for a private one and for the clock.
pub(crate) const FUTEX_MASK: u64 = 0x7f;
const FUTEX: [&str; 14] = [
    "FUTEX_WAIT",
    "FUTEX_WAKE",
    "FUTEX_FD",
    "FUTEX_REQUEUE",
    "FUTEX_CMP_REQUEUE",
    "FUTEX_WAKE_OP",
    "FUTEX_LOCK_PI",
    "FUTEX_UNLOCK_PI",
    "FUTEX_TRYLOCK_PI",
    "FUTEX_WAIT_BITSET",
    "FUTEX_WAKE_BITSET",
    "FUTEX_WAIT_REQUEUE_PI",
    "FUTEX_CMP_REQUEUE_PI",
    "FUTEX_LOCK_PI2",
];

fn futex(operation: u64) -> &'static str {
    let number = usize::try_from(operation & FUTEX_MASK).unwrap_or(usize::MAX);
    FUTEX.get(number).copied().unwrap_or("FUTEX")
}

/// Commands of `fcntl(2)` that copy a descriptor, and that wait for a lock.
pub(crate) const F_DUPFD: [i32; 2] = [0, 1030];
pub(crate) const F_SETLKW: [i32; 2] = [7, 38];

fn fcntl(command: i32) -> String {
    match command {
        command if F_DUPFD.contains(&command) => "F_DUPFD".to_owned(),
        1 => "F_GETFD".to_owned(),
        2 => "F_SETFD".to_owned(),
        3 => "F_GETFL".to_owned(),
        4 => "F_SETFL".to_owned(),
        6 | 37 => "F_SETLK".to_owned(),
        command if F_SETLKW.contains(&command) => "F_SETLKW".to_owned(),
        command => command.to_string(),
    }
}

/// The error of a result, if it is one.
pub(crate) fn error(value: i64) -> Option<i32> {
    i32::try_from(value).ok().filter(|value| (-4095..0).contains(value)).map(|value| -value)
}

/// A result, with the name of an error.
pub(crate) fn result(value: i64) -> String {
    error(value).map_or_else(|| value.to_string(), error_label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::shape_of;
    use crate::target::Target;

    #[test]
    fn calls_are_told_in_words() {
        let mut descriptors = Descriptors::default();
        descriptors.open(7, 3, Target::File("/data/a".into()));
        let words = |name: &str, given: [u64; 6], pointed: Option<&Pointed>| {
            let made = Made { process: 7, arguments: &given, pointed };
            arguments(&made, shape_of(name), &descriptors)
        };
        let pread = words("pread64", [3, 99, 4096, 8192, 0, 0], None);
        assert_eq!(pread, "3 </data/a>, 4096 bytes, at 8192");
        let path = Pointed::Path(b"/x".to_vec());
        assert_eq!(words("openat", [0xffff_ff9c, 9, 0, 0, 0, 0], Some(&path)), "\"/x\", O_RDONLY");
        let futex = words("futex", [0x7f00, 0x80, 2, 0, 0, 0], None);
        assert_eq!(futex, "0x7f00, FUTEX_WAIT, 2");
        assert_eq!(
            (result(-2), result(17), result(-512)),
            ("ENOENT".into(), "17".into(), "interrupted".into())
        );
        let mut bytes = [3, 0, 0, 0, 1, 0, 0, 0].to_vec();
        bytes.extend([0xff; 8]);
        let poll = Pointed::Polled(bytes);
        assert_eq!(words("poll", [9, 2, 5000, 0, 0, 0], Some(&poll)), "[3 </data/a>], 2, 5000");
    }
}
