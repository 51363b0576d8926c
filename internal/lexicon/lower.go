package lexicon

import (
	"strings"
	"unicode"
)

// LowerWords returns the words of a text in lower case: runs of letters, digits and marks. They keep their accents,
// because an answer repeats a name as the rows write it.
func LowerWords(text string) []Word {
	var words []Word

	from := -1

	for i, r := range text {
		inside := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)

		switch {
		case inside && from < 0:
			from = i
		case !inside && from >= 0:
			words = append(words, Word{Start: from, End: i, Text: strings.ToLower(text[from:i])})
			from = -1
		}
	}

	if from >= 0 {
		words = append(words, Word{Start: from, End: len(text), Text: strings.ToLower(text[from:])})
	}

	return words
}
