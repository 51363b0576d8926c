// Package document reads documents: PDF, Word (.docx), HTML, Markdown and mail (.eml). A document becomes pages, and a page becomes blocks
// with their position in its text: paragraphs, headings and tables. Write converts the tables that are a clear grid to delimited text, so
// that they are loaded like a CSV file.
//
// It runs only in the sealed child, because documents are not trusted. Nothing in a document is executed, followed or fetched: no script, no
// reference, no embedded file of a PDF. Texts of a document are data, whatever they say.
//
// No data is dropped silently. A page whose text cannot be read makes the document fail with a message that names the page, and what is left
// out of a table is reported as a doubt.
//
// Faults: *engine.FileError.
package document
