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
	at    int    // in bytes, -1 if unknown
	hint  string // if there is a double quote at the place
}

func (p *positioned) Error() string { return p.fault.Error() }
func (p *positioned) Unwrap() error { return p.fault }

func invalid(at int, message string) error {
	return &positioned{fault: fault.New(fault.QueryInvalid, message), at: at}
}

// locate says in the text of the error where in the statement it is. So many bytes stood before the statement.
func locate(err error, statement string, before int) error {
	p, ok := errors.AsType[*positioned](err)
	if !ok {
		return err
	}

	at := p.at - before
	if at < 0 || at > len(statement) {
		return p.fault
	}

	if strings.HasPrefix(statement[at:], `"`) {
		p.fault.Message += p.hint
	}

	earlier := statement[:at]
	line := 1 + strings.Count(earlier, "\n")
	column := 1 + utf8.RuneCountInString(earlier[strings.LastIndexByte(earlier, '\n')+1:])

	p.fault.Subs = append([]fault.Sub{{Code: "position", Message: fmt.Sprintf("line %d, column %d", line, column)}}, p.fault.Subs...)

	return p.fault
}

// withCandidates adds names that may have been meant.
func withCandidates(err error, names []string) error {
	if p, ok := errors.AsType[*positioned](err); ok {
		for _, candidate := range names[:min(len(names), maxCandidates)] {
			p.fault.Subs = append(p.fault.Subs, fault.Sub{Code: "candidate", Message: candidate})
		}
	}

	return err
}

// What DuckDB says, as far as its words are ours to change.
var (
	quoted     = regexp.MustCompile(`"([^"]+)"`)
	candidates = regexp.MustCompile(`(?m)^\s*Candidate [^:]*:(.*)$`)
	noColumnOf = regexp.MustCompile(`^(?:Values list|Table) "(.+)" does not have a column named "(.+)"`)
	noGroup    = regexp.MustCompile(`^column "?(.+?)"? must appear in the GROUP BY`)
	noMatch    = regexp.MustCompile(`argument types '(.+)\((.*)\)'`)
	noCast     = regexp.MustCompile(`^Unimplemented type for cast \((.+) -> (.+)\)`)
	nearWord   = regexp.MustCompile(`^syntax error at or near "(\w+)"`)
	physical   = regexp.MustCompile(`\bU?INT(?:8|16|32|64|128)\b|\b(?:INTEGER|STRING)_LITERAL\b`)
)

// refused puts what DuckDB says of a statement into our words. The datasets are those that it reads.
func refused(err error, reads []reading) error {
	said, ok := errors.AsType[*engine.StatementError](err)
	if !ok {
		return err
	}

	first, rest, _ := strings.Cut(said.Message, "\n")
	first = types(strings.TrimRight(strings.TrimSpace(first), ".!"))

	switch {
	case said.Kind == "parser":
		return invalid(said.Position, "The statement is not SQL: "+first+"."+reservedHint(first))
	case said.Kind == "not implemented" && strings.Contains(first, "Only SELECT"):
		return invalid(said.Position, `Only one SELECT is possible. Nothing can be changed here; "explain": true in the request gives the plan, and PIVOT works as FROM dataset PIVOT (sum(x) FOR y IN (1, 2)).`)
	case said.Subtype == "COLUMN_NOT_FOUND":
		return noColumn(said.Position, said.Name, "", reads)
	case strings.HasPrefix(said.Name, "`"):
		return invalid(said.Position, "The statement is not SQL: names are quoted with double quotes, not with backticks.")
	case said.Subtype == "MISSING_ENTRY" && strings.Contains(strings.ToLower(said.Message), "function"):
		return withCandidates(invalid(said.Position, fmt.Sprintf("There is no function %s.", said.Name)), nearest(said.Name, said.Candidates))
	}

	if slices.Contains([]string{"binder", "catalog", "conversion", "invalid input", "out of range", "mismatch type", "invalid type", "not implemented", "syntax", "expression", "sequence", "decimal", "divide by zero", "parameter not resolved", "parameter not allowed"}, said.Kind) {
		return refusedBinding(said, first, rest, reads)
	}

	return fault.Wrap(said, fault.QueryInvalid, "The engine cannot run this statement.")
}

