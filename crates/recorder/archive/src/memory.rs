//! A store in memory that fails as it is told.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::store::{Listed, Store, StoreError};

/// When the store goes away for good, as for a process that is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Death {
    /// With this call, from 0.
    pub at_call: u64,
    /// The call still does what it was for: only the answer is lost.
    pub is_done: bool,
}

/// Objects in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Vec<u8>>,
    calls: u64,
    death: Option<Death>,
    away: u64,
}

impl MemoryStore {
    /// One with these objects.
    pub fn of(objects: BTreeMap<String, Vec<u8>>) -> Self {
        Self { state: Mutex::new(State { objects, ..State::default() }) }
    }

    /// It dies then.
    pub fn die(&self, death: Death) {
        self.with(|state| state.death = Some(death));
    }

    /// So many calls find it away; the ones after that succeed.
    pub fn stay_away(&self, calls: u64) {
        self.with(|state| state.away = calls);
    }

    /// All objects.
    pub fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        self.with(|state| state.objects.clone())
    }

    /// How often it was called.
    pub fn calls(&self) -> u64 {
        self.with(|state| state.calls)
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut stage::lock(&self.state))
    }

    fn call<T>(
        &self,
        work: impl FnOnce(&mut BTreeMap<String, Vec<u8>>) -> T,
    ) -> Result<T, StoreError> {
        let away = || StoreError::Away { url: "memory".to_owned(), why: "as told".to_owned() };
        self.with(|state| {
            let call = state.calls;
            state.calls += 1;
            if state.away > 0 {
                state.away -= 1;
                return Err(away());
            }
            match state.death {
                Some(death) if call > death.at_call => Err(StoreError::Stopped),
                Some(death) if call == death.at_call => {
                    if death.is_done {
                        work(&mut state.objects);
                    }
                    Err(StoreError::Stopped)
                }
                _ => Ok(work(&mut state.objects)),
            }
        })
    }
}

impl Store for MemoryStore {
    fn url(&self) -> &'static str {
        "memory"
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.call(|objects| drop(objects.insert(name.to_owned(), bytes.to_vec())))
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<bool, StoreError> {
        self.call(|objects| {
            let is_new = !objects.contains_key(name);
            if is_new {
                objects.insert(name.to_owned(), bytes.to_vec());
            }
            is_new
        })
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.call(|objects| objects.get(name).cloned())
    }

    fn list(
        &self,
        folder: &str,
        after: Option<&str>,
        visit: &mut dyn FnMut(Listed),
    ) -> Result<(), StoreError> {
        self.call(|objects| {
            let folder = format!("{folder}/");
            let of = |name: &str| name.starts_with(&folder) && after.is_none_or(|it| name > it);
            for (name, bytes) in objects.iter().filter(|(name, _)| of(name)) {
                let bytes = units::number::to_u64(bytes.len());
                visit(Listed { name: name.clone(), bytes });
            }
        })
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        self.call(|objects| drop(objects.remove(name)))
    }
}
