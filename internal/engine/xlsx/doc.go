// Package xlsx converts one sheet of a workbook to delimited text in a single form that needs no detection: numbers
// with a decimal point, dates in ISO 8601, texts in quotes, all other values without quotes, and empty fields for
// missing values. It runs only in the sealed child, because workbooks are not trusted.
//
// No data is dropped silently. A sheet that is broken, or that has more than one table, is refused with a message that
// names the cells. Cells that cannot be converted to a value are counted and reported as a doubt.
//
// Faults: *engine.FileError.
package xlsx
