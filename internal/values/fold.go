package values

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Fold is a text without case, accents, forms of characters and signs: its words with a space between them.
func Fold(text string) string {
	if folded, ok := foldASCII(text); ok {
		return folded
	}

	var folded strings.Builder

	for w := range words(text) {
		if folded.Len() > 0 {
			folded.WriteByte(' ')
		}

		folded.WriteString(w.folded)
	}

	return folded.String()
}

// foldASCII is Fold for what most values are.
func foldASCII(text string) (string, bool) {
	same := true

	for i := range len(text) {
		c := text[i]
		if c >= utf8.RuneSelf {
			return "", false
		}

		same = same && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9')
	}

	if same {
		return text, true
	}

	folded, inWord := make([]byte, 0, len(text)), false

	for i := range len(text) {
		c := text[i]

		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case inWord && tail(rune(c)):
		default:
			inWord = false

			continue
		}

		if !inWord && len(folded) > 0 {
			folded = append(folded, ' ')
		}

		folded, inWord = append(folded, c), true
	}

	return string(folded), true
}

// word is a word of a text, from start to end, and what it folds to.
type word struct {
	start, end int
	folded     string
	alone      bool // a character that is a word, as in Chinese
}

// words goes over the words of a text. Letters and digits make words. Scripts that put no spaces between words
// give one for each character.
func words(text string) func(func(word) bool) {
	return func(yield func(word) bool) {
		for i := 0; i < len(text); {
			r, size := utf8.DecodeRuneInString(text[i:])
			if !unicode.IsLetter(r) && !unicode.IsNumber(r) {
				i += size

				continue
			}

			end := i + size
			for end < len(text) {
				next, size := utf8.DecodeRuneInString(text[end:])
				if !unicode.IsMark(next) && !unicode.Is(unicode.Cf, next) && !tail(next) &&
					(crowded(r) || crowded(next) || !unicode.IsLetter(next) && !unicode.IsNumber(next)) {
					break
				}

				end += size
			}

			w := word{start: i, end: end, folded: foldWord(text[i:end]), alone: crowded(r)}
			if w.folded != "" && !yield(w) {
				return
			}

			i = end
		}
	}
}

// tail is a sign that belongs to the word before it: C++ and C# are not C.
func tail(r rune) bool { return r == '+' || r == '#' }

// crowded characters stand without spaces.
func crowded(r rune) bool { return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana) }

// accentsAbove are the combining classes of accents and points; those up to it make other letters in Indian scripts
// and Japanese.
const accentsAbove = 9

// foldWord folds one word.
func foldWord(text string) string {
	text = norm.NFKD.String(text)

	var folded strings.Builder

	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r < utf8.RuneSelf || norm.NFD.PropertiesString(text[i:]).CCC() <= accentsAbove {
			fold(&folded, r)
		}

		i += size
	}

	return norm.NFC.String(folded.String())
}

// fold writes a letter as one that people type.
func fold(to *strings.Builder, r rune) {
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
		if unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || tail(r) {
			to.WriteRune(r)
		}
	}
}
