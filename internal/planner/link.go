package planner

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

type itemKind int

const (
	noise itemKind = iota
	weak           // a word that says little
	unknown
	operator
	columnItem
	rowsItem // the rows of the dataset
	valueItem
	numberItem
	periodItem
	grainItem
)

// item is what some words of the question may mean.
type item struct {
	kind     itemKind
	from, to int // tokens
	score    float64

	op      op
	word    string    // the last one, of an operator
	columns []mention // the likeliest first
	values  []valueOf
	number  float64
	percent bool
	ordinal bool
	isYear  bool
	period  Period
	grain   Grain
	stem    string // of a single word
	verb    bool   // it says that something happened
}

// mention is a column that words may name.
type mention struct {
	column int
	score  float64
}

// valueOf is a value that words may be.
type valueOf struct {
	column int
	value  string
	guess  bool
}

const (
	maxMention   = 5    // words of a name
	nearlyAsGood = 0.12 // other meanings that are kept beside the best
)

// linker finds what words may mean in one dataset.
type linker struct {
	*schema

	tokens  []token
	phrases map[string]op
	links   []Link
	today   time.Time
}

// items are all meanings of all runs of words, by the token that they begin with.
func (l *linker) items() [][]item {
	found := make([][]item, len(l.tokens))

	for i := range l.tokens {
		found[i] = l.itemsAt(i)
	}

	for _, v := range l.valueItems() {
		found[v.from] = append(found[v.from], v)
	}

	return found
}

func (l *linker) itemsAt(i int) (list []item) {
	t := l.tokens[i]

	switch {
	case l.isNoise(i):
		list = append(list, item{kind: noise, from: i, to: i + 1, score: 0.05})
	case isWeak(t.stem) && t.lower != "wins":
		list = append(list, item{kind: weak, from: i, to: i + 1, score: -0.3})
	default:
		list = append(list, item{kind: unknown, from: i, to: i + 1, score: -1})
	}

	if p, n := periodAt(l.tokens, i, l.today); n > 0 {
		list = append(list, item{kind: periodItem, from: i, to: i + n, score: 0.95, period: p})
	}

	if t.isNumber {
		list = append(list, item{kind: numberItem, from: i, to: i + 1, score: 0.8, number: t.number, percent: t.percent, ordinal: t.ordinal, isYear: isYear(t)})
	}

	if g, ok := grainOf(t.lower); ok {
		list = append(list, item{kind: grainItem, from: i, to: i + 1, score: 0.7, grain: g, verb: strings.HasSuffix(t.lower, "ly")})
	}

	for n := 1; n <= maxPhrase && i+n <= len(l.tokens); n++ {
		if o, ok := l.phrases[l.lowers(i, i+n)]; ok && (i == 0 || n > 1 || l.tokens[i-1].lower != "at") && !l.namesColumn(i, i+n) {
			list = append(list, item{kind: operator, from: i, to: i + n, score: 0.8, op: o, word: l.tokens[i+n-1].lower})
		}
	}

	if slices.ContainsFunc(list, func(one item) bool { return one.op == opUnable }) {
		list = slices.DeleteFunc(list, func(one item) bool { return one.kind == operator && one.op != opUnable })
	}

	for n := 1; n <= maxMention && i+n <= len(l.tokens); n++ {
		if found := l.columnsNamed(i, i+n); len(found) > 0 {
			list = append(list, item{
				kind: columnItem, from: i, to: i + n, score: found[0].score, columns: found, verb: n == 1 && (isVerb(t.lower) || isDeed(t.stem)), stem: t.stem,
			})
		}

		if column, score := l.rowsNamed(i, i+n); score > 0 {
			one := item{kind: rowsItem, from: i, to: i + n, score: score, verb: n == 1 && isVerb(t.lower)}
			if column >= 0 {
				one.columns = []mention{{column, score}}
			}

			list = append(list, one)
		}
	}

	return list
}

