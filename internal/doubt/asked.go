package doubt

import (
	"fmt"
	"slices"
	"strings"

	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/planner"
)

// superlatives are the operators that ask for the first rows of an order.
func superlatives() []string {
	return []string{
		"most", "least", "highest", "lowest", "dearest", "cheapest", "longest", "shortest", "best selling", "heaviest", "lightest", "latest", "earliest", "top", "bottom", "most often",
	}
}

// calls reports whether the statement calls one of these functions.
func (a *audit) calls(names ...string) bool {
	return slices.ContainsFunc(a.outline.choices, func(c *choice) bool {
		return slices.ContainsFunc(c.calls, func(name string) bool { return slices.Contains(names, name) }) ||
			slices.ContainsFunc(c.aggregates, func(one aggregate) bool { return slices.Contains(names, one.function) })
	})
}

// functions compares the aggregates of the statement with the words that ask for them.
func (a *audit) functions() {
	isAverage, isDivided := a.calls("avg", "mean"), a.calls("/", "//")
	average, share, superlative := a.has("average"), a.has("share"), a.has(superlatives()...)

	switch {
	case average != nil && !isAverage && !isDivided && !a.calls("median"):
		a.add(Function, average.Words, fmt.Sprintf("The question says %q. The statement calculates no average.", average.Words))
	case average == nil && isAverage && share == nil && a.has("group") == nil && !a.says("average", "avg", "mean", "typical", "typically", "expected") && !a.begins("durchschn", "mittel", "moyen"):
		a.add(Function, "avg", "The statement calculates an average. The question does not ask for one.")
	}

	if said := a.has("median"); said != nil && !a.calls("median", "quantile_cont", "quantile", "quantile_disc") {
		a.add(Function, said.Words, "The question asks for the median. The statement does not calculate it.")
	} else if said == nil && a.calls("median") {
		a.add(Function, "median", "The statement calculates a median. The question does not ask for one.")
	}

	if share != nil && !isDivided && !isAverage {
		a.add(Function, share.Words, fmt.Sprintf("The question says %q. The statement divides nothing.", share.Words))
	}

	if said := a.has("sum"); said != nil && !a.calls("sum", "fsum", "count", "count_star") && len(a.outline.outer.aggregates) > 0 {
		a.add(Function, said.Words, fmt.Sprintf("The question says %q. The statement adds nothing up.", said.Words))
	}

	if said := a.has("how much"); said != nil && average == nil && superlative == nil && !a.calls("sum", "count", "count_star") && a.calls("max", "min", "avg") {
		a.add(Function, said.Words, "The question asks how much. The statement adds nothing up.")
	}

	a.extremes(superlative)
	a.counts()
}

// begins reports whether a word of the question has one of these prefixes.
func (a *audit) begins(prefixes ...string) bool {
	return slices.ContainsFunc(a.words, func(word string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(word, prefix) })
	})
}

// says reports whether the question contains one of these words.
func (a *audit) says(words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(a.words, word) })
}

// extremes checks that the largest and smallest values are asked for, and in the right direction.
func (a *audit) extremes(superlative *planner.Sense) {
	isOrdered := a.calls("arg_max", "arg_min", "max_by", "min_by", "rank", "row_number", "dense_rank", "max", "min", "first", "last")
	for _, c := range a.outline.choices {
		isOrdered = isOrdered || len(c.orders) > 0 || c.windows
	}

	if superlative != nil && !isOrdered && !a.isNamed(superlative.Words) {
		a.add(Function, superlative.Words, fmt.Sprintf("The question says %q. The statement orders nothing.", superlative.Words))
	}

	isWhen := a.has("when", "since", "until", "after", "before", "between", "now", "still", "yet") != nil

	for _, c := range a.outline.choices {
		for _, one := range c.aggregates {
			if one.function != "max" && one.function != "min" || c != a.outline.outer {
				continue
			}

			up, down := a.has("highest", "most", "dearest", "longest", "latest", "top", "heaviest"), a.has("lowest", "least", "cheapest", "shortest", "earliest", "bottom", "lightest")

			switch {
			case superlative == nil && !isWhen && !a.says("range", "maximum", "minimum", "peak", "record", "up"):
				a.add(Function, one.function, fmt.Sprintf("The statement takes the %s. The question does not ask for it.", one.function))
			case up != nil && down == nil && one.function == "min" && !a.calls("max"):
				a.add(Function, up.Words, fmt.Sprintf("The question says %q. The statement takes the smallest value.", up.Words))
			case down != nil && up == nil && one.function == "max" && !a.calls("min"):
				a.add(Function, down.Words, fmt.Sprintf("The question says %q. The statement takes the largest value.", down.Words))
			}
		}
	}
}

