package query

import (
	"fmt"
	"slices"
	"strings"

	"quern.dev/quern/internal/engine"
)

// like translates LIKE and ILIKE.
func like(c call) (typed, error) {
	if !c.are("varchar", "varchar") && !c.are("varchar", "varchar", "varchar") {
		return c.fails("Cast the value to VARCHAR.")
	}

	text, pattern, escape := c.args[0].sql, c.args[1].sql, ""

	if len(c.args) == 3 {
		escape = " ESCAPE " + c.args[2].sql
		if given := c.args[2].text; given == nil || len(*given) != 1 {
			return c.fails("The escape character must be one ASCII character.")
		}
	}

	if strings.HasSuffix(c.name, "*") || strings.Contains(c.name, "ilike") {
		text, pattern = "lower("+text+")", "lower("+pattern+")"
	}

	sql := "(" + text + " LIKE " + pattern + escape + ")"
	if strings.HasPrefix(c.name, "!") || strings.HasPrefix(c.name, "not_") {
		sql = "(NOT " + sql + ")"
	}

	return made(engine.Boolean, sql, c.args...), nil
}

// asText returns a value as text, as DuckDB writes it.
func asText(v typed) (sql string, ok bool) {
	switch {
	case v.kind == engine.Varchar:
		return v.sql, true
	case isExact(v.kind) || v.kind == engine.Date || v.kind == engine.Boolean || v.kind == nullKind:
		return "CAST(" + v.sql + " AS varchar)", true
	default:
		return "", false
	}
}

func concatenated(c call) (typed, error) {
	var parts []string

	for _, a := range c.args {
		text, ok := asText(a)
		if !ok {
			return c.fails("Cast the values to VARCHAR.")
		}

		parts = append(parts, text)
	}

	return made(engine.Varchar, "("+strings.Join(parts, " || ")+")", c.args...), nil
}

// spaces is what trim removes in DuckDB: the space separators of Unicode. Trino's trim removes other characters too.
const spaces = `\p{Zs}+`

// textFunction translates functions of texts.
func (tr *translation) textFunction(c call) (v typed, ok bool, err error) {
	ok = true

	switch name := c.name; {
	case (name == "lower" || name == "lcase") && c.are("varchar"):
		v = c.made(engine.Varchar, "lower(%s)")
	case (name == "upper" || name == "ucase") && c.are("varchar"):
		v = c.made(engine.Varchar, "upper(%s)")
	case slices.Contains([]string{"length", "len", "char_length", "character_length"}, name) && c.are("varchar"):
		v = c.made(engine.Bigint, "length(%s)")
	case name == "strlen" && c.are("varchar"):
		v = c.made(engine.Bigint, "length(to_utf8(%s))")
	case name == "trim" && c.are("varchar"):
		v = c.made(engine.Varchar, "regexp_replace(%s, '^"+spaces+"|"+spaces+"$')")
	case name == "ltrim" && c.are("varchar"):
		v = c.made(engine.Varchar, "regexp_replace(%s, '^"+spaces+"')")
	case name == "rtrim" && c.are("varchar"):
		v = c.made(engine.Varchar, "regexp_replace(%s, '"+spaces+"$')")
	case name == "like_escape" || name == "ilike_escape" || name == "not_like_escape" || name == "not_ilike_escape":
		v, err = like(c)
	case name == "contains" && c.are("varchar", "varchar"):
		v = c.made(engine.Boolean, "(strpos(%s, %s) > 0)")
	case (name == "starts_with" || name == "prefix" || name == "^@") && c.are("varchar", "varchar"):
		v = c.made(engine.Boolean, "starts_with(%s, %s)")
	case (name == "strpos" || name == "instr" || name == "position") && c.are("varchar", "varchar") && isText(c.args[1]):
		v = c.made(engine.Bigint, "strpos(%s, %s)")
	case name == "replace" && c.are("varchar", "varchar", "varchar") && isText(c.args[1]):
		v = c.made(engine.Varchar, "replace(%s, %s, %s)")
	case name == "concat":
		v, err = tr.concat(c)
	case name == "concat_ws" && len(c.args) > 1 && c.are(slices.Repeat([]string{engine.Varchar}, len(c.args))...) && isText(c.args[0]):
		v = c.made(engine.Varchar, "concat_ws("+strings.TrimSuffix(strings.Repeat("%s, ", len(c.args)), ", ")+")")
	case name == "split_part" && c.are("varchar", "varchar", "integer") && isText(c.args[1]):
		v, err = tr.numbered(c, 2, 1, func(n int64) (typed, error) {
			return made(engine.Varchar, fmt.Sprintf("(CASE WHEN %s IS NOT NULL THEN coalesce(split_part(%s, %s, %d), '') END)", c.args[0].sql, c.args[0].sql, c.args[1].sql, n), c.args...), nil
		})
	case slices.Contains([]string{"substr", "substring", "left", "right"}, name):
		v, err = tr.part(c)
	default:
		ok = false
	}

	return v, ok, err
}

// isText reports whether a value is a constant text that is not empty: with an empty one the engines differ.
func isText(v typed) bool { return v.text != nil && *v.text != "" }