// isNoise also knows words that say nothing only beside some others: new customers, but not New Jersey.
func (l *linker) isNoise(i int) bool {
	t := l.tokens[i]

	switch t.lower {
	case "us":
		return i == 0 || l.tokens[i-1].lower != "the"
	case "new":
		for n := 2; n <= 3 && i+n <= len(l.tokens); n++ {
			if _, score := l.rowsNamed(i+1, i+n); score > 0 {
				return true
			}
		}

		return false
	default:
		behind := i > 0 && (l.tokens[i-1].isNumber || l.tokens[i-1].lower == "in" || l.tokens[i-1].lower == "square")

		return isNoise(t.lower) || behind && isMeasureUnit(t.lower)
	}
}

// namesColumn is true of an operator one word of which is a column here: the amount of orders.
func (l *linker) namesColumn(from, to int) bool {
	for i := from; i < to; i++ {
		if w := l.tokens[i].lower; w != "amount" && w != "quantity" {
			continue
		}

		if named := l.columnsNamed(i, i+1); len(named) > 0 && named[0].score > 0.9 {
			return true
		}
	}

	return false
}

func (l *linker) lowers(from, to int) string {
	words := make([]string, 0, to-from)
	for _, t := range l.tokens[from:to] {
		words = append(words, t.lower)
	}

	return strings.Join(words, " ")
}

// isVerb is true of forms that say that something was done.
func isVerb(word string) bool {
	switch word {
	case "sold", "bought", "paid", "spent", "sent", "began", "won", "lost", "built", "wrote", "written", "given", "taken":
		return true
	default:
		return len(word) > 4 && (strings.HasSuffix(word, "ed") || strings.HasSuffix(word, "ing"))
	}
}

// stems are the words of a run that can be part of a name. A run that begins or ends with noise is none, unless the
// name has it.
func (l *linker) stems(from, to int) (stems []string, ok bool) {
	for i, t := range l.tokens[from:to] {
		if isNoise(t.lower) && t.lower != "place" && t.lower != "type" && t.lower != "result" && t.lower != "record" && t.lower != "new" && t.lower != "value" {
			if i == 0 || i == to-from-1 {
				return nil, false
			}

			if t.lower == "of" || t.lower == "the" {
				continue
			}
		}

		stems = append(stems, t.stem)
	}

	return stems, true
}

func (l *linker) columnsNamed(from, to int) []mention {
	said, ok := l.stems(from, to)
	if !ok || to-from == 1 && len(l.tokens[from].lower) <= 3 && l.phrases[l.tokens[from].lower] != "" { // not is no note
		return nil
	}

	var found []mention

	short := said
	for len(short) > 1 && isUnit(short[len(short)-1]) {
		short = short[:len(short)-1]
	}

	var hinted []string
	if len(said) == 1 && l.phrases[l.tokens[from].lower] == "" {
		hinted = hints(said[0])
	}

	for _, i := range l.speaking(said, hinted) {
		c := &l.columns[i]
		score := nameScore(said, c)

		if score == 0 && len(short) < len(said) {
			score = 0.97 * nameScore(short, c) // the airline code
		}

		if score == 0 {
			score = hintScore(hinted, c)
		}

		if score == 0 && c.Description != "" {
			score = descriptionScore(said, c.described)
		}

		if score > 0 {
			found = append(found, mention{i, score})
		}
	}

	slices.SortStableFunc(found, func(a, b mention) int { return cmp.Compare(b.score, a.score) })

	for i := range found {
		if found[i].score < found[0].score-nearlyAsGood {
			return found[:i]
		}
	}

	return found
}

// speaking are the columns that share a word with what is said, in order.
func (l *linker) speaking(said, hinted []string) []int {
	var list []int

	for _, w := range said {
		list = append(list, l.byWord[w]...)

		if len(w) >= prefix {
			list = append(list, l.byWord[w[:prefix]+"…"]...)
		}
	}

	for _, hint := range hinted {
		list = append(list, l.byWord[stem(hint)]...)
	}

	slices.Sort(list)

	return slices.Compact(list)
}

