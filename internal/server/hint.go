package server

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// origins says where the values of a field or a parameter come from, by its name.
func origins() map[string]string {
	const datasets = "GET /schema/{username}/{namespace}/datasets lists those that you can see"

	return map[string]string{
		"namespace":      "GET /schema/{username}/namespaces lists those that you can see",
		"dataset":        datasets,
		"datasets":       datasets,
		"sessionId":      "POST /file-upload/prepare returns it",
		"fileId":         "GET /file-upload/{sessionId} lists the files of a session",
		"fileIds":        "GET /file-upload/{sessionId} lists the files of a session",
		"conversationId": "GET /query/conversations lists yours",
	}
}

// meanings says what the values of a field stand for, by the name of the field and the rule that its value breaks.
func meanings() map[[2]string]string {
	return map[[2]string]string{
		{"agent", "enum"}:    " (nl2ql answers with SQL and rows, assistant in words); leave it out for assistant",
		{"exposure", "enum"}: " (what external models see: names and types of columns, also values, or whole rows)",
		{"size", "minimum"}:  "; it is the size of the file in bytes, and an empty file cannot be loaded",
	}
}

// origin returns the end of a message about the value of a field, or "".
func origin(path []string) string {
	for _, name := range slices.Backward(path) {
		if _, err := strconv.Atoi(name); err == nil {
			continue // an entry of a list
		}

		if from := origins()[name]; from != "" {
			return "; " + from
		}

		break
	}

	return ""
}

// hint returns what a message about a field adds to the rule that the field breaks, or "".
func hint(body *openapi3.Schema, problem *openapi3.SchemaError) string {
	path := problem.JSONPointer()

	switch problem.SchemaField {
	case "required":
		if field := problem.Schema.Properties[path[len(path)-1]]; field != nil {
			return requiredWords(field.Value) + origin(path)
		}
	case "enum", "minimum":
		if len(path) > 0 {
			return meanings()[[2]string{path[len(path)-1], problem.SchemaField}]
		}
	case "format", "pattern":
		from := origin(path)
		if from != "" && len(path) == 1 && !slices.Contains(body.Required, path[0]) {
			from += ", or leave it out"
		}

		return from
	case "type", "nullable":
		if fields := fieldNames(problem.Schema); fields != "" {
			return " with the fields: " + fields
		}
	case "minItems":
		if fields := fieldNames(problem.Schema.Items.Value); fields != "" {
			return "; an entry is an object with the fields: " + fields
		}
	}

	return ""
}

// fieldNames lists the fields of an object, the required ones first.
func fieldNames(schema *openapi3.Schema) string {
	var required, optional []string

	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if slices.Contains(schema.Required, name) {
			required = append(required, name+" (required)")
		} else {
			optional = append(optional, name)
		}
	}

	return strings.Join(append(required, optional...), ", ")
}
