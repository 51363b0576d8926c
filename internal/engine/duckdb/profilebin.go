package duckdb

import (
	"fmt"
	"strings"

	"quern.dev/quern/internal/engine"
)

// scale says how the values of a column are divided into bins of equal width: as a number, and back.
type scale struct {
	number string                     // SQL for the number of the value v; NULL if it has no place on the scale
	value  func(number string) string // SQL for the JSON of a number
	whole  bool                       // there is nothing between two neighbouring numbers, so that a bin ends before the next one begins
}

// scaleOf returns the scale of a type. Types without an order of distances have none.
func (c *profiledColumn) scaleOf(kind string) (scale, bool) {
	switch {
	case kind == engine.Bigint:
		return scale{`CAST(v AS HUGEINT)`, integer, true}, true
	case kind == engine.Date:
		return scale{
			`CASE WHEN isfinite(v) THEN CAST(v - DATE '1970-01-01' AS HUGEINT) END`,
			func(number string) string {
				return c.kind.asJSON(`(DATE '1970-01-01' + CAST(` + number + ` AS INTEGER))`)
			}, true,
		}, true
	case kind == engine.Timestamp:
		return scale{
			`CASE WHEN isfinite(v) THEN CAST(epoch_us(v) AS DOUBLE) END`,
			func(number string) string { return c.kind.asJSON(`make_timestamp(CAST(` + number + ` AS BIGINT))`) }, false,
		}, true
	case kind == engine.Double || strings.HasPrefix(kind, engine.Decimal): // the width of larger values could overflow
		return scale{`CASE WHEN abs(CAST(v AS DOUBLE)) < 1e290 THEN CAST(v AS DOUBLE) END`, double, false}, true
	default:
		return scale{}, false
	}
}

// bins returns SQL for the number of rows in each part of the range of the values. If values is a sample, the counts are estimates, but the
// range is that of all rows.
func (c *profiledColumn) bins(s scale, values string) string {
	extent, rows := values, `n`

	if values != groupTable {
		extent = fmt.Sprintf(`(SELECT %s AS v FROM %s)`, c.name, c.from)
		rows = fmt.Sprintf(`n * %d / (SELECT sum(n) FROM %s)`, c.fact.Filled, values)
	}

	// In whole numbers the width is rounded up, so that every bin has equally many of them.
	width, index, from, to := `CASE WHEN hi > lo THEN (hi - lo) / %[1]d ELSE 1 END`, `least(CAST(floor((x - lo) / width) AS BIGINT), %[1]d - 1)`, `lo + i * width`, `CASE WHEN i = final THEN hi ELSE lo + (i + 1) * width END`
	last := `CASE WHEN hi > lo THEN %[1]d - 1 ELSE 0 END`

	if s.whole {
		width, index, to, last = `(hi - lo) // %[1]d + 1`, `CAST((x - lo) // width AS BIGINT)`, `least(lo + (i + 1) * width - 1, hi)`, `CAST((hi - lo) // ((hi - lo) // %[1]d + 1) AS BIGINT)`
	}

	return fmt.Sprintf(`WITH ends AS (SELECT min(x) AS lo, max(x) AS hi FROM (SELECT `+s.number+` AS x FROM %[2]s)),
		scale AS (SELECT lo, hi, `+width+` AS width, `+last+` AS final FROM ends WHERE lo IS NOT NULL),
		tally AS (SELECT `+index+` AS i, sum(`+rows+`) AS counted FROM (SELECT `+s.number+` AS x, n FROM %[3]s), scale WHERE x IS NOT NULL GROUP BY ALL),
		edges AS (SELECT unnest(range(final + 1)) AS i, lo, hi, width, final FROM scale)
		SELECT to_json(list(json_object('from', `+s.value(`"from"`)+`, 'to', `+s.value(`"to"`)+`, 'count', CAST(round(coalesce(counted, 0)) AS BIGINT)) ORDER BY i))
		FROM (SELECT i, `+from+` AS "from", `+to+` AS "to", counted FROM edges LEFT JOIN tally USING (i))`, engine.ProfileBins, extent, values)
}
