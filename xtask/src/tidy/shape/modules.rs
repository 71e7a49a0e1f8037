//! The modules of a crate, the names in each, and from a path in the code to the file that declares
//! the item.
//!
//! Imports and re-exports are followed to the declaration, so a name that `lib.rs` hands on belongs
//! to the file that it comes from. Method calls and fields are not followed: they name no path.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use syn::{Item, UseTree};

use super::parse;

/// What stands in place of the last name of `use a::*`.
const GLOB: &str = "*";

/// One crate of the workspace: its library and its binaries.
pub(super) struct Modules {
    /// Files of production code, parsed, by path.
    pub(super) files: Vec<SourceFile>,
    all: Vec<Module>,
    /// How binaries of the package name its library, and the library's root.
    library: Option<(String, usize)>,
}

pub(super) struct SourceFile {
    pub(super) path: String,
    pub(super) syntax: Rc<syn::File>,
    /// The module that the file is.
    pub(super) module: usize,
}

struct Module {
    file: usize,
    parent: Option<usize>,
    names: BTreeMap<String, Vec<Name>>,
    globs: Vec<Vec<String>>,
}

#[derive(Clone)]
enum Name {
    Item,
    Macro,
    Module(usize),
    /// The path that an import or a re-export gives another name to.
    Import(Vec<String>),
}

/// What a path leads to in its own crate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Module(usize),
    /// An item declared in this file.
    Item(usize),
}

impl Modules {
    /// Reads the crate in a folder, such as `crates/storage/volume`, from the texts of all files by
    /// path.
    pub(super) fn read(folder: &str, texts: &BTreeMap<&str, &str>) -> Modules {
        let mut read = Modules { files: Vec::new(), all: Vec::new(), library: None };
        let binaries = format!("{folder}/src/bin/");
        let is_binary = |path: &&&str| {
            let rest = path.strip_prefix(&*binaries).and_then(|rest| rest.strip_suffix(".rs"));
            rest.is_some_and(|rest| !rest.contains('/'))
        };
        let roots = ["lib.rs", "main.rs"].map(|root| format!("{folder}/src/{root}"));
        let binaries = texts.keys().filter(is_binary).map(|path| (*path).to_owned());
        for root in roots.into_iter().chain(binaries) {
            let module = read.read_file(&root, None, texts);
            if let Some(module) = module.filter(|_| root.ends_with("/lib.rs")) {
                let name = folder.rsplit('/').next().unwrap_or(folder).replace('-', "_");
                read.library = Some((name, module));
            }
        }
        read
    }

    /// Reads a file and those below it; `None` where there is no such file of production code. A
    /// root has no parent.
    fn read_file(
        &mut self,
        path: &str,
        parent: Option<usize>,
        texts: &BTreeMap<&str, &str>,
    ) -> Option<usize> {
        let syntax = Rc::new(parse::production(texts.get(path)?)?);
        let file = self.files.len();
        let module = self.add(file, parent);
        self.files.push(SourceFile { path: path.to_owned(), syntax: Rc::clone(&syntax), module });
        let (folder, stem) = path.rsplit_once('/')?;
        let stem = stem.trim_end_matches(".rs");
        let is_of_folder = parent.is_none() || stem == "mod";
        let children = if is_of_folder { folder.to_owned() } else { format!("{folder}/{stem}") };
        self.declare(module, &syntax.items, &children, texts);
        Some(module)
    }

    fn add(&mut self, file: usize, parent: Option<usize>) -> usize {
        self.all.push(Module { file, parent, names: BTreeMap::new(), globs: Vec::new() });
        self.all.len() - 1
    }

