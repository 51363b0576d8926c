package duckdb

import (
	"encoding/json"
	"fmt"
	"strings"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"quern.dev/quern/internal/engine"
)

const (
	shapedText = 40      // maximum characters of a text that has a shape
	partRows   = 100_000 // with at most this many rows, the columns are copied first, so that files are read once
)

// The relations of a profile: the dataset, some of its columns, the values of one column with their counts, and the
// values of a sample of its rows.
const (
	profileView = "__profiled"
	partTable   = "__part"
	groupTable  = "__groups"
	sampleTable = "__sample"
)

// profiling is the state of a profile of one dataset.
type profiling struct {
	*program

	engine.ProfileRequest

	kinds []kind
}

// profile answers one request about a dataset. The first request determines the dataset.
func (p *program) profile(request engine.ProfileRequest) (answer engine.Answer, err error) {
	if p.profiled == nil {
		if p.profiled, err = p.beginProfile(request); err != nil {
			return engine.Answer{}, refuse(err)
		}
	}

	request.View = p.profiled.View
	p.profiled.ProfileRequest = request

	var said engine.Profiled

	if request.Count > 0 {
		said.Columns, err = p.profiled.group()
	}

	for _, set := range request.Unique {
		unique := false
		if err == nil {
			unique, err = p.profiled.isUnique(set)
		}

		said.Unique = append(said.Unique, unique)
	}

	return engine.Answer{Profiled: &said}, refuse(err)
}

func (p *program) beginProfile(request engine.ProfileRequest) (*profiling, error) {
	if err := p.settle(request.Memory, request.Threads, request.Disk); err != nil {
		return nil, err
	}

	made := &profiling{program: p, ProfileRequest: request}
	made.View.Columns = nil

	for _, c := range request.View.Columns {
		if c.Type == engine.JSON {
			c.Type = engine.Varchar // the text of the JSON is profiled
		}

		made.View.Columns = append(made.View.Columns, c)
	}

	if err := p.db.exec(`CREATE VIEW ` + profileView + ` AS SELECT ` + columnsOf(made.View) + ` FROM ` + p.filesOf(made.View)); err != nil {
		return nil, err
	}

	statement, err := p.db.prepare(`FROM ` + profileView)
	if err != nil {
		return nil, err
	}
	defer duckdb.DestroyPrepare(&statement)

	for i := range duckdb.PreparedStatementColumnCount(statement) {
		logical := duckdb.PreparedStatementColumnLogicalType(statement, i)
		made.kinds = append(made.kinds, kindOf(logical))
		duckdb.DestroyLogicalType(&logical)
	}

	return made, nil
}

// fact contains the results of one pass over a column.
type fact struct {
	Filled int64 `json:"filled"`
	Guess  int64 `json:"guess"` // estimated number of distinct values, with an error of up to a third

	engine.ColumnProfile
}

// group returns the profiles of the requested columns.
func (p *profiling) group() ([]engine.ColumnProfile, error) {
	columns := p.View.Columns[p.First : p.First+p.Count]
	from := profileView

	if p.Rows <= partRows {
		from = partTable
		names := make([]string, len(columns))

		for i, c := range columns {
			names[i] = name(c.Name)
		}

		if err := p.db.exec(`CREATE OR REPLACE TEMP TABLE ` + partTable + ` AS SELECT ` + strings.Join(names, ", ") + ` FROM ` + profileView); err != nil {
			return nil, err
		}
	}

	facts, err := p.facts(columns, from)
	if err != nil {
		return nil, err
	}

	profiles := make([]engine.ColumnProfile, len(columns))

	for i, c := range columns {
		one := profiledColumn{profiling: p, kind: p.kinds[p.First+i], name: name(c.Name), from: from, fact: facts[i]}
		one.typed = c.Type
		one.text = c.Type == engine.Varchar
		one.number = c.Type == engine.Bigint || c.Type == engine.Double || strings.HasPrefix(c.Type, engine.Decimal)
		one.family = engine.Family(c.Type)

		if profiles[i], err = one.profile(); err != nil {
			return nil, err
		}
	}

	return profiles, nil
}

// facts computes the facts of some columns in one pass.
func (p *profiling) facts(columns []engine.Column, from string) (facts []fact, err error) {
	var inner, outer []string

	for i, c := range columns {
		value, kind := name(c.Name), p.kinds[p.First+i]
		shown := value
		add := func(member, aggregate string, show func(string) string) string {
			alias := fmt.Sprintf("%s%d", member, i)
			inner = append(inner, aggregate+` AS `+alias)

			return text(member) + ", " + show(alias)
		}
		plain := func(value string) string { return value }

		members := []string{add("filled", `count(`+value+`)`, plain), add("guess", `approx_count_distinct(`+value+`)`, plain)}

		switch {
		case c.Type == engine.Varchar:
			shown = fmt.Sprintf(`left(%s, %d)`, value, p.Text)

			members = append(members, add("shortest", `min(length(`+value+`))`, plain), add("longest", `max(length(`+value+`))`, plain), add("averageLength", `avg(length(`+value+`))`, plain))
		case c.Type == engine.Double: // a sum of larger values could overflow
			members = append(members, add("mean", fmt.Sprintf(`avg(%[1]s) FILTER (WHERE abs(%[1]s) < 1e290)`, value), plain))
		case c.Type == engine.Bigint || strings.HasPrefix(c.Type, engine.Decimal):
			members = append(members, add("mean", `avg(CAST(`+value+` AS DOUBLE))`, plain))
		}

		members = append(members, add("min", `min(`+shown+`)`, kind.asJSON), add("max", `max(`+shown+`)`, kind.asJSON))
		outer = append(outer, `json_object(`+strings.Join(members, ", ")+`)`)
	}

	err = p.decode(`SELECT json_array(`+strings.Join(outer, ", ")+`) FROM (SELECT `+strings.Join(inner, ", ")+` FROM `+from+`)`, &facts)
	if err == nil && len(facts) != len(columns) {
		err = fmt.Errorf("facts of %d columns instead of %d", len(facts), len(columns))
	}

	for i := range facts {
		if f := &facts[i]; f.Filled == 0 {
			f.Min, f.Max = nil, nil
		}
	}

	return facts, err
}

// decode decodes the JSON that a statement returns.
func (p *program) decode(statement string, into any) error {
	said, err := p.db.value(`SELECT CAST((` + statement + `) AS VARCHAR)`)
	if err != nil {
		return err
	}

	return json.Unmarshal([]byte(said), into)
}

// isUnique reports whether no two rows have the same values in these columns. The first rows are checked first, because
// they contain duplicates in most sets that are not unique.
func (p *profiling) isUnique(set []string) (bool, error) {
	names := make([]string, len(set))
	for i, column := range set {
		names[i] = name(column)
	}

	by := strings.Join(names, ", ")

	for _, from := range []string{fmt.Sprintf(`(SELECT %s FROM %s LIMIT %d)`, by, profileView, partRows), profileView} {
		var twice bool

		err := p.decode(fmt.Sprintf(`SELECT to_json(EXISTS (SELECT 1 FROM %s GROUP BY %s HAVING count(*) > 1))`, from, by), &twice)
		if err != nil || twice {
			return false, err
		}
	}

	return true, nil
}
