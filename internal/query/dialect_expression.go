package query

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"quern.dev/quern/internal/engine"
)

// expression translates an expression.
func (tr *translation) expression(o object, in *scope) (typed, error) {
	switch o["class"] {
	case "COLUMN_REF":
		return tr.column(o, in)
	case "CONSTANT":
		return constantOf(o)
	case "PARAMETER":
		return tr.parameter(o)
	case "CAST":
		return tr.castOf(o, in)
	case "COMPARISON":
		return tr.compare(o, in)
	case "CONJUNCTION":
		return tr.conjunction(o, in)
	case "BETWEEN":
		return tr.between(o, in)
	case "OPERATOR":
		return tr.operator(o, in)
	case "CASE":
		return tr.caseOf(o, in)
	case "SUBQUERY":
		return tr.subquery(o, in)
	case "FUNCTION":
		return tr.function(o, in)
	case "WINDOW":
		return tr.window(o, in)
	default:
		return typed{}, unlike(o, "This expression", "")
	}
}

func (tr *translation) expressions(list []object, in *scope) (values []typed, err error) {
	for _, one := range list {
		v, err := tr.expression(one, in)
		if err != nil {
			return nil, err
		}

		if v.kind == intervalKind && len(list) > 2 {
			return nil, unlike(one, "An interval here", "")
		}

		values = append(values, v)
	}

	return values, nil
}

// column translates the name of a column: one of FROM, or of an item of the select list, or of an outer query.
func (tr *translation) column(o object, in *scope) (typed, error) {
	var parts []string

	for _, part := range list(o["column_names"]) {
		name, _ := part.(string)
		parts = append(parts, folded(name))
	}

	if len(parts) == 0 {
		return typed{}, unlike(o, "This name", "")
	}

	for at := in; at != nil; at = at.outer {
		found, err := at.find(o, parts)
		if err != nil {
			return typed{}, err
		}

		if found != nil {
			return typed{sql: found.sql, kind: found.kind}, nil
		}

		for _, one := range at.items {
			if len(parts) == 1 && one.name == parts[0] && one.name != "" {
				return one.typed, nil
			}
		}
	}

	return typed{}, unlike(o, fmt.Sprintf("The name %q", strings.Join(parts, ".")), "It must be a column of a dataset or of a subquery.")
}

// constant translates a constant.
func constantOf(o object) (typed, error) {
	given := child(o, "value")
	kind, _ := child(given, "type")["id"].(string)
	text, isText := given["value"].(string)
	number := fmt.Sprint(given["value"])
	v := typed{literal: true, constant: true}

	switch {
	case given["is_null"] == true:
		v.sql, v.kind = "NULL", nullKind
	case kind == "INTEGER" || kind == "BIGINT":
		v.sql, v.kind = kind+" "+literal(number), strings.ToLower(kind)
	case kind == "DOUBLE" && !isText:
		v.sql, v.kind = "DOUBLE "+literal(number), engine.Double
	case kind == "DECIMAL":
		return decimalConstant(o, given)
	case kind == "VARCHAR" && isText && !strings.Contains(text, mark):
		v.sql, v.kind, v.text = literal(text), engine.Varchar, &text
	case kind == "BOOLEAN":
		v.sql, v.kind = number, engine.Boolean
	default:
		return v, unlike(o, "A constant of type "+kind, "")
	}

	return v, nil
}

// decimalConstant translates a decimal number, whose value DuckDB writes without the point.
func decimalConstant(o, given object) (typed, error) {
	info := child(child(given, "type"), "type_info")
	width, widthErr := strconv.Atoi(fmt.Sprint(info["width"]))
	scale, scaleErr := strconv.Atoi(fmt.Sprint(info["scale"]))
	number, isNumber := given["value"].(json.Number)

	if widthErr != nil || scaleErr != nil || !isNumber || width > maxDigits || scale > width {
		return typed{}, unlike(o, "This number", "")
	}

	sign, digits := "", number.String()
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}

	for len(digits) <= scale {
		digits = "0" + digits
	}

	shown, kind := sign+digits[:len(digits)-scale]+"."+digits[len(digits)-scale:], decimalKind(width, scale)

	return typed{sql: "CAST(" + literal(strings.TrimSuffix(shown, ".")) + " AS " + kind + ")", kind: kind, literal: true, constant: true}, nil
}

