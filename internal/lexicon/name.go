package lexicon

import (
	"strings"
	"unicode"
)

// The functions of this file divide names of datasets and columns, which people write as order_date, OrderDate, "Order
// date" and orderdate.

// Pieces returns the parts of a compound word of SplitWords: order, Items and 2024 for orderItems2024. It returns nil
// for a word that has no parts.
func Pieces(word string) (list []string) {
	var (
		start  int
		before rune
	)

	for i, r := range word {
		isBorder := i > 0 && (unicode.IsLower(before) && unicode.IsUpper(r) || unicode.IsDigit(before) != unicode.IsDigit(r))
		if isBorder {
			list = append(list, word[start:i])
			start = i
		}

		before = r
	}

	if start == 0 {
		return nil
	}

	return append(list, word[start:])
}

// NameStems returns the stems of the words of a name. "order_date", "OrderDate" and "Order date" have the same stems.
// Digits begin a word, but letters after digits do not.
func NameStems(name string) []string {
	words := splitName(name)
	for i, w := range words {
		words[i] = Stem(w)
	}

	return words
}

// splitName returns the words of a name in lower case.
func splitName(name string) []string {
	var (
		words []string
		word  strings.Builder
		last  rune
	)

	flush := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}

	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
		case unicode.IsUpper(r) && unicode.IsLower(last), unicode.IsDigit(r) != unicode.IsDigit(last) && word.Len() > 0 && unicode.IsDigit(r):
			flush()
			word.WriteRune(unicode.ToLower(r))
		default:
			word.WriteRune(unicode.ToLower(r))
		}

		last = r
	}

	flush()

	return words
}

// NameSingulars returns the words of a name in lower case and without plural endings, as TrimPlural removes them. Digits
// do not begin a word.
func NameSingulars(name string) []string {
	var spaced strings.Builder

	previous := ' '

	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(previous) {
			spaced.WriteByte(' ')
		}

		spaced.WriteRune(r)
		previous = r
	}

	var singulars []string
	for _, w := range LowerWords(spaced.String()) {
		singulars = append(singulars, TrimPlural(w.Text))
	}

	return singulars
}

// Letters returns the letters and digits of a name in lower case, without anything between them.
func Letters(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}

		return -1
	}, name)
}
