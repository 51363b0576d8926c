package duckdb

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"quern.dev/quern/internal/engine"
)

// objects returns SQL for the lines of a JSON file, with their members parsed once as the struct o. A struct cannot
// have two names that differ only in case, so the later ones are extracted one by one.
func (s *source) objects(file plainFile, rejects string) string {
	members := map[string]string{}
	for _, c := range s.columns {
		if member, ok := strings.CutPrefix(c.raw, "o."); ok {
			members[unquote(member)] = "JSON"
		}
	}

	if len(members) == 0 {
		return s.lines.relation(file, 1, rejects)
	}

	structure, err := json.Marshal(members)
	if err != nil {
		structure = []byte("{}") // unreachable: a map of strings can always be marshalled
	}

	return `(SELECT c0, CASE WHEN json_valid(c0) THEN from_json(c0, ` + text(string(structure)) + `) END AS o FROM ` + s.lines.relation(file, 1, rejects) + `)`
}

func unquote(identifier string) string {
	return strings.ReplaceAll(identifier[1:len(identifier)-1], `""`, `"`)
}

// brokenLine is SQL for what is wrong with a line of JSON as a whole; NULL if nothing is wrong.
const brokenLine = `CASE WHEN NOT json_valid(c0) THEN 'the line is not JSON'
	WHEN json_type(c0) <> 'OBJECT' THEN 'the line is not an object'
	WHEN len(json_keys(c0)) <> len(list_distinct(json_keys(c0))) THEN 'the object has a duplicate key' END`

