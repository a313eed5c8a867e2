//! Columns for Python: Arrow by the PyCapsule interface (no copy, no pyarrow), or numpy arrays.

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
    StructArray, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Metadata, Schema};
use numpy::PyArray1;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::sync::Arc;
use tlplab_study::rows::{Data, Table as Rows, TableColumn};

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

impl Table {
    /// The data set of a study. Each column says its unit.
    pub(crate) fn of_rows(rows: Rows) -> PyResult<Self> {
        let mut fields = Vec::new();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for column in rows.columns {
            let array: ArrayRef = match column.data {
                Data::Whole(values) => Arc::new(UInt64Array::from(values)),
                Data::Number(values) => Arc::new(Float64Array::from(values)),
                Data::Truth(values) => Arc::new(BooleanArray::from(values)),
                Data::Text(values) => Arc::new(StringArray::from(values)),
            };
            let unit = column.unit.map(|unit| ("unit".to_owned(), unit));
            let field = Field::new(column.name, array.data_type().clone(), true);
            fields.push(field.with_metadata(unit.into_iter().collect::<Metadata>()));
            arrays.push(array);
        }
        let schema = Schema::new(fields).with_metadata(rows.about.into_iter().collect::<Metadata>());
        let batch = RecordBatch::try_new(Arc::new(schema), arrays).map_err(|error| arrow(&error))?;
        Ok(Self { batch })
    }
}

/// A column of Python: its name, its unit, what its values are, and these.
type Given<'py> = (String, Option<String>, String, Bound<'py, PyAny>);

/// A table of columns whose values may be None: whole numbers from 0 (`whole`), numbers (`number`), truths (`truth`) or texts (`text`).
#[pyfunction]
pub(crate) fn table(columns: Vec<Given<'_>>) -> PyResult<Table> {
    let column = |(name, unit, kind, values): Given<'_>| {
        let data = match kind.as_str() {
            "whole" => Data::Whole(values.extract()?),
            "number" => Data::Number(values.extract()?),
            "truth" => Data::Truth(values.extract()?),
            "text" => Data::Text(values.extract()?),
            other => {
                return Err(PyValueError::new_err(format!(
                    "unknown kind {other:?}; expected whole, number, truth or text"
                )));
            }
        };
        Ok(TableColumn { name, unit, data })
    };
    let columns = columns.into_iter().map(column).collect::<PyResult<_>>()?;
    Table::of_rows(Rows { columns, ..Rows::default() })
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

    /// A numpy array for each column: numbers, NaN where there is none; or objects.
    fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        let objects =
            |values: Bound<'py, PyAny>| py.import("numpy")?.call_method1("array", (values, "object"));
        for (field, column) in self.batch.schema_ref().fields().iter().zip(self.batch.columns()) {
            let array = match column.data_type() {
                DataType::Float64 => {
                    let values = column.as_primitive::<Float64Type>().iter();
                    let values: Vec<f64> = values.map(|value| value.unwrap_or(f64::NAN)).collect();
                    PyArray1::from_vec(py, values).into_any()
                }
                DataType::Int64 => {
                    PyArray1::from_slice(py, column.as_primitive::<Int64Type>().values()).into_any()
                }
                DataType::UInt64 => {
                    let values: Vec<Option<u64>> = column.as_primitive::<UInt64Type>().iter().collect();
                    objects(values.into_pyobject(py)?.into_any())?
                }
                DataType::Boolean => {
                    let values: Vec<Option<bool>> = column.as_boolean().iter().collect();
                    objects(values.into_pyobject(py)?.into_any())?
                }
                _ => {
                    let values: Vec<Option<&str>> = column.as_string::<i32>().iter().collect();
                    objects(values.into_pyobject(py)?.into_any())?
                }
            };
            columns.set_item(field.name(), array)?;
        }
        Ok(columns)
    }
}
