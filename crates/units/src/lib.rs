//! Time, link rates, sizes and the identifiers every layer shares
