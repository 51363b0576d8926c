package verified

import (
	"hash/fnv"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"quern.dev/quern/internal/lexicon"
)

// token is a word, a number or a sign of a text.
type token struct {
	start, end int    // position in the text, in bytes
	text       string // folded
	stem       string // the same for the singular and the plural
	slot       int    // index of the parameter whose place this is; -1 for all others
	isFunction bool   // says nothing about what is asked for
}

// hash returns the part of a token in the key of its text.
func (t token) hash() int64 { return hashOf(t.stem) }

func hashOf(text string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))

	return int64(h.Sum64()) //nolint:gosec // only compared
}

// tokens divides a text. slot returns the index of the parameter with a name; it is nil for a question, in which $ is a sign
// like any other.
func tokens(text string, slot func(name string) int) (list []token) {
	mixed := strings.ContainsFunc(text, unicode.IsLower) // otherwise capitals say nothing

	for i := 0; i < len(text); {
		end, isWord := tokenEnd(text, i)
		if name := text[i:min(len(text), identifierEnd(text, i+1))]; slot != nil && text[i] == '$' && len(name) > 1 && !unicode.IsDigit(rune(name[1])) {
			list = append(list, token{start: i, end: i + len(name), slot: slot(name[1:])})
			i += len(name)

			continue
		}

		if end == i { // a space or punctuation
			_, size := utf8.DecodeRuneInString(text[i:])
			i += size

			continue
		}

		written := text[i:end]
		one := token{start: i, end: end, text: written, stem: written, slot: -1}

		if isWord {
			one.text = lexicon.Key(written)
			one.stem = stem(one.text)
			one.isFunction = isFunction(one.text) && (!mixed || len(list) == 0 || written == strings.ToLower(written))
		}

		if one.text != "" {
			list = append(list, one)
		}

		i = end
	}

	return list
}

func identifierEnd(text string, at int) int {
	for at < len(text) && (text[at] == '_' || text[at] < utf8.RuneSelf && (unicode.IsLetter(rune(text[at])) || unicode.IsDigit(rune(text[at])))) {
		at++
	}

	return at
}

// tokenEnd returns the end of the token that begins at a position, or the position if none does.
func tokenEnd(text string, at int) (end int, isWord bool) {
	r, size := utf8.DecodeRuneInString(text[at:])

	switch {
	case unicode.IsDigit(r):
		return numberEnd(text, at+size), false
	case r == '-' || r == '−':
		next, _ := utf8.DecodeRuneInString(text[at+size:])
		before, _ := utf8.DecodeLastRuneInString(text[:at])

		if unicode.IsDigit(next) && (at == 0 || unicode.IsSpace(before) || unicode.Is(unicode.Ps, before)) {
			return numberEnd(text, at+size), false
		}

		return at, false
	case unicode.IsLetter(r):
		return wordEnd(text, at+size), true
	case unicode.Is(unicode.Sc, r), unicode.Is(unicode.Sm, r), strings.ContainsRune(`%‰&@#*/\°§^|_`, r), unicode.Is(unicode.So, r), unicode.Is(unicode.No, r):
		return at + size, false
	default:
		return at, false
	}
}

// numberEnd includes signs between two digits, as in 1.5, 2026-11-17 and 10:30.
func numberEnd(text string, at int) int {
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		next, _ := utf8.DecodeRuneInString(text[at+size:])

		if !unicode.IsDigit(r) && (!strings.ContainsRune(".,:-/'", r) || !unicode.IsDigit(next)) {
			break
		}

		at += size
	}

	return at
}

func wordEnd(text string, at int) int {
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !unicode.Is(unicode.Cf, r) && r != '+' && r != '#' {
			break
		}

		at += size
	}

	return at
}

// isFunction reports whether a word says nothing. The list is as short as it is because every other word may decide what is
// asked for: all, any, each, only, other, still.
func isFunction(word string) bool { return slices.Contains([]string{"the", "a", "an", "please"}, word) }

// stem returns the same for the singular and the plural of a noun or a verb. Unlike lexicon.Stem it keeps tenses apart:
// shipping orders are not shipped orders.
func stem(word string) string {
	switch word {
	case "are":
		return "is"
	case "were":
		return "was"
	case "have":
		return "has"
	case "does":
		return "do"
	case "people", "persons":
		return "person"
	case "men":
		return "man"
	case "women":
		return "woman"
	case "children":
		return "child"
	case "canceled":
		return "cancelled"
	case "news", "goods", "customs", "glasses", "means", "series", "species", "arms", "as", "this", "his", "less", "its", "us":
		return word
	}

	for _, ending := range []string{"sses", "xes", "ches", "shes", "zzes"} {
		if strings.HasSuffix(word, ending) {
			word = word[:len(word)-2]

			break
		}
	}

	return lexicon.TrimPlural(word)
}

// isMarker reports whether a word begins a part of a question, such as a condition.
func isMarker(word string) bool {
	return slices.Contains([]string{
		"in", "on", "at", "from", "to", "for", "of", "with", "without", "by", "per", "since", "until", "till", "before", "after", "during", "between",
		"within", "over", "under", "above", "below", "more", "less", "than", "least", "most", "where", "whose", "who", "which", "that", "or", "not", "no", "never",
		"except", "excluding", "including", "only", "but", "into", "through", "via", "against", "among", "across", "about", "near", "like", "outside", "exactly", "nor", "neither",
	}, word)
}

// isAsking reports whether a word begins what is asked for.
func isAsking(word string) bool {
	return slices.Contains([]string{"how", "what", "which", "who", "whose", "when", "where", "why", "show", "list", "give", "count", "find"}, word)
}

// isVerb reports whether a stem is a verb that goes on with what is asked for after a condition.
func isVerb(stem string) bool {
	return slices.Contains([]string{"is", "was", "has", "had", "do", "did"}, stem)
}

func isGrouping(word string) bool { return word == "by" || word == "per" }
