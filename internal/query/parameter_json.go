package query

import (
	"maps"
	"slices"

	"quern.dev/quern/internal/fault"
)

// ParametersOf returns the values of the parameters of a statement from decoded JSON: a list or an object of
// values, each with or without its type.
func ParametersOf(given any) (found Parameters, err error) {
	switch given := given.(type) {
	case nil:
	case []any:
		for _, value := range given {
			found.Values = append(found.Values, parameterOf("", value))
		}
	case map[string]any:
		found.Named = true

		for _, name := range slices.Sorted(maps.Keys(given)) {
			found.Values = append(found.Values, parameterOf(name, given[name]))
		}
	default:
		err = fault.Invalid("parameters", "must be a list for $1 or ?, or an object for $name")
	}

	return found, err
}

func parameterOf(name string, value any) Value {
	typed, isTyped := value.(map[string]any)
	if !isTyped {
		return Value{Name: name, Value: value}
	}

	found := Value{Name: name, Value: typed["value"]}
	found.Type, _ = typed["type"].(string)

	if len(typed) > 2 || found.Type == "" {
		found.Problem = "has a type and a value, and no other fields."
	}

	return found
}