// isNamed reports whether a word is part of the name of a column that the statement uses: highest_point.
func (a *audit) isNamed(words string) bool {
	return slices.ContainsFunc(wordsOf(words), func(stem string) bool {
		return slices.ContainsFunc(a.used, func(r ref) bool { return slices.Contains(lexicon.NameStems(r.column), stem) })
	})
}

// counts checks that the statement counts what the question asks to count.
func (a *audit) counts() {
	count := a.has("count", "distinct")

	for _, c := range a.outline.choices {
		for _, one := range c.aggregates {
			switch {
			case one.function == "count" && one.distinct && !a.names(one.refs) && a.has("distinct", "average", "group") == nil:
				a.add(Function, "count(DISTINCT)", fmt.Sprintf("The statement counts the different values of %s. The question does not ask for them.", one.refs[0].column))
			case one.function == "sum" && count != nil && one.direct && a.isMoney(one.refs[0].column) && !a.names(one.refs):
				a.add(Function, count.Words, fmt.Sprintf("The question says %q. The statement adds up %s.", count.Words, one.refs[0].column))
			}
		}
	}

	outer := a.outline.outer

	if said := a.has("distinct"); said != nil && len(outer.aggregates) > 0 && !outer.distinct && !outer.grouped && !slices.ContainsFunc(outer.aggregates, func(one aggregate) bool { return one.distinct }) && len(a.outline.choices) == 1 {
		a.add(Function, said.Words, fmt.Sprintf("The question says %q. The statement counts values more than once.", said.Words))
	}

	if count == nil || a.has("average", "share") != nil || a.has(superlatives()...) != nil {
		return
	}

	if len(outer.aggregates) > 0 && !a.calls("count", "count_star", "sum", "count_if") && !a.calls("/") {
		a.add(Function, count.Words, fmt.Sprintf("The question says %q. The statement counts nothing.", count.Words))
	}

	a.grain(count)
}

// grain checks that the counted rows belong to the dataset that the question counts.
func (a *audit) grain(count *planner.Sense) {
	nouns := a.after(count)
	isCounted := func(c *choice) bool {
		return slices.ContainsFunc(c.aggregates, func(one aggregate) bool { return one.function == "count_star" })
	}

	for _, c := range a.outline.choices {
		if !isCounted(c) || len(nouns) == 0 {
			continue
		}

		root := a.rootOf(c)
		if root == "" {
			continue
		}

		isRight := slices.ContainsFunc(nouns, func(s planner.Sense) bool {
			return s.Kind != planner.RowsSense && s.Kind != planner.ColumnSense || strings.EqualFold(s.Dataset, root) && (s.Kind == planner.RowsSense || s.Exact && !isThing(a.roleOf(s.Dataset, s.Column)) || a.isKey(s.Dataset, s.Column))
		})
		if !isRight && !c.grouped {
			a.add(Function, nouns[0].Words, fmt.Sprintf("The question counts %s. The statement counts rows of %s.", nouns[0].Words, root))
		}
	}
}

func isThing(role meaning.Role) bool {
	return role == meaning.Category || role == meaning.Name || role == meaning.Text || role == meaning.Identifier || role == meaning.Code
}

// after returns the meanings of the first name that follows an operator word in the question: those of "orders" in "how many orders".
func (a *audit) after(op *planner.Sense) (list []planner.Sense) {
	first := -1

	for _, s := range a.senses {
		isName := s.Kind == planner.RowsSense || s.Kind == planner.ColumnSense || s.Kind == planner.MeasureSense || s.Kind == planner.GrainSense || s.Kind == planner.ValueSense
		if !isName || s.At < op.End {
			continue
		}

		if first < 0 || s.At < first {
			first, list = s.At, nil
		}

		if s.At == first {
			list = append(list, s)
		}
	}

	// Words between the operator and the name may say something else: "how many of them paid by card".
	if first >= 0 && len(strings.Fields(a.Question[op.End:first])) > 1 {
		return nil
	}

	return list
}

