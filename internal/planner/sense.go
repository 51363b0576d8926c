package planner

import (
	"fmt"
	"slices"
	"time"

	"quern.dev/quern/internal/form"
)

// Kind is what a sense is about.
type Kind string

// The kinds.
const (
	ColumnSense  Kind = "column"
	RowsSense    Kind = "rows" // rows of a dataset
	MeasureSense Kind = "measure"
	ValueSense   Kind = "value"
	NumberSense  Kind = "number"
	PeriodSense  Kind = "period"
	GrainSense   Kind = "grain"
	WordSense    Kind = "word" // an operator, such as "average" or "per"
)

// Sense is a meaning that words of a question may have.
type Sense struct {
	Kind    Kind
	Words   string
	At      int // byte of the first word in the question
	End     int
	Word    string // name of the operator
	Dataset string
	Column  string
	Columns []string // of a measure
	Value   string
	Number  float64
	IsYear  bool
	Period  form.Period
	Month   time.Month // of a period without a year
	Grain   form.Grain
	Exact   bool // the words are the whole name
	Verb    bool // the words are a verb: "sold"
}

// Senses returns the meanings that words of a question may have, whether or not the planner understands the whole. The
// senses of the same words exclude each other. Guesses are left out. isForeign is true if the question is not in English,
// so that only names, values, numbers and days are known.
func Senses(want Request) (list []Sense, isForeign bool) {
	tokens := tokenise(want.Question)
	if len(tokens) == 0 || len(tokens) > maxTokens {
		return nil, false
	}

	w := newWorld(want.Datasets)
	m := &matcher{world: w, text: want.Question, tokens: tokens, today: want.Today, matches: want.Matches}

	for _, items := range m.items() {
		for _, one := range items {
			if s, ok := w.sense(one); ok {
				s.At, s.End = tokens[one.from].start, tokens[one.to-1].end
				s.Words = want.Question[s.At:s.End]
				list = append(list, s)
			}
		}
	}

	return list, foreign(want.Question, tokens, operators) != ""
}

// sense returns an item as a sense; ok is false for a guess and for words without a meaning.
func (w *world) sense(one *item) (s Sense, ok bool) {
	if one.guess {
		return s, false
	}

	s.Exact, s.Verb = one.tier == exact, one.verb

	switch one.kind {
	case columnItem, valueItem:
		s.Kind, s.Dataset, s.Column = ColumnSense, w.tables[one.table].name, w.tables[one.table].columns[one.column].Name
		if one.kind == valueItem {
			s.Kind, s.Value = ValueSense, fmt.Sprint(one.value)
		}
	case entityItem:
		s.Kind, s.Dataset = RowsSense, w.tables[one.table].name
	case measureItem:
		s.Kind, s.Dataset = MeasureSense, w.tables[one.table].name
		s.Columns = columnsOf(w.tables[one.table].measures[one.measure].measure.Of)
	case numberItem:
		s.Kind, s.Number, s.IsYear = NumberSense, one.number, one.isYear
	case periodItem:
		s.Kind, s.Period, s.Month = PeriodSense, form.Period{From: one.period.From, To: one.period.To, Text: one.period.Text}, one.period.Month
	case grainItem:
		s.Kind, s.Grain = GrainSense, one.grain
	case opItem:
		s.Kind, s.Word = WordSense, string(one.op)
	default:
		return s, false
	}

	return s, true
}

// columnsOf returns the names of the columns of a term.
func columnsOf(t *form.Term) (names []string) {
	if t == nil {
		return nil
	}

	if t.Name != "" {
		names = append(names, t.Name)
	}

	for _, arg := range t.Args {
		names = append(names, columnsOf(&arg)...)
	}

	return names
}

// Named returns for each name how many of its words are words of the question.
func Named(question string, names []string) []int {
	var stems []string

	for _, t := range tokenise(question) {
		if !isFunction(t.lower) {
			stems = append(stems, t.stem)
		}
	}

	list := make([]int, len(names))

	for i, name := range names {
		for _, stem := range stemsOf(name) {
			if slices.Contains(stems, stem) {
				list[i]++
			}
		}
	}

	return list
}
