package lexicon

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxLetters is the number of characters after which FoldWord cuts off a word.
const MaxLetters = 64

// SplitWords returns the words of a text for the search of datasets: runs of letters and digits, without accents and
// variant forms of characters. They keep their case, because Pieces needs it.
func SplitWords(text string) (words []string) {
	var (
		plain, run strings.Builder
		before     rune
	)

	for r := range unaccented(strings.ToValidUTF8(text, " ")) {
		plain.WriteRune(r)
	}

	end := func() {
		if run.Len() > 0 {
			words = append(words, run.String())
			run.Reset()
		}
	}

	for _, r := range norm.NFC.String(plain.String()) {
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

// FoldWord returns a word of SplitWords, or a piece of one, in the form in which the search of datasets compares words.
func FoldWord(word string) string {
	var folded strings.Builder
	for _, r := range word {
		foldLetter(&folded, r)
	}

	word = folded.String()
	if utf8.RuneCountInString(word) > MaxLetters {
		word = string([]rune(word)[:MaxLetters])
	}

	return word
}

// IndexWords returns the folded words of a text by which a dataset is found. A text in a script without spaces between
// words yields its characters and its pairs of adjacent characters, so that words are found without a dictionary.
func IndexWords(text string) []string {
	return foldWords(text, func(word string) []string { return append(strings.Split(word, ""), neighbours(word)...) })
}

// SearchWords returns the folded words of a search. It differs from IndexWords in scripts without spaces: a search for
// two or more characters must not find every text that contains one of them.
func SearchWords(text string) []string { return foldWords(text, neighbours) }

func foldWords(text string, divide func(dense string) []string) (words []string) {
	for _, word := range SplitWords(text) {
		word = FoldWord(word)
		if first, _ := utf8.DecodeRuneInString(word); isDense(first) {
			words = append(words, divide(word)...)
		} else {
			words = append(words, word)
		}
	}

	return words
}

// isDense reports whether a character belongs to a script that the search of datasets treats as one without spaces
// between words.
func isDense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// neighbours returns each pair of adjacent characters of a word. For a single character it returns that character.
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
