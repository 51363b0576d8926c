package verified

import (
	"maps"
	"slices"
	"strings"
)

const (
	maxTokens = 40   // of a question that is compared by more than its exact words
	maxWords  = 5    // of a value
	maxKeys   = 4000 // that are looked up for one question and shape
)

// span is a run of tokens that may be the value of a parameter.
type span struct {
	kind     byte
	from, to int // indexes of tokens, to is exclusive
}

// asked is a question that is compared with wordings.
type asked struct {
	text   string
	tokens []token
	sum    int64
	spans  map[byte][]span
}

func ask(text string) asked {
	q := asked{text: text, tokens: tokens(text, nil), spans: map[byte][]span{}}

	for i, t := range q.tokens {
		if !t.isFunction {
			q.sum += t.hash()
		}

		q.spans['v'] = append(q.spans['v'], valuesAt(i, len(q.tokens))...)

		for kind, of := range map[byte]Parameter{'n': {Type: "double"}, 'y': {Period: Year}, 'd': {Period: Day}, 'm': {Period: Month}} {
			if _, ok := of.parse(t.text); ok {
				q.spans[kind] = append(q.spans[kind], span{kind, i, i + 1})
			}
		}

		if i+1 < len(q.tokens) && monthOf(t.text) > 0 && isYear(q.tokens[i+1].text) {
			q.spans['m'] = append(q.spans['m'], span{'m', i, i + 2})
		}
	}

	return q
}

func valuesAt(from, tokens int) (list []span) {
	for to := from + 1; to <= min(from+maxWords, tokens); to++ {
		list = append(list, span{'v', from, to})
	}

	return list
}

// exact returns the words of the question in their order.
func (q asked) exact() string {
	words := make([]string, len(q.tokens))
	for i, t := range q.tokens {
		words[i] = t.text
	}

	return strings.Join(words, " ")
}

// written returns the words of a span as the question writes them.
func (q asked) written(s span) string { return q.text[q.tokens[s.from].start:q.tokens[s.to-1].end] }

// keys returns the possible keys of wordings that fit the question and have this shape. Each key comes with the spans that it
// leaves out, which are the values of parameters. It returns none if there are too many.
func (q asked) keys(shape string) map[int64][][]span {
	found, count := map[int64][][]span{}, 0

	var choose func(kinds string, taken []span, sum int64) bool

	choose = func(kinds string, taken []span, sum int64) bool {
		if kinds == "" {
			found[sum] = append(found[sum], slices.Clone(taken))
			count++

			return count <= maxKeys
		}

		for _, s := range q.spans[kinds[0]] {
			if !fitsAfter(taken, s) {
				continue
			}

			if !choose(kinds[1:], append(taken, s), sum-q.weight(s)) {
				return false
			}
		}

		return true
	}

	if len(q.tokens) > maxTokens || !choose(shape, nil, q.sum) {
		return nil
	}

	return found
}

// fitsAfter reports whether a span overlaps none of the taken ones. Spans of the same kind must be taken from left to right, so
// that each combination is tried once. fits assigns them to parameters later.
func fitsAfter(taken []span, s span) bool {
	for _, other := range taken {
		if s.from < other.to && other.from < s.to || s.kind == other.kind && s.from < other.from {
			return false
		}
	}

	return true
}

func (q asked) weight(s span) (sum int64) {
	for _, t := range q.tokens[s.from:s.to] {
		if !t.isFunction {
			sum += t.hash()
		}
	}

	return sum
}

// fits returns the ways to assign the spans to the parameters of a wording so that the question has the structure of the
// wording. Each way has one span per parameter, by index.
func (w wording) fits(q asked, spans []span) (ways []map[int]span) {
	want := w.structure(w.tokens)

	var assign func(slots []int, left []span, taken map[int]span)

	assign = func(slots []int, left []span, taken map[int]span) {
		if len(slots) == 0 {
			if w.structure(q.with(taken)) == want {
				ways = append(ways, maps.Clone(taken))
			}

			return
		}

		for i, s := range left {
			if s.kind != w.of[slots[0]].kind() {
				continue
			}

			taken[slots[0]] = s
			assign(slots[1:], slices.Delete(slices.Clone(left), i, i+1), taken)
			delete(taken, slots[0])
		}
	}

	var slots []int

	for _, t := range w.tokens {
		if t.slot >= 0 {
			slots = append(slots, t.slot)
		}
	}

	if len(slots) == len(spans) {
		assign(slots, spans, map[int]span{})
	}

	return ways
}

// with returns the tokens of the question with parameters in place of the spans, without function words.
func (q asked) with(taken map[int]span) (list []token) {
	for i := 0; i < len(q.tokens); i++ {
		at := i

		for slot, s := range taken {
			if s.from == i {
				list = append(list, token{slot: slot})
				at = s.to
			}
		}

		switch {
		case at > i:
			i = at - 1
		case !q.tokens[i].isFunction:
			list = append(list, q.tokens[i])
		}
	}

	return list
}
