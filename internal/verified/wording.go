package verified

import (
	"regexp"
	"slices"
	"strings"

	"quern.dev/quern/internal/lexicon"
)

// Shapes of wordings in the index that are not a list of kinds of parameters.
const (
	exactShape = "=" // all words in their order
	nearShape  = "~" // the words without one of them
)

// wording is a wording of a verified question, prepared for comparisons.
type wording struct {
	all     []token
	tokens  []token // without function words
	of      Parameters
	literal map[string]bool // folded words of the values in the statement
	columns map[string]bool // stems of the words in the names of columns
}

var stringLiteral = regexp.MustCompile(`'((?:[^']|'')*)'`)

// read prepares a wording. columns are the names of the columns that the statement needs.
func read(text string, of Parameters, statement string, columns []string) wording {
	w := wording{all: tokens(text, of.index), of: of, literal: map[string]bool{}, columns: map[string]bool{}}
	w.tokens = slices.DeleteFunc(slices.Clone(w.all), func(t token) bool { return t.isFunction })

	for _, found := range stringLiteral.FindAllStringSubmatch(statement, -1) {
		for _, t := range tokens(found[1], nil) {
			w.literal[t.text] = true
		}
	}

	for _, name := range columns {
		for word := range strings.FieldsSeq(lexicon.Key(strings.ReplaceAll(name, "_", " "))) {
			w.columns[stem(word)] = true
		}
	}

	return w
}

// entry is a row of the index of wordings.
type entry struct {
	shape string
	key   int64
	form  int64 // of the words in their order; no two wordings of a namespace have the same
}

// shape returns the kinds of the parameters in the wording, sorted.
func (w wording) shape() string {
	var kinds []byte

	for _, t := range w.tokens {
		if t.slot >= 0 {
			kinds = append(kinds, w.of[t.slot].kind())
		}
	}

	slices.Sort(kinds)

	return string(kinds)
}

// key is the sum of the hashes of the words, so that it does not depend on their order and words can be taken out of it.
func (w wording) key() (sum int64) {
	for _, t := range w.tokens {
		if t.slot < 0 {
			sum += t.hash()
		}
	}

	return sum
}

// exact returns the words in their order. The name of a parameter does not matter.
func (w wording) exact() string {
	words := make([]string, len(w.all))
	for i, t := range w.all {
		if words[i] = t.text; t.slot >= 0 {
			words[i] = "\x00" + string(w.of[t.slot].kind())
		}
	}

	return strings.Join(words, " ")
}

// plain returns the stems of the words in their order.
func (w wording) plain() string {
	words := make([]string, len(w.tokens))
	for i, t := range w.tokens {
		if words[i] = t.stem; t.slot >= 0 {
			words[i] = "\x00" + string(w.of[t.slot].kind())
		}
	}

	return strings.Join(words, " ")
}

// entries returns the rows of the index for the wording.
func (w wording) entries() (list []entry) {
	exact := hashOf(w.exact())
	list = append(list, entry{exactShape, exact, exact})

	if len(w.tokens) > maxTokens {
		return list
	}

	key, form := w.key(), hashOf(w.plain())
	list = append(list, entry{w.shape(), key, form}, entry{nearShape, key, 0})

	for _, t := range w.tokens {
		if t.slot < 0 {
			list = append(list, entry{nearShape, key - t.hash(), 0})
		}
	}

	return list
}

// words returns how many words the wording has besides its parameters.
func (w wording) words() (count int) {
	for _, t := range w.tokens {
		if t.slot < 0 && !isMarker(t.text) {
			count++
		}
	}

	return count
}

// part is the kind of a part of a question.
type part int

const (
	anchor part = iota // what others depend on
	group              // by a column
	value              // a condition
	period             // a condition on time
)

// segment is a part of a question: what is asked for, or a condition.
type segment struct {
	words               []string
	kind                part
	isMarked            bool // it begins with a marker
	isGroup, hasValue   bool
	hasColumn, hasPlain bool
	hasAsking, onlyTime bool
	isOf                bool
	isRest              bool // the rest of what is asked for, after a condition: orders in the south are late
}

