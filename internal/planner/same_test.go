package planner_test

import (
	"slices"
	"strconv"
	"strings"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/planner"
)

// explanation is what words of a question were taken for, and where they are.
type explanation struct {
	planner.Explained

	start, end int
}

// explanations returns what the words were taken for, in the order of the question.
func (c *checked) explanations() (list []explanation) {
	at := 0

	for _, e := range c.plan.Candidates[0].Explained {
		start := at + strings.Index(c.question[at:], e.Words)
		at = start + len(e.Words)
		list = append(list, explanation{e, start, at})
	}

	return list
}

func (c *checked) explained(w lexicon.Word) explanation {
	for _, e := range c.explanations() {
		if e.start <= w.Start && w.End <= e.end {
			return e
		}
	}

	return explanation{}
}

// sameWithout reports whether a word may be left out without another result: it repeats what other words say, or says
// what is meant without it, too.
func (c *checked) sameWithout(w lexicon.Word) bool {
	e, asked := c.explained(w), c.plan.Candidates[0].Form
	word := c.question[w.Start:w.End]
	isOnly := func(list ...form.Function) bool {
		return !slices.ContainsFunc(asked.Measures, func(m form.Measure) bool { return !slices.Contains(list, m.Function) })
	}

	switch e.As {
	case "which", "list", "across", "how much": // they ask, and restrict nothing
		return true
	case "share": // "what share of" is "share of"
		return strings.Contains(e.Words, " ") && c.isOther(e)
	case "and": // things are listed without it, too
		return true
	case "sum": // what adds up is added up
		return isOnly(form.Sum, form.Count)
	case "count": // rows are counted by groups
		return isOnly(form.Count) && len(asked.Groups) > 0
	case "distinct": // the number of values of a column is that of the different ones
		return isOnly(form.CountDistinct, form.Count)
	case "group", "by": // "per order by region", where a row is an order, is "per order region"
		return c.number("group", "by") > 1
	case "number": // the top are ten
		return word == "10" && asked.Limit == 10
	case "period": // a month that the data has once needs no year
		_, err := strconv.Atoi(word)

		return err == nil && len(word) == 4 && strings.Contains(e.Words, " ")
	case "rows": // the rows are known from elsewhere: by what is asked for, or by a column or value of theirs
		return strings.Contains(e.Words, " ") || e.Dataset == asked.Dataset || c.isNamed(e)
	case "column":
		// Part of a name names a column if no other column has it, a value implies its column, rows of a kind are the rows
		// of things of that kind ("Kitchen products"), and a dataset has a date that is meant without its name.
		return strings.Contains(e.Words, " ") || c.hasValue(e) || c.isOfKind(e) || c.roleOf(e) == meaning.Date
	default:
		return false
	}
}

// isOther reports whether words are more than one word of content.
func (c *checked) isOther(e explanation) bool { return len(strings.Fields(e.Words)) > 2 }

// number returns how many words were taken for one of several things.
func (c *checked) number(as ...string) (n int) {
	for _, e := range c.explanations() {
		if slices.Contains(as, e.As) {
			n++
		}
	}

	return n
}

// isNamed reports whether another word is a column or value of the same dataset.
func (c *checked) isNamed(e explanation) bool {
	return slices.ContainsFunc(c.explanations(), func(o explanation) bool {
		return o.Dataset == e.Dataset && (o.As == "column" || o.As == "value" || o.As == "measure")
	})
}

// hasValue reports whether a value of the column stands in the question.
func (c *checked) hasValue(e explanation) bool {
	return slices.ContainsFunc(c.explanations(), func(o explanation) bool {
		return o.As == "value" && o.Dataset == e.Dataset && o.Column == e.Column
	})
}

// isOfKind reports whether words are things after the value that says their kind.
func (c *checked) isOfKind(e explanation) bool {
	return strings.HasSuffix(e.Words, "s") && slices.ContainsFunc(c.explanations(), func(o explanation) bool {
		return o.As == "value" && o.Dataset == e.Dataset && o.end+1 == e.start
	})
}

func (c *checked) roleOf(e explanation) meaning.Role {
	for _, d := range c.set.datasets {
		if d.Name == e.Dataset {
			return d.Meaning.Columns[e.Column].Role
		}
	}

	return ""
}

// opposites returns words for the operators that mean something else.
func opposites() map[string][]string {
	return map[string][]string{
		"most": {"the fewest"}, "least": {"the most"}, "highest": {"the lowest"}, "lowest": {"the highest"}, "dearest": {"the cheapest"}, "cheapest": {"the most expensive"},
		"longest": {"the shortest"}, "shortest": {"the longest"}, "latest": {"the first"}, "earliest": {"the last"}, "top": {"bottom"}, "bottom": {"top"},
		"average": {"median", "total", "highest"}, "median": {"average"}, "sum": {"average", "median"}, "count": {"average", "share of"}, "share": {"number of"},
		">": {"less than", "at least"}, "<": {"more than"}, ">=": {"at most", "more than"}, "<=": {"at least"}, "after": {"before", "since"}, "before": {"after", "until"}, "since": {"before"},
		"dearer": {"cheaper than"}, "cheaper": {"more expensive than"}, "descending": {"ascending"}, "ascending": {"descending"}, "versus": {"without"}, "not": {"or"}, "without": {"with"},
	}
}

const mostOthers = 3 // words to put in place of one

// replace puts other words in the place of each word.
func (c *checked) replace() {
	for _, e := range c.explanations() {
		for _, other := range c.alternatives(e) {
			text := c.question[:e.start] + other + c.question[e.end:]
			c.counts.replaced++

			if c.sql(text) == c.plan.Candidates[0].SQL {
				c.fault("replaced "+e.As+" "+strings.ToLower(e.Words), text)
			}
		}
	}
}

// alternatives returns words that mean something else.
func (c *checked) alternatives(e explanation) (list []string) {
	switch e.As {
	case "value":
		list = c.set.others(e.Dataset, e.Column, e.Words)
		list = slices.DeleteFunc(list, func(v string) bool { return lexicon.Stem(lexicon.Key(v)) == lexicon.Stem(lexicon.Key(e.Words)) })
	case "number":
		if n, err := strconv.Atoi(e.Words); err == nil {
			list = []string{strconv.Itoa(n + 1)}
		}
	case "period":
		for _, year := range []string{"2024", "2025", "2026"} {
			if strings.Contains(e.Words, year) {
				list = append(list, strings.Replace(e.Words, year, "2019", 1))
			}
		}
	case "rows":
		for _, d := range c.set.datasets {
			if d.Name != e.Dataset {
				list = append(list, said(d.Name))
			}
		}
	case "column":
		list = c.otherColumns(e)
	default:
		list = opposites()[e.As]
	}

	return list[:min(len(list), mostOthers)]
}

// otherColumns returns the names of columns of the same dataset that could stand in the same place. The key of a dataset
// is called like its rows, and a column whose value is said may be said, too.
func (c *checked) otherColumns(e explanation) (list []string) {
	for _, d := range c.set.datasets {
		if d.Name != e.Dataset {
			continue
		}

		for _, o := range d.Columns {
			if isKey := slices.ContainsFunc(d.Keys, func(key []string) bool { return key[0] == o.Name }); isKey || c.hasValue(explanation{Explained: planner.Explained{Dataset: d.Name, Column: o.Name}}) {
				continue
			}

			if o.Name != e.Column && kindOf(d.Meaning.Columns[o.Name].Role) == kindOf(c.roleOf(e)) {
				list = append(list, said(o.Name))
			}
		}
	}

	return list
}