    /// Enters the names that the items of a module declare; its files lie in the folder `children`.
    fn declare(
        &mut self,
        module: usize,
        items: &[Item],
        children: &str,
        texts: &BTreeMap<&str, &str>,
    ) {
        for item in items {
            match item {
                Item::Mod(inner) => {
                    let file = self.module(module).file;
                    let child = match &inner.content {
                        Some((_, items)) => {
                            let child = self.add(file, Some(module));
                            let children = format!("{children}/{}", inner.ident);
                            self.declare(child, items, &children, texts);
                            Some(child)
                        }
                        None => self.read_child(module, inner, children, texts),
                    };
                    if let Some(child) = child {
                        self.name(module, &inner.ident.to_string(), Name::Module(child));
                    }
                }
                Item::Use(import) if import.leading_colon.is_none() => {
                    for (name, path) in leaves(&import.tree) {
                        if name == GLOB {
                            self.module_mut(module).globs.push(path);
                        } else {
                            self.name(module, &name, Name::Import(path));
                        }
                    }
                }
                Item::Macro(item) => {
                    if let Some(ident) = &item.ident {
                        self.name(module, &ident.to_string(), Name::Macro);
                    }
                }
                _ => {
                    if let Some(name) = declared_name(item) {
                        self.name(module, &name, Name::Item);
                    }
                }
            }
        }
    }

    /// A module in a file of its own. A file outside of the crate's folder is another crate's.
    fn read_child(
        &mut self,
        module: usize,
        declaration: &syn::ItemMod,
        children: &str,
        texts: &BTreeMap<&str, &str>,
    ) -> Option<usize> {
        if let Some(path) = path_attribute(declaration) {
            let own = self.files.get(self.module(module).file)?.path.clone();
            let (folder, _) = own.rsplit_once('/')?;
            let is_inside = !path.contains("..");
            let path = format!("{folder}/{path}");
            return is_inside.then(|| self.read_file(&path, Some(module), texts))?;
        }
        let name = &declaration.ident;
        let places = [format!("{children}/{name}.rs"), format!("{children}/{name}/mod.rs")];
        places.iter().find_map(|path| self.read_file(path, Some(module), texts))
    }

    fn name(&mut self, module: usize, name: &str, what: Name) {
        self.module_mut(module).names.entry(name.to_owned()).or_default().push(what);
    }

    fn module(&self, module: usize) -> &Module {
        self.all.get(module).expect("modules are never taken away")
    }

    fn module_mut(&mut self, module: usize) -> &mut Module {
        self.all.get_mut(module).expect("modules are never taken away")
    }

    /// The module that is declared inside of this one by this name.
    pub(super) fn child(&self, module: usize, name: &str) -> Option<usize> {
        self.module(module).names.get(name)?.iter().find_map(|name| match name {
            Name::Module(child) => Some(*child),
            _ => None,
        })
    }

    /// The files that declare what a path names, as a module writes it. Empty for what comes from
    /// another crate, and for modules: a module is no item, what is reached through it is.
    pub(super) fn declared_in(&self, module: usize, path: &[String]) -> BTreeSet<usize> {
        items(&self.resolve(module, path, &mut BTreeSet::new()))
    }

    /// The file that declares a macro called by its bare name, which modules below it see, too.
    pub(super) fn macro_in(&self, module: usize, name: &str) -> BTreeSet<usize> {
        let mut here = Some(module);
        while let Some(module) = here {
            let named = self.module(module).names.get(name);
            if named.is_some_and(|names| names.iter().any(|name| matches!(name, Name::Macro))) {
                return BTreeSet::from([self.module(module).file]);
            }
            here = self.module(module).parent;
        }
        self.declared_in(module, &[name.to_owned()])
    }

    fn resolve(
        &self,
        module: usize,
        path: &[String],
        open: &mut BTreeSet<(usize, String)>,
    ) -> BTreeSet<Target> {
        let Some((first, rest)) = path.split_first() else {
            return BTreeSet::from([Target::Module(module)]);
        };
        let start = match first.as_str() {
            "crate" => BTreeSet::from([Target::Module(self.root(module))]),
            "self" => BTreeSet::from([Target::Module(module)]),
            "super" => self.module(module).parent.map(Target::Module).into_iter().collect(),
            name => {
                let here = self.look_up(module, name, open);
                if here.is_empty() { self.library_root(module, name) } else { here }
            }
        };
        rest.iter().fold(start, |targets, name| self.step(&targets, name, open))
    }

    /// One name further. What lies in an item, as a variant or a function of a type, is declared
    /// where the item is.
    fn step(
        &self,
        targets: &BTreeSet<Target>,
        name: &str,
        open: &mut BTreeSet<(usize, String)>,
    ) -> BTreeSet<Target> {
        let mut found = BTreeSet::new();
        for target in targets {
            if let Target::Module(module) = target {
                found.extend(match name {
                    "super" => {
                        self.module(*module).parent.map(Target::Module).into_iter().collect()
                    }
                    name => self.look_up(*module, name, open),
                });
            }
        }
        if found.is_empty() {
            found.extend(targets.iter().filter(|target| matches!(target, Target::Item(_))));
        }
        found
    }

