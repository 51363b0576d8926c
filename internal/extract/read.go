package extract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// Rows are the rows that are read.
type Rows struct {
	Schema, Table string // of a table; or
	Query         string // one SELECT

	Cursor  string // column whose value grows; empty for all rows
	Overlap string // how far before From reading begins
	From    string // highest value that was read before; empty for all rows
	Unique  bool   // the cursor column must be unique and without NULL, because rows are appended

	AsText []string // columns that are read as text
}

// Found is what was read.
type Found struct {
	Rows   int64
	Cursor string   // highest value of the cursor column; From if there are no rows
	Texts  []string // columns, with their types, that are texts because their type has no exact counterpart
}

// UnfitError is the reason why rows cannot be read exactly. Somebody must change the source or the database.
type UnfitError struct{ Reason string }

func (e *UnfitError) Error() string { return e.Reason }

func unfit(format string, values ...any) error { return &UnfitError{fmt.Sprintf(format, values...)} }

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// relation returns the SQL of what is read. The closing parenthesis is on a new line, because a query may end with a comment.
func (r Rows) relation() string {
	if r.Query == "" {
		return quoted(r.Schema) + "." + quoted(r.Table)
	}

	return "(" + strings.TrimRight(strings.TrimSpace(r.Query), ";") + "\n)"
}

// Check finds out whether the rows can be read exactly. It reads none.
func (t Target) Check(ctx context.Context, r Rows) error {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout+t.Limits.Statement)
	defer cancel()

	s, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer s.close(ctx)

	if _, err := s.describe(ctx, r); err != nil {
		return err
	}

	_, err = s.texts(ctx, "SELECT 1 FROM "+r.relation()+" AS quern_rows LIMIT 0") // checks the rights, which a description does not

	return explained(err)
}

// describe returns the columns, and checks the cursor column.
func (s *session) describe(ctx context.Context, r Rows) ([]column, error) {
	described, err := s.conn.Prepare(ctx, "", "SELECT * FROM "+r.relation()+" AS quern_rows") //nolint:unqueryvet // which columns there are is the question
	if err != nil {
		return nil, explained(refused(err))
	}

	if len(described.ParamOIDs) > 0 {
		return nil, unfit("The query has parameters such as $1. Write the values into the query.")
	}

	columns, err := s.columns(ctx, described.Fields, r.AsText)
	if err != nil || r.Cursor == "" {
		return columns, err
	}

	at := slices.IndexFunc(columns, func(c column) bool { return c.name == r.Cursor })
	if at < 0 {
		return nil, unfit("There is no column %q. Names are written exactly, also upper and lower case.", r.Cursor)
	}

	if _, _, err := window(columns[at].oid, r); err != nil {
		return nil, err
	}

	if r.Unique {
		return columns, s.unique(ctx, r)
	}

	return columns, nil
}

// explained replaces refusals of which the source is the reason.
func explained(err error) error {
	refusal, ok := errors.AsType[*RefusalError](err)
	if !ok {
		return err
	}

	switch class := refusal.State; {
	case class == "42P01" || class == "3F000":
		return unfit("The database has no such table or schema, or the user may not see it. Names are written exactly, also upper and lower case.")
	case class == "42501":
		return unfit("The user of the connection may not read this. Grant SELECT on the table and USAGE on its schema.")
	case class == "25006":
		return unfit("The query writes. A source only reads.")
	case strings.HasPrefix(class, "42"), class == "0A000":
		return unfit("The database does not accept the query (SQLSTATE %s). It must be one SELECT.", state(class))
	case strings.HasPrefix(class, "22"):
		return unfit("The query fails on a value (SQLSTATE %s).", state(class))
	default:
		return err
	}
}

// state returns a SQLSTATE only if it is one.
func state(text string) string {
	if len(text) != 5 || strings.Trim(text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return "unknown"
	}

	return text
}

const uniqueIndex = `
	SELECT 1 FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
	WHERE i.indrelid = $1::pg_catalog.regclass AND a.attname = $2 AND a.attnotnull AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indnkeyatts = 1 AND i.indpred IS NULL`

