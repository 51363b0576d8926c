// Package xlsx makes delimited text of a sheet of a workbook, in one form that needs no guessing: numbers with a
// point, dates as ISO 8601 has them, texts in quotes and everything else not, nothing where there is no value. It
// runs in the sealed child alone, because what it reads is hostile.
//
// Nothing is lost without a word: a sheet that is broken, or that has more than one table, is refused with where,
// and what cannot be a value is counted and told.
//
// Faults: *engine.FileError.
package xlsx
