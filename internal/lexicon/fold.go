package lexicon

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// accentsAbove is the highest combining class of marks that folding keeps. Marks of higher classes are accents and
// points. Marks up to it form different letters in Indian scripts and Japanese.
const accentsAbove = 9

// unaccented iterates over the characters of a text without accents. Variant forms of characters are replaced, and
// other characters are decomposed.
func unaccented(text string) iter.Seq[rune] {
	return func(yield func(rune) bool) {
		text := norm.NFKD.String(text)

		for i := 0; i < len(text); {
			r, size := utf8.DecodeRuneInString(text[i:])
			if (r < utf8.RuneSelf || norm.NFD.PropertiesString(text[i:]).CCC() <= accentsAbove) && !yield(r) {
				return
			}

			i += size
		}
	}
}

// foldLetter writes a letter in lower case. Letters that have no separate accent are written as people type them.
func foldLetter(to *strings.Builder, r rune) {
	switch r = unicode.ToLower(r); r {
	case 'ß':
		to.WriteString("ss")
	case 'æ':
		to.WriteString("ae")
	case 'œ':
		to.WriteString("oe")
	case 'þ':
		to.WriteString("th")
	case 'ø':
		to.WriteByte('o')
	case 'đ', 'ð':
		to.WriteByte('d')
	case 'ł':
		to.WriteByte('l')
	case 'ħ':
		to.WriteByte('h')
	case 'ŧ':
		to.WriteByte('t')
	case 'ı':
		to.WriteByte('i')
	case 'ς':
		to.WriteRune('σ')
	default:
		to.WriteRune(r)
	}
}
