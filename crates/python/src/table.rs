//! Columns for Python: Arrow by the PyCapsule interface (no copy, no pyarrow), or numpy arrays.

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StructArray};
use arrow_schema::ArrowError;
use numpy::PyArray1;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::sync::Arc;

/// Named columns of equal length.
#[pyclass(frozen, module = "tlplab._core")]
pub(crate) struct Table {
    batch: RecordBatch,
}

/// Columns to be.
#[derive(Default)]
pub(crate) struct Columns(Vec<(&'static str, ArrayRef)>);

impl Columns {
    /// Adds one of whole numbers.
    pub(crate) fn integers(&mut self, name: &'static str, values: Vec<i64>) {
        self.0.push((name, Arc::new(Int64Array::from(values))));
    }
    /// Adds one of floating-point numbers.
    pub(crate) fn floats(&mut self, name: &'static str, values: Vec<f64>) {
        self.0.push((name, Arc::new(Float64Array::from(values))));
    }
    /// The table.
    pub(crate) fn finish(self) -> PyResult<Table> {
        Ok(Table { batch: RecordBatch::try_from_iter(self.0).map_err(|error| arrow(&error))? })
    }
}

fn arrow(error: &ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

#[pymethods]
impl Table {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema_ref().as_ref()).map_err(|e| arrow(&e))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema); // the protocol lets a producer give what it has
        let rows = StructArray::from(self.batch.clone());
        let array = PyCapsule::new_with_value(py, FFI_ArrowArray::new(&rows.to_data()), c"arrow_array")?;
        Ok((self.__arrow_c_schema__(py)?, array))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// A numpy array for each column.
    fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (field, column) in self.batch.schema_ref().fields().iter().zip(self.batch.columns()) {
            match column.as_primitive_opt::<Float64Type>() {
                Some(floats) => columns.set_item(field.name(), PyArray1::from_slice(py, floats.values()))?,
                None => {
                    let integers = column.as_primitive::<Int64Type>();
                    columns.set_item(field.name(), PyArray1::from_slice(py, integers.values()))?;
                }
            }
        }
        Ok(columns)
    }
}
