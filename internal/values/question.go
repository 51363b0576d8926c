package values

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"quern.dev/quern/internal/lexicon"
)

const (
	maxWords     = 200 // words of a question; further words are ignored
	maxGram      = 5   // words of a value that can be found
	maxAlone     = 12  // the same, if each word is a single character
	typoLetters  = 4   // minimum letters of a word that may be mistyped, and of the intended word
	typoLongest  = 40  // maximum bytes of a word that may be mistyped
	partLetters  = 3   // minimum letters of a word that may mean a longer value
	pluralLetter = 3
)

// Question is a question that is prepared for all tables. It is safe for concurrent use.
type Question struct {
	text  string
	grams []gram
}

// gram is a run of words of a question.
type gram struct {
	start, end int // position in the text, in bytes
	words      int
	key        string
	hash       uint64
	stop       bool // a single stop word

	plurals candidates
	joined  candidates // two words that may be one
	typos   []guesses
}

// guesses are candidates that a table can have only if its filter contains need and also: letters or words of a value
// that are correct. Zero means no such condition.
type guesses struct {
	need, also uint64 // hashes
	candidates func() candidates
}

// possible reports whether a table can have any of the candidates.
func (g *guesses) possible(f filter) bool {
	return (g.need == 0 || f.has(g.need)) && (g.also == 0 || f.has(g.also))
}

// candidates are keys that the gram may mean: their hashes, which are looked up in every table, and the edits that
// produce them.
type candidates struct {
	hashes []uint64
	edits  []edit
}

// edit replaces bytes with letters.
type edit struct {
	at, bytes int
	letters   string
}

func (e edit) apply(key string) string { return key[:e.at] + e.letters + key[e.at+e.bytes:] }

func (c *candidates) add(key string, e edit) {
	c.hashes = append(c.hashes, mix(hashed(hashed(hashed(hashSeed, key[:e.at]), e.letters), key[e.at+e.bytes:])))
	c.edits = append(c.edits, e)
}

// Ask prepares a question.
func Ask(text string) *Question {
	q := &Question{text: text}

	var list []lexicon.Word
	for w := range lexicon.KeyWords(text) {
		if list = append(list, w); len(list) == maxWords {
			break
		}
	}

	for i := range list {
		var key strings.Builder

		for j := i; j < len(list) && (j-i < maxGram || j-i < maxAlone && list[i].Alone && list[j].Alone); j++ {
			if j > i {
				key.WriteByte(' ')
			}

			key.WriteString(list[j].Text)
			q.grams = append(q.grams, newGram(key.String(), list[i:j+1]))
		}
	}

	return q
}

func newGram(key string, list []lexicon.Word) gram {
	last := list[len(list)-1]
	g := gram{start: list[0].Start, end: last.End, words: len(list), key: key, hash: hash(key)}
	g.stop = g.words == 1 && lexicon.IsStop(key)

	if g.stop || !slices.ContainsFunc(list, func(w lexicon.Word) bool { return !lexicon.IsStop(w.Text) }) {
		return g
	}

	if g.words == 2 && len(key) > typoLetters {
		g.joined.add(key, edit{at: len(list[0].Text), bytes: 1})
	}

	if stem := len(key) - len(last.Text); !lexicon.IsStop(last.Text) && len(last.Text) >= pluralLetter && lettersOnly(last.Text) {
		for _, other := range lexicon.OtherEndings(last.Text) {
			g.plurals.add(key, edit{stem, len(last.Text), other})
		}
	}

	if g.words == 1 {
		g.typos = mistypedWord(key)
	} else {
		g.typos = mistypedWords(key)
	}

	return g
}

func lettersOnly(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
}