// refusedBinding is refused for what names and types do not allow.
func refusedBinding(said *engine.StatementError, first, rest string, reads []reading) error {
	at := said.Position

	if found := noColumnOf.FindStringSubmatch(first); found != nil {
		return noColumn(at, found[2], found[1], reads)
	}

	if found := noGroup.FindStringSubmatch(first); found != nil {
		return invalid(at, fmt.Sprintf("The column %q is neither in GROUP BY nor in an aggregate such as sum or any_value.", found[1]))
	}

	if found := noMatch.FindStringSubmatch(first); found != nil {
		return noFunction(at, found[1], found[2], rest)
	}

	if found := noCast.FindStringSubmatch(first); found != nil {
		return invalid(at, fmt.Sprintf("A value of the type %s cannot become one of the type %s.", found[1], found[2]))
	}

	name := ""
	if found := quoted.FindStringSubmatch(first); found != nil {
		name = found[1]
	}

	switch {
	case strings.HasPrefix(first, "Ambiguous reference to table") && strings.HasPrefix(name, "memory."): // DuckDB's own name for it
		return invalid(at, "A dataset stands several times in FROM. Give each an alias of its own.")
	case strings.HasPrefix(first, "Ambiguous reference to table"):
		return invalid(at, fmt.Sprintf("The name %q stands for several datasets in FROM. Give each an alias of its own.", name))
	case strings.HasPrefix(first, "Ambiguous reference"):
		return invalid(at, fmt.Sprintf("The column %q is in several datasets. Write the dataset before it: dataset.column.", name))
	case strings.HasPrefix(first, "Referenced table"):
		return withCandidates(invalid(at, fmt.Sprintf("There is no dataset and no alias %q in FROM.", name)), listed(rest))
	case first == "":
		return invalid(at, "The engine cannot run this statement.")
	case said.Kind == "conversion":
		first += ". TRY_CAST gives NULL for values that do not fit"
	}

	return withCandidates(invalid(at, "The statement cannot be run: "+first+"."), listed(rest))
}

// listed are the names that DuckDB offers.
func listed(text string) (names []string) {
	for _, line := range candidates.FindAllStringSubmatch(text, -1) {
		for _, name := range quoted.FindAllStringSubmatch(line[1], -1) {
			names = append(names, name[1])
		}
	}

	return names
}

const maxListed = 30

// noColumn says that there is no such column, and which there are if none is like it.
func noColumn(at int, name, of string, reads []reading) error {
	message := fmt.Sprintf("There is no column %q.", name)
	if of != "" {
		message = fmt.Sprintf("There is no column %q in %s.", name, of)
	}

	near := nearest(name, columnNames(reads))

	for _, one := range reads {
		columns := columnNames([]reading{one})
		isThere := slices.ContainsFunc(columns, func(column string) bool { return strings.EqualFold(column, name) })

		switch {
		case isThere && of != "":
			message += fmt.Sprintf(" %s has it.", one.name)
		case len(near) == 0 && len(columns) > maxListed:
			message += fmt.Sprintf(" %s has %s and %d more.", one.name, strings.Join(columns[:maxListed], ", "), len(columns)-maxListed)
		case len(near) == 0:
			message += fmt.Sprintf(" %s has %s.", one.name, strings.Join(columns, ", "))
		}
	}

	return withCandidates(&positioned{fault: fault.New(fault.QueryInvalid, message), at: at, hint: " A text stands in single quotes."},
		slices.DeleteFunc(near, func(column string) bool { return strings.EqualFold(column, name) }))
}

// noFunction says that a function does not take such arguments. Of an operator DuckDB lists every type that there is.
func noFunction(at int, name, arguments, rest string) error {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") == name {
		return invalid(at, fmt.Sprintf("The operator %s does not take (%s). Cast them: CAST(value AS type).", name, arguments))
	}

	var forms []string

	for line := range strings.Lines(rest) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, name+"(") {
			forms = append(forms, line)
		}
	}

	return withCandidates(invalid(at, fmt.Sprintf("The function %s does not take (%s).", name, arguments)), forms)
}

// types gives the types in a text the names that SQL has for them.
func types(text string) string {
	names := map[string]string{"8": "TINYINT", "16": "SMALLINT", "32": "INTEGER", "64": "BIGINT", "128": "HUGEINT"}

	return physical.ReplaceAllStringFunc(text, func(found string) string {
		bits, isUnsigned := strings.CutPrefix(found, "UINT")

		switch {
		case isUnsigned:
			return "U" + names[bits]
		case found == "INTEGER_LITERAL":
			return "INTEGER"
		case found == "STRING_LITERAL":
			return "VARCHAR"
		default:
			return names[strings.TrimPrefix(found, "INT")]
		}
	})
}

// reservedHint is for words that people have as names.
func reservedHint(message string) string {
	found := nearWord.FindStringSubmatch(message)
	if found == nil || !slices.Contains([]string{
		"order", "group", "table", "column", "end", "desc", "asc", "default", "check", "primary", "references", "unique", "limit", "offset", "both", "user", "to", "at",
	}, strings.ToLower(found[1])) {
		return ""
	}

	return " If it is a name, put it into double quotes."
}

const (
	maxCandidates = 3
	partLength    = 3 // of a name that is a part of another
)

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

		if min(len(key), len(other)) >= partLength && (strings.Contains(other, key) || strings.Contains(key, other)) {
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
