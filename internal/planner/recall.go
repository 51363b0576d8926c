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
	Words   string // their stems, after the form of the question if it matters ("count: umsatz"); empty for a date, which holds for every time
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

// isIn reports whether one of the decisions gives the same words the same meaning.
func (d Decision) isIn(list []Decision) bool { return slices.ContainsFunc(list, d.same) }

// notIn returns the decisions that are not among others. Entries that decide nothing are left out.
func notIn(list, others []Decision) []Decision {
	return slices.DeleteFunc(slices.Clone(list), func(d Decision) bool { return d.As == "" || d.isIn(others) })
}

// Decided returns what the choice of one of the options decides: the words that the other options take for something else.
// It returns nil if the words do not tell the option from the others. Options in which all words mean the same, such as a number
// and a list, differ in something that no word says, which is not decided. A guess, such as a corrected typing error, is
// the only option and decides nothing: it is asked about each time.
func Decided(options [][]Explained, chosen int) (list []Decision) {
	all := decisions(options)
	own := all[chosen]

	for i, other := range all {
		differs := notIn(own, other)

		switch {
		case i == chosen || len(differs) == 0 && len(notIn(other, own)) == 0:
		case len(differs) == 0:
			return nil
		default:
			list = append(list, notIn(differs, list)...)
		}
	}

	return list
}

// decisions returns what each entry of each option decides.
func decisions(options [][]Explained) [][]Decision {
	all := make([][]Decision, len(options))
	figures, rows := map[string]bool{}, map[string]bool{} // by words

	for i, option := range options {
		for _, e := range option {
			d := decisionOf(e)
			all[i] = append(all[i], d)
			rows[d.Words] = rows[d.Words] || d.As == asRows
			figures[d.Words] = figures[d.Words] || d.As == asColumn || d.As == asMeasure
		}
	}

	// Whether a word means rows or a figure depends on what is asked of it: "how many" is about rows where "top 3 by" is about an
	// amount. Such a choice holds for questions of the same form only.
	for i, option := range options {
		for j := range all[i] {
			if d := &all[i][j]; rows[d.Words] && figures[d.Words] && d.As != "" {
				d.Words, d.Said = inRole(option, j, d.Words)
			}
		}
	}

	return all
}

// inRole returns the stems and the words of an entry together with what the question asks of them.
func inRole(option []Explained, at int, stems string) (words, said string) {
	said = option[at].Words

	for _, role := range [][]op{
		{opCount, opDistinct},
		{opTop, opBottom, opMost, opLeast, opHighest, opLowest, opOften, opSeller},
		{opShare},
		{opAverage},
		{opMedian},
		{opSum, opHowMuch},
		{opBy, opGroup},
		{opList, opWhich, opWho},
	} {
		for i, e := range option {
			asked := op(e.As)
			if compares(asked, opMost, opLeast) && strings.Contains(strings.ToLower(e.Words), "number") {
				asked = opCount
			}

			switch {
			case !slices.Contains(role, asked):
			case i < at:
				return string(role[0]) + ": " + stems, e.Words + " … " + said
			default:
				return string(role[0]) + ": " + stems, said + " … " + e.Words
			}
		}
	}

	return "alone: " + stems, said
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

// Recall removes the options that the caller decided against before, and the need to ask back if one is left. It marks the
// decided words as confirmed.
func (p *Plan) Recall(known []Decision) {
	if p.Outcome != AskBack {
		return
	}

	options := make([][]Explained, len(p.Candidates))
	for i, c := range p.Candidates {
		options[i] = c.Explained
	}

	var (
		all   = decisions(options)
		first []Decision // what the options that are left decide
		left  []Candidate
	)

	for i, c := range p.Candidates {
		decided := Decided(options, i)
		if len(decided) == 0 || len(notIn(decided, known)) > 0 {
			continue
		}

		if len(left) > 0 && len(notIn(decided, first)) > 0 { // the caller decided both
			return
		}

		c.recall(all[i], decided)
		first, left = decided, append(left, c)
	}

	switch len(left) {
	case 0:
	case 1:
		p.Outcome, p.Candidates = Answer, left
	default:
		p.Candidates = left
	}
}

// recall marks the decided words as confirmed and adds a note for each.
func (c *Candidate) recall(all, decided []Decision) {
	c.Explained, c.Notes = slices.Clone(c.Explained), slices.Clone(c.Notes)

	for i := range c.Explained {
		e := &c.Explained[i]
		if !all[i].isIn(decided) {
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
