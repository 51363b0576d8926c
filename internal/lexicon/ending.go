package lexicon

import (
	"strings"
	"unicode/utf8"
)

// The functions of this file know the endings of nouns. They differ on purpose, as ending_test.go shows: a search may
// find too much, but an interpretation must not confuse two words. Results of Forms are stored; see the invariants of
// the package.

const shortest = 3 // fewest letters that remain when Forms removes an ending

// Forms returns a folded word and its possible forms without a plural ending. The search of datasets takes two words
// for the same one if they have a form in common. This fits many languages roughly and none perfectly.
func Forms(word string) []string {
	list := []string{word}

	if stem, ok := strings.CutSuffix(word, "ies"); ok && len(stem) >= shortest-1 {
		list = append(list, stem+"y")
	}

	for _, ending := range []string{"s", "es", "n", "en", "e"} {
		if stem, ok := strings.CutSuffix(word, ending); ok && utf8.RuneCountInString(stem) >= shortest {
			list = append(list, stem)
		}
	}

	return list
}

// ending is a pair of endings of a singular and its plural, with the minimum number of letters of the singular.
type ending struct {
	one, many string
	letters   int
}

// endings returns the endings of English, German and French nouns. Folding removes umlauts, so "Städte" becomes
// "stadte" and only its ending differs.
func endings() []ending {
	return []ending{
		{"", "s", 3},
		{"", "es", 3},
		{"y", "ies", 3},
		{"f", "ves", 4},
		{"fe", "ves", 4},
		{"is", "es", 5},
		{"man", "men", 4},
		{"", "e", 4},
		{"", "n", 4},
		{"", "en", 4},
		{"", "er", 4},
		{"", "nen", 6},
		{"", "x", 4},
		{"al", "aux", 5},
	}
}

// OtherEndings returns the plurals and singulars that a folded word may have. They are looked up in value indexes, so
// many wrong ones do no harm.
func OtherEndings(word string) []string {
	var others []string

	change := func(from, to string, e ending) {
		if stem, ok := strings.CutSuffix(word, from); ok && len(stem)+min(len(e.one), len(e.many)) >= e.letters-1 && len(stem)+len(e.one) >= e.letters {
			others = append(others, stem+to)
		}
	}

	for _, e := range endings() {
		change(e.one, e.many, e)
		change(e.many, e.one, e)
	}

	return others
}

// TrimPlural removes the plural ending of a word in lower case, so that an answer can name a column in singular and
// plural. It is applied to both, so the result need not be a word.
func TrimPlural(word string) string {
	switch one, many := strings.CutSuffix(word, "ies"); {
	case many && len(one) > 1:
		return one + "y"
	case len(word) > 3:
		return strings.TrimSuffix(word, "s")
	}

	return word
}

// Singular returns the approximate singular of an English word in lower case: the column order of one dataset refers to
// the dataset orders.
func Singular(word string) string {
	switch {
	case strings.HasSuffix(word, "ies"):
		return strings.TrimSuffix(word, "ies") + "y"
	case strings.HasSuffix(word, "ses"), strings.HasSuffix(word, "xes"), strings.HasSuffix(word, "ches"):
		return strings.TrimSuffix(word, "es")
	case strings.HasSuffix(word, "ss"):
		return word
	default:
		return strings.TrimSuffix(word, "s")
	}
}
