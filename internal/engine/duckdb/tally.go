package duckdb

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"quern.dev/quern/internal/engine"
)

// markers returns words that may mean "no value". Only a person can decide that.
func markers() []string { return []string{"na", "n/a", "null", "none", "-", "--", "?", "nan", "#n/a"} }

// Signs that can appear before or after a number.
const (
	signBefore = `^-? ?([$€£]|(?:EUR|USD|GBP|CHF) )`
	signAfter  = `([%$€£]| (?:EUR|USD|GBP|CHF))$`
)

// trial is a column with the candidates that are still possible for it.
type trial struct {
	column int
	alive  []int
	texts  int64 // number of texts checked
	signed bool  // all texts may have a sign
	dated  bool  // at least one text has the form of the option dateFormat
}

// all returns a trial with all candidates.
func all(column int, list []candidate) trial {
	t := trial{column: column}
	for i := range list {
		t.alive = append(t.alive, i)
	}

	return t
}

// trials checks the first records in Go. Most candidates are excluded by the first text, and checking the others in
// DuckDB is much cheaper.
func (s *source) trials(list []candidate, data []byte, options engine.Options) []trial {
	trials := make([]trial, len(s.columns))
	for i := range trials {
		trials[i] = all(i, list)
		trials[i].signed = true
	}

	before, after := regexp.MustCompile(signBefore), regexp.MustCompile(signAfter)

	for range min(headRecords, headCells/len(trials)+1) {
		var cells []string

		if cells, data, _ = splitRecord(data, s.dialect.delimiter, s.dialect.quote); len(cells) != len(trials) {
			continue
		}

		for i, cell := range cells {
			cell = strings.Trim(cell, " ")
			if cell == "" || slices.Contains(markers(), strings.ToLower(cell)) || slices.Contains(options.NullValues, cell) {
				continue
			}

			t := &trials[i]
			t.texts++
			t.dated = t.dated || (options.DateFormat != "" && list[0].takes(cell))
			t.alive = slices.DeleteFunc(t.alive, func(c int) bool { return !list[c].takes(cell) })
			t.signed = t.signed && (before.MatchString(cell) || after.MatchString(cell))
		}
	}

	return trials
}

// tally contains what the sample shows about a column.
type tally struct {
	Texts       int64
	Marked      int64
	Marker      string
	Fits        []bool // for each candidate
	ProvesComma bool
	ProvesPoint bool
	OnlyGroups  bool
	Signs       []string
}

// tallyFirst tallies only the first candidate of a column if that candidate needs no comparison with others. It tallies
// the other candidates if the first does not fit.
func (p *program) tallyFirst(s *source, trials []trial, list []candidate) (map[int]tally, error) {
	first := slices.Clone(trials)
	for i, t := range first {
		if len(t.alive) > 0 && list[t.alive[0]].alias == "" {
			first[i].alive = t.alive[:1]
		}
	}

	tallies, err := p.tally(s, first, list)
	if err != nil {
		return nil, err
	}

	again, err := p.tally(s, slices.DeleteFunc(trials, func(t trial) bool {
		return len(t.alive) < 2 || slices.Contains(tallies[t.column].Fits, true) || list[t.alive[0]].alias != ""
	}), list)
	maps.Copy(tallies, again)

	return tallies, err
}

// tally computes the tallies over the sample. Columns with the same possible candidates are handled in one statement.
func (p *program) tally(s *source, trials []trial, list []candidate) (map[int]tally, error) {
	tallies, classes := map[int]tally{}, map[string][]trial{}

	for _, t := range trials {
		if len(t.alive) == 0 && !t.signed {
			tallies[t.column] = tally{Texts: t.texts, Fits: make([]bool, len(list))}

			continue
		}

		class := fmt.Sprint(t.alive, t.signed)
		classes[class] = append(classes[class], t)
	}

	for _, class := range classes {
		for some := range slices.Chunk(class, tallyColumns) {
			if err := p.tallyClass(s, some, list, tallies); err != nil {
				return nil, err
			}
		}
	}

	return tallies, nil
}

const tallyColumns = 200 // columns per statement, to limit memory

func (p *program) tallyClass(s *source, class []trial, list []candidate, tallies map[int]tally) error {
	columns := make([]string, len(class))
	for i, t := range class {
		columns[i] = p.trimmed(s.columns[t.column]) + fmt.Sprintf(` AS t%d`, t.column)
	}

	type named struct {
		Column string
		Facts  tally
	}

	found, err := rows[named](p.db, fmt.Sprintf(`SELECT col AS "Column", %s AS "Facts" FROM (UNPIVOT (SELECT %s FROM %s) ON COLUMNS(*) INTO NAME col VALUE t) GROUP BY col`,
		class[0].facts(list), strings.Join(columns, ", "), s.sampled()))
	if err != nil {
		return explain(err)
	}

	for _, t := range class {
		fact := tally{Fits: make([]bool, len(list))} // used if all values are NULL

		if i := slices.IndexFunc(found, func(n named) bool { return n.Column == fmt.Sprintf("t%d", t.column) }); i >= 0 {
			fits := fact.Fits
			fact = found[i].Facts

			for j, c := range t.alive {
				fits[c] = fact.Fits[j]
			}

			fact.Fits = fits
		}

		tallies[t.column] = fact
	}

	return nil
}

// trimmed returns SQL for a text without surrounding blanks. It is NULL if the text means that there is no value.
func (p *program) trimmed(c column) string {
	trimmed := `nullif(trim(` + c.plain() + `), '')`
	if len(p.options.NullValues) > 0 && !c.isJSON {
		return `CASE WHEN ` + trimmed + ` NOT IN (` + texts(p.options.NullValues) + `) THEN ` + trimmed + ` END`
	}

	return trimmed
}

// facts returns SQL for the tally of the texts t.
func (t trial) facts(list []candidate) string {
	var (
		marked  = `lower(t) IN (` + texts(markers()) + `)`
		matches []string
		signs   = `[]::VARCHAR[]`
		numbers = slices.ContainsFunc(t.alive, func(c int) bool { return list[c].kind == engine.Double })
		proof   = func(aggregate, pattern string) string {
			if !numbers {
				return "false"
			}

			return aggregate + `(regexp_full_match(t, ` + text(pattern) + `))`
		}
	)

	for _, c := range t.alive {
		matches = append(matches, `coalesce(bool_and(`+list[c].matches("t")+`) FILTER (NOT `+marked+`), false)`)
	}

	if t.signed {
		signs = `list(DISTINCT trim(coalesce(nullif(regexp_extract(t, ` + text(signBefore) + `, 1), ''), regexp_extract(t, ` + text(signAfter) + `, 1))))[:3]`
	}

	return fmt.Sprintf(`{'Texts': count(*), 'Marked': count(*) FILTER (%[1]s), 'Marker': coalesce(any_value(t) FILTER (%[1]s), ''),
		'Fits': [%[2]s]::BOOLEAN[], 'ProvesComma': %[3]s, 'ProvesPoint': %[4]s, 'OnlyGroups': %[5]s, 'Signs': %[6]s}`,
		marked, strings.Join(matches, ", "), proof("bool_or", provesComma), proof("bool_or", provesPoint), proof("bool_and", onlyGroups), signs)
}
