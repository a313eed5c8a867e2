//! Transaction layer, sans-IO: tags, splitting, reassembly, completion rules, ordering