func (s *session) unique(ctx context.Context, r Rows) error {
	if r.Query != "" {
		return unfit("Nothing shows that the values of %q are unique in a query. Give a key, so that rows are merged.", r.Cursor)
	}

	found, err := s.texts(ctx, uniqueIndex, r.relation(), r.Cursor)
	if err == nil && len(found) == 0 {
		err = unfit("Without a key, rows are appended, and the column %q must be NOT NULL and have a unique index of its own. Give a key, so that rows are merged.", r.Cursor)
	}

	return err
}

// window returns the SQL type of the cursor column and the SQL of the lower bound, which has the value $1.
func window(oid uint32, r Rows) (kind, bound string, err error) {
	number, isNumber := new(big.Int).SetString(r.Overlap, 10)
	duration, malformed := time.ParseDuration(r.Overlap)

	switch oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		if r.Overlap != "" && (!isNumber || number.Sign() < 0 || number.BitLen() > 63) {
			return "", "", unfit("The column %q has numbers, so the overlap must be a number such as 1000.", r.Cursor)
		}

		// In numeric, which cannot overflow.
		return "bigint", "$1::text::numeric - " + orZero(r.Overlap), nil
	case pgtype.TimestampOID, pgtype.TimestamptzOID, pgtype.DateOID:
		if r.Overlap != "" && r.Overlap != "0" && (malformed != nil || duration < 0) {
			return "", "", unfit("The column %q has times, so the overlap must be a duration such as 10m or 48h.", r.Cursor)
		}

		kind = map[uint32]string{pgtype.TimestampOID: "timestamp", pgtype.TimestamptzOID: "timestamptz", pgtype.DateOID: "date"}[oid]

		return kind, fmt.Sprintf("$1::text::%s - interval '%d microseconds'", kind, duration.Microseconds()), nil
	default:
		return "", "", unfit("The column %q is not a whole number, a date or a time. Only such a column can tell what is new.", r.Cursor)
	}
}

func orZero(text string) string {
	if text == "" {
		return "0"
	}

	return text
}

// Read writes the rows to a Parquet file.
func (t Target) Read(ctx context.Context, r Rows, to io.Writer) (found Found, err error) {
	reading, cancel := context.WithTimeout(ctx, t.Limits.Duration)
	defer cancel()

	s, err := t.open(reading)
	if err != nil {
		return Found{}, err
	}
	defer s.close(ctx)

	found, err = s.read(reading, t.Limits, r, to)
	if reading.Err() != nil && ctx.Err() == nil {
		err = unfit("The rows took longer to read than the service allows (%s). Load fewer with a query or the mode growing, or ask the operator (QUERN_SOURCE_LOAD_TIMEOUT).", t.Limits.Duration)
	}

	return found, err
}

func (s *session) read(ctx context.Context, limits Limits, r Rows, to io.Writer) (Found, error) {
	columns, err := s.describe(ctx, r)
	if err != nil {
		return Found{}, err
	}

	condition, values, highest, err := s.span(ctx, columns, r)
	if err != nil {
		return Found{}, err
	}

	found := Found{Cursor: highest}

	for _, c := range columns {
		if c.told {
			found.Texts = append(found.Texts, c.name+" ("+c.typeName+")")
		}
	}

	if r.Cursor != "" && len(values) == 0 {
		return Found{Cursor: r.From, Texts: found.Texts}, nil // no row has a value
	}

	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = "quern_rows." + quoted(c.name)
	}

	reader := s.conn.PgConn().ExecParams(ctx,
		"DECLARE quern_cursor NO SCROLL CURSOR FOR SELECT "+strings.Join(list, ", ")+" FROM "+r.relation()+" AS quern_rows"+condition, wire(values), nil, nil, nil)
	if _, err := reader.Close(); err != nil {
		return Found{}, explained(refused(err))
	}

	file, err := newFile(to, columns)
	if err != nil {
		return Found{}, err
	}

	defer func() { _ = file.wait() }() // so that nothing writes after this has returned

	for {
		n, err := s.page(ctx, limits, file)
		if err != nil {
			return Found{}, err
		}

		if n < int64(limits.Page) {
			break
		}

		select {
		case <-ctx.Done():
			return Found{}, ctx.Err()
		case <-time.After(limits.Wait):
		}
	}

	found.Rows = file.rows

	return found, file.close()
}

