//! Closed forms: link budgets
