//! Names in one piece of memory, for those that wait: of a session in which nothing is looked for
//! any more, of a row whose segment goes on. [`Names`] itself takes half a kilobyte and about ten
//! pieces of memory, of which most sessions fill a tenth.
//!
//! ```text
//! u32      which fields are there: a bit for each, in the order of `each`
//! then each of them:
//! text     length, bytes
//! number   as many bytes as its type has, little-endian
//! list     number of values, values
//! ```
//! A length or number of values has seven bits a byte, the lowest first, and the eighth bit says
//! that there is another byte. The bytes never leave the process, so they are not checked.

use crate::app::App;
use crate::names::{Names, Ssh};

/// Names that take as much memory as they are long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PackedNames(Box<[u8]>);

impl PackedNames {
    /// Packs names: `scratch` is memory that is used again. A group without any value
    /// becomes none.
    pub fn new(mut names: Names, scratch: &mut Vec<u8>) -> Self {
        scratch.clear();
        scratch.extend([0; size_of::<u32>()]);
        let mut packer = Packer { bytes: scratch, present: 0, field: 0 };
        each(&mut names, &mut packer);
        let present = packer.present;
        if let Some(head) = scratch.first_chunk_mut() {
            *head = present.to_le_bytes();
        }
        Self(scratch.as_slice().into())
    }

    /// The names again.
    pub fn unpack(&self) -> Names {
        let mut names = Names::NONE;
        self.add_to(&mut names);
        names
    }

    /// Adds them to `names`: of what there is one of, that of `names` stays.
    pub fn add_to(&self, names: &mut Names) {
        let (head, bytes) = self.0.split_first_chunk().expect("there is a head");
        each(names, &mut Unpacker { bytes, present: u32::from_le_bytes(*head) });
    }

    /// What the parser that filled the names reads.
    pub fn app(&self) -> Option<App> {
        // The first field.
        let (head, bytes) = self.0.split_first_chunk().expect("there is a head");
        (u32::from_le_bytes(*head) & 1 != 0).then(|| app_of(bytes))
    }

    /// Whether there is nothing but that.
    pub fn is_app_alone(&self) -> bool {
        let head = self.0.first_chunk().expect("there is a head");
        u32::from_le_bytes(*head) & !1 == 0
    }

    /// Bytes of the heap.
    pub fn heap_bytes(&self) -> usize {
        self.0.len()
    }
}

/// Goes over all fields, in an order that is the same each time.
fn each(names: &mut Names, pass: &mut impl Pass) {
    pass.app(&mut names.app);
    pass.text(&mut names.sni);
    pass.texts(&mut names.alpn);
    pass.number(&mut names.tls_version);
    pass.group(&mut names.tls, 9, |tls, pass| {
        pass.text(&mut tls.alpn_chosen);
        pass.number(&mut tls.cipher);
        pass.text(&mut tls.ja3);
        pass.text(&mut tls.ja3s);
        pass.text(&mut tls.ja4);
        pass.text(&mut tls.cert_subject);
        pass.text(&mut tls.cert_issuer);
        pass.number(&mut tls.cert_not_before_ns);
        pass.number(&mut tls.cert_not_after_ns);
    });
    pass.texts(&mut names.http_host);
    pass.texts(&mut names.http_method);
    pass.texts(&mut names.http_path);
    pass.numbers(&mut names.http_status);
    pass.texts(&mut names.http_user_agent);
    pass.texts(&mut names.http_content_type);
    pass.texts(&mut names.dns_names);
    pass.numbers(&mut names.dns_types);
    pass.numbers(&mut names.dns_rcodes);
    pass.texts(&mut names.dns_answers);
    pass.number(&mut names.dns_rtt_ns);
    pass.group(&mut names.ssh, 4, |ssh: &mut Ssh, pass| {
        pass.text(&mut ssh.client);
        pass.text(&mut ssh.server);
        pass.text(&mut ssh.hassh);
        pass.text(&mut ssh.hassh_server);
    });
    pass.texts(&mut names.app_detail);
}

/// What is done to each field.
trait Pass: Sized {
    fn app(&mut self, app: &mut Option<App>);
    fn text(&mut self, text: &mut Option<String>);
    fn number<T: Fixed>(&mut self, number: &mut Option<T>);
    fn texts(&mut self, list: &mut Vec<String>);
    fn numbers(&mut self, list: &mut Vec<u16>);
    /// A group of `count` fields.
    fn group<G: Default>(
        &mut self,
        group: &mut Option<Box<G>>,
        count: u32,
        fields: impl FnOnce(&mut G, &mut Self),
    );
}

