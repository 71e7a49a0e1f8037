//! The profile of this machine.

use std::process::{Child, Command, Stdio};

use host::SystemClock;
use vitals::profile::{By, Profiler, Span};

/// Set for the child that works.
const CHILD: &str = "PROFILE_TEST_CHILD";

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().expect("it is ours");
        self.0.wait().expect("it is ours");
    }
}

#[inline(never)]
fn burn_in_a_known_function(rounds: u64) -> u64 {
    (0..rounds).fold(0, |sum: u64, one| std::hint::black_box(sum.wrapping_mul(31) ^ one))
}

/// Not a test by itself: the child of the next one.
#[test]
fn the_child_works() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    // It is killed before; if not, it ends after about a minute.
    std::hint::black_box(burn_in_a_known_function(1 << 36));
}

#[test]
fn the_function_in_which_a_child_works_is_at_the_top() {
    let mut profiler = match Profiler::open(997, &SystemClock) {
        Ok(profiler) => profiler,
        Err(error) => return println!("not run: sampling takes {error}"),
    };
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_child_works"]).env(CHILD, "1").stdout(Stdio::null());
    let child = Killed(command.spawn().unwrap());
    let number = child.0.id();
    let worked_ns =
        || -> u64 { observe::thread_times(number).values().map(|(_, ran_ns)| ran_ns).sum() };
    while worked_ns() < 500_000_000 {
        profiler.look(&SystemClock);
    }
    profiler.look(&SystemClock);
    let of_child = |by| {
        let mut rows = profiler.profile().rows(by, Span::Total);
        rows.retain(|row| row.process.as_ref().is_some_and(|(process, _)| *process == number));
        rows
    };
    let places = of_child(By::All);
    let top = &places[0];
    let function = top.function.as_ref().unwrap().to_string();
    assert!(function.contains("burn_in_a_known_function"), "{places:?}");
    let program = std::env::current_exe().unwrap();
    assert_eq!(top.library.as_ref().unwrap().to_string(), program.to_str().unwrap());
    let (_, name) = top.process.clone().unwrap();
    assert!(program.file_name().unwrap().to_str().unwrap().starts_with(&*name), "{name}");
    // About what it has used by the kernel's account, which leaves out time stolen from a guest.
    let all = &of_child(By::Process)[0];
    let elapsed = profiler.profile().summary(Span::Total).elapsed_ns;
    let sampled_ns = all.share_of_one * f64::from(u32::try_from(elapsed / 1000).unwrap()) * 1e3;
    assert!((250e6..=1000e6).contains(&sampled_ns), "{sampled_ns} of {}", worked_ns());
    assert!(top.samples * 10 >= all.samples * 9, "{places:?}");
}
