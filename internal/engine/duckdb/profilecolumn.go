package duckdb

import (
	"fmt"

	"quern.dev/quern/internal/engine"
)

// profiledColumn is a column of which a profile is made.
type profiledColumn struct {
	*profiling

	kind         kind
	name         string // quoted for SQL
	from         string
	fact         fact
	typed        string // its type
	text, number bool
	family       string
}

// profile counts the values of the column, or estimates what would take too long to count.
func (c *profiledColumn) profile() (made engine.ColumnProfile, err error) {
	made = c.fact.ColumnProfile
	made.Nulls, made.DistinctExact = c.Rows-c.fact.Filled, c.Rows <= c.Bounds.Rows || c.fact.Guess <= c.Bounds.Values

	// An odd divisor, so that the sampled hashes do not all have the same lowest bits, which DuckDB's hash tables use.
	every := max(c.fact.Guess/c.Bounds.Picked, 1) | 1
	condition := ""

	if !made.DistinctExact {
		condition = fmt.Sprintf(` AND hash(%s) %% %d = 0`, c.name, every)
	}

	if made.Distinct, err = c.count(groupTable, c.from, condition); err != nil {
		return made, err
	}

	shares := groupTable // the table for shares and quartiles

	if !made.DistinctExact || made.Distinct > c.Bounds.Sample {
		shares = sampleTable

		if _, err := c.sample(); err != nil {
			return made, err
		}
	}

	values := groupTable
	if !made.DistinctExact {
		made.Distinct = min(made.Distinct*every, c.fact.Filled)
		values = sampleTable
	}

	return made, c.details(&made, values, shares)
}

// key returns SQL for the columns that identify a value. A long text is represented by its beginning and a hash, to
// save memory.
func (c *profiledColumn) key() (columns string) {
	if !c.text {
		return c.name + ` AS v, NULL AS rest`
	}

	return fmt.Sprintf(`left(%[1]s, %[2]d) AS v, CASE WHEN length(%[1]s) > %[2]d THEN sha256(%[1]s) END AS rest`, c.name, c.Text)
}

// count creates a table of the values with the number of rows of each, and returns the number of values.
func (c *profiledColumn) count(table, from, condition string) (values int64, err error) {
	if err := c.db.exec(fmt.Sprintf(`CREATE OR REPLACE TEMP TABLE %s AS SELECT v, rest, count(*) AS n FROM (SELECT %s FROM %s WHERE %s IS NOT NULL%s) GROUP BY v, rest`,
		table, c.key(), from, c.name, condition)); err != nil {
		return 0, err
	}

	return values, c.decode(`SELECT to_json(count(*)) FROM `+table, &values)
}

func (c *profiledColumn) sample() (int64, error) {
	share := min(100*float64(c.Bounds.Sample)/float64(max(c.fact.Filled, 1)), 100)

	return c.count(sampleTable, fmt.Sprintf(`(SELECT %[1]s FROM (SELECT %[1]s FROM %[2]s WHERE %[1]s IS NOT NULL) TABLESAMPLE bernoulli(%[3]f%%) REPEATABLE (1))`, c.name, c.from, share), "")
}

// details adds the parts of the profile that are computed from individual values.
func (c *profiledColumn) details(made *engine.ColumnProfile, values, shares string) error {
	statement := `SELECT json_object('topValues', (` + c.top(values) + `), 'examples', (` + c.examples(values) + `)`

	if c.text {
		statement += `, 'shapes', (` + c.shapes(shares) + `)`
	}

	spread := groupTable
	if !made.DistinctExact {
		spread = sampleTable
	}

	if c.number {
		statement += `, 'quartiles', (` + c.quartiles(spread) + `)`
	}

	if scale, ok := c.scaleOf(c.typed); ok {
		statement += `, 'bins', (` + c.bins(scale, spread) + `)`
	}

	if c.family != "" {
		statement += `, 'sketch', (` + c.sketch(made.DistinctExact) + `)`
	}

	return c.decode(statement+`)`, made)
}

// top returns SQL for the most frequent values. Values of a sample are counted again in all rows.
func (c *profiledColumn) top(values string) string {
	first := fmt.Sprintf(`FROM %s ORDER BY n DESC, v, rest LIMIT %d`, values, engine.ProfileTop)

	if values != groupTable {
		first = fmt.Sprintf(`SELECT v, rest, count(*) AS n FROM (SELECT %s FROM %s WHERE %s IS NOT NULL) a
			SEMI JOIN (%s) b ON a.v = b.v AND a.rest IS NOT DISTINCT FROM b.rest GROUP BY v, rest`, c.key(), c.from, c.name, first)
	}

	return `SELECT to_json(list(json_object('value', ` + c.kind.asJSON("v") + `, 'count', n) ORDER BY n DESC, v, rest)) FROM (` + first + `)`
}

// examples returns SQL for some values, selected independently of their frequency.
func (c *profiledColumn) examples(values string) string {
	return fmt.Sprintf(`SELECT to_json(list(%s)) FROM (FROM %s ORDER BY hash(v), v, rest LIMIT %d)`, c.kind.asJSON("v"), values, engine.ProfileExamples)
}

// shapes returns SQL for the most frequent patterns of short texts.
func (c *profiledColumn) shapes(values string) string {
	const pattern = `regexp_replace(regexp_replace(regexp_replace(v, '[\p{Ll}\p{Lt}\p{Lm}\p{Lo}]', 'a', 'g'), '\p{Lu}', 'A', 'g'), '\p{Nd}', '9', 'g')`

	return fmt.Sprintf(`SELECT to_json(list(json_object('shape', shape, 'share', share) ORDER BY share DESC, shape)) FROM (
		SELECT %s AS shape, sum(n) / any_value(total) AS share FROM (SELECT v, n, sum(n) OVER () AS total FROM %s)
		WHERE v <> '' AND length(v) <= %d GROUP BY shape ORDER BY share DESC, shape LIMIT %d)`, pattern, values, shapedText, engine.ProfileShapes)
}

// quartiles returns SQL for three values of the column: the first values at which a quarter, half and three quarters of
// the rows are reached.
func (c *profiledColumn) quartiles(values string) string {
	return `SELECT to_json(list(` + c.kind.asJSON("v") + ` ORDER BY part)) FROM (
		SELECT part, min(v) AS v FROM (SELECT v, sum(n) OVER (ORDER BY v) AS upto, sum(n) OVER () AS total FROM ` + values + `), (VALUES (1), (2), (3)) parts(part)
		WHERE 4 * upto >= part * total GROUP BY part)`
}

// sketch returns SQL for the smallest hashes of the values. Columns with the same values have the same sketch. If the
// values were not counted exactly, only hashes that can be among the smallest are sorted.
func (c *profiledColumn) sketch(exact bool) string {
	folded := `CAST(v AS VARCHAR)`
	if c.text {
		folded = `strip_accents(lower(trim(v)))`
	}

	from, below := groupTable, ""
	if !exact {
		from = `(SELECT ` + c.key() + ` FROM ` + c.from + ` WHERE ` + c.name + ` IS NOT NULL)`
		below = fmt.Sprintf(` WHERE h < %d`, (int64(1)<<32)*8*engine.ProfileSketch/c.fact.Guess)
	}

	return fmt.Sprintf(`SELECT to_json(list(h ORDER BY h)) FROM (SELECT DISTINCT h FROM (SELECT md5_number_lower(%s) >> 32 AS h FROM %s WHERE rest IS NULL)%s ORDER BY h LIMIT %d)`,
		folded, from, below, engine.ProfileSketch)
}
