//! Which other files of its crate a file uses items of.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Meta, Visibility};

use super::modules::{self, Modules};

/// From file to file, with the names that are used. Files are places in `Modules::files`.
pub(super) type Uses = BTreeMap<usize, BTreeMap<usize, BTreeSet<String>>>;

/// Attributes with code in them that is not production code's, or with none.
const ATTRIBUTES_WITHOUT_CODE: [&str; 6] = ["doc", "cfg", "expect", "derive", "path", "deny"];

/// Every use of an item of another file, in all files of a crate. A re-export alone is no use: the
/// file hands a name on without needing it.
pub(super) fn uses(modules: &Modules) -> Uses {
    let mut all = Uses::new();
    for (index, file) in modules.files.iter().enumerate() {
        let mut found = BTreeMap::new();
        let mut walk = Walk { modules, module: file.module, file: index, found: &mut found };
        walk.visit_file(&file.syntax);
        all.insert(index, found);
    }
    all
}

struct Walk<'a> {
    modules: &'a Modules,
    /// The module that the code stands in.
    module: usize,
    file: usize,
    found: &'a mut BTreeMap<usize, BTreeSet<String>>,
}

impl Walk<'_> {
    fn add(&mut self, path: &[String]) {
        self.add_files(self.modules.declared_in(self.module, path), path);
    }

    fn add_files(&mut self, files: BTreeSet<usize>, path: &[String]) {
        for file in files.into_iter().filter(|file| *file != self.file) {
            let name = path.last().cloned().unwrap_or_default();
            self.found.entry(file).or_default().insert(name);
        }
    }

    fn add_macro(&mut self, path: &[String]) {
        if let [name] = path {
            self.add_files(self.modules.macro_in(self.module, name), path);
        } else {
            self.add(path);
        }
    }

    /// Paths among tokens that nothing has parsed: arguments and bodies of macros. What follows a
    /// dot is a method or a field.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path = Vec::new();
        let mut before = ' ';
        for token in tokens {
            match token {
                TokenTree::Ident(ident) if before == ':' => path.push(ident.to_string()),
                TokenTree::Ident(ident) => {
                    self.take(&mut path);
                    if before != '.' {
                        path.push(ident.to_string());
                    }
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    // The second colon of `::`; a single one ends the path.
                    before = if before == '1' { ':' } else { '1' };
                    continue;
                }
                TokenTree::Punct(punct) => {
                    if punct.as_char() == '!' {
                        self.add_macro(&path.clone());
                    }
                    self.take(&mut path);
                    before = punct.as_char();
                    continue;
                }
                TokenTree::Group(group) => {
                    self.take(&mut path);
                    self.add_tokens(group.stream());
                }
                TokenTree::Literal(_) => self.take(&mut path),
            }
            before = ' ';
        }
        self.take(&mut path);
    }

    fn take(&mut self, path: &mut Vec<String>) {
        if !path.is_empty() {
            self.add(path);
            path.clear();
        }
    }

    /// `#[serde(with = "module")]`: the functions of a module, by its path in a string.
    fn add_serde(&mut self, tokens: TokenStream) {
        for token in tokens {
            let text = token.to_string();
            let path = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            let path = path.and_then(|path| syn::parse_str::<syn::Path>(path).ok());
            for tail in ["serialize", "deserialize"] {
                let Some(path) = &path else { continue };
                let names = names(path);
                let inside: Vec<String> = names.iter().cloned().chain([tail.to_owned()]).collect();
                self.add(&names);
                self.add(&inside);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let outer = self.module;
        if module.content.is_some()
            && let Some(inner) = self.modules.child(outer, &module.ident.to_string())
        {
            self.module = inner;
        }
        visit::visit_item_mod(self, module);
        self.module = outer;
    }

    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        if import.leading_colon.is_none() && matches!(import.vis, Visibility::Inherited) {
            for (_, path) in modules::leaves(&import.tree) {
                self.add(&path);
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.add(&names(path));
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.add_macro(&names(&call.path));
        self.add_tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let is_without_code =
            ATTRIBUTES_WITHOUT_CODE.iter().any(|name| attribute.path().is_ident(name));
        let Meta::List(list) = &attribute.meta else { return };
        if attribute.path().is_ident("serde") {
            self.add_serde(list.tokens.clone());
        } else if !is_without_code {
            self.add_tokens(list.tokens.clone());
        }
    }
}

fn names(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}
