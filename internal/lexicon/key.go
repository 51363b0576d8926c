package lexicon

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Word is a word of a text.
type Word struct {
	Start, End int    // position in the text, in bytes
	Text       string // the word in the form in which it is compared
	Alone      bool   // a single character that is a word, as in Chinese; set by KeyWords
}

// Key returns the key of a value in a value index: its words, separated by spaces, without case, accents, variant forms
// of characters, and signs.
func Key(text string) string {
	if key, ok := keyOfASCII(text); ok {
		return key
	}

	var key strings.Builder

	for w := range KeyWords(text) {
		if key.Len() > 0 {
			key.WriteByte(' ')
		}

		key.WriteString(w.Text)
	}

	return key.String()
}

// keyOfASCII is a fast Key for ASCII texts, which most values are. It reports false for other texts.
func keyOfASCII(text string) (string, bool) {
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

	key, inWord := make([]byte, 0, len(text)), false

	for i := range len(text) {
		c := text[i]

		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case inWord && isTail(rune(c)):
		default:
			inWord = false

			continue
		}

		if !inWord && len(key) > 0 {
			key = append(key, ' ')
		}

		key, inWord = append(key, c), true
	}

	return string(key), true
}

// KeyWords iterates over the words of a text in the form in which Key contains them. A word consists of letters and
// digits. In Chinese and Japanese, each character is a word; Katakana, which writes foreign names, is not divided.
func KeyWords(text string) iter.Seq[Word] {
	return func(yield func(Word) bool) {
		for i := 0; i < len(text); {
			r, size := utf8.DecodeRuneInString(text[i:])
			if !unicode.IsLetter(r) && !unicode.IsNumber(r) {
				i += size

				continue
			}

			end := i + size
			for end < len(text) {
				next, size := utf8.DecodeRuneInString(text[end:])
				if !unicode.IsMark(next) && !unicode.Is(unicode.Cf, next) && !isTail(next) &&
					(isCrowded(r) || isCrowded(next) || !unicode.IsLetter(next) && !unicode.IsNumber(next)) {
					break
				}

				end += size
			}

			w := Word{Start: i, End: end, Text: keyWord(text[i:end]), Alone: isCrowded(r)}
			if w.Text != "" && !yield(w) {
				return
			}

			i = end
		}
	}
}

// keyWord folds one word. It drops what variant forms of characters contain besides letters and digits.
func keyWord(text string) string {
	var folded strings.Builder

	for r := range unaccented(text) {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || isTail(r) {
			foldLetter(&folded, r)
		}
	}

	return norm.NFC.String(folded.String())
}

// isTail reports whether a sign belongs to the word before it, so that C++ and C# differ from C.
func isTail(r rune) bool { return r == '+' || r == '#' }

// isCrowded reports whether a character of a value is a word.
func isCrowded(r rune) bool { return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana) }
