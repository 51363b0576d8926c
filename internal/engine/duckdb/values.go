package duckdb

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/sandbox"
)

const (
	valuesView = "__listed"
	// Columns with an estimated number of values of more than muchTooMany times the limit are not counted completely,
	// because that needs memory or disk for each value. Their most frequent values are estimated, and others are
	// sampled.
	muchTooMany = 4
	topValues   = 1000
	// Columns with more than freeText characters per value on average contain free text. Questions do not quote such
	// texts word for word, so fewer of their values are listed.
	freeText      = 50
	freeTextShare = 10
)

// textColumn is a column of which the values are listed.
type textColumn struct {
	at       int // index in the request
	name     string
	Distinct int64   `json:"distinct"` // estimate
	Long     int64   `json:"long"`
	Length   float64 `json:"length"`
}

// listing is the state of a list of values.
type listing struct {
	*program

	bounds engine.ValueBounds // what is left of the limits
	out    *bufio.Writer
	listed []engine.ListedColumn
}

// values writes the distinct values of columns, as one JSON array per line.
func (p *program) values(request engine.ValuesRequest, conn *sandbox.Conn) (engine.Answer, error) {
	if p.profiled == nil { // the settings can be set only once
		if err := p.settle(request.Memory, request.Threads, request.Disk); err != nil {
			return engine.Answer{}, err
		}
	}

	if err := p.db.exec(`CREATE VIEW ` + valuesView + ` AS SELECT ` + columnsOf(request.View) + ` FROM ` + p.filesOf(request.View)); err != nil {
		return engine.Answer{}, refuse(err)
	}

	l := listing{program: p, bounds: request.Bounds, out: bufio.NewWriterSize(conn.Data, 1<<18), listed: make([]engine.ListedColumn, len(request.Columns))}

	columns, err := l.estimate(request.Columns)

	// Columns with few values come first: they are the most useful and leave space for others.
	slices.SortStableFunc(columns, func(a, b textColumn) int { return cmp.Compare(a.Distinct, b.Distinct) })

	for _, c := range columns {
		if err == nil {
			err = l.list(c)
		}
	}

	// Flush also after an error: the parent treats an incomplete line as a protocol violation.
	if flushed := l.out.Flush(); err == nil {
		err = flushed
	}

	return engine.Answer{Listed: l.listed}, refuse(err)
}

// estimate returns the columns with the estimated number of their values.
func (l *listing) estimate(names []string) (columns []textColumn, err error) {
	for i, column := range names {
		found, err := row[textColumn](l.db, fmt.Sprintf(`
			SELECT approx_count_distinct(%[1]s) AS distinct, count(*) FILTER (length(%[1]s) > %[2]d) AS long, coalesce(avg(length(%[1]s)), 0) AS length
			FROM %[3]s`, name(column), l.bounds.Length, valuesView))
		if err != nil {
			return nil, err
		}

		found.at, found.name = i, column
		columns = append(columns, found)
	}

	return columns, nil
}

// list writes the values of a column.
func (l *listing) list(c textColumn) error {
	room := min(l.bounds.Column, l.bounds.Table)
	if c.Length > freeText {
		room = min(room, l.bounds.Column/freeTextShare)
	}

	done := &l.listed[c.at]
	done.Long = c.Long

	if room == 0 {
		done.Sampled = c.Distinct > 0

		return nil
	}

	err := l.db.lines(l.statement(c, room), func(line []byte) bool {
		size := int64(len(line)) // slightly more than the length of the text

		if done.Values == int64(room) || size > l.bounds.Bytes {
			done.Sampled = true

			return false
		}

		done.Values++
		l.bounds.Table--
		l.bounds.Bytes -= size
		_, _ = l.out.Write(line) // Flush returns the error
		_ = l.out.WriteByte('\n')

		return true
	})

	done.Sampled = done.Sampled || c.Distinct > muchTooMany*int64(room)

	return err
}

// statement returns SQL for one value more than the limit, most frequent first. Values with the same frequency are
// ordered by hash, so that the values that are left out are random.
func (l *listing) statement(c textColumn, room int) string {
	v := name(c.name)
	from := fmt.Sprintf(`FROM %s WHERE %s <> '' AND length(%s) <= %d`, valuesView, v, v, l.bounds.Length)

	if c.Distinct > muchTooMany*int64(room) {
		from += fmt.Sprintf(` AND (hash(%s) %% %d = 0 OR %s IN (SELECT unnest(approx_top_k(%s, %d)) %s))`,
			v, c.Distinct/int64(room)+1, v, v, min(topValues, room), from)
	}

	return fmt.Sprintf(`SELECT CAST(json_array(%d, v, n) AS VARCHAR) FROM (SELECT %s AS v, count(*) AS n %s GROUP BY %[2]s) ORDER BY n DESC, hash(v) LIMIT %[4]d`,
		c.at, v, from, room+1)
}
