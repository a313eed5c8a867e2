//! All input and output: captures, traces, reports
