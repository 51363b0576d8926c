package duckdb

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"quern.dev/quern/internal/engine"
)

const (
	outlierTexts = 50 // a column must have at least this many values
	outlierShare = 50 // fewer than one in this many values may be an outlier
	outlierShown = 3
	outlierWidth = 200 // files with more columns are not checked
)

var (
	commaProof = regexp.MustCompile(`^(?:` + provesComma + `)$`)
	pointProof = regexp.MustCompile(`^(?:` + provesPoint + `)$`)
)

// canHaveOutliers reports whether a column may get this type although a few of its values do not fit. Candidates that
// another value of the column must confirm, such as day-first dates, may not. Of a number, one value can confirm the signs.
func (c candidate) canHaveOutliers() bool {
	return c.alias != "day_first" && c.alias != "month_first" && !c.against
}

// confirms reports whether a text that the candidate accepts has no other meaning.
func (c candidate) confirms(text string) bool {
	switch c.alias {
	case "comma":
		return commaProof.MatchString(text)
	case "point":
		return pointProof.MatchString(text)
	default:
		return true
	}
}

// doubtOutliers adds a doubt for each column that is text only because of a few values, with the first of these values.
func (p *program) doubtOutliers(s *source, list []candidate, data []byte) error {
	if len(s.columns) > outlierWidth {
		return nil
	}

	for i, best := range s.nearly(list, data) {
		c := &s.columns[i]
		if best < 0 || c.kind != engine.Varchar || s.isDoubted(c.name) || (list[best].kind == engine.Bigint && saysText(c.name)) {
			continue
		}

		if err := p.doubtOutlier(s, c, list[best]); err != nil {
			return err
		}
	}

	return nil
}

func (s *source) isDoubted(column string) bool {
	return slices.ContainsFunc(s.doubts, func(d engine.Doubt) bool { return d.Column == column && d.Option != "" })
}

// nearly returns, for each column, the candidate that accepts most of the first texts, if it accepts at least 90 % of
// them, and -1 otherwise.
func (s *source) nearly(list []candidate, data []byte) []int {
	texts, taken, confirmed := make([]int, len(s.columns)), make([][]int, len(s.columns)), make([][]bool, len(s.columns))
	for i := range taken {
		taken[i], confirmed[i] = make([]int, len(list)), make([]bool, len(list))
	}

	for range min(headRecords, headCells/len(s.columns)+1) {
		var cells []string

		if cells, data, _ = splitRecord(data, s.dialect.delimiter, s.dialect.quote); len(cells) != len(s.columns) {
			continue
		}

		for i, cell := range cells {
			cell = strings.Trim(cell, " ")
			if cell == "" || s.columns[i].kind != engine.Varchar || slices.Contains(markers(), strings.ToLower(cell)) {
				continue
			}

			texts[i]++

			for n, c := range list {
				if c.canHaveOutliers() && c.takes(cell) {
					taken[i][n]++

					confirmed[i][n] = confirmed[i][n] || c.confirms(cell)
				}
			}
		}
	}

	best := make([]int, len(s.columns))

	for i := range best {
		best[i] = -1

		for n, count := range taken[i] {
			if texts[i] > 0 && confirmed[i][n] && 10*count >= 9*texts[i] && (best[i] < 0 || count > taken[i][best[i]]) {
				best[i] = n
			}
		}
	}

	return best
}

// doubtOutlier counts the texts of a column that do not have the type of the candidate, and adds a doubt that names the
// first of them.
func (p *program) doubtOutlier(s *source, c *column, best candidate) error {
	type outlier struct {
		Row           int64
		Value         string
		Others, Texts int64
	}

	value := p.trimmed(*c)
	marked := `lower(v) IN (` + texts(markers()) + `)`

	found, err := rows[outlier](p.db, fmt.Sprintf(`SELECT "Row", left(v, 40) AS "Value", "Others", "Texts" FROM (
		SELECT "Row", v, fits, count(*) FILTER (NOT fits) OVER () AS "Others", count(*) OVER () AS "Texts" FROM (
			SELECT "Row", v, %s OR %s AS fits FROM (SELECT row_number() OVER () AS "Row", %s AS v FROM %s WHERE %s) WHERE v IS NOT NULL))
		WHERE NOT fits ORDER BY "Row" LIMIT %d`, best.matches("v"), marked, value, s.sampled(), s.counts(), outlierShown))
	if err != nil {
		return explain(err)
	}

	if len(found) == 0 || found[0].Texts < outlierTexts || outlierShare*found[0].Others >= found[0].Texts {
		return nil
	}

	c.likely = best.parser

	for typed := range p.options.Types {
		if strings.EqualFold(typed, c.name) {
			return nil // an option already sets the type
		}
	}

	var named []string
	for _, f := range found {
		named = append(named, fmt.Sprintf("%q in row %d", f.Value, f.Row))
	}

	if found[0].Others > int64(len(found)) {
		named = append(named, "…")
	}

	s.doubts = append(s.doubts, engine.Doubt{Column: c.name, Option: "types", Suggestions: []string{best.kind}, Message: fmt.Sprintf(
		"The column is text because of %d of %d values: %s. All others have the type %s. Give the column this type to set these rows aside.",
		found[0].Others, found[0].Texts, strings.Join(named, ", "), best.kind)})

	return nil
}
