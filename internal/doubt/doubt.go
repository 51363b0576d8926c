// Package doubt compares a statement that somebody wrote freely with the question that it should answer.
//
// It reads the syntax tree of the statement and the meanings that the words of the question may have, and reports what is
// only in one of them: a value that the statement does not use, a filter that nobody asked for, another period, an aggregate
// that the words do not ask for, rows that a join repeats. A doubt is not an error: the package knows few words, and whoever
// wrote the statement may be right.
//
// Invariants:
//   - The package is pure.
//   - The text of a doubt contains words of the question, parts of the statement and names, and no other values.
package doubt

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/planner"
)

// Kind is what a doubt is about.
type Kind string

// The kinds.
const (
	Value    Kind = "value"    // a value that only the question or only the statement contains
	Number   Kind = "number"   // likewise
	Period   Kind = "period"   // likewise
	Negation Kind = "negation" // the question says "not", the statement does not
	Group    Kind = "group"    // what the rows are grouped by
	Function Kind = "function" // how they are aggregated
	Column   Kind = "column"   // a column or dataset that the question names is not used
	Role     Kind = "role"     // what does not add up is added up
	Repeated Kind = "repeated" // a join repeats rows that are counted or added up
	Opinion  Kind = "opinion"  // the planner interprets the question differently
	LeftOut  Kind = "leftOut"  // rows are not counted because they lack a row of another dataset
)

// Doubt is a difference between a question and a statement, or what a reader must know about the rows that it counts.
type Doubt struct {
	Kind  Kind   `json:"kind"`
	Text  string `json:"text"`            // a sentence
	Words string `json:"words,omitempty"` // of the question, or a part of the statement

	Indexed bool `json:"-"` // it tells that words are a value of the data
}

// Request is a statement, and the question that it should answer.
type Request struct {
	planner.Request

	Interpretation string          // what the author of the statement says about it
	Tree           json.RawMessage // of the statement
}

// mostDoubts limits the doubts about one statement.
const mostDoubts = 8

// Find returns the doubts about a statement; none if its tree cannot be read.
func Find(want Request) []Doubt {
	o := readTree(want.Tree)
	if o == nil || want.Question == "" {
		return nil
	}

	senses, isForeign := planner.Senses(want.Request)
	if len(senses) == 0 { // nothing of the question is understood
		return nil
	}

	a := &audit{Request: want, outline: o, senses: outermost(senses), isForeign: isForeign, schema: planner.Schema(want.Datasets)}
	a.words = wordsOf(want.Question + " " + want.Interpretation)
	a.collect()

	a.values()
	a.numbers()
	a.periods()
	a.columns()
	a.foreignColumns()
	a.repetition()
	a.idle()
	a.roles()

	if !isForeign {
		a.negations()
		a.functions()
		a.groupings()
		a.shown()
	}

	return a.found[:min(len(a.found), mostDoubts)]
}

// audit compares one statement with its question.
type audit struct {
	Request

	outline   *outline
	senses    []planner.Sense
	isForeign bool
	schema    *form.Schema
	words     []string // stems of the question and the interpretation

	used   []ref // columns of the statement, each once
	tables []string
	found  []Doubt
}

func (a *audit) add(kind Kind, words, text string) {
	if !slices.ContainsFunc(a.found, func(d Doubt) bool { return d.Text == text }) {
		a.found = append(a.found, Doubt{Kind: kind, Words: words, Text: text})
	}
}

// outermost leaves out the senses inside of a longer period, name or value: "per" in the column price per night, or "first"
// in the first half of 2025.
func outermost(senses []planner.Sense) []planner.Sense {
	return slices.DeleteFunc(slices.Clone(senses), func(s planner.Sense) bool {
		return slices.ContainsFunc(senses, func(o planner.Sense) bool {
			overlaps := o.At < s.End && s.At < o.End
			isLonger := o.At <= s.At && o.End >= s.End && o.End-o.At > s.End-s.At
			isName := o.Kind == planner.ColumnSense || o.Kind == planner.RowsSense || o.Kind == planner.ValueSense || o.Kind == planner.MeasureSense

			switch {
			case o.Kind == planner.PeriodSense && s.Kind == planner.WordSense && overlaps:
				return true
			case !isLonger, s.Word == "count": // a number of bookings is a count, even if there are booking numbers
				return false
			case o.Kind == planner.PeriodSense, o.Kind == planner.ValueSense:
				return true
			case o.Kind == planner.WordSense:
				return s.Kind == planner.WordSense
			default:
				return isName && o.Exact
			}
		})
	})
}

// collect lists what the statement uses.
func (a *audit) collect() {
	add := func(refs []ref) {
		for _, one := range refs {
			one.column = strings.ToLower(one.column)
			if !slices.Contains(a.used, one) {
				a.used = append(a.used, one)
			}
		}
	}

	for _, c := range a.outline.choices {
		for _, s := range c.sources {
			if s.table != "" {
				a.tables = append(a.tables, strings.ToLower(s.table))
			}
		}

		add(c.groups)
		add(c.outputs)

		for _, f := range c.filters {
			add(f.refs)
		}

		for _, one := range c.aggregates {
			add(one.refs)
		}

		for _, one := range c.orders {
			add(one.refs)
		}

		for _, pair := range c.pairs {
			add(pair[:])
		}

		for _, name := range c.using {
			add([]ref{{column: name}})
		}
	}
}

func (a *audit) usesColumn(name string) bool {
	return slices.ContainsFunc(a.used, func(r ref) bool { return r.column == strings.ToLower(name) })
}

func (a *audit) usesTable(name string) bool { return slices.Contains(a.tables, strings.ToLower(name)) }

// has returns the first operator of the question that is one of these, or nil.
func (a *audit) has(words ...string) *planner.Sense {
	for i, s := range a.senses {
		if s.Kind == planner.WordSense && slices.Contains(words, s.Word) {
			return &a.senses[i]
		}
	}

	return nil
}

// constants returns all values that the filters of the statement contain.
func (a *audit) constants() (list []constant) {
	for _, c := range a.outline.choices {
		for _, f := range c.filters {
			list = append(list, f.values...)
		}
	}

	return list
}

// wordsOf returns the stems of the words of a text.
func wordsOf(text string) (stems []string) {
	for word := range lexicon.KeyWords(text) {
		stems = append(stems, word.Text, lexicon.Stem(word.Text))
	}

	return stems
}

func sameDay(a, b time.Time) bool { return a.Format(time.DateOnly) == b.Format(time.DateOnly) }