// parameter translates a parameter. Its value is bound by Trino and is never part of the text.
func (tr *translation) parameter(o object) (typed, error) {
	name, _ := o["identifier"].(string)

	for i, one := range tr.s.parameters {
		if folded(one) != folded(name) {
			continue
		}

		given := tr.s.values[folded(name)]
		if given.Value == nil {
			return typed{sql: "NULL", kind: nullKind, constant: true}, nil
		}

		v := typed{sql: mark + strconv.Itoa(i) + mark, kind: strings.ReplaceAll(given.Type, " ", ""), constant: true}

		switch v.kind {
		case engine.Varchar:
			v.sql, v.text = "CAST("+v.sql+" AS varchar)", given.Value
		case engine.Timestamp, engine.Time:
			v.sql = "CAST(" + v.sql + " AS " + trinoType(v.kind) + ")"
		}

		if !compares(v.kind) {
			return v, unlike(o, "A parameter of type "+v.kind, "")
		}

		return v, nil
	}

	return typed{}, unlike(o, "This parameter", "")
}

func (tr *translation) compare(o object, in *scope) (typed, error) {
	operands, err := tr.expressions([]object{child(o, "left"), child(o, "right")}, in)
	if err != nil {
		return typed{}, err
	}

	kind, _ := o["type"].(string)

	sql, err := tr.comparison(o, map[string]string{
		"COMPARE_EQUAL": "=", "COMPARE_NOTEQUAL": "<>", "COMPARE_LESSTHAN": "<", "COMPARE_GREATERTHAN": ">",
		"COMPARE_LESSTHANOREQUALTO": "<=", "COMPARE_GREATERTHANOREQUALTO": ">=",
		"COMPARE_DISTINCT_FROM": "IS DISTINCT FROM", "COMPARE_NOT_DISTINCT_FROM": "IS NOT DISTINCT FROM",
	}[kind], operands[0], operands[1])

	return made(engine.Boolean, sql, operands...), err
}

// comparison translates a comparison. In DuckDB, NaN equals itself and is larger than every other number; in Trino it is neither.
func (tr *translation) comparison(o object, operator string, a, b typed) (string, error) {
	a, b = asLiteral(a, b.kind), asLiteral(b, a.kind)

	kind, ok := unified(a.kind, b.kind)
	if operator == "" || !ok || (!compares(kind) && kind != nullKind) {
		return "", unlike(o, fmt.Sprintf("A comparison of the types %s and %s", a.kind, b.kind), "Cast the values to one type. Write a date as DATE '2026-11-30'.")
	}

	if !isExact(kind) {
		a.sql, b.sql = cast(a, kind), cast(b, kind)
	}

	plain := a.sql + " " + operator + " " + b.sql
	if kind != engine.Double || (a.literal && b.literal) {
		return "(" + plain + ")", nil
	}

	if operator == "<" || operator == "<=" {
		a, b = b, a
	}

	first, second := "is_nan("+a.sql+")", "is_nan("+b.sql+")"

	switch operator {
	case "=":
		if !a.literal && !b.literal {
			plain += " OR (" + first + " AND " + second + ")"
		}
	case "<>":
		if !a.literal && !b.literal {
			plain = "(" + plain + ") AND NOT (" + first + " AND " + second + ")"
		}
	case "<", ">":
		if b.literal {
			plain += " OR " + first
		} else if !a.literal {
			plain += " OR (" + first + " AND NOT " + second + ")"
		}
	case "<=", ">=":
		if !a.literal {
			plain += " OR (" + first + " AND " + b.sql + " IS NOT NULL)"
		}
	}

	return "(" + plain + ")", nil
}

func (tr *translation) conjunction(o object, in *scope) (typed, error) {
	operator := " AND "
	if o["type"] == "CONJUNCTION_OR" {
		operator = " OR "
	}

	values, err := tr.expressions(items(o["children"]), in)
	if err != nil {
		return typed{}, err
	}

	var parts []string

	for _, v := range values {
		if v.kind != engine.Boolean && v.kind != nullKind {
			return typed{}, unlike(o, "A condition of type "+v.kind, "Compare the value: x <> 0.")
		}

		parts = append(parts, v.sql)
	}

	return made(engine.Boolean, "("+strings.Join(parts, operator)+")", values...), nil
}

func (tr *translation) between(o object, in *scope) (typed, error) {
	values, err := tr.expressions([]object{child(o, "input"), child(o, "lower"), child(o, "upper")}, in)
	if err != nil {
		return typed{}, err
	}

	lower, err := tr.comparison(o, ">=", values[0], values[1])
	if err != nil {
		return typed{}, err
	}

	upper, err := tr.comparison(o, "<=", values[0], values[2])

	return made(engine.Boolean, "("+lower+" AND "+upper+")", values...), err
}

