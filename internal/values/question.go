package values

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	maxWords     = 200 // of a question; the rest is not looked at
	maxGram      = 5   // words of a value that can be found
	maxAlone     = 12  // if they are characters
	typoLetters  = 4   // of a word that may be mistyped, and of what it should have been
	typoLongest  = 40  // bytes of a word that is worth it
	partLetters  = 3   // of a word that stands for a longer value
	pluralLetter = 3
)

// Question is a question that is prepared for every table at once. It is safe for use by several goroutines.
type Question struct {
	text  string
	grams []gram
}

// gram is a run of words of a question.
type gram struct {
	start, end int // in the text
	words      int
	key        string
	hash       uint64
	stop       bool // it is one word, which says nothing by itself

	plurals candidates
	joined  candidates // two words that should be one
	typos   []guesses
}

// guesses are candidates that a table can have only if it has what they need: letters or words of a value that are
// right. Zero needs nothing.
type guesses struct {
	need, also uint64 // hashes
	candidates func() candidates
}

// possible tells whether a table can have any of them.
func (g *guesses) possible(f filter) bool {
	return (g.need == 0 || f.has(g.need)) && (g.also == 0 || f.has(g.also))
}

// candidates are keys that the gram may have been meant to be: their hashes, which every table is asked for, and the
// edits that make them.
type candidates struct {
	hashes []uint64
	edits  []edit
}

// edit puts letters in the place of bytes.
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

	var list []word
	for w := range words(text) {
		if list = append(list, w); len(list) == maxWords {
			break
		}
	}

	for i := range list {
		var key strings.Builder

		for j := i; j < len(list) && (j-i < maxGram || j-i < maxAlone && list[i].alone && list[j].alone); j++ {
			if j > i {
				key.WriteByte(' ')
			}

			key.WriteString(list[j].folded)
			q.grams = append(q.grams, newGram(key.String(), list[i:j+1]))
		}
	}

	return q
}

func newGram(key string, list []word) gram {
	last := list[len(list)-1]
	g := gram{start: list[0].start, end: last.end, words: len(list), key: key, hash: hash(key)}
	g.stop = g.words == 1 && stopWord(key)

	if g.stop || !slices.ContainsFunc(list, func(w word) bool { return !stopWord(w.folded) }) {
		return g
	}

	if g.words == 2 && len(key) > typoLetters {
		g.joined.add(key, edit{at: len(list[0].folded), bytes: 1})
	}

	if stem := len(key) - len(last.folded); !stopWord(last.folded) && len(last.folded) >= pluralLetter && lettersOnly(last.folded) {
		for _, other := range otherEndings(last.folded) {
			g.plurals.add(key, edit{stem, len(last.folded), other})
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

// mistypedWords are all keys from which words differ by one letter: one too many, one missing, another one, or two
// that changed places. Digits are never wrong: 2023 is not 2024. All words but one are right.
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

// mistypedWord is the same for one word, of which some letters are right.
func mistypedWord(key string) []guesses {
	if !mistypable(key) {
		return nil
	}

	letters := min(utf8.RuneCountInString(key)/2, mostLetters)
	first, _ := cutLetters(key, letters)
	last, _ := cutLetters(key, -letters)

	var inEnd, inBegin, inBoth candidates // inBoth are two letters in the middle that changed places

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

// mistypable: short words are too like each other.
func mistypable(word string) bool {
	return utf8.RuneCountInString(word) >= typoLetters && len(word) <= typoLongest && lettersOnly(word) && !stopWord(word)
}

// mistype gives the edits of a word, which begins there in its key, that make what it may have been meant to be.
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

		if i > 0 { // a space that is missing
			give(edit{at + i, 0, " "})
		}

		i += size
	}
}

// alphabetOf are the letters that could stand in a word, folded. Scripts of very many letters have none: there
// a letter may be missing, be too many, or in the wrong place.
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
