package planner

import (
	"fmt"
	"slices"
	"strings"
)

const (
	asColumn  = "column"
	asMeasure = "measure"
	asPeriod  = "period"
	asRows    = "rows"
	asValue   = "value"
	asGrain   = "grain"
	asDate    = "date"

	guessed   = "guessed"
	confirmed = "confirmed"
)

// Decision is what a person decides by choosing an option: what words mean.
type Decision struct {
	Words   string // their stems; empty for a date, which holds for every time
	Said    string // the words as they were written
	As      string // column, value, rows, measure, best selling or date
	Dataset string
	Column  string
}

// same reports whether two decisions give the same words the same meaning.
func (d Decision) same(o Decision) bool {
	d.Said = o.Said

	return d == o
}

// Decided returns what the choice of one of the options decides: the words that the other options take for something else.
// It returns nil if the words do not tell the option from the others. A guess, such as a corrected typing error, is the only
// option and decides nothing: it is asked about each time.
func Decided(options [][]Explained, chosen int) (list []Decision) {
	own := options[chosen]

	for i, other := range options {
		if i == chosen {
			continue
		}

		var isOther bool

		for _, e := range own {
			d := decisionOf(e)
			if d.As == "" || slices.ContainsFunc(other, func(o Explained) bool { return decisionOf(o).same(d) }) {
				continue
			}

			if isOther = true; !slices.ContainsFunc(list, d.same) {
				list = append(list, d)
			}
		}

		if !isOther {
			return nil
		}
	}

	return list
}

// decisionOf returns what an entry decides. As is empty if it decides nothing that can be remembered.
func decisionOf(e Explained) Decision {
	switch {
	case e.As == asColumn && e.Column != "", e.As == asValue && e.How != guessed, e.As == asRows, e.As == asMeasure, e.As == string(opSeller) && e.Column != "":
		return Decision{strings.Join(stemsOf(e.Words), " "), e.Words, e.As, e.Dataset, e.Column}
	case (e.As == asPeriod || e.As == asGrain) && e.Column != "":
		return Decision{"", e.Words, asDate, e.Dataset, e.Column}
	default:
		return Decision{}
	}
}

// Recall removes the need to ask back if the caller decided the question before. It marks the decided words as confirmed.
func (p *Plan) Recall(known []Decision) {
	if p.Outcome != AskBack {
		return
	}

	options := make([][]Explained, len(p.Candidates))
	for i, c := range p.Candidates {
		options[i] = c.Explained
	}

	var found []int

	for i := range options {
		decided := Decided(options, i)
		if len(decided) > 0 && !slices.ContainsFunc(decided, func(d Decision) bool { return !slices.ContainsFunc(known, d.same) }) {
			found = append(found, i)
		}
	}

	if len(found) != 1 {
		return
	}

	chosen := p.Candidates[found[0]]
	chosen.recall(Decided(options, found[0]))
	p.Outcome, p.Candidates = Answer, []Candidate{chosen}
}

// recall marks the decided words as confirmed and adds a note for each.
func (c *Candidate) recall(decided []Decision) {
	c.Explained, c.Notes = slices.Clone(c.Explained), slices.Clone(c.Notes)

	for i := range c.Explained {
		e := &c.Explained[i]
		if !slices.ContainsFunc(decided, decisionOf(*e).same) {
			continue
		}

		e.How = confirmed

		name := e.Dataset
		if e.Column != "" {
			name += "." + e.Column
		}

		c.Notes = append(c.Notes, fmt.Sprintf("You chose before that %q means %s.", e.Words, name))
	}
}
