//! A file of production code: parsed, and without what only tests compile.

use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, ImplItem, Item, Meta, Stmt};

/// Parses a file and takes test items out of it. `None` where the file does not parse, which the
/// compiler says better, and where the whole file is for tests.
pub(super) fn production(text: &str) -> Option<syn::File> {
    let mut file = syn::parse_file(text).ok()?;
    if is_for_tests(&file.attrs) {
        return None;
    }
    WithoutTests.visit_file_mut(&mut file);
    Some(file)
}

struct WithoutTests;

impl VisitMut for WithoutTests {
    fn visit_file_mut(&mut self, file: &mut syn::File) {
        file.items.retain(|item| !is_for_tests(attributes(item)));
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            items.retain(|item| !is_for_tests(attributes(item)));
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, block: &mut syn::ItemImpl) {
        block.items.retain(|item| match item {
            ImplItem::Const(item) => !is_for_tests(&item.attrs),
            ImplItem::Fn(item) => !is_for_tests(&item.attrs),
            _ => true,
        });
        visit_mut::visit_item_impl_mut(self, block);
    }

    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        block.stmts.retain(|statement| match statement {
            Stmt::Local(local) => !is_for_tests(&local.attrs),
            Stmt::Item(item) => !is_for_tests(attributes(item)),
            _ => true,
        });
        visit_mut::visit_block_mut(self, block);
    }
}

/// Whether the item is a test, or compiled for tests alone: `#[cfg(test)]`, also with further
/// conditions in `all`.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        if attribute.path().is_ident("test") {
            return true;
        }
        let Meta::List(list) = &attribute.meta else { return false };
        let condition = list.tokens.to_string();
        list.path.is_ident("cfg")
            && (condition == "test"
                || condition.starts_with("all")
                    && condition.split(['(', ',', ')']).any(|word| word.trim() == "test"))
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
