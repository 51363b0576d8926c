// Package values finds values of a table's text columns that the words of a question may mean, without reading the
// rows.
//
// An index is one file. It contains the folded values in order, front coded in blocks, and a filter that rejects almost
// every text that is not in the index. A question is prepared once for all tables: its words, runs of words, other
// endings and mistyped forms, each with its hash. Matching the question with a table then takes a few thousand lookups
// in the filter, and a few blocks are read.
//
// Invariants:
//   - Values and questions are folded alike, by package lexicon. If lexicon.Key or lexicon.IsStop changes, the version of
//     the file must change.
//   - A file is checked when it is read. A damaged file makes Open fail or has no matches; it never causes a panic, and
//     never needs more memory than the file has bytes.
//   - An open index keeps its filter and the first keys of its blocks in memory. Blocks are read when they are needed.
package values
