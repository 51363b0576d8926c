package query

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lexicon"
)

// positioned is a fault at a position in a statement.
type positioned struct {
	fault *fault.Error
	at    int    // byte offset; -1 if unknown
	hint  string // added to the message if the statement has a double quote at the position
}

func (p *positioned) Error() string { return p.fault.Error() }
func (p *positioned) Unwrap() error { return p.fault }

func invalid(at int, message string) error {
	return &positioned{fault: fault.New(fault.QueryInvalid, message), at: at}
}

// locate adds the line and column in the statement to a positioned fault. before is the number of bytes that preceded the
// statement in the text that was parsed.
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

// withCandidates adds up to lexicon.MaxNearest suggested names to a positioned fault.
func withCandidates(err error, names []string) error {
	if p, ok := errors.AsType[*positioned](err); ok {
		for _, candidate := range names[:min(len(names), lexicon.MaxNearest)] {
			p.fault.Subs = append(p.fault.Subs, fault.Sub{Code: "candidate", Message: candidate})
		}
	}

	return err
}

// The patterns of DuckDB's messages that are rewritten.
var (
	quoted     = regexp.MustCompile(`"([^"]+)"`)
	candidates = regexp.MustCompile(`(?m)^\s*Candidate [^:]*:(.*)$`)
	noColumnOf = regexp.MustCompile(`^(?:Values list|Table) "(.+)" does not have a column named "(.+)"`)
	noGroup    = regexp.MustCompile(`^column "?(.+?)"? must appear in the GROUP BY`)
	noMatch    = regexp.MustCompile(`argument types '(.+)\((.*)\)'`)
	noCast     = regexp.MustCompile(`^Unimplemented type for cast \((.+) -> (.+)\)`)
	nearWord   = regexp.MustCompile(`^syntax error at or near "(\w+)"`)
	nearValue  = regexp.MustCompile(`^syntax error at or near "(?:\$|\?)`)
	physical   = regexp.MustCompile(`\bU?INT(?:8|16|32|64|128)\b|\b(?:INTEGER|STRING)_LITERAL\b`)
)

// refused rewrites DuckDB's error about a statement as a QueryInvalid fault. reads are the datasets that the statement
// reads. Other errors are returned as they are.
func refused(err error, reads []resolved) error {
	said, ok := errors.AsType[*engine.StatementError](err)
	if !ok {
		return err
	}

	if said.Kind == "trino" {
		return refusedThere(said)
	}

	first, rest, _ := strings.Cut(said.Message, "\n")
	first = types(strings.TrimRight(strings.TrimSpace(first), ".!"))

	switch {
	case said.Kind == "parser" && strings.HasPrefix(first, "NameListToString"): // DuckDB's message for a name with four parts
		return invalid(said.Position, "A name has at most three parts: owner.namespace.dataset. A part that contains a dot needs double quotes.")
	case said.Kind == "parser":
		return invalid(said.Position, "The statement is not valid SQL: "+first+"."+syntaxHint(first))
	case said.Kind == "not implemented" && strings.Contains(first, "Only SELECT"):
		return invalid(said.Position, `Only a single SELECT is allowed, and it cannot change data. For PIVOT, write FROM dataset PIVOT (sum(x) FOR y IN (1, 2)).`)
	case strings.HasPrefix(first, "Mixing named and positional parameters"):
		return fault.Invalid("parameters", "The statement has parameters with a name, such as $region, and without, such as $1 or ?. Use one kind.")
	case said.Subtype == "COLUMN_NOT_FOUND":
		return noColumn(said.Position, said.Name, "", reads)
	case strings.HasPrefix(said.Name, "`"):
		return invalid(said.Position, "The statement is not valid SQL: names are quoted with double quotes, not with backticks.")
	case said.Subtype == "MISSING_ENTRY" && strings.Contains(strings.ToLower(said.Message), "function"):
		return withCandidates(invalid(said.Position, fmt.Sprintf("There is no function %s.", said.Name)), lexicon.Nearest(said.Name, said.Candidates))
	}

	if slices.Contains([]string{"binder", "catalog", "conversion", "invalid input", "out of range", "mismatch type", "invalid type", "not implemented", "syntax", "expression", "sequence", "decimal", "divide by zero", "parameter not resolved", "parameter not allowed"}, said.Kind) {
		return refusedBinding(said, first, rest, reads)
	}

	return fault.Wrap(said, fault.QueryInvalid, "The engine cannot run this statement.")
}

