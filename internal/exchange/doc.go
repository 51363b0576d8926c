// Package exchange writes and reads the meaning of the datasets of a namespace, and its verified questions, as a document
// of the Open Semantic Interchange (Apache Ossie), which other tools read and write too.
//
// The document has what people said, and no drafts. What the format has no place for stands in extensions with
// the key quern. An import adds and changes entries and removes none; it makes the checks of the operations that change one
// dataset or one verified question, with the rights of the caller. What is not understood is reported, and the rest is
// imported.
//
// Faults: ValidationFailed if the text is not a document of the format, NotFound, LimitExceeded.
package exchange
