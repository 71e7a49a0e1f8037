//! Colours and letters of plots and pages, once for all of them.

/// What a series is drawn in. The same thing has the same colour in all plots of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Colour {
    /// Blue.
    First,
    /// Orange.
    Second,
    /// Green.
    Third,
    /// Violet.
    Fourth,
    /// Grey: what the others are seen against.
    Quiet,
    /// Red: a bound.
    Bound,
}

impl Colour {
    /// Class of the elements, which [`PLOT`] gives a colour.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::First => "c1",
            Self::Second => "c2",
            Self::Third => "c3",
            Self::Fourth => "c4",
            Self::Quiet => "c5",
            Self::Bound => "c6",
        }
    }
}

/// On a light background. Contrasts with it: text 7 and more, lines 3 and more (WCAG 2.2, 1.4.11).
pub(crate) const LIGHT: &str = "\
--ink: #1b2530; --dim: #566472; --paper: #fff; --panel: #f5f7f9; --rule: #dde3e9;
  --c1: #1f6fc0; --c2: #c9640a; --c3: #1c8562; --c4: #7d5fc0; --c5: #74808c; --c6: #c2342b;
  --good: #1c7a50; --bad: #b3261e; --open: #8a5a00;";

/// On a dark one.
pub(crate) const DARK: &str = "\
--ink: #e6edf3; --dim: #9aa7b4; --paper: #0f1720; --panel: #17212c; --rule: #2a3744;
  --c1: #6cb0f0; --c2: #f0a050; --c3: #58c79c; --c4: #b49cf0; --c5: #8b97a3; --c6: #f0736a;
  --good: #58c79c; --bad: #f0867e; --open: #e0b050;";

/// Elements of plots.
pub(crate) const PLOT: &str = "\
svg text { font: 12px system-ui, sans-serif; fill: var(--dim); font-variant-numeric: tabular-nums }
svg .title { font-size: 16px; font-weight: 600; fill: var(--ink) }
svg .name { fill: var(--ink) }
svg .grid { stroke: var(--rule); stroke-width: 1 }
svg .axis { stroke: var(--dim); stroke-width: 1 }
svg .c1 { --c: var(--c1) } svg .c2 { --c: var(--c2) } svg .c3 { --c: var(--c3) }
svg .c4 { --c: var(--c4) } svg .c5 { --c: var(--c5) } svg .c6 { --c: var(--c6) }
svg .line { fill: none; stroke: var(--c); stroke-width: 2; stroke-linejoin: round }
svg .thin { stroke-width: 1.25 }
svg .dashed { stroke-dasharray: 6 4 }
svg .dotted { stroke-dasharray: 1.5 3.5; stroke-linecap: round }
svg .dots { fill: none; stroke: var(--c); stroke-width: 2.5; stroke-linecap: round }
svg .marker { fill: var(--paper); stroke: var(--c); stroke-width: 1.75 }
svg .bar { fill: var(--c); fill-opacity: .55 }
svg .whisker { stroke: var(--c); stroke-width: 2 }
svg .point { fill: var(--c) }
svg .halo { paint-order: stroke; stroke: var(--paper); stroke-width: 4; stroke-linejoin: round }
";

/// The page around them.
pub(crate) const PAGE: &str = "\
* { box-sizing: border-box }
html { color-scheme: light dark }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 62rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.55rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere }
h2 { font-size: 1.15rem; margin: 2.75rem 0 .5rem; padding-top: .75rem;
  border-top: 1px solid var(--rule) }
h3 { font-size: 1rem; margin: 0 }
p { margin: .5rem 0; max-width: 46rem }
.dim { color: var(--dim) }
.verdict { margin: 1.5rem 0; padding: 1rem 1.25rem; background: var(--panel);
  border-left: 6px solid var(--tone, var(--c5)); border-radius: 4px }
.verdict p { margin: .25rem 0 0 }
.verdict strong { font-size: 1.3rem; line-height: 1.3; color: var(--tone, var(--ink)) }
.good { --tone: var(--good) } .bad { --tone: var(--bad) } .open { --tone: var(--open) }
.part { margin: 1rem 0; overflow-wrap: anywhere }
.part h3 { font-size: 1.05rem; line-height: 1.35; color: var(--tone, var(--ink)) }
.part p, .part ul, pre { margin: .15rem 0 }
.part ul { padding-left: 1.1rem }
h3.sub { margin-top: 2rem; overflow-wrap: anywhere }
h4 { font-size: .85rem; font-weight: 600; color: var(--dim); margin: .7rem 0 0 }
pre { font: 13px/1.5 ui-monospace, monospace; background: var(--paper); padding: .35rem .6rem;
  border-radius: 4px; overflow-x: auto; overflow-wrap: normal }
