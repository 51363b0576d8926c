package query

import (
	"fmt"
	"slices"
	"strings"
)

// lasting checks a statement that somebody wants to keep as the answer to a question. It refuses a statement that reads no
// dataset, and one that may return other rows although the data is the same. It accepts all statements that are not kept.
//
// Faults: QueryInvalid.
func (s *statement) lasting(want Statement) error {
	switch {
	case !want.Lasting:
		return nil
	case s.show != nil, len(s.tables) == 0:
		return invalid(-1, "The statement reads no dataset. A statement that is kept answers from the rows of datasets.")
	case slices.ContainsFunc(s.tables, table.isInfo):
		return invalid(-1, "A statement that is kept reads datasets only, not information_schema.")
	default:
		return repeatable(s.root)
	}
}

// repeatable refuses everything in a tree whose result does not follow from the rows alone.
func repeatable(value any) error {
	switch value := value.(type) {
	case []any:
		for _, inner := range value {
			if err := repeatable(inner); err != nil {
				return err
			}
		}
	case object:
		if err := repeatableNode(value); err != nil {
			return err
		}

		for key, inner := range value {
			if key == "cast_type" {
				continue
			}

			if err := repeatable(inner); err != nil {
				return err
			}
		}
	}

	return nil
}

func repeatableNode(o object) error {
	name, _ := o["function_name"].(string)
	name = strings.ToLower(name)

	switch {
	case o["sample"] != nil:
		return invalid(position(o), "A sample has other rows each time. A statement that is kept reads all rows.")
	case o["class"] == "FUNCTION" && (isClock(name) || isRandom(name) || name == "age" && len(items(o["children"])) == 1):
		return invalid(position(o), fmt.Sprintf("The function %s gives another result each time. A statement that is kept depends on the data only; write a parameter such as $day instead.", name))
	case o["class"] == "COLUMN_REF" && isBareClock(onlyName(o)):
		return invalid(position(o), fmt.Sprintf("%s gives another result each time. A statement that is kept depends on the data only; write a parameter such as $day instead.", onlyName(o)))
	case o["class"] == "CAST" && isMoment(constantText(child(o, "child"))):
		return invalid(position(o), "A date relative to now gives another result each time. Write the date.")
	case o["class"] == "FUNCTION" && isArbitrary(name) && len(items(child(o, "order_bys")["orders"])) == 0:
		return invalid(position(o), fmt.Sprintf("%s takes any row. Give it an ORDER BY, or use min or max.", name))
	case o["class"] == "WINDOW" && isOrdered(name) && len(items(o["orders"])) == 0:
		return invalid(position(o), fmt.Sprintf("%s needs an ORDER BY in OVER (…); without it the rows are in any order.", name))
	default:
		return repeatableRows(o)
	}
}

// isOrdered reports whether the statement says the order of its rows.
func (s *statement) isOrdered() bool {
	root := s.root
	for root["type"] == "CTE_NODE" {
		root = child(root, "child")
	}

	return slices.ContainsFunc(items(root["modifiers"]), func(m object) bool { return m["type"] == "ORDER_MODIFIER" })
}

// repeatableRows refuses a query that takes some of its rows without an order.
func repeatableRows(o object) error {
	var isOrdered, isCut bool

	for _, m := range items(o["modifiers"]) {
		switch m["type"] {
		case "ORDER_MODIFIER":
			isOrdered = true
		case "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER":
			isCut = true
		case "DISTINCT_MODIFIER":
			isCut = isCut || len(items(m["distinct_on_targets"])) > 0
		}
	}

	if isCut && !isOrdered {
		return invalid(position(child(o, "from_table")), "LIMIT and DISTINCT ON need an ORDER BY; without it the rows are any rows.")
	}

	return nil
}

// onlyName returns the folded name of a reference without a table.
func onlyName(o object) string {
	names, _ := o["column_names"].([]any)
	if len(names) != 1 {
		return ""
	}

	name, _ := names[0].(string)

	return folded(name)
}

func constantText(o object) string {
	text, _ := child(o, "value")["value"].(string)

	return strings.ToLower(strings.TrimSpace(text))
}

func isMoment(text string) bool {
	return slices.Contains([]string{"now", "today", "yesterday", "tomorrow"}, text)
}

func isClock(name string) bool {
	return slices.Contains([]string{
		"now", "today", "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "transaction_timestamp",
		"get_current_timestamp", "get_current_time", "get_current_date", "current_localtime", "current_localtimestamp", "statement_timestamp", "clock_timestamp",
	}, name)
}

// isBareClock reports whether a name without parentheses is a function of the clock.
func isBareClock(name string) bool {
	return slices.Contains([]string{"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}, name)
}

func isRandom(name string) bool {
	return slices.Contains([]string{"random", "setseed", "uuid", "gen_random_uuid", "uuidv4", "uuidv7", "version"}, name)
}

// isArbitrary reports whether an aggregate depends on the order of its rows.
func isArbitrary(name string) bool {
	return slices.Contains([]string{"first", "last", "any_value", "arbitrary", "list", "array_agg", "string_agg", "group_concat", "listagg"}, name)
}

func isOrdered(name string) bool {
	return slices.Contains([]string{"row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value", "first", "last"}, name)
}
