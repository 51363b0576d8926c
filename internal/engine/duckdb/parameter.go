package duckdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"quern.dev/quern/internal/engine"
)

// define defines the result of a statement. Without parameters it is a view. A view cannot have parameters, so a
// statement with parameters becomes a subquery of every text that reads the result, and each is prepared and bound.
func (p *program) define(statement string) error {
	if len(p.db.values) == 0 {
		return p.db.exec(placed(`CREATE TEMP VIEW `+result+` AS `) + statement)
	}

	if err := p.enclose(statement); err != nil {
		return err
	}

	columns, err := p.describeBound()
	p.columns = columns

	return err
}

// over returns SQL that reads a list of columns of the result, between the texts before and after.
func (p *program) over(before, list, after string) string {
	if p.statement == "" {
		return before + `SELECT ` + list + ` FROM ` + result + after
	}

	return placed(before+`FROM (`) + p.statement + "\n) AS " + result + ` SELECT ` + list + after
}

// maxEnds limits at how many semicolons enclose looks for the end of a statement.
const maxEnds = 8

// enclose sets the statement that becomes a subquery: the text without its final semicolon and what follows it, which
// can only be comments. DuckDB itself judges where that is: the subquery must have the tree of the statement.
func (p *program) enclose(statement string) error {
	tree, err := p.tree(statement)
	if err != nil {
		return err
	}

	root, err := rootOf(tree)
	if err != nil {
		return err
	}

	rest := statement

	for range maxEnds {
		p.statement = rest

		if enclosed, err := p.tree(p.over(``, `*`, ``)); err == nil && sameTree(root, subqueryOf(enclosed)) {
			return nil
		}

		end := strings.LastIndexByte(rest, ';')
		if end < 0 {
			break
		}

		rest = rest[:end]
	}

	return &refusal{engine.StatementError{Kind: "parser", Message: "its end is not clear. Remove the semicolon and the comments after it", Position: -1}}
}

// node is the part of a tree that enclose compares.
type node struct {
	Statements []struct {
		Node json.RawMessage `json:"node"`
	} `json:"statements"`
	From struct {
		Subquery struct {
			Node json.RawMessage `json:"node"`
		} `json:"subquery"`
	} `json:"from_table"`
}

func rootOf(tree json.RawMessage) (json.RawMessage, error) {
	var whole node
	if err := json.Unmarshal(tree, &whole); err != nil || len(whole.Statements) != 1 {
		return nil, errors.Join(err, errors.New("a tree without exactly one statement"))
	}

	return whole.Statements[0].Node, nil
}

// subqueryOf returns the node of the subquery in FROM of the only statement; nil if there is none.
func subqueryOf(tree json.RawMessage) json.RawMessage {
	root, err := rootOf(tree)
	if err != nil {
		return nil
	}

	var outer node
	if json.Unmarshal(root, &outer) != nil {
		return nil
	}

	return outer.From.Subquery.Node
}

// describeBound returns the names and types of the result of a statement with parameters. The types depend on the
// values, so DuckDB knows them only when it executes the statement.
func (p *program) describeBound() (columns []resultColumn, err error) {
	rows, err := p.db.execute(p.over(``, `*`, ` LIMIT 0`))
	defer duckdb.DestroyResult(&rows)

	if err != nil {
		return nil, refuse(err)
	}

	for i := range duckdb.ColumnCount(&rows) {
		logical := duckdb.ColumnLogicalType(&rows, i)
		columns = append(columns, resultColumn{duckdb.ColumnName(&rows, i), kindOf(logical)})
		duckdb.DestroyLogicalType(&logical)
	}

	return columns, nil
}

// bind binds the values of the parameters to a prepared statement. A statement without parameters stays as it is.
func (d *database) bind(prepared duckdb.PreparedStatement) error {
	if duckdb.NParams(prepared) == 0 {
		return nil
	}

	for _, parameter := range d.values {
		var at duckdb.IdxT
		if duckdb.BindParameterIndex(prepared, &at, parameter.Name) == duckdb.StateError {
			return fmt.Errorf("the statement has no parameter %s", parameter.Name)
		}

		value, err := valueOf(parameter)
		if err != nil {
			return fmt.Errorf("the parameter %s: %w", parameter.Name, err)
		}

		state := duckdb.BindValue(prepared, at, value)
		duckdb.DestroyValue(&value)

		if state == duckdb.StateError {
			return fmt.Errorf("the parameter %s cannot be bound", parameter.Name)
		}
	}

	return nil
}

// errValue does not quote the value, because the error of a child is logged.
var errValue = errors.New("its value is not of its type")

// valueOf returns the value of a parameter. The parent has checked it.
func valueOf(parameter engine.Parameter) (duckdb.Value, error) {
	if parameter.Value == nil {
		return duckdb.CreateNullValue(), nil
	}

	text := *parameter.Value

	switch parameter.Type {
	case engine.Varchar:
		return duckdb.CreateVarchar(text), nil
	case engine.Boolean:
		return duckdb.CreateBool(text == "true"), nil
	case engine.Integer:
		number, err := strconv.ParseInt(text, 10, 32)

		return duckdb.CreateInt32(int32(number)), mismatch(err)
	case engine.Bigint:
		number, err := strconv.ParseInt(text, 10, 64)

		return duckdb.CreateInt64(number), mismatch(err)
	case engine.Double:
		number, err := strconv.ParseFloat(text, 64)

		return duckdb.CreateDouble(number), mismatch(err)
	case engine.Date:
		day, err := time.Parse(time.DateOnly, text)

		return duckdb.CreateDate(duckdb.NewDate(int32(day.Unix() / secondsOfDay))), mismatch(err) //nolint:gosec // a year has four digits
	case engine.Time:
		moment, err := time.Parse("2006-01-02T15:04:05", "1970-01-01T"+text)

		return duckdb.CreateTime(duckdb.NewTime(moment.UnixMicro())), mismatch(err)
	case engine.Timestamp:
		moment, err := time.Parse("2006-01-02T15:04:05", text)

		return duckdb.CreateTimestamp(duckdb.NewTimestamp(moment.UnixMicro())), mismatch(err)
	default:
		return decimalValue(parameter.Type, text)
	}
}

const secondsOfDay = 24 * 60 * 60

func mismatch(err error) error {
	if err != nil {
		return errValue
	}

	return nil
}

// decimalValue returns a decimal. The text has as many digits after the point as the type.
func decimalValue(kind, text string) (duckdb.Value, error) {
	precision, scale, isDecimal := engine.DecimalOf(kind)
	digits := strings.Replace(text, ".", "", 1)

	whole, ok := new(big.Int).SetString(digits, 10)
	if !isDecimal || !ok || len(strings.TrimLeft(digits, "-0")) > precision {
		return duckdb.Value{}, errValue
	}

	lower := new(big.Int).And(whole, new(big.Int).SetUint64(1<<64-1)) // two's complement, also for a negative number
	upper := new(big.Int).Rsh(whole, 64)

	return duckdb.CreateDecimal(duckdb.NewDecimal(uint8(precision), uint8(scale), duckdb.NewHugeInt(lower.Uint64(), upper.Int64()))), nil //nolint:gosec // at most 38
}
