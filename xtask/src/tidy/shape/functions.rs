//! How long functions are, and how many parameters they have.

use syn::visit::{self, Visit};

/// One function with a body.
pub(super) struct Function {
    /// `crates/x/src/ring.rs: next`.
    pub(super) place: String,
    /// Lines from its signature to its closing brace, without comments and empty lines.
    pub(super) lines: usize,
    /// With `self`.
    pub(super) parameters: usize,
}

/// The functions of a file; closures belong to the function that they stand in.
pub(super) fn functions(path: &str, syntax: &syn::File, text: &str) -> Vec<Function> {
    let mut walk = Walk { path, text: text.lines().collect(), found: Vec::new() };
    walk.visit_file(syntax);
    walk.found
}

/// The smallest figure that at least so many percent of the figures do not exceed; 0 of none.
pub(super) fn percentile(figures: &[usize], percent: usize) -> usize {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}

struct Walk<'a> {
    path: &'a str,
    text: Vec<&'a str>,
    found: Vec<Function>,
}

impl Walk<'_> {
    fn add(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let first = signature.fn_token.span.start().line;
        let last = body.brace_token.span.close().end().line;
        let lines = self.text.iter().take(last).skip(first - 1);
        let is_code = |line: &&&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        self.found.push(Function {
            place: format!("{}: {}", self.path, signature.ident),
            lines: lines.filter(is_code).count(),
            parameters: signature.inputs.len(),
        });
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.add(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}