// structure returns the words of a question or wording with what its order says: two texts with the same words have the same
// structure if only conditions on the same thing changed places.
func (w wording) structure(list []token) string {
	parts := w.segments(list)
	head := slices.IndexFunc(parts, func(s segment) bool { return s.kind == anchor })

	if head < 0 {
		return "? " + joined(parts)
	}

	if head+1 < len(parts) && parts[head+1].isOf && parts[head+1].kind == anchor { // number of orders
		parts[head].words = append(parts[head].words, parts[head+1].words...)
		parts = slices.Delete(parts, head+1, head+2)
	}

	if rest := head + 1 + slices.IndexFunc(parts[head+1:], func(s segment) bool { return s.kind == anchor || s.kind == group }); rest > head && parts[rest].isRest {
		parts[head].words = append(parts[head].words, parts[rest].words...)
		parts = slices.Delete(parts, rest, rest+1)
	}

	var times []segment

	if slices.IndexFunc(parts[head+1:], func(s segment) bool { return s.kind == anchor }) < 0 {
		// There is only one thing that a time can be about, and only one that conditions before it can be about.
		rest := slices.Clone(parts[head : head+1])
		rest = append(rest, parts[:head]...)
		rest = append(rest, parts[head+1:]...)
		parts = nil

		for _, s := range rest {
			if s.kind == period {
				times = append(times, s)
			} else {
				parts = append(parts, s)
			}
		}
	}

	return joined(parts) + " @ " + joined(times)
}

// joined writes segments one after the other, conditions that follow each other in alphabetical order.
func joined(parts []segment) string {
	var (
		text []string
		run  []string
	)

	for _, s := range parts {
		words := strings.Join(s.words, " ")
		if s.kind == value || s.kind == period {
			run = append(run, words)

			continue
		}

		slices.Sort(run)
		text = append(append(text, run...), words)
		run = nil
	}

	slices.Sort(run)

	return strings.Join(append(text, run...), " | ")
}

// segments divides a text at its markers.
func (w wording) segments(list []token) (parts []segment) {
	var s *segment

	for i, t := range list {
		marker := t.slot < 0 && isMarker(t.text)
		if t.text == "and" && i+1 < len(list) && list[i+1].slot < 0 && isMarker(list[i+1].text) {
			marker = true // it only joins two conditions
		}

		if s == nil || s.ends(t, marker) {
			parts = append(parts, segment{isMarked: marker, isGroup: isGrouping(t.text) && t.slot < 0, isOf: t.text == "of", isRest: t.slot < 0 && isVerb(t.stem), onlyTime: true})
			s = &parts[len(parts)-1]
		}

		w.add(s, list, i, marker)
	}

	for i := range parts {
		parts[i].kind = parts[i].classify()
	}

	return parts
}

// ends reports whether a token begins the next segment.
func (s *segment) ends(t token, marker bool) bool {
	switch {
	case t.slot >= 0:
		return false
	case marker:
		return !s.isMarked || s.hasValue || s.hasPlain || s.isGroup && len(s.words) > 1
	default:
		return (isAsking(t.text) || isVerb(t.stem)) && s.hasValue && s.isMarked && !s.hasPlain
	}
}

func (w wording) add(s *segment, list []token, i int, marker bool) {
	t := list[i]

	switch {
	case t.slot >= 0:
		s.words = append(s.words, "\x00$"+w.of[t.slot].Name)
		s.hasValue = true
		s.onlyTime = s.onlyTime && strings.ContainsRune("ymd", rune(w.of[t.slot].kind()))

		return
	case t.text == "and" && marker:
		return
	case marker:
		s.hasAsking = s.hasAsking || isAsking(t.text)
	case isTime(list, i):
		s.hasValue = true
	case w.isValue(t):
		s.hasValue, s.onlyTime = true, false
		s.words = append(s.words, "\x00"+t.text) // a value has no plural

		return
	case w.columns[t.stem]:
		s.hasColumn, s.onlyTime = true, false
	default:
		s.hasPlain = true
	}

	s.words = append(s.words, t.stem)
}

func (w wording) isValue(t token) bool {
	return w.literal[t.text] || strings.ContainsAny(t.text[:1], "-0123456789") || strings.HasPrefix(t.text, "−")
}

// isTime reports whether a token is a year, a date or the name of a month.
func isTime(list []token, i int) bool {
	t := list[i]
	beforeYear := i+1 < len(list) && (isYear(list[i+1].text) || list[i+1].slot >= 0)

	return isYear(t.text) || monthText.MatchString(t.text) || monthOf(t.text) > 0 && (beforeYear || t.text != "may")
}

func (s *segment) classify() part {
	switch {
	case s.isGroup && s.hasColumn && !s.hasPlain && !s.hasValue:
		return group
	case !s.isMarked || s.hasPlain || s.hasAsking || !s.hasValue:
		return anchor
	case s.onlyTime:
		return period
	default:
		return value
	}
}
