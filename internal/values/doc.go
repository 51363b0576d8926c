// Package values finds the words of a question among the values of a table's text columns, without the rows.
//
// An index is one file: the folded values in order, front coded in blocks, and a filter that says of almost every
// other text that it is not there. A question is prepared once for all tables: its words, runs of words, other
// endings and mistyped forms, each with its hash. To link it with a table is then to ask the filter a few thousand
// times, and to read a few blocks.
//
// Invariants:
//   - Fold is the same for values and questions. Changing it changes the version of the file.
//   - A file is checked when it is read: a damaged one is an error of Open or has no matches, never a panic and
//     never more memory than the file has bytes.
//   - Memory of an open index is its filter and the first keys of its blocks; blocks are read when they are needed.
package values