.figures { display: grid; grid-template-columns: repeat(6, minmax(0, 1fr)); gap: 1.75rem 1.5rem;
  margin-top: 1rem }
figure { margin: 0; grid-column: span 6; break-inside: avoid; display: flex;
  flex-direction: column; justify-content: space-between }
figure.half { grid-column: span 3 }
figure.third { grid-column: span 2 }
figure svg { display: block; width: 100%; height: auto; margin-top: .25rem }
figcaption p { margin: 0; color: var(--dim); font-size: .9rem }
.facts { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; margin: 1.25rem 0 0; padding: 0 }
.facts div { min-width: 7rem }
.facts dt { color: var(--dim); font-size: .85rem }
.facts dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums }
.wide { overflow-x: auto }
table { border-collapse: collapse; margin: .75rem 0; font-variant-numeric: tabular-nums }
caption { text-align: left; color: var(--dim); font-size: .9rem; padding-bottom: .25rem }
th, td { padding: .25rem .7rem .25rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--rule) }
th { font-weight: 600; font-size: .85rem; color: var(--dim); vertical-align: bottom }
th:last-child, td:last-child { padding-right: 0 }
tbody th { vertical-align: top; font-size: inherit; color: inherit; font-weight: 400;
  white-space: nowrap }
.n { text-align: right; white-space: nowrap }
tbody .long { min-width: 11rem; white-space: normal; overflow-wrap: anywhere }
footer { margin-top: 3rem; color: var(--dim); font-size: .85rem }
@media (max-width: 44rem) {
  figure.half, figure.third { grid-column: span 6 }
  figure.third svg { max-width: 26rem }
  figure { overflow-x: auto }
  figure:not([class]) svg { min-width: 46rem }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10pt }
  h2 { break-after: avoid; margin-top: 1.5rem }
  table, .verdict { break-inside: avoid }
  .wide { overflow: visible }
  pre { white-space: pre-wrap }
  table { font-size: 7.5pt }
  th { font-size: inherit }
  th, td { padding-right: .4rem }
  tbody th { white-space: normal }
  .verdict { border: 1px solid var(--rule); border-left: 6px solid var(--tone, var(--c5)) }
}
";

/// The variables for both backgrounds, on `root`; paper is light.
pub(crate) fn colours(root: &str) -> String {
    format!(
        "{root} {{ {LIGHT} }}\n\
         @media screen and (prefers-color-scheme: dark) {{ {root} {{ {DARK} }} }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance (WCAG 2.2).
    fn luminance(colour: &str) -> f64 {
        let digits: String = match colour.len() {
            4 => colour[1..].chars().flat_map(|digit| [digit, digit]).collect(),
            _ => colour[1..].to_owned(),
        };
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&digits[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(0) + 0.7152 * channel(2) + 0.0722 * channel(4)
    }

    fn colour<'a>(theme: &'a str, name: &str) -> &'a str {
        let (_, rest) = theme.split_once(&format!("--{name}: ")).unwrap();
        rest.split_once(';').unwrap().0
    }

    #[test]
    fn everything_is_seen_on_both_backgrounds() {
        for theme in [LIGHT, DARK] {
            let paper = luminance(colour(theme, "paper"));
            for (name, least) in [
                ("ink", 7.0),
                ("dim", 4.5),
                ("good", 4.5),
                ("bad", 4.5),
                ("open", 4.5),
                ("c1", 3.0),
                ("c2", 3.0),
                ("c3", 3.0),
                ("c4", 3.0),
                ("c5", 3.0),
                ("c6", 3.0),
            ] {
                let found = luminance(colour(theme, name));
                let (high, low) = (found.max(paper), found.min(paper));
                let contrast = (high + 0.05) / (low + 0.05);
                assert!(contrast >= least, "{name}: {contrast:.2}");
            }
        }
    }
}
