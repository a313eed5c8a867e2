//! An experiment file becomes a fabric, a run becomes a result document
