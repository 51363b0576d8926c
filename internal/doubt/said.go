package doubt

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/planner"
)

// values compares the texts of the statement with the values that the question names, both ways.
func (a *audit) values() {
	for _, c := range a.outline.choices {
		for _, f := range c.filters {
			a.empties(c, f)

			for _, v := range f.values {
				if !v.isNumber && v.day.IsZero() && f.part == "" && !clock.MatchString(v.text) {
					a.given(f, v)
				}
			}
		}
	}

	for _, s := range a.senses {
		if s.Kind == planner.ValueSense && !a.isUsed(s) {
			a.add(Value, s.Words, fmt.Sprintf("The question says %q. The statement does not use it.", s.Words))
			a.found[len(a.found)-1].Indexed = true
		}
	}
}

var clock = regexp.MustCompile(`^\d{1,2}:\d{2}`)

// empties doubts a condition on empty values in a column that has none.
func (a *audit) empties(c *choice, f filter) {
	if f.is != "empty" || len(f.refs) != 1 || len(c.sources) != 1 {
		return
	}

	for _, d := range a.Datasets {
		for _, column := range d.Columns {
			if strings.EqualFold(d.Name, c.sources[0].table) && strings.EqualFold(column.Name, f.refs[0].column) && column.Distinct > 0 && column.Nulls == 0 {
				a.add(Value, f.refs[0].column, fmt.Sprintf("The statement asks for rows without %s. There are none.", f.refs[0].column))
				a.found[len(a.found)-1].Indexed = true
			}
		}
	}
}

// given checks a text of the statement: the question must say it, and mean the column that it is compared with.
func (a *audit) given(f filter, v constant) {
	column := ""
	if len(f.refs) > 0 {
		column = f.refs[0].column
	}

	if a.isTotal(column, v.text) {
		return
	}

	if isYes, isNo := isYes(v.text), isNo(v.text); isYes || isNo {
		a.flag(f, column, isNo)

		return
	}

	if !a.covers(v.text) {
		a.add(Value, v.text, fmt.Sprintf("The statement compares %s with %q. The question does not say that.", column, v.text))

		return
	}

	if f.is == "=" && !a.mayContain(f, v.text) {
		a.add(Value, v.text, fmt.Sprintf("The statement compares %s with %q, which is not one of its values.", column, v.text))
		a.found[len(a.found)-1].Indexed = true

		return
	}

	// The value is one of another column.
	said := slices.DeleteFunc(slices.Clone(a.senses), func(s planner.Sense) bool {
		return s.Kind != planner.ValueSense || !strings.EqualFold(s.Value, v.text)
	})

	isAny := slices.ContainsFunc(said, func(s planner.Sense) bool { return strings.EqualFold(s.Column, column) })
	if len(said) > 0 && !isAny && a.isColumn(column) && f.is != "like" {
		a.add(Value, v.text, fmt.Sprintf("The statement compares %s with %q, which is not one of its values.", column, v.text))
		a.found[len(a.found)-1].Indexed = true
	}
}

// mayContain reports whether a value may occur in the column of a filter. It is sure only for columns with few values.
func (a *audit) mayContain(f filter, value string) bool {
	if len(f.refs) != 1 {
		return true
	}

	isKnown := false

	for _, d := range a.Datasets {
		for _, c := range d.Columns {
			if !strings.EqualFold(c.Name, f.refs[0].column) || !a.usesTable(d.Name) {
				continue
			}

			if c.Distinct == 0 || int64(len(c.Values)) < c.Distinct || slices.ContainsFunc(c.Values, func(v any) bool { return strings.EqualFold(fmt.Sprint(v), value) }) {
				return true
			}

			isKnown = true
		}
	}

	return !isKnown
}

func isYes(text string) bool {
	return slices.Contains([]string{"y", "yes", "j", "ja", "true", "t", "o", "oui", "1"}, strings.ToLower(text))
}

func isNo(text string) bool {
	return slices.Contains([]string{"n", "no", "nein", "false", "f", "non", "0"}, strings.ToLower(text))
}

// flag checks a condition on a column of yes and no: whether the question negates it.
func (a *audit) flag(f filter, column string, isNo bool) {
	if a.isForeign || len(f.values) != 1 {
		return
	}

	isNegated := isNo != f.negated
	if said := a.has("not", "without", "never", "yet", "still"); (said != nil) != isNegated && !strings.HasPrefix(strings.ToLower(column), "no") {
		if said == nil && a.saysNegated() {
			return
		}

		a.add(Value, f.values[0].text, fmt.Sprintf("The statement asks for %s %q. The question seems to ask for the opposite.", column, f.values[0].text))
	}
}

