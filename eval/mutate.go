package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// mutation is a way in which a right statement is made wrong.
type mutation string

const (
	dropped   mutation = "filter dropped"
	otherText mutation = "wrong value"
	otherName mutation = "wrong column"
	otherCall mutation = "wrong aggregate"
	repeated  mutation = "join doubled"
	shifted   mutation = "period shifted"
)

func mutations() []mutation {
	return []mutation{dropped, otherText, otherName, otherCall, repeated, shifted}
}

// knownTable is what mutations know about a table.
type knownTable struct {
	name    string
	columns []knownColumn
}

type knownColumn struct {
	name, class string   // the class is number, date or text
	values      []string // some values of a text
}

// pieces matches the parts of a statement: texts, names with and without quotes, numbers and signs.
var pieces = regexp.MustCompile(`'(?:[^']|'')*'|"(?:[^"]|"")*"|[\pL_][\pL\pN_]*|\d+(?:\.\d+)?|<>|!=|<=|>=|\|\||::|\s+|.`)

// mutant is a statement in pieces.
type mutant struct {
	pieces []string
	tables []knownTable
}

func newMutant(statement string, tables []knownTable) mutant {
	return mutant{pieces.FindAllString(statement, -1), tables}
}

// mutate returns wrong versions of a statement. Some may be right by chance or fail: the caller runs them.
func (m mutant) mutate(kind mutation) []string {
	switch kind {
	case dropped:
		return m.withoutCondition()
	case otherText:
		return m.withOtherValue()
	case otherName:
		return m.withOtherColumn()
	case otherCall:
		return m.withOtherFunction()
	case repeated:
		return m.withRepeatedRows()
	default:
		return m.withOtherPeriod()
	}
}

// is reports whether the piece at an index is one of the words or signs.
func (m mutant) is(at int, words ...string) bool {
	return at >= 0 && at < len(m.pieces) && slices.ContainsFunc(words, func(word string) bool { return strings.EqualFold(m.pieces[at], word) })
}

// next returns the index of the piece after at that is not white space, or before it if step is -1.
func (m mutant) next(at, step int) int {
	for {
		if at += step; at < 0 || at >= len(m.pieces) || strings.TrimSpace(m.pieces[at]) != "" {
			return at
		}
	}
}

// with returns the statement with other pieces from one index to another.
func (m mutant) with(from, to int, text string) string {
	return strings.Join(m.pieces[:from], "") + text + strings.Join(m.pieces[to:], "")
}

