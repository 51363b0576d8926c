package main

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"quern.dev/quern/api"
)

// named is a value with a name or a type before it, or with neither.
var named = regexp.MustCompile(`(?s)^([A-Za-z_][A-Za-z0-9_]*)?(?::([a-z]+(?:\([0-9, ]*\))?))?=(.*)$`)

// parameters returns the values of --param in the form of a request: a list, or an object if they have names.
func parameters(given []string) (any, error) {
	var inOrder []any

	byName := map[string]any{}

	for _, text := range given {
		name, kind, value := "", "", text
		if found := named.FindStringSubmatch(text); found != nil {
			name, kind, value = found[1], found[2], found[3]
		}

		var typed any = value
		if kind != "" {
			typed = api.TypedValue{Type: kind, Value: value}
		}

		if _, twice := byName[name]; twice {
			return nil, usageError{errors.New("--param gives " + name + " twice"), "quern query"}
		}

		if name == "" {
			inOrder = append(inOrder, typed)
		} else {
			byName[name] = typed
		}
	}

	switch {
	case len(inOrder) > 0 && len(byName) > 0:
		return nil, usageError{errors.New("--param is given with and without a name; for a value that contains =, write --param =VALUE"), "quern query"}
	case len(byName) > 0:
		return byName, nil
	case len(inOrder) > 0:
		return inOrder, nil
	default:
		return nil, nil //nolint:nilnil // no parameters
	}
}

// withComments protects an argument that is a statement with a comment at its start, which looks like a flag. A space
// before the comment does not change the statement. The value of a flag stays as it is.
func withComments(args []string) []string {
	args = slices.Clone(args)

	for i, arg := range args {
		comment, isComment := strings.CutPrefix(arg, "--")
		start := strings.IndexAny(comment, " \t\r\n=")

		if !isComment || start < 0 || comment[start] == '=' || i > 0 && takesValue(args[i-1]) {
			continue
		}

		args[i] = " " + arg
	}

	return args
}

func takesValue(arg string) bool {
	return strings.HasPrefix(arg, "-") && !strings.ContainsAny(arg, "= \n") && arg != "--explain" && arg != "--escape-formulas"
}
