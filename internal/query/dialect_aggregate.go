package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"quern.dev/quern/internal/engine"
)

// aggregation is how an aggregate is translated. The format has %s for the argument; end is what follows it, such as FILTER.
type aggregation func(c call, distinct, end string) (typed, error)

// aggregateOf returns the translation of an aggregate; nil if there is none.
func aggregateOf(name string) aggregation {
	switch name {
	case "count_star", "count":
		return counted
	case "count_if", "countif":
		return func(c call, distinct, end string) (typed, error) {
			if !c.are(engine.Boolean) || distinct != "" {
				return c.fails("")
			}

			return made(hugeKind, "CAST(count_if("+c.args[0].sql+")"+end+" AS "+trinoType(hugeKind)+")", c.args...), nil
		}
	case "sum":
		return summed
	case "avg", "mean":
		return averaged
	case "min", "max":
		return extreme
	case "any_value":
		return func(c call, distinct, end string) (typed, error) {
			if len(c.args) != 1 || distinct != "" {
				return c.fails("")
			}

			return made(c.args[0].kind, "any_value("+c.args[0].sql+")"+end, c.args...), nil
		}
	case "bool_and", "bool_or":
		return func(c call, _, end string) (typed, error) {
			if !c.are(engine.Boolean) {
				return c.fails("")
			}

			return made(engine.Boolean, c.name+"("+c.args[0].sql+")"+end, c.args...), nil
		}
	case "median":
		return median
	case "arg_max", "max_by", "arg_min", "min_by":
		return extremeBy
	case "string_agg", "listagg", "group_concat":
		return joinedTexts
	default:
		return nil
	}
}

// aggregate translates a call of an aggregate that is not a window function.
func (tr *translation) aggregate(o object, name string, in *scope) (typed, error) {
	args, err := tr.expressions(items(o["children"]), in)
	if err != nil {
		return typed{}, err
	}

	c := call{o: o, name: name, args: args}

	distinct, end := "", ""
	if o["distinct"] == true {
		distinct = "DISTINCT "
	}

	orders := items(child(o, "order_bys")["orders"])

	if isJoined := slices.Contains([]string{"string_agg", "listagg", "group_concat"}, name); isJoined != (len(orders) > 0) {
		return c.fails(map[bool]string{true: "Give the order: string_agg(x, ',' ORDER BY x).", false: "Leave out the ORDER BY."}[isJoined])
	}

	if len(orders) > 0 {
		order, err := tr.orderBy(child(o, "order_bys"), in)
		if err != nil {
			return typed{}, err
		}

		distinct += order
	}

	filter := child(o, "filter")
	if filter != nil {
		condition, err := tr.boolean(filter, in)
		if err != nil {
			return typed{}, err
		}

		end = " FILTER (WHERE " + condition + ")"
	}

	v, err := aggregateOf(name)(c, distinct, end)
	v.aggregate, v.constant = true, false

	return v, err
}

func counted(c call, distinct, end string) (typed, error) {
	switch {
	case len(c.args) == 0 && distinct == "":
		return made(engine.Bigint, "count(*)"+end), nil
	case len(c.args) == 1:
		return made(engine.Bigint, "count("+distinct+c.args[0].sql+")"+end, c.args...), nil
	default:
		return c.fails("Count one column.")
	}
}

// summed translates sum. The sum of whole numbers has 128 bits in DuckDB.
func summed(c call, distinct, end string) (typed, error) {
	if len(c.args) != 1 {
		return c.fails("")
	}

	kind := c.args[0].kind
	_, scale, isExact := digitsOf(kind)

	switch {
	case kind == engine.Double:
		return made(kind, "sum("+distinct+c.args[0].sql+")"+end, c.args...), nil
	case isInteger(kind):
		return made(hugeKind, "sum("+distinct+cast(c.args[0], hugeKind)+")"+end, c.args...), nil
	case isExact:
		return made(decimalKind(maxDigits, scale), "sum("+distinct+c.args[0].sql+")"+end, c.args...), nil
	default:
		return c.fails("For conditions, use count(*) FILTER (WHERE …).")
	}
}

// averaged translates avg. Both engines divide the exact sum by the count.
func averaged(c call, distinct, end string) (typed, error) {
	if len(c.args) != 1 {
		return c.fails("")
	}

	of := c.args[0]
	_, scale, isExact := digitsOf(of.kind)
	count := "count(" + distinct + of.sql + ")" + end

	switch {
	case of.kind == engine.Double:
		return made(engine.Double, "avg("+distinct+of.sql+")"+end, of), nil
	case isExact:
		// The sum of decimals is divided as a whole number, by a multiple of the count.
		factor := "1" + strings.Repeat("0", scale)
		sum := "sum(" + distinct + cast(of, decimalKind(maxDigits, scale)) + ")" + end

		if scale > 0 {
			sum = "CAST(" + sum + " * CAST('" + factor + "' AS decimal(" + strconv.Itoa(scale+1) + ",0)) AS decimal(38,0))"
		}

		return made(engine.Double, "(CAST("+sum+" AS double) / nullif(CAST("+count+" AS double) * "+factor+"E0, 0E0))", of), nil
	default:
		return c.fails("")
	}
}

