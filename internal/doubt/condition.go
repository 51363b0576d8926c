package doubt

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// comparisons returns the signs of comparisons by their type in the tree.
func comparisons() map[string]string {
	return map[string]string{
		"COMPARE_EQUAL": "=", "COMPARE_NOTEQUAL": "<>", "COMPARE_LESSTHAN": "<", "COMPARE_GREATERTHAN": ">", "COMPARE_LESSTHANOREQUALTO": "<=",
		"COMPARE_GREATERTHANOREQUALTO": ">=", "COMPARE_NOT_DISTINCT_FROM": "=", "COMPARE_DISTINCT_FROM": "<>", "COMPARE_IN": "=", "COMPARE_NOT_IN": "<>",
	}
}

// condition reads a condition into the filters and the pairs of columns of a SELECT.
func (r reader) condition(e object, negated bool) {
	kind := text(e["type"])

	switch text(e["class"]) {
	case "":
	case "CONJUNCTION":
		for _, one := range items(e["children"]) {
			r.condition(one, negated)
		}
	case "COMPARISON":
		r.compare(comparisons()[kind], negated, child(e, "left"), child(e, "right"))
	case "BETWEEN":
		r.compare(">=", negated, child(e, "input"), child(e, "lower"))
		r.compare("<=", negated, child(e, "input"), child(e, "upper"))
	case "OPERATOR":
		list := items(e["children"])

		switch {
		case kind == "OPERATOR_NOT" && len(list) == 1:
			r.condition(list[0], !negated)
		case kind == "OPERATOR_IS_NULL" && len(list) == 1:
			r.in.filters = append(r.in.filters, filter{refs: r.value(list[0]), is: "empty", negated: !negated})
		case kind == "OPERATOR_IS_NOT_NULL" && len(list) == 1:
			r.in.filters = append(r.in.filters, filter{refs: r.value(list[0]), is: "filled", negated: negated})
		case (kind == "COMPARE_IN" || kind == "COMPARE_NOT_IN") && len(list) > 0:
			r.compare(comparisons()[kind], negated, list[0], list[1:]...)
		default:
			r.value(e["children"])
		}
	case "FUNCTION":
		if name := strings.ToLower(text(e["function_name"])); strings.Contains(name, "~~") || slices.Contains([]string{"contains", "starts_with", "prefix", "suffix", "regexp_matches"}, name) {
			list := items(e["children"])
			if len(list) == 2 {
				r.compare("like", negated != strings.HasPrefix(name, "!"), list[0], list[1])

				return
			}
		}

		r.value(e)
	case "SUBQUERY":
		r.subquery(e)

		refs := r.value(e["child"])
		if negated || strings.Contains(text(e["subquery_type"]), "NOT") {
			r.in.filters = append(r.in.filters, filter{refs: refs, is: "<>", negated: true, opaque: true})
		}
	default:
		if refs := r.value(e); len(refs) > 0 {
			r.in.filters = append(r.in.filters, filter{refs: refs, is: "=", negated: negated})
		}
	}
}

// compare reads a comparison with one or several values.
func (r reader) compare(is string, negated bool, left object, right ...object) {
	if len(right) == 1 {
		if _, ok := valueOf(left); ok {
			left, right[0] = right[0], left
			is = map[string]string{"<": ">", ">": "<", "<=": ">=", ">=": "<="}[is] + strings.Trim(is, "<>=")

			if is == "" {
				is = "="
			}
		}
	}

	f := filter{is: is, negated: negated != (is == "<>"), part: partOf(left)}
	f.refs = r.value(left)

	for _, one := range right {
		v, ok := valueOf(one)
		if !ok {
			others := r.value(one)
			f.opaque = true

			if is == "=" && len(f.refs) == 1 && len(others) == 1 && text(left["class"]) == "COLUMN_REF" && text(one["class"]) == "COLUMN_REF" {
				r.in.pairs = append(r.in.pairs, [2]ref{f.refs[0], others[0]})

				return
			}

			f.refs = append(f.refs, others...)

			continue
		}

		f.values = append(f.values, v)
	}

	r.in.filters = append(r.in.filters, f)
}

// partOf returns the part of a date that an expression takes.
func partOf(e object) string {
	if text(e["class"]) == "CAST" {
		return partOf(child(e, "child"))
	}

	if text(e["class"]) != "FUNCTION" {
		return ""
	}

	name, list := strings.ToLower(text(e["function_name"])), items(e["children"])

	switch name {
	case "year", "month", "quarter", "day", "week", "dayofweek", "weekday", "isodow", "hour":
		return name
	case "date_part", "datepart", "date_trunc", "extract":
		if len(list) > 0 {
			if part, ok := constantOf(list[0]); ok {
				if name == "date_trunc" {
					return "trunc " + part.text
				}

				return strings.ToLower(part.text)
			}
		}
	case "strftime":
		return "strftime"
	}

	return ""
}

