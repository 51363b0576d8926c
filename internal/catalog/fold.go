package catalog

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Words are compared folded: without case, accents and forms of characters, so that any language works. What is
// searched and what is looked for are folded by the same code.

// maxLetters cuts off what nobody types.
const maxLetters = 64

// split gives the words of a text: runs of letters and digits, not folded yet.
func split(text string) (words []string) {
	var (
		run    strings.Builder
		before rune
	)

	end := func() {
		if run.Len() > 0 {
			words = append(words, run.String())
			run.Reset()
		}
	}

	for _, r := range plain(text) {
		isPart := unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
		if !isPart || isDense(r) != isDense(before) {
			end()
		}

		if isPart {
			run.WriteRune(r)
		}

		before = r
	}

	end()

	return words
}

// isDense: of a script that puts no spaces between words.
func isDense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// neighbours are the characters of such a script two by two, which is how they are found without a dictionary. One
// alone is itself.
func neighbours(word string) (list []string) {
	runes := []rune(word)
	for i := 1; i < len(runes); i++ {
		list = append(list, string(runes[i-1:i+1]))
	}

	if len(list) == 0 {
		return []string{word}
	}

	return list
}

// accents are the marks of higher combining classes; lower ones make other letters in Indian scripts and Japanese.
const accents = 9

// plain takes the accents and the forms of characters off.
func plain(text string) string {
	text = norm.NFKD.String(strings.ToValidUTF8(text, " "))

	var kept strings.Builder

	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r < utf8.RuneSelf || norm.NFD.PropertiesString(text[i:]).CCC() <= accents {
			kept.WriteRune(r)
		}

		i += size
	}

	return norm.NFC.String(kept.String())
}

// letters that have no accent to take off, and that people type in another way.
var letters = strings.NewReplacer( //nolint:gochecknoglobals // a constant
	"ß", "ss", "æ", "ae", "œ", "oe", "þ", "th", "ø", "o", "đ", "d", "ð", "d", "ł", "l", "ħ", "h", "ŧ", "t", "ı", "i", "ς", "σ")

// fold is a word as it is compared.
func fold(word string) string {
	word = letters.Replace(strings.ToLower(word))
	if utf8.RuneCountInString(word) > maxLetters {
		word = string([]rune(word)[:maxLetters])
	}

	return word
}

// foldAll gives the words of a text as they are searched.
func foldAll(text string) (words []string) {
	for _, word := range split(text) {
		word = fold(word)
		if first, _ := utf8.DecodeRuneInString(word); isDense(first) {
			words = append(append(words, strings.Split(word, "")...), neighbours(word)...)
		} else {
			words = append(words, word)
		}
	}

	return words
}

// foldWanted gives the words of a text as they are looked for.
func foldWanted(text string) (words []string) {
	for _, word := range split(text) {
		word = fold(word)
		if first, _ := utf8.DecodeRuneInString(word); isDense(first) {
			words = append(words, neighbours(word)...)
		} else {
			words = append(words, word)
		}
	}

	return words
}

// pieces are the words that a name is put together of: orderItems2024 has order, items and 2024. A name of one word
// has none.
func pieces(word string) (list []string) {
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

const shortest = 3 // letters that are left of a word without its ending

// forms are a word and what it may be without the ending of a plural. Two words are the same if they have a form in
// common; that fits many languages a little, and none perfectly.
func forms(word string) []string {
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

const (
	typedFrom = 4 // letters, that a typing error is looked for
	typedTo   = 24
)

// slips are a word and what is left of it without one of its letters. Two words with one in common are a typing error
// apart: a letter too many, too few, another one, or two in the wrong order.
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

// beginnings of a word, of three letters or more.
func beginnings(word string) (list []string) {
	runes := []rune(word)
	for i := shortest; i < len(runes) && i <= typedTo; i++ {
		list = append(list, string(runes[:i]))
	}

	return list
}