// extreme translates min and max. NaN is the largest number in DuckDB; Trino ignores it.
func extreme(c call, _, end string) (typed, error) {
	if len(c.args) != 1 || !compares(c.args[0].kind) {
		return c.fails("")
	}

	x := c.args[0].sql
	sql := c.name + "(" + x + ")" + end

	if c.args[0].kind == engine.Double {
		isNaN := "CASE WHEN bool_or(is_nan(" + x + "))" + end + " THEN nan() "

		if sql = "(" + isNaN + "ELSE " + sql + " END)"; c.name == "min" {
			sql = "coalesce(min(CASE WHEN NOT is_nan(" + x + ") THEN " + x + " END)" + end + ", " + isNaN + "END)"
		}
	}

	return made(c.args[0].kind, sql, c.args...), nil
}

// extremeBy translates arg_max and arg_min. DuckDB ignores rows without a value.
func extremeBy(c call, distinct, end string) (typed, error) {
	if len(c.args) != 2 || !compares(c.args[1].kind) || distinct != "" {
		return c.fails("")
	}

	name := map[string]string{"arg_max": "max_by", "arg_min": "min_by"}[c.name]
	if name == "" {
		name = c.name
	}

	by := c.args[1].sql
	if c.args[1].kind == engine.Double { // NaN is the largest number
		by = "ROW(is_nan(" + by + "), CASE WHEN is_nan(" + by + ") THEN 0E0 ELSE " + by + " END)"
	}

	return made(c.args[0].kind, name+"("+c.args[0].sql+", "+by+")"+filtered(end, c.args[0].sql+" IS NOT NULL AND "+c.args[1].sql+" IS NOT NULL"), c.args...), nil
}

// filtered adds a condition to a FILTER.
func filtered(end, condition string) string {
	if end == "" {
		return " FILTER (WHERE " + condition + ")"
	}

	return strings.TrimSuffix(end, ")") + " AND " + condition + ")"
}

// median translates the median. Trino has only an approximate one, so the values are sorted in a list. Between two decimals, DuckDB cuts
// the digits after the scale.
func median(c call, distinct, end string) (typed, error) {
	if len(c.args) != 1 || distinct != "" || !isNumeric(c.args[0].kind) {
		return c.fails("Cast the values to DOUBLE.")
	}

	kind, half := engine.Double, "5E-1"
	precision, scale, isDecimal := decimalOf(c.args[0].kind)

	if isDecimal {
		kind, half = c.args[0].kind, "CAST('0.5' AS decimal(2,1))"

		if precision > maxFast {
			return c.fails("Cast the values to DOUBLE.")
		}
	}

	list := "array_sort(array_agg(" + cast(c.args[0], kind) + ")" + filtered(end, c.args[0].sql+" IS NOT NULL") + ")"
	at := func(offset int) string {
		return fmt.Sprintf("element_at(%s, CAST((cardinality(%s) + %d) / 2 AS integer))", list, list, offset)
	}
	sql := at(1) + " + (" + at(2) + " - " + at(1) + ") * " + half

	if isDecimal {
		sql = fmt.Sprintf("CAST(truncate(%s, %d) AS %s)", sql, scale, kind)
	}

	return made(kind, "(CASE WHEN cardinality("+list+") > 0 THEN "+sql+" END)", c.args...), nil
}

// joinedTexts translates string_agg.
func joinedTexts(c call, distinct, end string) (typed, error) {
	distinct, order, _ := strings.Cut(distinct, " ORDER BY ")

	separator := "','"
	if len(c.args) == 2 && c.args[1].text != nil {
		separator = c.args[1].sql
	} else if len(c.args) != 1 {
		return c.fails("The separator must be a constant.")
	}

	if c.args[0].kind != engine.Varchar || distinct != "" {
		return c.fails("Cast the values to VARCHAR, and use a subquery for DISTINCT.")
	}

	return made(engine.Varchar, "array_join(array_agg("+c.args[0].sql+" ORDER BY "+order+")"+filtered(end, c.args[0].sql+" IS NOT NULL")+", "+separator+")", c.args...), nil
}