// constantOf returns the value of a constant.
func constantOf(e object) (c constant, ok bool) {
	switch text(e["class"]) {
	case "CAST":
		return constantOf(child(e, "child"))
	case "CONSTANT":
	default:
		return c, false
	}

	switch value := child(e, "value")["value"].(type) {
	case json.Number:
		number, err := value.Float64()
		c = constant{text: value.String(), number: number, isNumber: err == nil}

		// A decimal is written as a whole number with a scale.
		if info := child(child(child(e, "value"), "type"), "type_info"); info["scale"] != nil {
			if scale, ok := info["scale"].(json.Number); ok {
				digits, _ := scale.Int64()
				for range digits {
					c.number /= 10
				}
			}
		}
	case string:
		c = constant{text: value}
		c.day, _ = time.Parse(time.DateOnly, value[:min(len(value), len(time.DateOnly))])
	case bool:
		c = constant{text: strconv.FormatBool(value)}
	default:
		return c, false
	}

	return c, true
}

// valueOf calculates an expression without columns: a constant, or a day plus or minus an interval.
func valueOf(e object) (constant, bool) {
	if c, ok := constantOf(e); ok {
		return c, true
	}

	if text(e["class"]) == "CAST" {
		return valueOf(child(e, "child"))
	}

	list, name := items(e["children"]), strings.ToLower(text(e["function_name"]))

	if text(e["class"]) != "FUNCTION" {
		return constant{}, false
	}

	if name == "make_date" && len(list) == 3 {
		var parts [3]int

		for i, one := range list {
			c, ok := constantOf(one)
			if !ok || !c.isNumber {
				return constant{}, false
			}

			parts[i] = int(c.number)
		}

		return dayOf(time.Date(parts[0], time.Month(parts[1]), parts[2], 0, 0, 0, 0, time.UTC)), true
	}

	if name == "-" && len(list) == 1 {
		c, ok := valueOf(list[0])
		c.number = -c.number

		return c, ok && c.isNumber
	}

	if (name != "+" && name != "-") || len(list) != 2 {
		return constant{}, false
	}

	day, ok := valueOf(list[0])
	if !ok || day.day.IsZero() {
		return constant{}, false
	}

	years, months, days, ok := intervalOf(list[1])
	if !ok {
		return constant{}, false
	}

	if name == "-" {
		years, months, days = -years, -months, -days
	}

	return dayOf(day.day.AddDate(years, months, days)), true
}

func dayOf(day time.Time) constant { return constant{text: day.Format(time.DateOnly), day: day} }

var interval = regexp.MustCompile(`(?i)^(\d+) *(day|week|month|quarter|year)s?$`)

// intervalOf returns an interval of days, months or years. A number is a number of days.
func intervalOf(e object) (years, months, days int, ok bool) {
	unit := "day"

	if text(e["class"]) == "FUNCTION" {
		unit = strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(text(e["function_name"])), "to_"), "s")
		list := items(e["children"])

		if len(list) != 1 {
			return 0, 0, 0, false
		}

		e = list[0]
	}

	amount, ok := constantOf(e)
	if found := interval.FindStringSubmatch(amount.text); found != nil && !amount.isNumber {
		unit = strings.ToLower(found[2])
		amount.number, _ = strconv.ParseFloat(found[1], 64)
		amount.isNumber = true
	}

	if !ok || !amount.isNumber {
		return 0, 0, 0, false
	}

	n := int(amount.number)

	switch unit {
	case "day":
		return 0, 0, n, true
	case "week":
		return 0, 0, 7 * n, true
	case "month":
		return 0, n, 0, true
	case "quarter":
		return 0, 3 * n, 0, true
	case "year":
		return n, 0, 0, true
	}

	return 0, 0, 0, false
}

func child(o object, key string) object {
	inner, _ := o[key].(object)

	return inner
}

func items(value any) (list []object) {
	found, _ := value.([]any)
	for _, item := range found {
		if o, ok := item.(object); ok {
			list = append(list, o)
		}
	}

	return list
}

func text(value any) string {
	found, _ := value.(string)

	return found
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}

	return b
}

func sortedKeys(o object) []string { return slices.Sorted(maps.Keys(o)) }
