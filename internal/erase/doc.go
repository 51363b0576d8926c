// Package erase removes everything about a dataset or a user at once, for operators, and keeps a receipt of it.
//
//	Begin (command)              Worker                                          Finish (command)
//	hide, count, record, job ──▶ runs, results, exports, files, objects, rows ──▶ names in the audit log, receipt
//
// Invariants:
//   - Begin is one transaction. From then on nobody reads the dataset, nothing is added to it, and it cannot be restored.
//   - Each step of the worker can be repeated. A worker that dies is replaced by another one, which begins with the first step.
//   - A receipt has names, ids and figures. It never has the value of a cell.
//   - TestTables fails for a table of accounts that this package does not know, so a new table is a decision.
//
// Faults: NotFound, Conflict.
package erase