func (tr *translation) operator(o object, in *scope) (typed, error) {
	children := items(o["children"])

	switch o["type"] {
	case "OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "COMPARE_IN", "COMPARE_NOT_IN", "OPERATOR_COALESCE":
	case "ARRAY_CONSTRUCTOR", "ARRAY_EXTRACT", "ARRAY_SLICE", "STRUCT_EXTRACT":
		return typed{}, unlike(o, "A list or a struct", "")
	default:
		return typed{}, unlike(o, "This operator", "")
	}

	values, err := tr.expressions(children, in)
	if err != nil || len(values) == 0 {
		return typed{}, err
	}

	first := values[0]

	switch o["type"] {
	case "OPERATOR_NOT":
		if first.kind != engine.Boolean && first.kind != nullKind {
			return typed{}, unlike(o, "NOT with a value of type "+first.kind, "")
		}

		return made(engine.Boolean, "(NOT "+first.sql+")", values...), nil
	case "OPERATOR_IS_NULL":
		return made(engine.Boolean, "("+first.sql+" IS NULL)", values...), nil
	case "OPERATOR_IS_NOT_NULL":
		return made(engine.Boolean, "("+first.sql+" IS NOT NULL)", values...), nil
	case "OPERATOR_COALESCE":
		kind, texts, err := unify(o, "coalesce", values)

		return made(kind, "coalesce("+strings.Join(append(texts, "NULL"), ", ")+")", values...), err
	default:
		return tr.in(o, values)
	}
}

// in translates IN with a list.
func (tr *translation) in(o object, values []typed) (typed, error) {
	var (
		parts                    []string
		keyword, join, operation = " IN (", " OR ", "="
	)

	if o["type"] == "COMPARE_NOT_IN" {
		keyword, join, operation = " NOT IN (", " AND ", "<>"
	}

	allTexts := values[0].kind == engine.Varchar

	for _, one := range values[1:] {
		allTexts = allTexts && one.kind == engine.Varchar

		part, err := tr.comparison(o, operation, values[0], one)
		if err != nil {
			return typed{}, err
		}

		parts = append(parts, part)
	}

	if allTexts && len(values) > 2 { // shorter, and Trino skips files by it
		var texts []string
		for _, one := range values[1:] {
			texts = append(texts, one.sql)
		}

		parts = []string{values[0].sql + keyword + strings.Join(texts, ", ") + ")"}
	}

	return made(engine.Boolean, "("+strings.Join(parts, join)+")", values...), nil
}

func (tr *translation) caseOf(o object, in *scope) (typed, error) {
	var conditions, results, all []typed

	for _, one := range items(o["case_checks"]) {
		condition, err := tr.condition(child(one, "when_expr"), in)
		if err != nil {
			return typed{}, err
		}

		conditions = append(conditions, condition)

		result, err := tr.expression(child(one, "then_expr"), in)
		if err != nil {
			return typed{}, err
		}

		results = append(results, result)
	}

	otherwise, err := tr.expression(child(o, "else_expr"), in)
	if err != nil {
		return typed{}, err
	}

	all = append(append(all, results...), otherwise)

	kind, texts, err := unify(o, "CASE", all)
	if err != nil {
		return typed{}, err
	}

	whens := make([]string, len(conditions))
	for i, condition := range conditions {
		whens[i] = " WHEN " + condition.sql + " THEN " + texts[i]
	}

	return made(kind, "(CASE"+strings.Join(whens, "")+" ELSE "+texts[len(texts)-1]+" END)", append(all, conditions...)...), nil
}

// subquery translates a subquery in an expression.
func (tr *translation) subquery(o object, in *scope) (typed, error) {
	found, err := tr.node(child(child(o, "subquery"), "node"), in, in.ctes)
	if err != nil {
		return typed{}, err
	}

	kind, _ := o["subquery_type"].(string)

	switch {
	case kind == "EXISTS":
		return typed{sql: "EXISTS (" + found.sql + ")", kind: engine.Boolean}, nil
	case kind == "NOT_EXISTS":
		return typed{sql: "(NOT EXISTS (" + found.sql + "))", kind: engine.Boolean}, nil
	case len(found.columns) != 1:
		return typed{}, unlike(o, "A subquery with several columns in an expression", "")
	case kind == "SCALAR":
		return typed{sql: "(" + found.sql + ")", kind: found.columns[0].kind}, nil
	case kind != "ANY" || o["comparison_type"] != "COMPARE_EQUAL":
		return typed{}, unlike(o, "A comparison with ANY or ALL", "Use IN (SELECT …), min or max.")
	}

	left, err := tr.expression(child(o, "child"), in)
	if err != nil {
		return typed{}, err
	}

	common, ok := unified(left.kind, found.columns[0].kind)
	if !ok || !compares(common) || common == engine.Double {
		return typed{}, unlike(o, fmt.Sprintf("IN with the types %s and %s", left.kind, found.columns[0].kind), "Cast the values to one type.")
	}

	alias := tr.alias()
	right := "SELECT " + cast(typed{sql: alias + ".c0", kind: found.columns[0].kind}, common) + " FROM (" + found.sql + ") AS " + alias

	return made(engine.Boolean, "("+cast(left, common)+" IN ("+right+"))", left, typed{}), nil
}