    fn look_up(
        &self,
        module: usize,
        name: &str,
        open: &mut BTreeSet<(usize, String)>,
    ) -> BTreeSet<Target> {
        // An import of the name that is being looked up, by way of itself, leads nowhere.
        if !open.insert((module, name.to_owned())) {
            return BTreeSet::new();
        }
        let own = self.module(module);
        let mut found = BTreeSet::new();
        for what in own.names.get(name).into_iter().flatten() {
            match what {
                Name::Item | Name::Macro => found.extend([Target::Item(own.file)]),
                Name::Module(child) => found.extend([Target::Module(*child)]),
                Name::Import(path) => found.extend(self.resolve_import(module, name, path, open)),
            }
        }
        if found.is_empty() {
            for glob in &own.globs {
                for target in self.resolve(module, glob, open) {
                    if let Target::Module(from) = target {
                        found.extend(self.look_up(from, name, open));
                    }
                }
            }
        }
        open.remove(&(module, name.to_owned()));
        found
    }

    /// `use open::open` beside `mod open`: the first name of the path is the module.
    fn resolve_import(
        &self,
        module: usize,
        name: &str,
        path: &[String],
        open: &mut BTreeSet<(usize, String)>,
    ) -> BTreeSet<Target> {
        let (first, rest) = path.split_first().expect("a path has a name");
        match self.child(module, first).filter(|_| first == name) {
            Some(child) => {
                let start = BTreeSet::from([Target::Module(child)]);
                rest.iter().fold(start, |targets, name| self.step(&targets, name, open))
            }
            None => self.resolve(module, path, open),
        }
    }

    fn root(&self, module: usize) -> usize {
        self.module(module).parent.map_or(module, |parent| self.root(parent))
    }

    fn library_root(&self, module: usize, name: &str) -> BTreeSet<Target> {
        let library = self
            .library
            .as_ref()
            .filter(|(library, root)| library == name && self.root(module) != *root);
        library.map(|(_, root)| Target::Module(*root)).into_iter().collect()
    }
}

fn items(targets: &BTreeSet<Target>) -> BTreeSet<usize> {
    let files = targets.iter().filter_map(|target| match target {
        Target::Item(file) => Some(*file),
        Target::Module(_) => None,
    });
    files.collect()
}

/// Each name that a `use` brings in, with the whole path to it.
pub(super) fn leaves(tree: &UseTree) -> Vec<(String, Vec<String>)> {
    let mut leaves = Vec::new();
    collect(tree, &mut Vec::new(), &mut leaves);
    leaves
}

fn collect(tree: &UseTree, prefix: &mut Vec<String>, leaves: &mut Vec<(String, Vec<String>)>) {
    let with = |prefix: &[String], ident: &syn::Ident| {
        let name = ident.to_string();
        let is_self = name == "self" && !prefix.is_empty();
        prefix.iter().cloned().chain((!is_self).then_some(name)).collect::<Vec<String>>()
    };
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            collect(&path.tree, prefix, leaves);
            prefix.pop();
        }
        UseTree::Name(name) => {
            let path = with(prefix, &name.ident);
            leaves.push((path.last().cloned().unwrap_or_default(), path));
        }
        UseTree::Rename(rename) => {
            leaves.push((rename.rename.to_string(), with(prefix, &rename.ident)));
        }
        UseTree::Glob(_) => leaves.push((GLOB.to_owned(), prefix.clone())),
        UseTree::Group(group) => {
            for tree in &group.items {
                collect(tree, prefix, leaves);
            }
        }
    }
}

fn declared_name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

fn path_attribute(declaration: &syn::ItemMod) -> Option<String> {
    let attribute = declaration.attrs.iter().find(|found| found.path().is_ident("path"))?;
    let syn::Meta::NameValue(value) = &attribute.meta else { return None };
    let syn::Expr::Lit(literal) = &value.value else { return None };
    let syn::Lit::Str(path) = &literal.lit else { return None };
    Some(path.value())
}
