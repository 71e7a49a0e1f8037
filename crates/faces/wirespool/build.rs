//! The unwinder is linked into the program: one library less to be found and read at every start,
//! where the disk is cold a tenth of a short query's time. Named here it comes before the shared
//! one, which then is not needed.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-lib=gcc_eh");
}
