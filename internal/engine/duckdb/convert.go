package duckdb

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"quern.dev/quern/internal/engine"
)

// parserFor returns the parser that converts the texts of a column to a type, which is that of the table or one set by
// an option. The parser uses the decimal and thousands separators and the date format of the file, set by options or
// detected.
func (c *column) parserFor(kind string, options engine.Options) parser {
	isText := c.native == "" && (!c.isJSON || c.kind == engine.Varchar)
	known := c.parser.pattern != ""
	general := plain(kind)

	switch _, _, isDecimal := engine.DecimalOf(kind); {
	case c.kind == kind && known:
		return c.parser
	case c.likely.pattern != "" && c.likely.kind == kind:
		return c.likely
	case !isText:
		return general
	case kind == engine.Date || kind == engine.Timestamp:
		if c.kind == engine.Date && kind == engine.Timestamp && known {
			return c.parser.as(kind)
		}

		if given, err := dated(options.DateFormat); err == nil && options.DateFormat != "" {
			return given.as(kind)
		}
	case isDecimal || kind == engine.Double || kind == engine.Bigint:
		decimal, thousands := options.Signs()
		if c.parser.decimal != "" {
			decimal, thousands = c.parser.decimal, c.parser.thousands
		}

		if decimal != "." || thousands != "" {
			general = numbers(kind, decimal, thousands)
		}

		if c.parser.sign != "" {
			general = general.stripped(c.parser.sign)
		}
	}

	return general
}

// value returns SQL for the column as a type, which is NULL where there is no value. Where a value does not fit, the
// result is the SQL expression otherwise. absent is SQL that is true if there is no value; absent is "" if all values
// fit.
func (c *column) value(kind string, options engine.Options, otherwise string) (sql, absent string) {
	raw := c.plain()
	trimmed := `trim(` + raw + `)`
	nulls := ""

	if len(options.NullValues) > 0 && !c.isJSON && c.native == "" {
		nulls = trimmed + ` IN (` + texts(options.NullValues) + `)`
	}

	switch {
	case c.native == kind:
		return c.raw, ""
	case kind == engine.Varchar && nulls == "":
		return raw, ""
	case kind == engine.Varchar:
		return `CASE WHEN NOT ` + nulls + ` THEN ` + raw + ` END`, ""
	case kind == engine.JSON && c.isJSON:
		return `CASE WHEN json_type(` + c.raw + `) <> 'NULL' THEN CAST(` + c.raw + ` AS VARCHAR) END`, ""
	}

	absent = `coalesce(` + trimmed + `, '') = ''`
	if nulls != "" {
		absent = `(` + absent + ` OR ` + nulls + `)`
	}

	r := c.parserFor(kind, options)
	fits := r.fits(trimmed)

	if c.isJSON && kind == engine.Double { // a bare NaN is not valid JSON, only the text "NaN" is accepted
		fits += ` AND (isfinite(TRY_CAST(` + trimmed + ` AS DOUBLE)) OR json_type(` + c.raw + `) = 'VARCHAR')`
	}

	sql = fmt.Sprintf(`CASE WHEN %s THEN NULL WHEN %s THEN coalesce(%s, %s) ELSE %s END`, absent, fits, r.value(trimmed), otherwise, otherwise)

	if nulls == "" && r.usual != nil && !c.wide {
		when, value := r.usual(raw)
		sql = fmt.Sprintf(`CASE WHEN %s THEN coalesce(%s, %s) ELSE %s END`, when, value, otherwise, sql)
	}

	return sql, absent
}

// plain returns SQL for the raw value as a text.
func (c *column) plain() string {
	switch {
	case c.native != "":
		return `CAST(` + c.raw + ` AS VARCHAR)`
	case c.isJSON:
		return `(` + c.raw + ` ->> '$')`
	default:
		return c.raw
	}
}

// projection says how a file is converted to a table: SQL for its columns, and for what is wrong with a row.
type projection struct {
	columns []string
	fieldID []string
	whole   string   // SQL for what is wrong with the row as a whole; NULL if nothing is
	reasons []string // the same for each column
}

// add adds a column with a SQL expression.
func (p *projection) add(target engine.Column, sql string) {
	p.columns = append(p.columns, sql+` AS `+name(target.Name))
	p.fieldID = append(p.fieldID, name(target.Name)+`: `+strconv.Itoa(target.ID))
}

// project returns the projection to the target columns. Where a value does not fit, it is replaced with the SQL
// expression otherwise.
func (s *source) project(targets []engine.Column, options engine.Options, otherwise string) projection {
	p := projection{whole: "NULL"}

	if s.dialect == nil && s.file.format != engine.FormatParquet {
		p.whole = brokenLine
	}

	for _, target := range targets {
		i := slices.IndexFunc(s.columns, func(c column) bool { return strings.EqualFold(c.name, target.Name) })
		if i < 0 {
			p.add(target, `CAST(NULL AS `+sqlType(target.Type)+`)`)

			continue
		}

		c := &s.columns[i]

		value, absent := c.value(target.Type, options, otherwise)
		p.add(target, value)

		if absent != "" {
			value, _ = c.value(target.Type, options, "NULL")
			p.reasons = append(p.reasons, fmt.Sprintf(`CASE WHEN NOT %s AND (%s) IS NULL THEN %s || left(%s, 100) || %s END`, absent, value,
				text(`column "`+shorten(target.Name)+`": "`), c.plain(), text(`" is not a `+target.Type)))
		}
	}

	return p
}

