// Package record turns answers of a language model about the text of a document into records whose every value is proven by the text.
//
// The pages of a document are split into chunks that overlap. A model gets one chunk and the fields of the definition, and answers with
// records: for each field a value, a quote and a page. Nothing else of the answer is used, so a text that instructs the model can at most
// change values, and every value is checked:
//
//   - The quote must occur in the chunk.
//   - The value must occur in the quote, as a text, as a number in either decimal style, or as a date in one of several forms.
//   - The quote must not stand among the words of another record.
//   - A unit must be the one that the quote has, and the one that the field has.
//   - The value must have the type of its field.
//
// A field that fails a check is flagged and has no value, except if only the page was wrong. No check can prove that a value is that of the
// field: a model that takes the delivery date for the date of the invoice quotes it rightly.
//
// The package is deterministic and needs no other part of the service.
package record