// nameScore is how well words name a column.
func nameScore(said []string, c *column) float64 {
	switch {
	case slices.Equal(said, c.words):
		return 1
	case sameWords(said, c.strong):
		return 0.97
	case sameWords(said, c.words):
		return 0.95
	}

	inside := 0

	for _, w := range said {
		if slices.Contains(c.strong, w) && !isUnit(w) {
			inside++
		}
	}

	if len(c.strong) > 0 && inside == len(said) && inside > 0 {
		share := float64(inside) / float64(len(c.strong))
		if slices.Contains(said, c.strong[len(c.strong)-1]) {
			return 0.6 + 0.3*share
		}

		return 0.5 + 0.3*share
	}

	if len(said) == 1 && len(c.strong) == 1 && derived(said[0], c.strong[0]) {
		return 0.66
	}

	return 0
}

func sameWords(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}

	for _, w := range a {
		if !slices.Contains(b, w) {
			return false
		}
	}

	return true
}

// derived is true of encrypt and encryption.
func derived(a, b string) bool {
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}

	return same >= 5 && 10*same >= 7*max(len(a), len(b))
}

func hintScore(hinted []string, c *column) float64 {
	for rank, hint := range hinted {
		if slices.Contains(c.strong, stem(hint)) {
			return 0.64 - 0.02*float64(rank)
		}
	}

	return 0
}

func descriptionScore(said, words []string) float64 {
	for _, w := range said {
		if len(w) < 3 || isUnit(w) || !slices.Contains(words, w) {
			return 0
		}
	}

	return 0.5 + 0.05*float64(min(len(said), 3))
}

// rowsNamed says whether words mean the rows of the dataset, and by which column if by one.
func (l *linker) rowsNamed(from, to int) (column int, score float64) {
	said, ok := l.stems(from, to)
	if !ok {
		return -1, 0
	}

	switch {
	case slices.Equal(said, l.words):
		return -1, 1
	case len(said) == 1 && len(l.words) > 0 && said[0] == l.words[len(l.words)-1]:
		return -1, 0.93
	}

	for i, c := range l.columns {
		if c.unique && (sameWords(said, c.strong) || slices.Equal(said, c.words)) && (c.kind == text || c.isID) {
			return i, 0.96
		}
	}

	if len(said) != 1 {
		return -1, 0
	}

	if said[0] == "person" && l.label >= 0 && l.label == l.person() {
		return l.label, 0.7
	}

	for _, hint := range rowHints(said[0]) {
		if slices.Contains(l.words, stem(hint)) {
			return -1, 0.75
		}
	}

	return -1, 0
}

// valueItems are the links of the dataset, one item for each run of words.
func (l *linker) valueItems() []item {
	var list []item

	for _, link := range l.links {
		column := slices.IndexFunc(l.columns, func(c column) bool { return c.Name == link.Column })
		from, to := l.tokensOf(link.Start, link.End)

		if link.Dataset != l.Name || column < 0 || from >= to || (link.Guess && to-from == 1 && l.tokens[from].isNumber) {
			continue
		}

		one := valueOf{column, link.Value, link.Guess}
		score := link.Score

		if link.Guess {
			score *= 0.8
		}

		i := slices.IndexFunc(list, func(other item) bool { return other.from == from && other.to == to })

		switch {
		case i < 0:
			list = append(list, item{kind: valueItem, from: from, to: to, score: score, values: []valueOf{one}})
		case score >= list[i].score-nearlyAsGood:
			list[i].values = append(list[i].values, one)
		}
	}

	return list
}

func (l *linker) tokensOf(start, end int) (from, to int) {
	from = slices.IndexFunc(l.tokens, func(t token) bool { return t.end > start })
	if from < 0 {
		return 0, 0
	}

	to = from
	for to < len(l.tokens) && l.tokens[to].start < end && l.tokens[to].start+len(l.tokens[to].lower) <= end {
		to++
	}

	return from, to
}
