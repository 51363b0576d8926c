package query

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"time"

	"quern.dev/quern/internal/lake"
)

// conditions returns the conditions that every row that the statement uses must meet: comparisons of columns with
// constants that are joined by AND in the WHERE clause. It returns none unless the statement names exactly one dataset,
// once.
func (s *statement) conditions(columns []lake.Column) (found []lake.Condition) {
	from := child(s.root, "from_table")
	if s.root["type"] != "SELECT_NODE" || from["type"] != "BASE_TABLE" || len(s.tables) != 1 || !s.names(from) || len(list(from["column_name_alias"])) > 0 {
		return nil
	}

	alias, _ := from["alias"].(string)
	if alias == "" {
		alias, _ = from["table_name"].(string)
	}

	for _, part := range conjuncts(s.valued(child(s.root, "where_clause"))) {
		found = append(found, comparison(part, alias, columns)...)
	}

	return found
}

// conjuncts returns the parts of a condition that must all be true.
func conjuncts(o object) []object {
	if o["class"] != "CONJUNCTION" || o["type"] != "CONJUNCTION_AND" {
		return []object{o}
	}

	var parts []object
	for _, part := range items(o["children"]) {
		parts = append(parts, conjuncts(part)...)
	}

	return parts
}

// The operators by their names in the tree, and each operator for swapped sides.
var (
	operators = map[string]string{ //nolint:gochecknoglobals // read only
		"COMPARE_EQUAL": "=", "COMPARE_LESSTHAN": "<", "COMPARE_LESSTHANOREQUALTO": "<=", "COMPARE_GREATERTHAN": ">", "COMPARE_GREATERTHANOREQUALTO": ">=",
	}
	turned = map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="} //nolint:gochecknoglobals // read only
)

func comparison(o object, alias string, columns []lake.Column) []lake.Condition {
	compare := func(left, right object, operator string) []lake.Condition {
		column, isColumn := columnOf(left, alias, columns)
		if !isColumn || operator == "" {
			return nil
		}

		value := constant(right, column.Type)
		if value == nil {
			return nil
		}

		return []lake.Condition{{Column: column.ID, Operator: operator, Value: value}}
	}

	kind, _ := o["type"].(string)

	switch o["class"] {
	case "COMPARISON":
		left, right, operator := child(o, "left"), child(o, "right"), operators[kind]
		if left["class"] != "COLUMN_REF" {
			left, right, operator = right, left, turned[operator]
		}

		return compare(left, right, operator)
	case "BETWEEN":
		if kind != "COMPARE_BETWEEN" {
			return nil
		}

		return append(compare(child(o, "input"), child(o, "lower"), ">="), compare(child(o, "input"), child(o, "upper"), "<=")...)
	default:
		return nil
	}
}

func columnOf(o object, alias string, columns []lake.Column) (lake.Column, bool) {
	var names []string

	for _, part := range list(o["column_names"]) {
		name, _ := part.(string)
		names = append(names, name)
	}

	if o["class"] != "COLUMN_REF" || len(names) == 0 || len(names) > 2 || (len(names) == 2 && !strings.EqualFold(names[0], alias)) {
		return lake.Column{}, false
	}

	at := slices.IndexFunc(columns, func(c lake.Column) bool { return strings.EqualFold(c.Name, names[len(names)-1]) })
	if at < 0 {
		return lake.Column{}, false
	}

	return columns[at], true
}

// constant returns the value of a constant that is compared with a column of the type. It returns nil if the expression
// is not a constant, or if the comparison is not a plain comparison of two values of that type.
func constant(o object, of lake.Type) any {
	if o["class"] == "CAST" {
		kind, _ := child(o, "cast_type")["id"].(string)
		if (of == lake.Date && kind == "DATE") || (of == lake.Timestamp && kind == "TIMESTAMP") {
			o = child(o, "child")
		}

		if of == lake.Timestamp && kind == "DATE" { // a cast to DATE drops the time of day
			return constant(o, lake.Date)
		}
	}

	value := child(o, "value")
	kind, _ := child(value, "type")["id"].(string)

	if o["class"] != "CONSTANT" || value["is_null"] != false {
		return nil
	}

	text, isText := value["value"].(string)
	number, isNumber := value["value"].(json.Number)

	switch {
	case isText && kind == "VARCHAR":
		return textConstant(text, of)
	case isNumber && (kind == "INTEGER" || kind == "BIGINT"):
		return numberConstant(number.String(), 0, of)
	case isNumber && kind == "DECIMAL":
		scale, _ := child(child(value, "type"), "type_info")["scale"].(json.Number)

		places, err := scale.Int64()
		if err != nil || places < 0 || places > 38 {
			return nil
		}

		return numberConstant(number.String(), places, of)
	default:
		return nil
	}
}

func textConstant(text string, of lake.Type) any {
	layouts := map[lake.Type][]string{
		lake.Date:      {time.DateOnly},
		lake.Timestamp: {time.DateOnly, time.DateTime, "2006-01-02T15:04:05"},
	}

	if of == lake.Varchar {
		return text
	}

	for _, layout := range layouts[of] {
		if moment, err := time.Parse(layout, text); err == nil {
			return moment.Truncate(time.Microsecond) // as DuckDB does
		}
	}

	return nil
}

// numberConstant returns the number with these digits, of which the last scale are after the decimal point, as a value of
// the type; nil if the type cannot hold it.
func numberConstant(digits string, scale int64, of lake.Type) any {
	whole, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return nil
	}

	value := new(big.Rat).SetFrac(whole, new(big.Int).Exp(big.NewInt(10), big.NewInt(scale), nil))

	switch _, _, isDecimal := of.Decimal(); {
	case of == lake.Bigint && scale == 0 && whole.IsInt64():
		return whole.Int64()
	case of == lake.Double:
		f, _ := value.Float64()

		return f
	case isDecimal:
		return value
	default:
		return nil
	}
}