// names reports whether the question names one of the columns, or the rows that they identify.
func (a *audit) names(refs []ref) bool {
	return slices.ContainsFunc(refs, func(r ref) bool {
		if a.mentions(r.column) {
			return true
		}

		return slices.ContainsFunc(a.senses, func(s planner.Sense) bool {
			switch s.Kind {
			case planner.ColumnSense:
				return strings.EqualFold(s.Column, r.column)
			case planner.MeasureSense:
				return slices.ContainsFunc(s.Columns, func(name string) bool { return strings.EqualFold(name, r.column) })
			case planner.RowsSense:
				return a.isKey(s.Dataset, r.column)
			default:
				return false
			}
		})
	})
}

// mentions reports whether a word of a column's name is a word of the question.
func (a *audit) mentions(column string) bool {
	return slices.ContainsFunc(lexicon.NameStems(column), func(stem string) bool {
		return len(stem) > 2 && slices.Contains(a.words, stem)
	})
}

func (a *audit) isMoney(column string) bool {
	for _, d := range a.schema.Datasets {
		for _, c := range d.Columns {
			if strings.EqualFold(c.Name, column) {
				return lexicon.IsMoney(c.Unit) || slices.ContainsFunc(lexicon.NameWords(column), lexicon.IsMoneyName) || c.Role == meaning.Price || c.Role == meaning.Share || isThing(c.Role)
			}
		}
	}

	return false
}

// groupings checks that the statement groups by what follows "by", "per" or "each" in the question.
func (a *audit) groupings() {
	isGrouped, isDivided := false, a.calls("/", "avg", "mean")
	for _, c := range a.outline.choices {
		isGrouped = isGrouped || len(c.groups) > 0 || c.distinct
	}

	for i, s := range a.senses {
		if s.Kind != planner.WordSense || s.Word != "group" && s.Word != "by" || a.isDone(s) {
			continue
		}

		by := a.after(&a.senses[i])

		isAsked := slices.ContainsFunc(by, func(o planner.Sense) bool {
			return o.Kind == planner.GrainSense || o.Kind == planner.RowsSense || o.Kind == planner.ColumnSense && !a.roleOf(o.Dataset, o.Column).IsFigure()
		})
		isOther := slices.ContainsFunc(by, func(o planner.Sense) bool {
			return o.Kind == planner.MeasureSense || o.Kind == planner.ValueSense || o.Kind == planner.ColumnSense && a.roleOf(o.Dataset, o.Column).IsFigure()
		})

		if isKind := len(by) > 0 && strings.HasPrefix(a.Question[by[0].End:], " of "); isKind || !isAsked || isOther || s.Word == "group" && isDivided && a.has("average", "share") != nil {
			continue
		}

		switch {
		case !isGrouped && len(a.outline.outer.aggregates) > 0:
			a.add(Group, s.Words+" "+by[0].Words, fmt.Sprintf("The question says %q. The statement has one group only.", s.Words+" "+by[0].Words))
		case isGrouped && !slices.ContainsFunc(by, a.isShown):
			a.add(Group, s.Words+" "+by[0].Words, fmt.Sprintf("The question says %q. The statement groups by something else.", s.Words+" "+by[0].Words))
		}
	}
}

// isShown reports whether the statement groups by or shows what a sense means.
func (a *audit) isShown(s planner.Sense) bool {
	if s.Kind == planner.GrainSense {
		return a.groupsDates() || slices.ContainsFunc(a.outline.choices, func(c *choice) bool {
			return slices.ContainsFunc(c.groups, func(r ref) bool { return a.isDate(r.column) })
		})
	}

	return slices.ContainsFunc(a.outline.choices, func(c *choice) bool {
		return slices.ContainsFunc(slices.Concat(c.groups, c.outputs), func(r ref) bool {
			if s.Kind == planner.ColumnSense {
				return strings.EqualFold(r.column, s.Column)
			}

			return a.isOf(s.Dataset, r.column)
		})
	})
}

func (a *audit) isDate(column string) bool {
	return slices.ContainsFunc(a.schema.Datasets, func(d formDataset) bool {
		return slices.ContainsFunc(d.Columns, func(c formColumn) bool {
			return strings.EqualFold(c.Name, column) && (c.Role == meaning.Date || c.Role == meaning.Year)
		})
	})
}