// refusedBinding rewrites errors about names, types and values.
func refusedBinding(said *engine.StatementError, first, rest string, reads []resolved) error {
	at := said.Position

	if found := noColumnOf.FindStringSubmatch(first); found != nil {
		return noColumn(at, found[2], found[1], reads)
	}

	if found := noGroup.FindStringSubmatch(first); found != nil {
		return invalid(at, fmt.Sprintf("The column %q is neither in GROUP BY nor in an aggregate such as sum or any_value. Add it to one of them.", found[1]))
	}

	if found := noMatch.FindStringSubmatch(first); found != nil {
		return noFunction(at, found[1], found[2], rest)
	}

	if found := noCast.FindStringSubmatch(first); found != nil {
		return invalid(at, fmt.Sprintf("A value of type %s cannot be cast to %s.", found[1], found[2]))
	}

	name := ""
	if found := quoted.FindStringSubmatch(first); found != nil {
		name = found[1]
	}

	switch {
	case strings.HasPrefix(first, "Ambiguous reference to table") && strings.HasPrefix(name, "memory."): // DuckDB's internal name of a dataset without an alias
		return invalid(at, "A dataset appears several times in FROM. Give each occurrence its own alias.")
	case strings.HasPrefix(first, "Ambiguous reference to table"):
		return invalid(at, fmt.Sprintf("The name %q refers to several datasets in FROM. Give each its own alias.", name))
	case strings.HasPrefix(first, "Ambiguous reference"):
		return invalid(at, fmt.Sprintf("The column %q is in several datasets. Write the name of the dataset before it: dataset.column.", name))
	case strings.HasPrefix(first, "Referenced table"):
		return withCandidates(invalid(at, fmt.Sprintf("FROM has no dataset or alias %q.", name)), listed(rest))
	case first == "":
		return invalid(at, "The engine cannot run this statement.")
	case said.Kind == "conversion":
		first += ". TRY_CAST gives NULL for values that do not fit"
	case first == "WHERE clause cannot contain aggregates":
		first += ". Put the condition into HAVING, after GROUP BY"
	}

	return withCandidates(invalid(at, "The statement cannot be run: "+first+"."), listed(rest))
}

// listed returns the names that DuckDB suggests in a message.
func listed(text string) (names []string) {
	for _, line := range candidates.FindAllStringSubmatch(text, -1) {
		for _, name := range quoted.FindAllStringSubmatch(line[1], -1) {
			names = append(names, name[1])
		}
	}

	return names
}

const maxListed = 30

// noColumn returns the fault for a column that does not exist, with similar names, or with the existing columns if none is
// similar.
func noColumn(at int, name, of string, reads []resolved) error {
	message := fmt.Sprintf("There is no column %q.", name)
	if of != "" {
		message = fmt.Sprintf("There is no column %q in %s.", name, of)
	}

	if len(reads) == 0 {
		message += " The statement reads no dataset. Add FROM and the name of the dataset that has the column; SHOW TABLES lists the datasets."
	}

	near := lexicon.Nearest(name, columnNames(reads))

	for _, one := range reads {
		columns := columnNames([]resolved{one})
		isThere := slices.ContainsFunc(columns, func(column string) bool { return strings.EqualFold(column, name) })

		switch {
		case isThere && of != "":
			message += fmt.Sprintf(" %s has it.", one.shown)
		case len(near) == 0 && len(columns) > maxListed:
			message += fmt.Sprintf(" %s has %s and %d more.", one.shown, strings.Join(columns[:maxListed], ", "), len(columns)-maxListed)
		case len(near) == 0:
			message += fmt.Sprintf(" %s has %s.", one.shown, strings.Join(columns, ", "))
		}
	}

	return withCandidates(&positioned{fault: fault.New(fault.QueryInvalid, message), at: at, hint: " Put text in single quotes."},
		slices.DeleteFunc(near, func(column string) bool { return strings.EqualFold(column, name) }))
}

// noFunction returns the fault for a function with arguments of the wrong types, with the forms that DuckDB lists. Forms of
// operators are left out, because DuckDB lists every type for them.
func noFunction(at int, name, arguments, rest string) error {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") == name {
		return invalid(at, fmt.Sprintf("The operator %s does not accept (%s). Cast the values: CAST(value AS type).", name, arguments))
	}

	var forms []string

	for line := range strings.Lines(rest) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, name+"(") {
			forms = append(forms, line)
		}
	}

	message := fmt.Sprintf("The function %s does not accept (%s).", name, arguments)
	if slices.ContainsFunc(forms, func(form string) bool { return strings.Count(form, ",") == strings.Count(arguments, ",") }) && arguments != "" {
		message += " Cast the values: CAST(value AS type)."
	}

	return withCandidates(invalid(at, message), forms)
}

// types replaces DuckDB's internal type names in a text by the names that SQL uses.
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

// syntaxHint returns a hint to quote a reserved word that is often used as a name, that a parameter is not a name, or which
// keyword is similar; empty for other words.
func syntaxHint(message string) string {
	if nearValue.MatchString(message) {
		return " A parameter stands for a value. Write the names of datasets and columns into the statement."
	}

	found := nearWord.FindStringSubmatch(message)
	if found == nil {
		return ""
	}

	if slices.Contains([]string{
		"order", "group", "table", "column", "end", "desc", "asc", "default", "check", "primary", "references", "unique", "limit", "offset", "both", "user", "to", "at",
	}, strings.ToLower(found[1])) {
		return " If it is a name, put it in double quotes."
	}

	keywords := []string{"SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "JOIN", "UNION", "WITH"}
	if near := lexicon.Nearest(found[1], keywords); len(near) > 0 && !strings.EqualFold(near[0], found[1]) {
		return " Did you mean " + near[0] + "?"
	}

	return ""
}