/// An integer that takes always as many bytes.
trait Fixed: Copy {
    fn put(self, bytes: &mut Vec<u8>);
    fn take(bytes: &mut &[u8]) -> Self;
}

macro_rules! fixed {
    ($($number:ty)*) => {$(
        impl Fixed for $number {
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }

            fn take(bytes: &mut &[u8]) -> Self {
                let (number, rest) = bytes.split_first_chunk().expect("it was packed");
                *bytes = rest;
                Self::from_le_bytes(*number)
            }
        }
    )*};
}

fixed!(u8 u16 u64 i64);

struct Packer<'a> {
    bytes: &'a mut Vec<u8>,
    present: u32,
    field: u32,
}

impl Packer<'_> {
    /// Goes on to the next field, and notes whether it is there.
    fn next(&mut self, is_there: bool) -> bool {
        self.present |= u32::from(is_there) << self.field;
        self.field += 1;
        is_there
    }

    fn put_len(&mut self, len: usize) {
        let mut rest = len;
        while rest >= 0x80 {
            self.bytes.push(0x80 | low_bits(rest));
            rest >>= 7;
        }
        self.bytes.push(low_bits(rest));
    }

    fn put_text(&mut self, text: &str) {
        self.put_len(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

impl Pass for Packer<'_> {
    fn app(&mut self, app: &mut Option<App>) {
        self.next(app.is_some());
        let place = app.and_then(|app| App::ALL.iter().position(|&one| one == app));
        self.bytes.extend(place.map(|place| u8::try_from(place).expect("fewer than 256")));
    }

    fn text(&mut self, text: &mut Option<String>) {
        self.next(text.is_some());
        if let Some(text) = text {
            self.put_text(text);
        }
    }

    fn number<T: Fixed>(&mut self, number: &mut Option<T>) {
        self.next(number.is_some());
        if let Some(number) = number {
            number.put(self.bytes);
        }
    }

    fn texts(&mut self, list: &mut Vec<String>) {
        if self.next(!list.is_empty()) {
            self.put_len(list.len());
            for text in list.iter() {
                self.put_text(text);
            }
        }
    }

    fn numbers(&mut self, list: &mut Vec<u16>) {
        if self.next(!list.is_empty()) {
            self.put_len(list.len());
            for number in list.iter() {
                number.put(self.bytes);
            }
        }
    }

    fn group<G: Default>(
        &mut self,
        group: &mut Option<Box<G>>,
        count: u32,
        fields: impl FnOnce(&mut G, &mut Self),
    ) {
        match group {
            Some(group) => fields(group, self),
            None => self.field += count,
        }
    }
}

fn low_bits(len: usize) -> u8 {
    u8::try_from(len & 0x7f).expect("seven bits")
}

struct Unpacker<'a> {
    bytes: &'a [u8],
    /// The fields that follow, from the lowest bit on.
    present: u32,
}

impl<'a> Unpacker<'a> {
    /// Goes on to the next field; whether it is there.
    fn next(&mut self) -> bool {
        let is_there = self.present & 1 != 0;
        self.present >>= 1;
        is_there
    }

    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(len);
        self.bytes = rest;
        taken
    }

    fn take_len(&mut self) -> usize {
        let (mut len, mut shift) = (0, 0);
        loop {
            let byte = u8::take(&mut self.bytes);
            len |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return len;
            }
        }
    }

    fn take_text(&mut self) -> String {
        let len = self.take_len();
        str::from_utf8(self.take(len)).expect("a text was packed").to_owned()
    }
}

impl Pass for Unpacker<'_> {
    fn app(&mut self, app: &mut Option<App>) {
        if self.next() {
            let unpacked = app_of(self.take(1));
            app.get_or_insert(unpacked);
        }
    }

    fn text(&mut self, text: &mut Option<String>) {
        if self.next() {
            let unpacked = self.take_text();
            text.get_or_insert(unpacked);
        }
    }

    fn number<T: Fixed>(&mut self, number: &mut Option<T>) {
        if self.next() {
            let unpacked = T::take(&mut self.bytes);
            number.get_or_insert(unpacked);
        }
    }

    fn texts(&mut self, list: &mut Vec<String>) {
        if self.next() {
            let count = self.take_len();
            add((0..count).map(|_| self.take_text()).collect(), list);
        }
    }

    fn numbers(&mut self, list: &mut Vec<u16>) {
        if self.next() {
            let count = self.take_len();
            add((0..count).map(|_| u16::take(&mut self.bytes)).collect(), list);
        }
    }

    fn group<G: Default>(
        &mut self,
        group: &mut Option<Box<G>>,
        count: u32,
        fields: impl FnOnce(&mut G, &mut Self),
    ) {
        if self.present & ((1 << count) - 1) != 0 {
            fields(group.get_or_insert_default(), self);
        } else {
            self.present >>= count;
        }
    }
}