// clause returns the end of a condition that begins at an index, and where its AND stand.
func (m mutant) clause(begin int) (end int, ands []int) {
	depth, between := 0, false

	for end = begin; end < len(m.pieces); end++ {
		switch {
		case m.is(end, "("):
			depth++
		case m.is(end, ")") && depth == 0:
			return end, ands
		case m.is(end, ")"):
			depth--
		case depth > 0:
		case m.is(end, "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "QUALIFY", ";"):
			return end, ands
		case m.is(end, "BETWEEN"):
			between = true
		case m.is(end, "AND") && between:
			between = false
		case m.is(end, "AND"):
			ands = append(ands, end)
		}
	}

	return end, ands
}

// withoutCondition leaves out one of the conditions of a WHERE, FILTER or HAVING.
func (m mutant) withoutCondition() (list []string) {
	for at := range m.pieces {
		isFilter := m.is(at, "FILTER") && m.is(m.next(at, 1), "(")
		begin := at + 1

		if isFilter {
			begin = m.next(at, 1) + 1
		}

		if !isFilter && !m.is(at, "WHERE", "HAVING") || m.is(at, "WHERE") && m.is(m.next(at, -1), "(") && m.is(m.next(m.next(at, -1), -1), "FILTER") {
			continue
		}

		end, ands := m.clause(begin)

		if len(ands) == 0 && isFilter {
			list = append(list, m.with(at, end+1, ""))
		} else if len(ands) == 0 {
			list = append(list, m.with(at, end, " "))
		}

		for i, and := range ands {
			last := end
			if i+1 < len(ands) {
				last = ands[i+1]
			}

			list = append(list, m.with(and, last, " "))

			if i == 0 {
				list = append(list, m.with(begin, and+1, " "))
			}
		}
	}

	return list
}

var dayText = regexp.MustCompile(`^'\d{4}-\d{2}-\d{2}`)

// withOtherValue compares with another value of the same column or another number.
func (m mutant) withOtherValue() (list []string) {
	for at, piece := range m.pieces {
		switch {
		case strings.HasPrefix(piece, "'") && !dayText.MatchString(piece):
			for _, value := range m.valuesFor(at) {
				if !strings.EqualFold(value, strings.Trim(piece, "'%")) {
					list = append(list, m.with(at, at+1, literal(value)))
				}
			}
		case piece[0] >= '0' && piece[0] <= '9' && (m.isCompared(at) && !m.isYear(at) || m.is(m.next(at, -1), "LIMIT") && piece != "1"):
			if number, err := strconv.ParseFloat(piece, 64); err == nil {
				list = append(list, m.with(at, at+1, strconv.FormatFloat(number*2+1, 'f', -1, 64)))
			}
		}
	}

	return list
}

// isCompared reports whether a number is compared with a column, and not with a part of a date.
func (m mutant) isCompared(at int) bool {
	sign := m.next(at, -1)

	return m.is(sign, "=", "<", ">", "<=", ">=", "<>", "BETWEEN") && !m.isDatePart(m.next(sign, -1))
}

// isDatePart reports whether the parenthesis at an index closes a call that takes a part of a date.
func (m mutant) isDatePart(at int) bool {
	if !m.is(at, ")") {
		return false
	}

	for at > 0 && !m.is(at, "(") {
		at--
	}

	return m.is(m.next(at, -1), "year", "month", "quarter", "extract", "date_part")
}

func (m mutant) isYear(at int) bool {
	number, err := strconv.Atoi(m.pieces[at])

	return err == nil && number >= 1900 && number <= 2100
}

// valuesFor returns values of the column that a text is compared with.
func (m mutant) valuesFor(at int) []string {
	for before := at - 1; before >= 0 && before > at-20; before-- {
		name := strings.Trim(m.pieces[before], `"`)

		for _, t := range m.tables {
			for _, c := range t.columns {
				if strings.EqualFold(c.name, name) && len(c.values) > 0 {
					return c.values
				}
			}
		}
	}

	return nil
}

// withOtherColumn uses another column of the same table and class, wherever the statement names the first.
func (m mutant) withOtherColumn() (list []string) {
	seen := map[string]bool{}

	for at, piece := range m.pieces {
		name := strings.ToLower(strings.Trim(piece, `"`))
		if seen[name] || m.isKey(name) || m.is(m.next(at, -1), "AS", "FROM", "JOIN") || m.is(m.next(at, 1), "(") {
			continue
		}

		seen[name] = true

		for _, t := range m.tables {
			for _, c := range t.columns {
				if strings.EqualFold(c.name, name) {
					list = append(list, m.renamed(t, c)...)
				}
			}
		}
	}

	return list
}

// isKey reports whether the statement joins by a column of this name.
func (m mutant) isKey(name string) bool {
	for at := range m.pieces {
		if !m.is(at, name) && !m.is(at, `"`+name+`"`) {
			continue
		}

		for before := m.next(at, -1); before > 0 && before > at-12 && !m.is(before, "JOIN", "WHERE", "SELECT", "BY"); before-- {
			if m.is(before, "USING", "ON") {
				return true
			}
		}
	}

	return false
}

func (m mutant) renamed(t knownTable, c knownColumn) (list []string) {
	for _, other := range t.columns {
		if other.class != c.class || other.name == c.name || strings.Contains(strings.ToLower(strings.Join(m.pieces, "")), strings.ToLower(other.name)) {
			continue
		}

		changed := slices.Clone(m.pieces)
		for i, piece := range changed {
			if strings.EqualFold(strings.Trim(piece, `"`), c.name) && !strings.HasPrefix(piece, "'") {
				changed[i] = `"` + other.name + `"`
			}
		}

		list = append(list, strings.Join(changed, ""))
	}

	return list
}

// withOtherFunction uses another aggregate function.
func (m mutant) withOtherFunction() (list []string) {
	others := map[string][]string{"sum": {"avg", "max"}, "avg": {"sum", "max"}, "max": {"min"}, "min": {"max"}, "median": {"avg"}, "count": {}}

	for at, piece := range m.pieces {
		found, isCall := others[strings.ToLower(piece)]
		if !isCall || !m.is(m.next(at, 1), "(") {
			continue
		}

		for _, other := range found {
			list = append(list, m.with(at, at+1, other))
		}

		inside := m.next(m.next(at, 1), 1)

		switch {
		case !m.is(at, "count"):
		case m.is(inside, "DISTINCT"):
			list = append(list, m.with(inside, inside+1, ""))
		case m.is(inside, "*"):
			for _, t := range m.tables {
				for _, c := range t.columns {
					if c.class == "number" {
						list = append(list, m.with(at, inside+1, "sum("+strconv.Quote(c.name)))
					} else {
						list = append(list, m.with(at, inside+1, "count(DISTINCT "+strconv.Quote(c.name)))
					}
				}
			}
		}
	}

	return list
}

// withRepeatedRows joins another table, or the same once more, over a column whose values repeat, and leaves out a
// DISTINCT that a join needs.
func (m mutant) withRepeatedRows() (list []string) {
	for at := range m.pieces {
		if m.is(at, "DISTINCT") && slices.ContainsFunc(m.pieces, func(piece string) bool { return strings.EqualFold(piece, "JOIN") }) {
			list = append(list, m.with(at, at+1, ""))
		}

		if !m.is(at, "FROM") {
			continue
		}

		table := m.next(at, 1)
		alias, end := table, table+1

		if next := m.next(table, 1); m.is(next, "AS") {
			alias = m.next(next, 1)
			end = alias + 1
		} else if next < len(m.pieces) && regexp.MustCompile(`^[\pL_]`).MatchString(m.pieces[next]) && !m.is(next, "JOIN", "WHERE", "GROUP", "ORDER", "LEFT", "FULL", "INNER", "LIMIT", "HAVING") {
			alias, end = next, next+1
		}

		list = append(list, m.joined(table, alias, end)...)
	}

	return list
}

// joined returns the statement with one more join after the table at an index.
func (m mutant) joined(table, alias, end int) (list []string) {
	name := strings.Trim(m.pieces[min(table, len(m.pieces)-1)], `"`)

	var own *knownTable

	for i, t := range m.tables {
		if strings.EqualFold(t.name, name) {
			own = &m.tables[i]
		}
	}

	if own == nil {
		return nil
	}

	for _, again := range slices.Concat(m.tables, []knownTable{*own}) {
		for _, c := range own.columns {
			isShared := slices.ContainsFunc(again.columns, func(other knownColumn) bool { return strings.EqualFold(other.name, c.name) })
			if !isShared || c.class == "number" && again.name == own.name {
				continue
			}

			list = append(list, m.with(end, end, fmt.Sprintf(` JOIN (SELECT "%s" AS again_key FROM "%s") AS again ON %s."%s" = again.again_key `, c.name, again.name, m.pieces[alias], c.name)))
		}
	}

	return list
}

// withOtherPeriod shifts all dates by a month or a year, or the part of a date that is compared.
func (m mutant) withOtherPeriod() (list []string) {
	for _, by := range [][2]int{{0, -1}, {-1, 0}, {0, 1}} {
		changed, isShifted := slices.Clone(m.pieces), false

		for i, piece := range changed {
			if !dayText.MatchString(piece) {
				continue
			}

			day, err := time.Parse(time.DateOnly, piece[1:11])
			if err != nil {
				continue
			}

			// The last day of a month stays the last one.
			moved := day.AddDate(by[0], by[1], 0)
			if day.AddDate(0, 0, 1).Day() == 1 {
				moved = day.AddDate(0, 0, 1).AddDate(by[0], by[1], 0).AddDate(0, 0, -1)
			}

			changed[i], isShifted = "'"+moved.Format(time.DateOnly)+piece[11:], true
		}

		if isShifted {
			list = append(list, strings.Join(changed, ""))
		}
	}

	for at := range m.pieces {
		sign := m.next(at, -1)
		if number, err := strconv.Atoi(m.pieces[at]); err == nil && (m.isYear(at) && m.is(sign, "=", "<", ">", "<=", ">=", "(", ",") || m.is(sign, "=", "<=", ">=", "<", ">") && m.isDatePart(m.next(sign, -1))) {
			list = append(list, m.with(at, at+1, strconv.Itoa(number-1)), m.with(at, at+1, strconv.Itoa(number+1)))
		}
	}

	return list
}