// saysNegated reports whether a word of the question has a negative meaning: "unpaid", "outstanding", "open".
func (a *audit) saysNegated() bool {
	return slices.ContainsFunc(a.words, func(word string) bool {
		return strings.HasPrefix(word, "un") || strings.HasPrefix(word, "non") || slices.Contains([]string{"open", "outstanding", "pending", "lack", "fail", "left", "leaving", "excluded", "minus", "net"}, word)
	})
}

// isTotal reports whether a value marks rows that are sums of others. Leaving them out needs no word.
func (a *audit) isTotal(column, value string) bool {
	if slices.Contains([]string{"total", "totals", "sum", "summe", "gesamt", "grand total", "subtotal"}, strings.ToLower(value)) {
		return true
	}

	return slices.ContainsFunc(a.Datasets, func(d planner.Dataset) bool {
		return slices.ContainsFunc(d.Totals, func(m planner.Match) bool { return strings.EqualFold(m.Column, column) && m.Value == value })
	})
}

func (a *audit) isColumn(name string) bool {
	return slices.ContainsFunc(a.schema.Datasets, func(d formDataset) bool {
		return slices.ContainsFunc(d.Columns, func(c formColumn) bool { return strings.EqualFold(c.Name, name) })
	})
}

// covers reports whether words of the question or the interpretation say a text of the statement.
func (a *audit) covers(value string) bool {
	if slices.ContainsFunc(a.senses, func(s planner.Sense) bool { return s.Kind == planner.ValueSense && strings.EqualFold(s.Value, value) }) {
		return true
	}

	folded := lexicon.Key(a.Question + " " + a.Interpretation)
	key := lexicon.Key(strings.Trim(value, "%_ "))

	if key == "" || strings.Contains(folded, key) {
		return true
	}

	if letters := lexicon.Letters(value); len(letters) >= 4 && strings.Contains(lexicon.Letters(a.Question+" "+a.Interpretation), letters) {
		return true
	}

	for word := range strings.FieldsSeq(key) {
		isSaid := slices.Contains(a.words, word) || slices.Contains(a.words, lexicon.Stem(word)) || slices.ContainsFunc(a.words, func(said string) bool {
			return len(word) >= 2 && len(said) > len(word) && (lexicon.Abbreviates(word, said) || isShort(word, said)) || len(word) >= 4 && len(said) >= 4 && (strings.HasPrefix(said, word) || strings.HasPrefix(word, said))
		})
		if isSaid {
			return true
		}

		for _, long := range lexicon.Expand(word) {
			if slices.Contains(a.words, long) || slices.Contains(a.words, lexicon.Stem(long)) {
				return true
			}
		}
	}

	return a.isInitials(key)
}

// isShort reports whether a code consists of letters of a word in their order, beginning with the first. An X often stands
// for what is struck out: CXL is cancelled.
func isShort(code, word string) bool {
	if len(code) < 3 || len(code) > 5 || code[0] != word[0] {
		return false
	}

	at := 0

	for i := 0; i < len(word) && at < len(code); i++ {
		if code[at] == 'x' && at > 0 {
			at++
		}

		if at < len(code) && code[at] == word[i] {
			at++
		}
	}

	return at == len(code)
}

// isInitials reports whether a short value consists of the first letters of words of the question.
func (a *audit) isInitials(key string) bool {
	if len(key) < 2 || len(key) > 4 {
		return false
	}

	var first strings.Builder
	for word := range lexicon.KeyWords(a.Question) {
		first.WriteByte(word.Text[0])
	}

	return strings.Contains(first.String(), key)
}

// isUsed reports whether the statement uses a value that the question says, or the words may mean something else.
func (a *audit) isUsed(s planner.Sense) bool {
	for _, o := range a.senses {
		overlaps := o.At < s.End && s.At < o.End
		if !overlaps {
			continue
		}

		if o.Kind != planner.ValueSense || a.isBeside(o) {
			return true
		}

		isCompared := slices.ContainsFunc(a.constants(), func(c constant) bool {
			written := strings.ToLower(strings.Trim(c.text, "%"))

			return written == strings.ToLower(o.Value) || len(written) >= 3 && (strings.Contains(strings.ToLower(o.Value), written) || strings.Contains(written, strings.ToLower(o.Value)))
		})
		if isCompared || a.isGrouped(o.Column) {
			return true
		}
	}

	return false
}

