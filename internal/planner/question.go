package planner

import (
	"slices"
	"strings"
	"time"

	"quern.dev/quern/internal/lexicon"
)

const (
	maxPhrase  = 5 // words of an operator
	maxMention = 5 // words of a name
)

// question contains the meanings of its words that do not depend on a dataset.
type question struct {
	tokens  []token
	phrases map[string]op
	plain   [][]*item // by first token
	runs    [][]run   // possible names, by first token and length
}

// run is a sequence of words that may be a name.
type run struct {
	said   []string // stems
	short  []string // stems without units at the end
	hinted []string // stems that a single word refers to without naming them
}

func ask(text string, today time.Time) *question {
	q := &question{tokens: tokenise(text), phrases: phrases()}
	if len(q.tokens) > maxTokens {
		q.tokens = nil
	}

	for i := range q.tokens {
		q.plain = append(q.plain, q.plainAt(i, today))

		var runs []run
		for n := 1; n <= maxMention && i+n <= len(q.tokens); n++ {
			runs = append(runs, q.run(i, i+n))
		}

		q.runs = append(q.runs, runs)
	}

	return q
}

func (q *question) plainAt(i int, today time.Time) (list []*item) {
	t := q.tokens[i]

	switch {
	case q.isNoise(i):
		list = append(list, noiseAt(i))
	case isWeak(t.stem) && t.lower != "wins":
		list = append(list, &item{kind: weak, from: i, to: i + 1, score: -0.3})
	default:
		list = append(list, &item{kind: unknown, from: i, to: i + 1, score: -1})
	}

	if p, n := periodAt(q.tokens, i, today); n > 0 {
		list = append(list, &item{kind: periodItem, from: i, to: i + n, score: 0.95, period: p})
	}

	if t.isNumber {
		list = append(list, &item{kind: numberItem, from: i, to: i + 1, score: 0.8, number: t.number, percent: t.percent, ordinal: t.ordinal, isYear: isYear(t)})
	}

	if g, ok := grainOf(t.lower); ok {
		list = append(list, &item{kind: grainItem, from: i, to: i + 1, score: 0.7, grain: g, verb: strings.HasSuffix(t.lower, "ly")})
	}

	for n := 1; n <= maxPhrase && i+n <= len(q.tokens); n++ {
		if o, ok := q.phrases[q.lowers(i, i+n)]; ok && (i == 0 || n > 1 || q.tokens[i-1].lower != "at") {
			list = append(list, &item{kind: operator, from: i, to: i + n, score: 0.8, op: o, word: q.tokens[i+n-1].lower})
		}
	}

	if slices.ContainsFunc(list, func(one *item) bool { return one.op == opUnable }) {
		list = slices.DeleteFunc(list, func(one *item) bool { return one.kind == operator && one.op != opUnable })
	}

	return list
}

func noiseAt(i int) *item { return &item{kind: noise, from: i, to: i + 1, score: 0.05} }

// isNoise reports whether a token has no meaning: a filler, or a unit after a number.
func (q *question) isNoise(i int) bool {
	t := q.tokens[i]

	if t.lower == "us" {
		return i == 0 || q.tokens[i-1].lower != "the"
	}

	behind := i > 0 && (q.tokens[i-1].isNumber || q.tokens[i-1].lower == "in" || q.tokens[i-1].lower == "square")

	return lexicon.IsFiller(t.lower) || behind && lexicon.IsMeasure(t.lower)
}

func (q *question) lowers(from, to int) string {
	words := make([]string, 0, to-from)
	for _, t := range q.tokens[from:to] {
		words = append(words, t.lower)
	}

	return strings.Join(words, " ")
}

// run returns the stems of words that may be a name. A sequence that begins or ends with noise is not a name, except
// for noise words that occur in names.
func (q *question) run(from, to int) (one run) {
	if o := q.phrases[q.tokens[to-1].lower]; o == opAnd || o == opOr { // "the name and the rating"
		return run{}
	}

	for i, t := range q.tokens[from:to] {
		if lexicon.IsFiller(t.lower) && t.lower != "place" && t.lower != "type" && t.lower != "result" && t.lower != "record" && t.lower != "new" && t.lower != "value" {
			if i == 0 || i == to-from-1 {
				return run{}
			}

			if t.lower == "of" || t.lower == "the" {
				continue
			}
		}

		one.said = append(one.said, t.stem)
	}

	one.short = one.said
	for len(one.short) > 1 && isUnit(one.short[len(one.short)-1]) {
		one.short = one.short[:len(one.short)-1]
	}

	if len(one.said) == 1 && q.phrases[q.tokens[from].lower] == "" {
		one.hinted = hintStems(one.said[0])
	}

	return one
}