/// Adds the values that a list does not have. One without any gets them as they are.
fn add<T: PartialEq>(values: Vec<T>, list: &mut Vec<T>) {
    if list.is_empty() {
        *list = values;
        return;
    }
    for value in values {
        if !list.contains(&value) {
            list.push(value);
        }
    }
}

/// The protocol whose place in the list of all stands first in `bytes`.
fn app_of(bytes: &[u8]) -> App {
    let place = *bytes.first().expect("it was packed");
    *App::ALL.get(usize::from(place)).expect("a place in the list was packed")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::names::Tls;

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![3 => ".{0,20}", 1 => "[a-z\u{e4}]{120,300}"]
    }

    fn texts() -> impl Strategy<Value = Vec<String>> {
        prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(text(), 0..17)]
    }

    fn some_text() -> impl Strategy<Value = Option<String>> {
        prop::option::of(text())
    }

    fn numbers() -> impl Strategy<Value = Vec<u16>> {
        prop::collection::vec(any::<u16>(), 0..4)
    }

    prop_compose! {
        fn tls()(
            texts in prop::collection::vec(some_text(), 6),
            cipher: Option<u16>,
            times: [Option<i64>; 2],
        ) -> Tls {
            let mut texts = texts.into_iter();
            let mut text = || texts.next().flatten();
            Tls {
                alpn_chosen: text(),
                cipher,
                ja3: text(),
                ja3s: text(),
                ja4: text(),
                cert_subject: text(),
                cert_issuer: text(),
                cert_not_before_ns: times[0],
                cert_not_after_ns: times[1],
            }
        }
    }

    prop_compose! {
        fn names()(
            app in prop::option::of(prop::sample::select(App::ALL)),
            sni in some_text(),
            lists in prop::collection::vec(texts(), 9),
            tls_version: Option<u16>,
            dns_rtt_ns: Option<u64>,
            tls in prop::option::of(tls()),
            ssh in prop::option::of(prop::collection::vec(some_text(), 4)),
            numbers in prop::collection::vec(numbers(), 3),
        ) -> Names {
            let mut lists = lists.into_iter();
            let mut list = || lists.next().unwrap_or_default();
            let mut numbers = numbers.into_iter();
            let mut of_numbers = || numbers.next().unwrap_or_default();
            let ssh = ssh.map(|texts| {
                let mut texts = texts.into_iter();
                let mut text = || texts.next().flatten();
                Ssh { client: text(), server: text(), hassh: text(), hassh_server: text() }
            });
            Names {
                app,
                sni,
                alpn: list(),
                tls_version,
                tls: tls.filter(|tls| *tls != Tls::default()).map(Box::new),
                http_host: list(),
                http_method: list(),
                http_path: list(),
                http_status: of_numbers(),
                http_user_agent: list(),
                http_content_type: list(),
                dns_names: list(),
                dns_types: of_numbers(),
                dns_rcodes: of_numbers(),
                dns_answers: list(),
                dns_rtt_ns,
                ssh: ssh.filter(|ssh| *ssh != Ssh::default()).map(Box::new),
                app_detail: list(),
            }
        }
    }

    proptest! {
        #[test]
        fn names_come_out_as_they_went_in(names in names(), others in names()) {
            let mut scratch = Vec::new();
            // What was packed before leaves nothing behind.
            PackedNames::new(others, &mut scratch);
            let packed = PackedNames::new(names.clone(), &mut scratch);
            prop_assert_eq!(packed.app(), names.app);
            prop_assert_eq!(packed.unpack(), names);
        }
    }

    #[test]
    fn a_group_without_values_is_none() {
        let names = Names { tls: Some(Box::default()), ssh: Some(Box::default()), ..Names::NONE };
        let packed = PackedNames::new(names, &mut Vec::new());
        assert_eq!((packed.unpack(), packed.heap_bytes()), (Names::NONE, 4));
    }
}