// describeJSON finds the members of all objects and their types. Members of the sample are in the order of their first
// appearance; members that appear only after the sample follow in the order of their names.
func (p *program) describeJSON(s *source, file string) error {
	s.lines = dialect{delimiter: neverADelimiter, longest: p.bounds.Record}
	ends, err := s.file.check()

	switch lines := s.file.isLines() && p.options.RowsAt == ""; {
	case err != nil:
	case !lines:
		err = s.file.toLines(p.tmp, file, p.options.RowsAt, p.bounds)
	case ends.mixed():
		err = s.file.oneLineEnd(p.tmp, file, s.lines)
	}

	if err != nil {
		return err
	}

	if s.sample, err = s.file.sample(p.tmp, p.bounds.Record+1); err != nil {
		return err
	}

	if err := p.survey(s, &s.lines); err != nil {
		return err
	}

	members, err := p.members(s)

	switch {
	case err != nil:
		return err
	case len(members) == 0:
		if s.file.format == engine.FormatRows {
			return &failure{code: engine.InvalidOptions, message: "data: has no row with a value"}
		}

		return invalid("No object of the file has a member, so the file has no columns.")
	case len(members) > p.bounds.Columns:
		return tooMany(len(members), p.bounds)
	}

	seen := map[string]bool{}

	for _, m := range members {
		c := column{name: m.Name, isJSON: true, raw: "o." + name(m.Name), kind: jsonKind(m.Types)}
		if seen[strings.ToLower(m.Name)] || m.Name == "" {
			c.raw = `json_extract(c0, ` + text("/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(m.Name)) + `)`
		}

		seen[strings.ToLower(m.Name)] = true
		s.columns = append(s.columns, c)
	}

	s.rename()

	if err := p.findJSONTypes(s); err != nil {
		return err
	}

	return p.doubtWrapped(s, members)
}

type member struct {
	Name  string
	Types []string
}

// members returns the members of the sample with the types of their values, followed by the members that appear only
// after the sample, which have no types.
func (p *program) members(s *source) ([]member, error) {
	members, err := rows[member](p.db, fmt.Sprintf(`
		SELECT k AS "Name", list(DISTINCT json_type(json_extract(c0, '/' || replace(replace(k, '~', '~0'), '/', '~1')))) AS "Types"
		FROM (SELECT c0, rn, unnest(json_keys(c0)) AS k, generate_subscripts(json_keys(c0), 1) AS i
			FROM (SELECT c0, row_number() OVER () AS rn FROM %s) WHERE %s AND (%s) IS NULL)
		GROUP BY k ORDER BY min(rn * 100000 + i)`, s.lines.relation(s.sample, 1, ""), s.counts(), brokenLine))
	if err != nil || s.sample.path == s.file.path {
		return members, explain(err)
	}

	late, err := rows[member](p.db, fmt.Sprintf(`SELECT DISTINCT unnest(json_keys(c0)) AS "Name" FROM %s WHERE %s AND (%s) IS NULL ORDER BY "Name"`,
		s.lines.relation(s.file, 1, ""), s.counts(), brokenLine))
	if err != nil {
		return nil, explain(err)
	}

	known := map[string]bool{}
	for _, m := range members {
		known[m.Name] = true
	}

	return append(members, slices.DeleteFunc(late, func(m member) bool { return known[m.Name] })...), nil
}

// jsonKind returns the column type for values with these JSON types.
func jsonKind(types []string) string {
	has := func(list ...string) bool {
		return slices.ContainsFunc(types, func(t string) bool { return slices.Contains(list, t) })
	}

	scalars := 0
	for _, kind := range [][]string{{"VARCHAR"}, {"BOOLEAN"}, {"BIGINT", "UBIGINT", "DOUBLE", "HUGEINT"}} {
		if has(kind...) {
			scalars++
		}
	}

	switch {
	case has("OBJECT", "ARRAY"):
		return engine.JSON
	case scalars == 0:
		return ""
	case scalars > 1 || has("VARCHAR"):
		return engine.Varchar
	case has("BOOLEAN"):
		return engine.Boolean
	case has("DOUBLE", "HUGEINT"):
		return engine.Double
	default:
		return engine.Bigint
	}
}

// findJSONTypes refines the types of columns. A JSON string can be a date or timestamp in ISO form, and otherwise stays
// text. A number may be too large for the type of its column.
func (p *program) findJSONTypes(s *source) error {
	double := plain(engine.Double)
	finite := read(engine.Double, `(?s).*`, func(t string) string {
		return `CASE WHEN ` + double.fits(t) + ` THEN ` + double.value(t) + ` ELSE 0 END`
	})
	bigint := read(engine.Bigint, `(?s).*`, func(t string) string {
		return `CASE WHEN regexp_full_match(` + t + `, '-?[0-9]{19,}') THEN TRY_CAST(` + t + ` AS BIGINT) ELSE 0 END`
	})
	list := []candidate{{parser: isoDates()}, {parser: timestamps()}, {parser: finite, alias: "doubles"}, {parser: bigint, alias: "bigints"}}

	if p.options.DateFormat != "" {
		given, err := dated(p.options.DateFormat)
		if err != nil {
			return err
		}

		list = append([]candidate{{parser: given}}, list...)
	}

	var trials []trial

	for i, c := range s.columns {
		if c.kind == engine.Varchar || c.kind == engine.Bigint || c.kind == engine.Double {
			trials = append(trials, all(i, list))
		}
	}

	tallies, err := p.tally(s, trials, list)
	if err != nil {
		return err
	}

	given := false

	for _, t := range trials {
		given = given || tallies[t.column].Fits[0]
		s.decideJSON(&s.columns[t.column], list, tallies[t.column])
	}

	if p.options.DateFormat != "" && !given {
		s.doubts = append(s.doubts, engine.Doubt{Option: "dateFormat", Message: fmt.Sprintf("No column contains only dates in the form %s.", p.options.DateFormat)})
	}

	return nil
}

func (s *source) decideJSON(c *column, list []candidate, t tally) {
	isNumber := c.kind != engine.Varchar

	switch chosen := slices.Index(t.Fits, true); {
	case !isNumber && chosen >= 0 && list[chosen].alias == "" && t.Marked == 0:
		c.kind, c.parser = list[chosen].kind, list[chosen].parser
	case isNumber && !fits(list, t, "doubles"):
		c.kind = engine.Varchar
	case isNumber && !fits(list, t, "bigints"):
		c.kind = engine.Double
		s.doubts = append(s.doubts, engine.Doubt{Column: c.name, Option: "types", Message: "Some whole numbers are too large for a bigint, so they are kept as doubles, which round them."})
	}
}
