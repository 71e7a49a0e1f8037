//! Filter expressions (pcap-filter(7)), compiled by libpcap into classic BPF.
//!
//! libpcap is loaded at run time: only filters need it, and it stands in the way of a static
//! binary. For a file the program sees the frame as it was on the wire. For an interface the kernel
//! has taken the VLAN tag out before the program runs, so it is compiled on a live handle, where
//! libpcap asks the kernel for the tag (`SKF_AD_VLAN_TAG`); a program compiled without one would
//! look for 0x8100 in the frame and never match. A filter that does not mention `vlan` there
//! accepts frames of every VLAN, because the program sees them without their tag.

use std::ffi::{CStr, CString, c_char, c_int, c_uint};
use std::ptr;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use libloading::Library;
use units::start_of;
use wire::LinkType;

use crate::Error;

/// What libpcap calls "all of the packet".
pub const LONGEST_PACKET: u32 = 262_144;

/// One instruction; `struct bpf_insn` of libpcap and `struct sock_filter` of the kernel are the
/// same.
pub type Instruction = libc::sock_filter;

/// `struct bpf_program`.
#[repr(C)]
struct RawProgram {
    len: c_uint,
    instructions: *mut Instruction,
}

/// `pcap_t`, which only libpcap looks into.
#[repr(C)]
struct Handle {
    _private: [u8; 0],
}

type BpfFilter = unsafe extern "C" fn(*const Instruction, *const u8, c_uint, c_uint) -> c_uint;
type BpfValidate = unsafe extern "C" fn(*const Instruction, c_int) -> c_int;

/// More instructions than libpcap makes of any expression that the kernel would take (4096,
/// `BPF_MAXINSNS`), and of those for files that it could not.
const LONGEST_PROGRAM: usize = 1 << 20;

/// The optimiser takes time with the cube of the number of alternatives: a second or more for a
/// program that is longer than this without it. Such a program runs as it is.
const OPTIMISED_MAX: usize = 6000;

/// Of one compilation. An expression of a thousand alternatives takes minutes, and libpcap cannot
/// be asked to stop.
const PATIENCE: Duration = Duration::from_secs(10);

/// libpcap walks over a program by recursion: 100 bytes and more for each instruction.
const STACK_BYTES: usize = 64 << 20;

/// Bytes of an expression in an error.
const SHOWN_MAX: usize = 160;

/// Who runs a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RunBy {
    /// The kernel, which takes 4096 instructions (`BPF_MAXINSNS`).
    Kernel,
    /// This process.
    Us,
}

/// The functions that are used, resolved once.
#[derive(Debug)]
pub struct Libpcap {
    open_dead: unsafe extern "C" fn(c_int, c_int) -> *mut Handle,
    create: unsafe extern "C" fn(*const c_char, *mut c_char) -> *mut Handle,
    set_snaplen: unsafe extern "C" fn(*mut Handle, c_int) -> c_int,
    set_buffer_size: unsafe extern "C" fn(*mut Handle, c_int) -> c_int,
    activate: unsafe extern "C" fn(*mut Handle) -> c_int,
    compile:
        unsafe extern "C" fn(*mut Handle, *mut RawProgram, *const c_char, c_int, c_uint) -> c_int,
    free_code: unsafe extern "C" fn(*mut RawProgram),
    error: unsafe extern "C" fn(*mut Handle) -> *mut c_char,
    close: unsafe extern "C" fn(*mut Handle),
    bpf_filter: BpfFilter,
    bpf_validate: BpfValidate,
}

/// Compiling was not reentrant before libpcap 1.8, and costs nothing that would make waiting
/// matter.
static COMPILER: Mutex<()> = Mutex::new(());

/// A compiled filter.
///
/// Invariant: `bpf_validate` has found that every jump of `instructions` stays inside, that they
/// use no scratch memory that is not there, and that they end in a return.
#[derive(Clone, Debug)]
pub struct Program {
    instructions: Vec<Instruction>,
    bpf_filter: BpfFilter,
}