// isBeside reports whether the word before a value is part of the name of a column that the statement uses: the card in
// "loyalty card" is no means of payment.
func (a *audit) isBeside(s planner.Sense) bool {
	before := strings.Fields(a.Question[:s.At])
	if len(before) == 0 || !strings.HasSuffix(a.Question[:s.At], " ") {
		return false
	}

	stem := lexicon.Stem(strings.ToLower(before[len(before)-1]))

	return len(stem) > 3 && slices.ContainsFunc(a.used, func(r ref) bool { return slices.Contains(lexicon.NameStems(r.column), stem) })
}

// isGrouped reports whether the statement shows its rows by a column.
func (a *audit) isGrouped(column string) bool {
	return slices.ContainsFunc(a.outline.choices, func(c *choice) bool {
		return slices.ContainsFunc(c.groups, func(r ref) bool { return strings.EqualFold(r.column, column) })
	})
}

// numbers compares the numbers of the statement with those of the question, both ways.
func (a *audit) numbers() {
	said := a.saidNumbers()

	for _, s := range a.senses {
		isPart := slices.ContainsFunc(a.senses, func(o planner.Sense) bool {
			return o.Kind != planner.NumberSense && o.Kind != planner.WordSense && o.At < s.End && s.At < o.End
		})
		if s.Kind == planner.NumberSense && !s.IsYear && !isPart && s.Number != 1 && !a.usesNumber(s.Number) {
			a.add(Number, s.Words, fmt.Sprintf("The question says %s. The statement does not use it.", s.Words))
		}
	}

	for _, c := range a.outline.choices {
		for _, f := range c.filters {
			for _, v := range f.values {
				if !v.isNumber || f.part != "" || v.number == 0 || v.number == 1 || isSaid(said, v.number) {
					continue
				}

				if isYearNumber(v.number) && a.saysYear(int(v.number)) {
					continue
				}

				a.add(Number, v.text, fmt.Sprintf("The statement compares with %s. The question does not say that.", v.text))
			}
		}
	}
}

func isYearNumber(n float64) bool { return n >= 1700 && n <= 2100 && n == math.Trunc(n) }

func isSaid(said []float64, number float64) bool {
	return slices.ContainsFunc(said, func(n float64) bool { return n == number || n/100 == number || n*100 == number })
}

func (a *audit) saidNumbers() (list []float64) {
	for _, s := range a.senses {
		if s.Kind == planner.NumberSense {
			list = append(list, s.Number)
		}
	}

	return list
}

func (a *audit) usesNumber(number float64) bool {
	for _, c := range a.outline.choices {
		if c.limit == number {
			return true
		}
	}

	return slices.ContainsFunc(a.constants(), func(c constant) bool {
		return c.isNumber && isSaid([]float64{number}, c.number) || strings.Contains(c.text, fmt.Sprint(number))
	})
}

// periods compares the dates of the statement with the periods of the question.
func (a *audit) periods() {
	var spans []planner.Sense

	for _, s := range a.senses {
		if s.Kind == planner.PeriodSense {
			spans = append(spans, s)
		}
	}

	dated := false

	for _, c := range a.outline.choices {
		for _, f := range c.filters {
			for _, v := range f.values {
				isDate := !v.day.IsZero() || slices.Contains([]string{"year", "month", "quarter"}, f.part)
				dated = dated || isDate || v.isNumber && isYearNumber(v.number) || f.opaque

				if isDate && !a.isWithin(spans, f, v) {
					a.add(Period, v.text, a.periodText(spans, f, v))
				}
			}

			dated = dated || f.opaque || f.part != ""
		}
	}

	if len(spans) == 0 || dated {
		return
	}

	// The words may mean something else, or the rows may be shown by the period.
	for _, s := range spans {
		isOther := slices.ContainsFunc(a.senses, func(o planner.Sense) bool {
			return o.Kind != planner.PeriodSense && o.Kind != planner.NumberSense && o.Kind != planner.GrainSense && o.At < s.End && s.At < o.End
		})
		if !isOther && !a.groupsDates() {
			a.add(Period, s.Words, fmt.Sprintf("The question says %q. The statement has no such period.", s.Words))
		}
	}
}

