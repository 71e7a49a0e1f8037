//! Numbers of a volume are shown as numbers, also in what developers read.

/// Shows a type as the number in it, and nothing else.
macro_rules! shown_as_number {
    ($number:ident) => {
        impl core::fmt::Debug for $number {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Debug::fmt(&self.0, f)
            }
        }

        impl core::fmt::Display for $number {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

pub(crate) use shown_as_number;
