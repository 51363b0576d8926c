package query

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
)

// positioned is a fault of a statement at a place in it.
type positioned struct {
	fault *fault.Error
	at    int // in bytes, -1 if unknown
}

func (p *positioned) Error() string { return p.fault.Error() }
func (p *positioned) Unwrap() error { return p.fault }

func invalid(at int, message string) error {
	return &positioned{fault.New(fault.QueryInvalid, message), at}
}

// locate says in the text of the error where in the statement it is.
func locate(err error, statement string) error {
	p, ok := errors.AsType[*positioned](err)
	if !ok {
		return err
	}

	if p.at < 0 || p.at > len(statement) {
		return p.fault
	}

	before := statement[:p.at]
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])

	p.fault.Subs = append([]fault.Sub{{Code: "position", Message: fmt.Sprintf("line %d, column %d", line, column)}}, p.fault.Subs...)

	return p.fault
}

// withCandidates adds names that may have been meant.
func withCandidates(err error, wanted string, names []string) error {
	p, ok := errors.AsType[*positioned](err)
	if !ok {
		return err
	}

	for _, candidate := range nearest(wanted, names) {
		p.fault.Subs = append(p.fault.Subs, fault.Sub{Code: "candidate", Message: candidate})
	}

	return err
}

var quoted = regexp.MustCompile(`"([^"]+)"`)

// refused puts what DuckDB says of a statement into our words.
func refused(err error, columns []string) error {
	said, ok := errors.AsType[*engine.StatementError](err)
	if !ok {
		return err
	}

	first, _, _ := strings.Cut(said.Message, "\n")

	switch {
	case said.Kind == "parser":
		return invalid(said.Position, "The statement is not SQL: "+first+".")
	case said.Kind == "not implemented" && strings.Contains(first, "Only SELECT"):
		return invalid(said.Position, "Only one SELECT is possible. Nothing can be changed here; the plan is given with explain, and PIVOT works as FROM dataset PIVOT (sum(x) FOR y IN (1, 2)).")
	case said.Subtype == "COLUMN_NOT_FOUND":
		return withCandidates(invalid(said.Position, fmt.Sprintf("There is no column %q.", said.Name)), said.Name, columns)
	case said.Subtype == "MISSING_ENTRY" && strings.Contains(strings.ToLower(said.Message), "function"):
		return withCandidates(invalid(said.Position, fmt.Sprintf("There is no function %s.", said.Name)), said.Name, said.Candidates)
	case strings.Contains(first, "Ambiguous reference"):
		name := quoted.FindStringSubmatch(first)

		return invalid(said.Position, fmt.Sprintf("The column %q is in several datasets. Write the dataset before it: dataset.column.", strings.Join(name[min(1, len(name)):], "")))
	case strings.Contains(first, "must appear in the GROUP BY"):
		name := quoted.FindStringSubmatch(first)

		return invalid(said.Position, fmt.Sprintf("The column %q is neither in GROUP BY nor in an aggregate such as sum or any_value.", strings.Join(name[min(1, len(name)):], "")))
	case slices.Contains([]string{"binder", "catalog", "conversion", "invalid input", "out of range", "mismatch type", "invalid type", "not implemented", "syntax", "expression", "sequence", "decimal", "divide by zero", "parameter not resolved", "parameter not allowed"}, said.Kind):
		return invalid(said.Position, sentence(first))
	default:
		return fault.Wrap(said, fault.QueryInvalid, "The engine cannot run this statement.")
	}
}

// sentence makes a text of the engine end as ours do.
func sentence(text string) string {
	text = strings.TrimRight(strings.TrimSpace(text), ".!")
	if text == "" {
		return "The engine cannot run this statement."
	}

	return "The statement cannot be run: " + text + "."
}

const maxCandidates = 3

// nearest are the names most like the wanted one, if they are alike at all.
func nearest(wanted string, names []string) []string {
	type scored struct {
		name     string
		distance int
	}

	var (
		found []scored
		key   = strings.ToLower(wanted)
	)

	for _, name := range names {
		other := strings.ToLower(name)
		distance := editDistance(key, other)

		if strings.Contains(other, key) || strings.Contains(key, other) {
			distance = min(distance, 1)
		}

		if distance <= max(1, len(key)/3) {
			found = append(found, scored{name, distance})
		}
	}

	slices.SortStableFunc(found, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})

	list := make([]string, 0, maxCandidates)
	for _, s := range found[:min(len(found), maxCandidates)] {
		list = append(list, s.name)
	}

	return list
}

// editDistance is how many characters must be added, removed, changed or swapped with the next.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)

	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}

	for i := range x {
		row[0] = i + 1

		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}

			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}

		before, last, row = last, row, before
	}

	return last[len(y)]
}