func (a *audit) periodText(spans []planner.Sense, f filter, v constant) string {
	part := ""
	if f.part != "" && !strings.HasPrefix(f.part, "trunc") {
		part = f.part + " "
	}

	if len(spans) == 0 {
		return fmt.Sprintf("The statement restricts the time by %s%s. The question names no period.", part, v.text)
	}

	return fmt.Sprintf("The statement restricts the time by %s%s, which does not fit %q.", part, v.text, spans[0].Words)
}

// groupsDates reports whether the statement groups by a date or a part of one.
func (a *audit) groupsDates() bool {
	return slices.ContainsFunc(a.outline.choices, func(c *choice) bool {
		return slices.ContainsFunc(c.calls, func(name string) bool {
			return slices.Contains([]string{"date_trunc", "year", "month", "quarter", "date_part", "strftime", "week", "monthname"}, name)
		})
	})
}

// isWithin reports whether a date of the statement is a limit of a period of the question.
func (a *audit) isWithin(spans []planner.Sense, f filter, v constant) bool {
	if len(spans) == 0 && a.has("now", "latest", "still", "yet", "earliest") != nil || a.isForeign && len(spans) == 0 {
		return true
	}

	return slices.ContainsFunc(spans, func(s planner.Sense) bool {
		if v.isNumber {
			return fitsPart(s, f.part, int(v.number))
		}

		return v.day.IsZero() || a.limits(s, v.day)
	}) || v.isNumber && isSaid(a.saidNumbers(), v.number) && (f.part == "year" || f.part == "day")
}

// fitsPart reports whether a part of a date belongs to a period.
func fitsPart(s planner.Sense, part string, number int) bool {
	from, last := s.Period.From, s.Period.To.AddDate(0, 0, -1)

	switch part {
	case "year":
		return s.Month == 0 && (from.IsZero() || number >= from.Year()) && (s.Period.To.IsZero() || number <= last.Year())
	case "month":
		return s.Month == time.Month(number) || s.Month == 0 && (from.Month() == time.Month(number) || last.Month() == time.Month(number))
	case "quarter":
		return quarter(from) == number || quarter(last) == number || s.Month != 0
	default:
		return true
	}
}

func quarter(day time.Time) int { return (int(day.Month())-1)/3 + 1 }

// limits reports whether a day is the first or last day of a period, or the day before or after it.
func (a *audit) limits(s planner.Sense, day time.Time) bool {
	if s.Month != 0 {
		next := day.AddDate(0, 0, 1)

		return day.Month() == s.Month || day.Day() == 1 && day.AddDate(0, 0, -1).Month() == s.Month || next.Day() == 1 && next.Month() == s.Month
	}

	from, to := s.Period.From, s.Period.To
	for _, limit := range []time.Time{from, to, from.AddDate(0, 0, -1), to.AddDate(0, 0, -1)} {
		if sameDay(limit, day) {
			return true
		}
	}

	// "So far this year", "in the last months".
	today := a.Today
	contains := !from.After(today) && (to.IsZero() || to.After(today))

	return contains && (sameDay(day, today) || sameDay(day, today.AddDate(0, 0, 1)))
}

func (a *audit) saysYear(year int) bool {
	return slices.ContainsFunc(a.senses, func(s planner.Sense) bool { return s.Kind == planner.PeriodSense && fitsPart(s, "year", year) })
}

// negations checks that the statement negates something if the question does.
func (a *audit) negations() {
	said := a.has("not", "without", "never")
	if said == nil {
		return
	}

	isNegated := slices.ContainsFunc(a.outline.others, func(kind string) bool { return strings.Contains(kind, "EXCEPT") })

	for _, c := range a.outline.choices {
		isNegated = isNegated || slices.ContainsFunc(c.filters, func(f filter) bool {
			isFlag := slices.ContainsFunc(f.values, func(v constant) bool { return isNo(v.text) })

			return f.negated || f.is == "empty" || f.is == "filled" || isFlag
		})

		// The result has both the rows with and those without the value.
		isNegated = isNegated || slices.ContainsFunc(c.groups, func(r ref) bool { return a.roleIn(c, r) == meaning.Flag })

		// What is left out may also be what is asked for by its value: "without refunds" is status = 'paid'.
		isNegated = isNegated || slices.ContainsFunc(c.filters, func(f filter) bool {
			return len(f.values) > 0 && !f.values[0].isNumber && f.values[0].day.IsZero() && f.is == "="
		})
	}

	if !isNegated {
		a.add(Negation, said.Words, fmt.Sprintf("The question says %q. The statement leaves nothing out.", said.Words))
	}
}