// window translates a window function.
func (tr *translation) window(o object, in *scope) (typed, error) {
	name, _ := o["function_name"].(string)
	name = strings.ToLower(name)

	if o["distinct"] == true || o["ignore_nulls"] == true || o["exclude_clause"] != "NO_OTHER" || len(items(o["arg_orders"])) > 0 {
		return typed{}, unlike(o, "This window function", "")
	}

	args, err := tr.expressions(items(o["children"]), in)
	if err != nil {
		return typed{}, err
	}

	over, err := tr.over(o, in)
	if err != nil {
		return typed{}, err
	}

	end := ""

	if filter := child(o, "filter_expr"); filter != nil {
		condition, err := tr.boolean(filter, in)
		if err != nil {
			return typed{}, err
		}

		end = " FILTER (WHERE " + condition + ")"
	}

	c := call{o: o, name: name, args: args}

	var v typed

	switch {
	case slices.Contains([]string{"row_number", "rank", "dense_rank", "rank_dense"}, name) && len(args) == 0:
		v = typed{sql: strings.Replace(name, "rank_dense", "dense_rank", 1) + "()" + over, kind: engine.Bigint}
	case slices.Contains([]string{"percent_rank", "cume_dist"}, name) && len(args) == 0:
		v = typed{sql: name + "()" + over, kind: engine.Double}
	case (name == "lag" || name == "lead") && len(args) == 1 && end == "":
		v, err = tr.shifted(c, over, in)
	case (name == "first_value" || name == "last_value") && len(args) == 1 && end == "":
		v = made(args[0].kind, name+"("+args[0].sql+")"+over, args...)
	case slices.Contains([]string{"count_star", "count", "sum", "avg", "min", "max", "count_if"}, name):
		v, err = aggregateOf(name)(c, "", end+over)
	default:
		return c.fails("")
	}

	v.constant = false

	return v, err
}

// shifted translates lag and lead.
func (tr *translation) shifted(c call, over string, in *scope) (typed, error) {
	offset := int64(1)

	if given := child(c.o, "offset_expr"); given != nil {
		number, ok := tr.number(given)
		if !ok || number < 0 {
			return c.fails("The offset must be a constant.")
		}

		offset = number
	}

	v := c.args[0]
	texts := []string{v.sql, strconv.FormatInt(offset, 10)}

	if given := child(c.o, "default_expr"); given != nil {
		otherwise, err := tr.expression(given, in)
		if err != nil {
			return typed{}, err
		}

		if kind, ok := unified(v.kind, otherwise.kind); !ok || kind != v.kind {
			return c.fails("The default must have the type of the column.")
		}

		texts = append(texts, cast(otherwise, v.kind))
	}

	return made(v.kind, c.name+"("+strings.Join(texts, ", ")+")"+over, v), nil
}

// over translates OVER.
func (tr *translation) over(o object, in *scope) (string, error) {
	var parts []string

	partitions, err := tr.expressions(items(o["partitions"]), in)
	if err != nil {
		return "", err
	}

	for i, one := range partitions {
		if i == 0 {
			one.sql = "PARTITION BY " + one.sql
		}

		parts = append(parts, one.sql)
	}

	inside := strings.Join(parts, ", ")

	if len(items(o["orders"])) > 0 {
		order, err := tr.orderBy(o, in)
		if err != nil {
			return "", err
		}

		inside += order
	}

	frame, err := tr.frame(o)
	if err != nil {
		return "", err
	}

	return " OVER (" + strings.TrimSpace(inside+frame) + ")", nil
}

// frame translates the frame of a window. Without one, both engines use the same.
func (tr *translation) frame(o object) (string, error) {
	start, _ := o["start"].(string)
	end, _ := o["end"].(string)

	if start == "UNBOUNDED_PRECEDING" && end == "CURRENT_ROW_RANGE" {
		return "", nil
	}

	unit := " ROWS"
	if strings.HasSuffix(start, "_RANGE") || strings.HasSuffix(end, "_RANGE") {
		unit = " RANGE"
	}

	bound := func(name, key string) (string, bool) {
		switch {
		case strings.HasPrefix(name, "UNBOUNDED_"), strings.HasPrefix(name, "CURRENT_ROW"):
			return strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(name, "_RANGE"), "_ROWS"), "_", " "), true
		case strings.HasPrefix(name, "EXPR_PRECEDING_ROWS"), strings.HasPrefix(name, "EXPR_FOLLOWING_ROWS"):
			number, ok := tr.number(child(o, key))

			return fmt.Sprintf("%d %s", number, strings.TrimSuffix(strings.TrimPrefix(name, "EXPR_"), "_ROWS")), ok && number >= 0
		default:
			return "", false
		}
	}

	from, fromOK := bound(start, "start_expr")
	to, toOK := bound(end, "end_expr")

	if !fromOK || !toOK {
		return "", unlike(o, "This frame of a window", "Use ROWS BETWEEN with numbers.")
	}

	return unit + " BETWEEN " + from + " AND " + to, nil
}