// fault returns SQL for the first reason why a row does not fit; NULL if it fits.
func (p *projection) fault() string {
	return `coalesce(` + strings.Join(append([]string{p.whole}, p.reasons...), ", ") + `, NULL)`
}

const misfit = "a row does not fit"

// convert writes one file as Parquet.
func (p *program) convert(request engine.ConvertRequest) (engine.Converted, error) {
	converted, err := p.convertRows(request)
	if err == nil {
		converted.Pages = p.sources[request.Source].file.pages()
		converted.Sketch, err = p.sketch(filepath.Join(p.tmp, filepath.Base(request.Output)), request)
	}

	return converted, err
}

func (p *program) convertRows(request engine.ConvertRequest) (engine.Converted, error) {
	if request.Source < 0 || request.Source >= len(p.sources) || len(request.Columns) == 0 {
		return engine.Converted{}, fmt.Errorf("unknown source %d", request.Source)
	}

	s := p.sources[request.Source]

	converted, err := p.write(s, request, fmt.Sprintf("rejects_%d", request.Source))
	if err != nil || s.isComplete(converted) {
		return converted, err
	}

	// This has not been observed with whole buffers. But DuckDB can lose rows when it reads in parallel, so read again
	// with one thread.
	if s.dialect != nil && !s.dialect.oneByOne {
		s.dialect.oneByOne = true

		if converted, err = p.write(s, request, fmt.Sprintf("rejects_%d_one_by_one", request.Source)); err != nil {
			return converted, err
		}
	}

	if !s.isComplete(converted) {
		return converted, invalid("The file has %d records, but only %d could be parsed. Check its quotes.", s.records, converted.Rows+converted.SetAsideCount)
	}

	return converted, nil
}

// isComplete reports whether every record of the file was converted or set aside.
func (s *source) isComplete(c engine.Converted) bool {
	return s.file.format == engine.FormatParquet || c.Rows+c.SetAsideCount == s.records
}

// write writes the Parquet file. Most files have no row that does not fit, so the first attempt stops at the first such
// row. Only then are these rows collected and the others written.
func (p *program) write(s *source, request engine.ConvertRequest, rejects string) (engine.Converted, error) {
	var (
		output  = filepath.Join(p.tmp, filepath.Base(request.Output))
		stop    = `error('` + misfit + `')`
		strict  = s.project(request.Columns, p.options, stop)
		checked = s.counts()
		misfits asideRows
	)

	if strict.whole != "NULL" {
		checked += ` AND CASE WHEN (` + strict.whole + `) IS NOT NULL THEN ` + stop + ` ELSE true END`
	}

	count, err := p.copy(strict, s.relation(rejects), checked, output)
	if err != nil && strings.Contains(err.Error(), misfit) {
		lenient := s.project(request.Columns, p.options, "NULL")

		if misfits, err = p.misfitting(s, lenient); err != nil {
			return engine.Converted{}, err
		}

		rejects += "_again"
		count, err = p.copy(lenient, s.relation(rejects), s.counts()+` AND (`+lenient.fault()+`) IS NULL`, output)
	}

	if err != nil {
		return engine.Converted{}, explain(err)
	}

	rejected, err := p.rejected(s, rejects)
	if err != nil {
		return engine.Converted{}, err
	}

	aside := number(misfits.rows, rejected.rows)

	return engine.Converted{Rows: count, SetAsideCount: misfits.count + rejected.count, SetAside: aside[:min(len(aside), p.bounds.SetAside)]}, nil
}

func (p *program) copy(projected projection, relation, condition, output string) (rows int64, err error) {
	// The parent reads the file while it is written. The file of another attempt must be another file.
	if err := os.Remove(output); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}

	return p.db.change(fmt.Sprintf(`COPY (SELECT %s FROM %s WHERE %s) TO %s (FORMAT parquet, COMPRESSION zstd, FIELD_IDS {%s})`,
		strings.Join(projected.columns, ", "), relation, condition, text(output), strings.Join(projected.fieldID, ", ")))
}

// asideRows contains the first rows that were set aside for one kind of reason, and the total count.
type asideRows struct {
	rows  []engine.SetAside
	count int64
}

// misfitting returns the rows that do not fit. Their numbers do not count the records that DuckDB could not parse.
func (p *program) misfitting(s *source, projected projection) (asideRows, error) {
	type numbered struct {
		engine.SetAside

		Count int64
	}

	found, err := rows[numbered](p.db, fmt.Sprintf(`SELECT "row", left(reason, %d) AS reason, count(*) OVER () AS "Count" FROM (
		SELECT row_number() OVER () AS "row", %s AS reason FROM %s WHERE %s) WHERE reason IS NOT NULL ORDER BY "row" LIMIT %d`,
		maxReason, projected.fault(), s.relation(""), s.counts(), p.bounds.SetAside))

	var aside asideRows
	for _, f := range found {
		aside.rows, aside.count = append(aside.rows, f.SetAside), f.Count
	}

	return aside, explain(err)
}

const maxReason = 200

// number adds the rejected records to the row numbers of the misfits, so that they are numbers in the file, and returns
// both lists together. Both lists are in order.
func number(misfits, rejected []engine.SetAside) []engine.SetAside {
	before := 0

	for i := range misfits {
		for before < len(rejected) && rejected[before].Row <= misfits[i].Row+int64(before) {
			before++
		}

		misfits[i].Row += int64(before)
	}

	all := slices.Concat(misfits, rejected)
	slices.SortStableFunc(all, func(a, b engine.SetAside) int { return cmp.Compare(a.Row, b.Row) })

	return all
}
