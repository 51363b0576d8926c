// Package documents makes the corpus of the suite documents, a scripted model that reads it with known mistakes, and the figures of what a
// service made of its answers.
//
// The corpus has six kinds of documents: invoices, contracts, CVs, reports, price lists and mails. Each kind has two layouts, and each layout
// is written in English and German. The second layout of each kind is held out: the model, the checks and the readers were made without it,
// and its figures are told separately.
//
// A document is written on a sheet, which knows what each line states. So its gold records are made with it: of each field the value, the
// words that state it, the page, and the line that they stand on. The same seed always gives the same files.
package documents