// span returns the condition for the rows that are new in this snapshot, its values, and the highest value of the cursor column.
func (s *session) span(ctx context.Context, columns []column, r Rows) (condition string, values []string, highest string, err error) {
	if r.Cursor == "" {
		return "", nil, "", nil
	}

	at := slices.IndexFunc(columns, func(c column) bool { return c.name == r.Cursor })
	name := "quern_rows." + quoted(r.Cursor)

	kind, bound, err := window(columns[at].oid, r)
	if err != nil {
		return "", nil, "", err
	}

	found, err := s.texts(ctx, "SELECT 1 FROM "+r.relation()+" AS quern_rows WHERE "+name+" IS NULL LIMIT 1")
	if err != nil {
		return "", nil, "", explained(err)
	}

	if len(found) > 0 {
		return "", nil, "", unfit("There are rows without a value in %q, which would never be loaded. Choose another column, or leave these rows out with a query.", r.Cursor)
	}

	if r.From != "" {
		operator := ">="
		if r.Unique {
			operator = ">"
		}

		condition, values = " WHERE "+name+" "+operator+" "+bound, []string{r.From}
	}

	found, err = s.texts(ctx, "SELECT max("+name+")::text FROM "+r.relation()+" AS quern_rows"+condition, values...)
	if err != nil {
		return "", nil, "", explained(err)
	}

	highest = single(found)
	if highest == "" {
		return "", nil, "", nil
	}

	if strings.Contains(highest, "infinity") || strings.HasSuffix(highest, "BC") {
		return "", nil, "", unfit("The highest value of %q is infinite or before our era: nothing can be told from it. Leave such rows out with a query.", r.Cursor)
	}

	if condition == "" {
		return " WHERE " + name + " <= $1::text::" + kind, []string{highest}, highest, nil
	}

	return condition + " AND " + name + " <= $2::text::" + kind, append(values, highest), highest, nil
}

// page adds one page of rows to the file, row by row.
func (s *session) page(ctx context.Context, limits Limits, file *file) (n int64, err error) {
	reader := s.conn.PgConn().ExecParams(ctx, "FETCH FORWARD "+strconv.Itoa(limits.Page)+" FROM quern_cursor", nil, nil, nil, file.formats())

	for err == nil && reader.NextRow() {
		n++

		if err = file.add(reader.Values()); err == nil && (file.rows > limits.Rows || file.bytes > limits.Bytes) {
			err = unfit("The load is larger than the service allows (%d rows, %d bytes). Load fewer with a query, or ask the operator (QUERN_SOURCE_MAX_ROWS, QUERN_SOURCE_MAX_BYTES).", limits.Rows, limits.Bytes)
		}
	}

	if err != nil {
		return 0, err // the session is closed without reading the rest
	}

	if _, err := reader.Close(); err != nil {
		return 0, explained(refused(err))
	}

	return n, nil
}

// columns returns the columns with the names of their types.
func (s *session) columns(ctx context.Context, fields []pgconn.FieldDescription, asText []string) ([]column, error) {
	if len(fields) == 0 {
		return nil, unfit("There are no columns.")
	}

	list := make([]column, len(fields))
	oids := make([]string, len(fields))

	for i, f := range fields {
		oids[i] = strconv.FormatUint(uint64(f.DataTypeOID), 10)
		list[i] = column{name: f.Name, oid: f.DataTypeOID}

		if slices.ContainsFunc(list[:i], func(c column) bool { return c.name == f.Name }) {
			return nil, unfit("There are two columns %q. Give one of them another name with AS.", f.Name)
		}
	}

	names, err := s.texts(ctx, "SELECT oid::text, typtype::text, pg_catalog.format_type(oid, NULL) FROM pg_catalog.pg_type WHERE oid = ANY ($1::text::oid[])", "{"+strings.Join(oids, ",")+"}")
	if err != nil {
		return nil, err
	}

	for i, f := range fields {
		for _, named := range names {
			if named[0] == oids[i] {
				list[i].typeName = named[2]
				list[i] = list[i].settled(f.TypeModifier, named[1] == "e", slices.Contains(asText, f.Name))
			}
		}

		if list[i].typeName == "" {
			return nil, unfit("The type of the column %q is not known to the database.", f.Name)
		}
	}

	for _, name := range asText {
		if !slices.ContainsFunc(list, func(c column) bool { return c.name == name }) {
			return nil, unfit("There is no column %q to be loaded as text.", name)
		}
	}

	return list, nil
}
