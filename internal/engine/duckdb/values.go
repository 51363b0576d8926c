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
	// Columns whose estimated number of values is beyond so many times the room for them are not counted as a whole,
	// which would take memory or disk for each value: their most frequent values are estimated, the others picked.
	muchTooMany = 4
	topValues   = 1000
	// Texts of so many characters on average are free texts. Nobody writes one into a question word by word, so that
	// fewer will do.
	freeText      = 50
	freeTextShare = 10
)

// textColumn is a column whose values are listed.
type textColumn struct {
	at       int // in the request
	name     string
	Distinct int64   `json:"distinct"` // about
	Long     int64   `json:"long"`
	Length   float64 `json:"length"`
}

// listing is a list of values under way.
type listing struct {
	*program

	bounds engine.ValueBounds // that are left
	out    *bufio.Writer
	listed []engine.ListedColumn
}

// values writes the distinct values of columns, one JSON array a line.
func (p *program) values(request engine.ValuesRequest, conn *sandbox.Conn) (engine.Answer, error) {
	if p.profiled == nil { // settings are fixed once
		if err := p.settle(request.Memory, request.Threads, request.Disk); err != nil {
			return engine.Answer{}, err
		}
	}

	if err := p.db.exec(`CREATE VIEW ` + valuesView + ` AS SELECT ` + columnsOf(request.View) + ` FROM ` + p.filesOf(request.View)); err != nil {
		return engine.Answer{}, refuse(err)
	}

	l := listing{program: p, bounds: request.Bounds, out: bufio.NewWriterSize(conn.Data, 1<<18), listed: make([]engine.ListedColumn, len(request.Columns))}

	columns, err := l.estimate(request.Columns)

	// Those with few values first: they are worth most, and leave room.
	slices.SortStableFunc(columns, func(a, b textColumn) int { return cmp.Compare(a.Distinct, b.Distinct) })

	for _, c := range columns {
		if err == nil {
			err = l.list(c)
		}
	}

	// Also before an error: the parent takes half a line for a child gone wrong.
	if flushed := l.out.Flush(); err == nil {
		err = flushed
	}

	return engine.Answer{Listed: l.listed}, refuse(err)
}

// estimate finds out about how many values the columns have.
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
		size := int64(len(line)) // a little more than the text has

		if done.Values == int64(room) || size > l.bounds.Bytes {
			done.Sampled = true

			return false
		}

		done.Values++
		l.bounds.Table--
		l.bounds.Bytes -= size
		_, _ = l.out.Write(line) // its error stays, and Flush tells
		_ = l.out.WriteByte('\n')

		return true
	})

	done.Sampled = done.Sampled || c.Distinct > muchTooMany*int64(room)

	return err
}

// statement asks for one value more than there is room for, the most frequent first. Values of the same frequency
// come in the order of their hashes, so that what is left out is left out at random.
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
