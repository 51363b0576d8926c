package server

import (
	"maps"
	"slices"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
)

// parameters returns the values of the parameters of a statement, which the guard has checked: a list or an object of
// values, each with or without its type.
func parameters(given any) (found query.Parameters, err error) {
	switch given := given.(type) {
	case nil:
	case []any:
		for _, value := range given {
			found.Values = append(found.Values, parameter("", value))
		}
	case map[string]any:
		found.Named = true

		for _, name := range slices.Sorted(maps.Keys(given)) {
			found.Values = append(found.Values, parameter(name, given[name]))
		}
	default:
		err = fault.Invalid("parameters", "must be a list for $1 or ?, or an object for $name")
	}

	return found, err
}

func parameter(name string, value any) query.Value {
	typed, isTyped := value.(map[string]any)
	if !isTyped {
		return query.Value{Name: name, Value: value}
	}

	found := query.Value{Name: name, Value: typed["value"]}
	found.Type, _ = typed["type"].(string)

	if len(typed) > 2 || found.Type == "" {
		found.Problem = "has a type and a value, and no other fields."
	}

	return found
}