// concat translates concat, which ignores NULL in DuckDB.
func (tr *translation) concat(c call) (typed, error) {
	var parts []string

	for _, a := range c.args {
		text, ok := asText(a)
		if !ok {
			return c.fails("Cast the values to VARCHAR.")
		}

		parts = append(parts, "coalesce("+text+", '')")
	}

	return made(engine.Varchar, "("+strings.Join(append(parts, "''"), " || ")+")", c.args...), nil
}

// numbered calls do with the constant of an argument, which must be at least least.
func (tr *translation) numbered(c call, index int, least int64, do func(n int64) (typed, error)) (typed, error) {
	n, ok := tr.number(items(c.o["children"])[index])
	if !ok || n < least {
		return c.fails(fmt.Sprintf("Argument %d must be a constant of at least %d.", index+1, least))
	}

	return do(n)
}

// part translates substr, left and right with constant positions: with positions below 1 the engines differ.
func (tr *translation) part(c call) (typed, error) {
	text := c.args[0].sql

	switch {
	case c.name == "left" && c.are("varchar", "integer"):
		return tr.numbered(c, 1, 0, func(n int64) (typed, error) {
			return made(engine.Varchar, fmt.Sprintf("substr(%s, 1, %d)", text, n), c.args...), nil
		})
	case c.name == "right" && c.are("varchar", "integer"):
		return tr.numbered(c, 1, 1, func(n int64) (typed, error) {
			return made(engine.Varchar, fmt.Sprintf("(CASE WHEN length(%s) <= %d THEN %s ELSE substr(%s, -%d) END)", text, n, text, text, n), c.args...), nil
		})
	case c.are("varchar", "integer"):
		return tr.numbered(c, 1, 1, func(n int64) (typed, error) {
			return made(engine.Varchar, fmt.Sprintf("substr(%s, %d)", text, n), c.args...), nil
		})
	case c.are("varchar", "integer", "integer"):
		return tr.numbered(c, 1, 1, func(from int64) (typed, error) {
			return tr.numbered(c, 2, 0, func(n int64) (typed, error) {
				return made(engine.Varchar, fmt.Sprintf("substr(%s, %d, %d)", text, from, n), c.args...), nil
			})
		})
	default:
		return c.fails("The positions must be constants.")
	}
}

// numberFunction translates functions of numbers.
func (tr *translation) numberFunction(c call) (v typed, ok bool, err error) {
	if len(c.args) == 0 || !isNumeric(c.args[0].kind) {
		return v, false, nil
	}

	kind := c.args[0].kind
	precision, scale, isExact := digitsOf(kind)
	whole := func(name string) typed {
		switch {
		case kind == engine.Double:
			v := c.made(kind, name+"(%s)")
			v.whole = true

			return v
		case isInteger(kind):
			v := made(engine.Double, cast(c.args[0], engine.Double), c.args...)
			v.whole = true

			return v
		default:
			return made(decimalKind(precision, 0), "CAST("+name+"("+c.args[0].sql+") AS "+decimalKind(precision, 0)+")", c.args...)
		}
	}

	ok = true

	switch name := c.name; {
	case name == "abs" && len(c.args) == 1:
		v = c.made(kind, "abs(%s)")
	case name == "floor" && len(c.args) == 1:
		v = whole("floor")
	case (name == "ceil" || name == "ceiling") && len(c.args) == 1:
		v = whole("ceil")
	case name == "round" && len(c.args) == 1 && isInteger(kind):
		v = c.args[0]
	case name == "round" && len(c.args) == 1:
		v = whole("round")
	case name == "round" && len(c.args) == 2:
		v, err = tr.numbered(c, 1, 0, func(n int64) (typed, error) {
			digits := int(n)

			switch {
			case kind == engine.Double && n <= 9:
				return made(kind, fmt.Sprintf("round(%s, %d)", c.args[0].sql, n), c.args...), nil
			case isInteger(kind), isExact && digits >= scale:
				return c.args[0], nil
			case isExact:
				to := decimalKind(precision, digits)

				return made(to, fmt.Sprintf("CAST(round(%s, %d) AS %s)", c.args[0].sql, n, to), c.args...), nil
			default:
				return c.fails("Round to at most 9 digits.")
			}
		})
	default:
		ok = false
	}

	return v, ok, err
}

// generalFunction translates functions of values of any type.
func (tr *translation) generalFunction(c call) (v typed, ok bool, err error) {
	switch c.name {
	case "nullif":
		if len(c.args) != 2 {
			return v, false, nil
		}

		same, err := tr.comparison(c.o, "=", c.args[0], c.args[1])

		return made(c.args[0].kind, "(CASE WHEN "+same+" THEN NULL ELSE "+c.args[0].sql+" END)", c.args...), true, err
	case "greatest", "least":
		if len(c.args) == 0 {
			return v, false, nil
		}

		kind, texts, err := unify(c.o, c.name, c.args)
		if err == nil && kind == engine.Double || !compares(kind) {
			v, err = c.fails("Use CASE.")

			return v, true, err
		}

		name := map[string]string{"greatest": "array_max", "least": "array_min"}[c.name]

		return made(kind, name+"(filter(ARRAY["+strings.Join(texts, ", ")+"], v -> v IS NOT NULL))", c.args...), true, err
	default:
		return v, false, nil
	}
}