impl Program {
    /// The instructions, for the kernel.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Whether a packet passes, of which `bytes` were captured.
    pub fn accepts(&self, bytes: &[u8], original_len: u32) -> bool {
        let captured = c_uint::try_from(bytes.len()).unwrap_or(c_uint::MAX);
        // SAFETY: the program was validated, which is all that bpf_filter relies on, and no code
        // changes it; of the packet it reads at most `captured` bytes, which are borrowed.
        let kept = unsafe {
            (self.bpf_filter)(self.instructions.as_ptr(), bytes.as_ptr(), original_len, captured)
        };
        kept != 0
    }
}

/// An expression, compiled for each link type that is met.
#[derive(Clone, Debug)]
pub struct Programs {
    expression: String,
    programs: Vec<(LinkType, Program)>,
}

impl Programs {
    /// The expression, compiled for Ethernet, or, if that does not know it, for some link type that
    /// is decoded: `type mgt` means something for 802.11 alone.
    pub(crate) fn new(expression: &str) -> Result<Self, Error> {
        let mut some = Self { expression: expression.to_owned(), programs: Vec::new() };
        match some.index_of(LinkType::ETHERNET) {
            refused @ Err(Error::Wrong { .. }) => {
                let mut elsewhere = LinkType::DECODED.iter();
                let is_known = elsewhere.any(|link_type| some.index_of(*link_type).is_ok());
                if is_known { Ok(some) } else { refused.map(|_| some) }
            }
            other => other.map(|_| some),
        }
    }

