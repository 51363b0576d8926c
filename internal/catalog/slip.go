package catalog

import "unicode"

const (
	typedFrom = 4 // fewest letters of a word for which typing errors are searched
	typedTo   = 24
	shortest  = 3 // letters of the shortest beginning
)

// slips returns a word and each variant without one of its letters. Two words with a variant in common differ by one
// typing error: one letter too many, too few or different, or two letters in the wrong order.
func slips(word string) []string {
	runes := []rune(word)
	if len(runes) < typedFrom || len(runes) > typedTo || !unicode.IsLetter(runes[0]) {
		return nil
	}

	list := []string{word}

	for i := range runes {
		if i == 0 || runes[i] != runes[i-1] {
			list = append(list, string(runes[:i])+string(runes[i+1:]))
		}
	}

	return list
}

// beginnings returns the beginnings of a word that have three letters or more.
func beginnings(word string) (list []string) {
	runes := []rune(word)
	for i := shortest; i < len(runes) && i <= typedTo; i++ {
		list = append(list, string(runes[:i]))
	}

	return list
}