// mistypedWords returns all keys that differ from the words by one letter: one letter added, missing or replaced, or
// two letters swapped. Digits are never changed, because 2023 does not mean 2024. All words except one are correct.
func mistypedWords(key string) (list []guesses) {
	first, rest, _ := strings.Cut(key, " ")
	end := strings.LastIndexByte(key, ' ')

	next := 0

	for w := range strings.SplitSeq(key, " ") {
		at := next
		next += len(w) + 1

		one := guesses{candidates: sync.OnceValue(func() (c candidates) {
			mistype(w, at, func(e edit) { c.add(key, e) })

			return c
		})}

		switch {
		case at == 0:
			one.need = hash(rest + butFirst)
		case at > end:
			one.need = hash(key[:end] + butLast)
		default:
			one.need, one.also = hash(first+firstWord), hash(key[end+1:]+lastWord)
		}

		if mistypable(w) {
			list = append(list, one)
		}
	}

	return list
}

// mistypedWord does the same for a single word, of which some letters are correct.
func mistypedWord(key string) []guesses {
	if !mistypable(key) {
		return nil
	}

	letters := min(utf8.RuneCountInString(key)/2, mostLetters)
	first, _ := cutLetters(key, letters)
	last, _ := cutLetters(key, -letters)

	var inEnd, inBegin, inBoth candidates // inBoth: two letters in the middle that are swapped

	mistype(key, 0, func(e edit) {
		switch {
		case e.at >= first:
			inEnd.add(key, e)
		case e.at+e.bytes <= last:
			inBegin.add(key, e)
		default:
			inBoth.add(key, e)
		}
	})

	return []guesses{
		{need: hash(key[:first] + firstLetters), candidates: func() candidates { return inEnd }},
		{need: hash(key[last:] + lastLetters), candidates: func() candidates { return inBegin }},
		{candidates: func() candidates { return inBoth }},
	}
}

// mistypable reports whether typos are tried for a word. Short words are too similar to each other.
func mistypable(word string) bool {
	return utf8.RuneCountInString(word) >= typoLetters && len(word) <= typoLongest && lettersOnly(word) && !lexicon.IsStop(word)
}

// mistype calls give with each edit of a word that produces a word that may be meant. at is the position of the word in
// its key.
func mistype(word string, at int, give func(edit)) {
	alphabet, letters := alphabetOf(word), utf8.RuneCountInString(word)

	for i := 0; i <= len(word); {
		r, size := utf8.DecodeRuneInString(word[i:])
		if i == len(word) {
			size = 0
		}

		for _, letter := range alphabet {
			give(edit{at + i, 0, letter})

			if size > 0 && letter != string(r) {
				give(edit{at + i, size, letter})
			}
		}

		if size == 0 {
			break
		}

		if letters > typoLetters {
			give(edit{at: at + i, bytes: size})
		}

		if next, more := utf8.DecodeRuneInString(word[i+size:]); more > 0 && next != r {
			give(edit{at + i, size + more, string(next) + string(r)})
		}

		if i > 0 { // a missing space
			give(edit{at + i, 0, " "})
		}

		i += size
	}
}

// alphabetOf returns the folded letters that a word may contain. It returns none for scripts with very many letters;
// there only missing spaces, added letters and swapped letters are tried.
func alphabetOf(word string) []string {
	first, _ := utf8.DecodeRuneInString(word)

	for _, script := range []struct {
		table   *unicode.RangeTable
		letters string
	}{
		{unicode.Latin, "abcdefghijklmnopqrstuvwxyz"},
		{unicode.Cyrillic, "абвгдежзиклмнопрстуфхцчшщъыьэюяіјљњћџђєґ"},
		{unicode.Greek, "αβγδεζηθικλμνξοπρστυφχψω"},
		{unicode.Hebrew, "אבגדהוזחטיכלמנסעפצקרשתךםןףץ"},
		{unicode.Arabic, "ابتثجحخدذرزسشصضطظعغفقكلمنهويةىء"},
	} {
		if unicode.Is(script.table, first) {
			return strings.Split(script.letters, "")
		}
	}

	return nil
}