    /// The same, compiled at once for each of them that knows it: a process that gave up its rights
    /// can later open neither the library nor files with names of ports.
    pub fn of_all(expression: &str) -> Result<Self, Error> {
        let mut all = Self::new(expression)?;
        for &link_type in LinkType::DECODED {
            match all.index_of(link_type) {
                Ok(_) | Err(Error::Wrong { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// The filter expression as it was given.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Position of the program for a link type; it is compiled at the first call.
    ///
    /// # Errors
    /// [`Error::Library`] without libpcap; [`Error::Wrong`] when the expression means
    /// nothing for the link type.
    pub fn index_of(&mut self, link_type: LinkType) -> Result<usize, Error> {
        if let Some(index) = self.programs.iter().position(|&(known, _)| known == link_type) {
            return Ok(index);
        }
        let program = Libpcap::get()?.compile(link_type, &self.expression)?;
        self.programs.push((link_type, program));
        Ok(self.programs.len() - 1)
    }

    /// The program at a position that [`Self::index_of`] gave.
    #[inline]
    pub fn get(&self, index: usize) -> &Program {
        let (_, program) = self.programs.get(index).expect("programs are never removed");
        program
    }
}

impl Libpcap {
    /// The library, loaded at the first call.
    pub fn get() -> Result<&'static Self, Error> {
        static LIBRARY: OnceLock<Libpcap> = OnceLock::new();
        if let Some(library) = LIBRARY.get() {
            return Ok(library);
        }
        let library = Self::load().map_err(|source| Error::Library { source })?;
        Ok(LIBRARY.get_or_init(|| library))
    }

    fn load() -> Result<Self, libloading::Error> {
        // SAFETY: libpcap's initialisers only set up its own state, and it is never unloaded.
        let open = |name: &str| unsafe { Library::new(name) };
        // libpcap.so.0.8 is Debian's name, libpcap.so.1 that of the others.
        let library = open("libpcap.so.0.8").or_else(|_| open("libpcap.so.1"))?;
        // The functions must outlive every program.
        let library: &'static Library = Box::leak(Box::new(library));
        macro_rules! function {
            ($name:literal) => {{
                // SAFETY: the type is that of the declaration in pcap/pcap.h or pcap/bpf.h, which
                // is stable.
                *unsafe { library.get($name) }?
            }};
        }
        Ok(Self {
            open_dead: function!(b"pcap_open_dead\0"),
            create: function!(b"pcap_create\0"),
            set_snaplen: function!(b"pcap_set_snaplen\0"),
            set_buffer_size: function!(b"pcap_set_buffer_size\0"),
            activate: function!(b"pcap_activate\0"),
            compile: function!(b"pcap_compile\0"),
            free_code: function!(b"pcap_freecode\0"),
            error: function!(b"pcap_geterr\0"),
            close: function!(b"pcap_close\0"),
            bpf_filter: function!(b"bpf_filter\0"),
            bpf_validate: function!(b"bpf_validate\0"),
        })
    }

    /// A program of these instructions, if they are one.
    fn validated(&self, instructions: &[Instruction]) -> Option<Program> {
        let len = c_int::try_from(instructions.len()).ok().filter(|len| *len > 0)?;
        // SAFETY: it reads `len` instructions, which are borrowed.
        let is_valid = unsafe { (self.bpf_validate)(instructions.as_ptr(), len) } != 0;
        let instructions = instructions.to_vec();
        is_valid.then_some(Program { instructions, bpf_filter: self.bpf_filter })
    }

    /// Compiles a filter for packets of files.
    pub fn compile(&'static self, link_type: LinkType, expression: &str) -> Result<Program, Error> {
        with_patience(expression, move |text| self.compile_dead(link_type, text, RunBy::Us))
    }

    /// Compiles a filter for the kernel to run on packets of an interface of this link type.
    pub fn compile_for_kernel(
        &'static self,
        link_type: LinkType,
        expression: &str,
    ) -> Result<Program, Error> {
        with_patience(expression, move |text| self.compile_dead(link_type, text, RunBy::Kernel))
    }

    /// The same on a live handle of an interface, which is up.
    pub fn compile_live(
        &'static self,
        interface: &str,
        expression: &str,
    ) -> Result<Program, Error> {
        let interface = interface.to_owned();
        with_patience(expression, move |text| self.compile_alive(&interface, text))
    }

    fn compile_dead(
        &'static self,
        link_type: LinkType,
        expression: &str,
        run_by: RunBy,
    ) -> Result<Program, Error> {
        let snaplen = c_int::try_from(LONGEST_PACKET).expect("262144 fits");
        // SAFETY: no pointer is passed.
        let handle = unsafe { (self.open_dead)(data_link_type(link_type), snaplen) };
        Session::new(self, handle, expression)?.compile(expression, run_by)
    }

    fn compile_alive(&'static self, interface: &str, expression: &str) -> Result<Program, Error> {
        let nul = |_| refused(expression, format!("no interface is named {interface:?}"));
        let name = CString::new(interface).map_err(nul)?;
        // PCAP_ERRBUF_SIZE.
        let mut message: [c_char; 256] = [0; 256];
        // SAFETY: the name ends in NUL, and the buffer has the size that libpcap asks for.
        let handle = unsafe { (self.create)(name.as_ptr(), message.as_mut_ptr()) };
        let session = Session::new(self, handle, expression)?;
        let snaplen = c_int::try_from(LONGEST_PACKET).expect("262144 fits");
        // SAFETY: the handle is open and not yet active.
        unsafe { (self.set_snaplen)(session.handle, snaplen) };
        // A small ring: the handle only compiles.
        // SAFETY: as above.
        unsafe { (self.set_buffer_size)(session.handle, 1 << 20) };
        // SAFETY: as above.
        let status = unsafe { (self.activate)(session.handle) };
        if status < 0 {
            return Err(session.error(expression));
        }
        session.compile(expression, RunBy::Kernel)
    }
}

/// Compiles on a thread of its own, which is left behind when it takes too long: it ends with the
/// process, and until then it keeps the compiler to itself.
fn with_patience(
    expression: &str,
    compile: impl FnOnce(&str) -> Result<Program, Error> + Send + 'static,
) -> Result<Program, Error> {
    let (text, (sender, receiver)) = (expression.to_owned(), sync_channel(1));
    let thread = thread::Builder::new().name("filter".to_owned()).stack_size(STACK_BYTES);
    let started = thread.spawn(move || drop(sender.send(compile(&text))));
    started.map_err(|error| refused(expression, format!("cannot start a thread: {error}")))?;
    receiver.recv_timeout(PATIENCE).unwrap_or_else(|error| match error {
        RecvTimeoutError::Timeout => {
            Err(Error::TooSlow { expression: shown(expression), patience: PATIENCE })
        }
        RecvTimeoutError::Disconnected => unreachable!("a panic ends the process"),
    })
}

pub(crate) fn refused(expression: &str, message: String) -> Error {
    Error::Wrong { expression: shown(expression), message }
}

/// The beginning of a long expression.
fn shown(expression: &str) -> String {
    let start = start_of(expression, SHOWN_MAX);
    if start == expression { expression.to_owned() } else { format!("{start}...") }
}

/// A program as libpcap has made it, freed when dropped.
struct Code {
    library: &'static Libpcap,
    /// Filled by `pcap_compile`, which has succeeded.
    raw: RawProgram,
}

impl Code {
    fn instructions(&self) -> &[Instruction] {
        let len = usize::try_from(self.raw.len).unwrap_or(usize::MAX);
        if self.raw.instructions.is_null() || len > LONGEST_PROGRAM {
            return &[];
        }
        // SAFETY: after success there is an array of `len` instructions, which no code changes and
        // which lives until `drop`; the borrow ends before.
        unsafe { std::slice::from_raw_parts(self.raw.instructions, len) }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: the program came from libpcap and is freed once.
        unsafe { (self.library.free_code)(&raw mut self.raw) };
    }
}

/// An open handle, closed when dropped.
struct Session {
    library: &'static Libpcap,
    handle: *mut Handle,
}

impl Session {
    fn new(
        library: &'static Libpcap,
        handle: *mut Handle,
        expression: &str,
    ) -> Result<Self, Error> {
        if handle.is_null() {
            let message = "libpcap could not open a handle to compile it".to_owned();
            return Err(refused(expression, message));
        }
        Ok(Self { library, handle })
    }

    fn compile(&self, expression: &str, run_by: RunBy) -> Result<Program, Error> {
        let Ok(text) = CString::new(expression) else {
            return Err(refused(expression, "it contains a NUL byte".to_owned()));
        };
        let _guard = stage::lock(&COMPILER);
        let plain = self.code(&text, expression, false)?;
        let is_long = plain.instructions().len() > OPTIMISED_MAX;
        let code = if is_long && run_by == RunBy::Us {
            plain
        } else {
            self.code(&text, expression, true)?
        };
        self.library.validated(code.instructions()).ok_or_else(|| {
            refused(expression, "libpcap made a program of it that is none".to_owned())
        })
    }

    fn code(&self, text: &CStr, expression: &str, is_optimised: bool) -> Result<Code, Error> {
        let mut raw = RawProgram { len: 0, instructions: ptr::null_mut() };
        // PCAP_NETMASK_UNKNOWN: without a netmask only `ip broadcast` is refused.
        // SAFETY: the handle is open, the text ends in NUL, the program is written by libpcap.
        let status = unsafe {
            let optimise = c_int::from(is_optimised);
            (self.library.compile)(self.handle, &raw mut raw, text.as_ptr(), optimise, c_uint::MAX)
        };
        if status != 0 {
            return Err(self.error(expression));
        }
        Ok(Code { library: self.library, raw })
    }

    /// The handle's last error.
    fn error(&self, expression: &str) -> Error {
        // SAFETY: the handle is open.
        let message = unsafe { (self.library.error)(self.handle) };
        let message = if message.is_null() {
            "libpcap does not say why".to_owned()
        } else {
            // SAFETY: libpcap's message ends in NUL and lives as long as the handle; it is copied
            // before the handle is used again.
            unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
        };
        refused(expression, message)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and no code uses it after this.
        unsafe { (self.library.close)(self.handle) };
    }
}

/// The DLT_ number of a link type: the same, but for those whose numbers differ among the BSDs
/// (pcap-common.c).
fn data_link_type(link_type: LinkType) -> c_int {
    match link_type.0 {
        100 => 11, // ATM_RFC1483
        101 => 12, // RAW
        102 => 15, // SLIP_BSDOS
        103 => 16, // PPP_BSDOS
        106 => 19, // ATM_CLIP
        same => c_int::from(same),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ethernet, VLAN 100 with priority 5, IPv4, UDP to port 53.
    fn tagged_dns() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0xa0, 100, 8, 0];
        frame.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x30, 0x39, 0, 53, 0, 8, 0, 0]);
        frame
    }

    #[test]
    fn a_filter_judges_packets_of_files() {
        let Ok(library) = Libpcap::get() else {
            println!("not run: libpcap is not installed");
            return;
        };
        let frame = tagged_dns();
        let len = u32::try_from(frame.len()).unwrap();
        for (expression, accepts) in [
            ("vlan 100 and udp port 53", true),
            ("vlan 101", false),
            ("udp", false),
            ("greater 46", true),
            ("greater 47", false),
        ] {
            let program = library.compile(LinkType::ETHERNET, expression).unwrap();
            assert_eq!(program.accepts(&frame, len), accepts, "{expression}");
        }
        let raw = library.compile(LinkType(101), "udp port 53").unwrap();
        assert!(raw.accepts(&frame[18..], len - 18));
        assert!(!raw.accepts(&frame[18..30], len - 18), "the ports were not captured");
    }

    #[test]
    fn what_is_no_program_is_not_run() {
        let Ok(library) = Libpcap::get() else {
            println!("not run: libpcap is not installed");
            return;
        };
        let end = Instruction { code: 0x06, jt: 0, jf: 0, k: 1 };
        let program = library.validated(&[end]).unwrap();
        assert!(program.accepts(&[], 0) && program.accepts(&[1; 60], 60));
        // An empty one, one without an end, a jump out of it, a word of scratch memory beyond 16.
        let store = Instruction { code: 0x02, jt: 0, jf: 0, k: 16 };
        let jump = Instruction { code: 0x15, jt: 7, jf: 0, k: 0 };
        for wrong in [&[][..], &[store], &[jump, end], &[store, end]] {
            assert!(library.validated(wrong).is_none(), "{wrong:?}");
        }
    }

    /// An alternative costs the same, whether there are ten or two hundred: the optimiser is left
    /// out where it would take longer than the packets.
    #[test]
    fn long_filters_judge_as_short_ones_do() {
        let Ok(library) = Libpcap::get() else {
            println!("not run: libpcap is not installed");
            return;
        };
        let frame = tagged_dns();
        let (untagged, len) = ([&frame[..12], &frame[16..]].concat(), 42);
        for count in [10, 64, 200] {
            let ports = |from: u32| {
                let each: Vec<_> =
                    (from..from + count).map(|port| format!("port {port}")).collect();
                each.join(" or ")
            };
            let program = library.compile(LinkType::ETHERNET, &ports(53)).unwrap();
            assert!(program.accepts(&untagged, len), "{count}");
            let program = library.compile(LinkType::ETHERNET, &ports(54)).unwrap();
            assert!(!program.accepts(&untagged, len), "{count}");
        }
        let hosts: Vec<_> = (0..200).map(|host| format!("host 10.1.0.{host}")).collect();
        let short = library.compile_for_kernel(LinkType::ETHERNET, &hosts.join(" or ")).unwrap();
        assert!(short.instructions().len() <= 4096, "the kernel takes no more");
    }

    #[test]
    fn a_wrong_expression_is_refused_in_the_compilers_words() {
        let Ok(library) = Libpcap::get() else {
            println!("not run: libpcap is not installed");
            return;
        };
        for expression in ["tcp port", "host", "vlan 100\0"] {
            let error = library.compile(LinkType::ETHERNET, expression).unwrap_err();
            let line = error.to_string();
            assert!(line.starts_with("filter \""), "{line}");
            assert_eq!(line.lines().count(), 1, "{line}");
        }
    }
}
