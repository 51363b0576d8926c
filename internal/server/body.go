package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lexicon"
)

const maxDepth = 64

// parseJSON parses text as one JSON value and returns it with numbers as json.Number. It is stricter than the standard
// decoder: it rejects text after the value, duplicate keys, invalid UTF-8 and nesting deeper than maxDepth.
func parseJSON(text []byte) (any, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("it is empty")
	}

	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}

	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()

	value, err := parseValue(decoder, 0)
	if err != nil {
		return nil, err
	}

	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text follows the value")
	}

	return value, nil
}

func parseValue(decoder *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested deeper than %d levels", maxDepth)
	}

	token, err := decoder.Token()
	if err != nil {
		return nil, syntaxError(err)
	}

	switch token {
	case json.Delim('{'):
		return parseObject(decoder, depth)
	case json.Delim('['):
		return parseArray(decoder, depth)
	default:
		return token, nil
	}
}

func parseObject(decoder *json.Decoder, depth int) (any, error) {
	object := map[string]any{}

	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, syntaxError(err)
		}

		key, _ := token.(string) // the decoder accepts only strings as keys
		if _, twice := object[key]; twice {
			return nil, errors.New("an object has the same key twice")
		}

		if object[key], err = parseValue(decoder, depth+1); err != nil {
			return nil, err
		}
	}

	_, err := decoder.Token()

	return object, syntaxError(err)
}

func parseArray(decoder *json.Decoder, depth int) (any, error) {
	array := []any{}

	for decoder.More() {
		value, err := parseValue(decoder, depth+1)
		if err != nil {
			return nil, err
		}

		array = append(array, value)
	}

	_, err := decoder.Token()

	return array, syntaxError(err)
}

// syntaxError keeps the decoder's position and drops its text, which repeats the input.
func syntaxError(err error) error {
	var syntax *json.SyntaxError

	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("there is a syntax error at byte %d", syntax.Offset)
	default:
		return errors.New("it ends too early")
	}
}

// prune removes the fields that the schema does not name, and null values of fields that may be absent. It calls unknown
// with the path of each field that the schema does not name, and with the names that are known there.
func prune(schema *openapi3.Schema, value any, path []string, unknown func(path, known []string)) any {
	if len(schema.AllOf) == 1 { // how the contract says that a component may be null here
		schema = schema.AllOf[0].Value
	}

	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			property := schema.Properties[key]
			inside := append(slices.Clip(path), key)

			switch {
			case property != nil && field == nil && !property.Value.Nullable && !slices.Contains(schema.Required, key):
				delete(value, key)
			case property != nil:
				value[key] = prune(property.Value, field, inside, unknown)
			case schema.AdditionalProperties.Schema != nil:
				value[key] = prune(schema.AdditionalProperties.Schema.Value, field, inside, unknown)
			case len(schema.Properties) > 0:
				unknown(inside, slices.Sorted(maps.Keys(schema.Properties)))
				delete(value, key)
			}
		}
	case []any:
		if schema.Items != nil {
			for i, item := range value {
				value[i] = prune(schema.Items.Value, item, append(slices.Clip(path), strconv.Itoa(i)), unknown)
			}
		}
	}

	return value
}

// maxFieldName limits how much of a name that the caller chose is repeated in an error.
const maxFieldName = 64

func shortened(name string) string {
	if utf8.RuneCountInString(name) > maxFieldName {
		return string([]rune(name)[:maxFieldName-1]) + "…"
	}

	return name
}

// unknownField says what the caller may have meant.
func unknownField(path, known []string) fault.Sub {
	name := shortened(path[len(path)-1])
	code := strings.Join(append(slices.Clip(path[:len(path)-1]), name), ".")

	return fault.Sub{Code: code, Message: "is not a field of this request; " + meant(name, known, "known fields: ")}
}

// unknownParameter is unknownField for a parameter of the query.
func unknownParameter(op *operation, name string, known []string) fault.Sub {
	sub := fault.Sub{Code: shortened(name), Message: "is not a parameter of this operation; "}

	switch {
	case op.body != nil && op.body.Properties[name] != nil:
		sub.Message += "send it as a field of the body"
	case op.paged && slices.Contains([]string{"offset", "page", "skip", "start", "after"}, strings.ToLower(name)):
		sub.Message += "for the next page set cursor to the nextCursor of the page before"
	case len(known) == 0:
		sub.Message += "it has no parameters in the query, so leave it out"
	default:
		sub.Message += meant(sub.Code, known, "known parameters: ")
	}

	return sub
}

// meant suggests the known name that is most similar, or lists the known names if none is similar.
func meant(name string, known []string, list string) string {
	if near := lexicon.Nearest(name, known); len(near) > 0 {
		return `did you mean "` + near[0] + `"?`
	}

	return list + strings.Join(known, ", ")
}

// merge joins the faults of a body in the order of their fields.
func merge(a, b []fault.Sub) []fault.Sub {
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, func(a, b fault.Sub) int { return strings.Compare(a.Code, b.Code) })

	return all
}

// violations returns what breaks the schema, at most one entry for each field, in Quern's own words.
func violations(schema *openapi3.Schema, value any) []fault.Sub {
	var subs []fault.Sub

	report := func(path []string, message string) {
		parts := slices.Clone(path)
		for i := range parts {
			parts[i] = shortened(parts[i])
		}

		field := strings.Join(parts, ".")
		if field == "" {
			field = "body"
		}

		if !slices.ContainsFunc(subs, func(s fault.Sub) bool { return s.Code == field }) {
			subs = append(subs, fault.Sub{Code: field, Message: message})
		}
	}

	findNUL(value, nil, func(path []string) { report(path, "contains the character U+0000") })
	collect(schema.VisitJSON(value, validation()...), func(problem *openapi3.SchemaError) {
		report(problem.JSONPointer(), describe(problem)+hint(schema, problem))
	})

	return merge(subs, nil)
}

func collect(err error, each func(*openapi3.SchemaError)) {
	var (
		several openapi3.MultiError
		one     *openapi3.SchemaError
	)

	switch {
	case err == nil:
	case errors.As(err, &several):
		for _, err := range several {
			collect(err, each)
		}
	case errors.As(err, &one):
		if inner, ok := errors.AsType[openapi3.MultiError](one.Origin); ok {
			collect(inner, each)
		} else {
			each(one)
		}
	}
}

func describe(problem *openapi3.SchemaError) string {
	schema := problem.Schema

	switch problem.SchemaField {
	case "required":
		return "is required"
	case "type", "nullable":
		return "must be of type " + strings.Join(schema.Type.Slice(), " or ")
	case "enum":
		return "must be one of: " + enumWords(schema)
	case "minLength":
		return "must have at least " + count(schema.MinLength, "character", "characters")
	case "maxLength":
		return "must have at most " + count(*schema.MaxLength, "character", "characters")
	case "minItems":
		return "must have at least " + count(schema.MinItems, "entry", "entries")
	case "maxItems":
		return "must have at most " + count(*schema.MaxItems, "entry", "entries")
	case "maxProperties":
		return "must have at most " + count(*schema.MaxProps, "entry", "entries")
	case "anyOf":
		return "must be one of: " + alternatives(schema.AnyOf)
	case "minimum":
		return fmt.Sprintf("must be at least %v", *schema.Min)
	case "maximum":
		return fmt.Sprintf("must be at most %v", *schema.Max)
	case "format":
		return formatWords(schema.Format)
	case "pattern":
		return patternWords(schema.Pattern)
	default:
		return "violates the rule " + problem.SchemaField
	}
}

// integerWords says which whole numbers a schema accepts.
func integerWords(schema *openapi3.Schema) string {
	const rule = "must be a whole number"

	switch {
	case schema.Min != nil && schema.Max != nil:
		return fmt.Sprintf(rule+" from %v to %v", *schema.Min, *schema.Max)
	case schema.Min != nil:
		return fmt.Sprintf(rule+" of at least %v", *schema.Min)
	default:
		return rule
	}
}

// requiredWords says what the value of a missing field must be if the type has few values; "" for other types.
func requiredWords(schema *openapi3.Schema) string {
	switch {
	case len(schema.Enum) > 0:
		return ": one of " + enumWords(schema)
	case schema.Type.Is(openapi3.TypeBoolean):
		return ": true or false"
	default:
		return ""
	}
}

func enumWords(schema *openapi3.Schema) string {
	allowed := make([]string, 0, len(schema.Enum))
	for _, value := range schema.Enum {
		allowed = append(allowed, fmt.Sprint(value))
	}

	return strings.Join(allowed, ", ")
}

func formatWords(format string) string {
	switch format {
	case "date-time":
		return "must be a time such as 2026-11-17T09:30:00Z"
	default:
		return "is not a valid " + format
	}
}

// objectName is the pattern of the names of namespaces and datasets.
const objectName = "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"

// patternWords says what the patterns of the contract mean.
func patternWords(pattern string) string {
	switch pattern {
	case objectName:
		return "must have 1 to 128 letters, digits, dots, underscores or hyphens, and begin with a letter or digit"
	case "^[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}$":
		return "must have 1 to 128 letters, digits or characters of ._@+-, and begin with a letter or digit"
	case "^[!-~]{1,128}$":
		return "must have 1 to 128 ASCII characters without spaces"
	default:
		return "must match " + pattern
	}
}

// alternatives names the forms that a value can have: the types, and for an object its required fields.
func alternatives(schemas openapi3.SchemaRefs) string {
	var forms []string

	for _, schema := range schemas {
		form := strings.Join(schema.Value.Type.Slice(), " or ")
		if len(schema.Value.Required) > 0 {
			form += " with " + strings.Join(schema.Value.Required, " and ")
		}

		forms = append(forms, form)
	}

	return strings.Join(forms, ", ")
}

func count(n uint64, one, several string) string {
	if n == 1 {
		return "1 " + one
	}

	return fmt.Sprintf("%d %s", n, several)
}

// findNUL calls found for each text with U+0000, the only character that PostgreSQL cannot store.
func findNUL(value any, path []string, found func(path []string)) {
	switch value := value.(type) {
	case string:
		if strings.ContainsRune(value, 0) {
			found(path)
		}
	case map[string]any:
		for key, field := range value {
			if strings.ContainsRune(key, 0) {
				found(path)
			}

			findNUL(field, append(slices.Clip(path), key), found)
		}
	case []any:
		for i, item := range value {
			findNUL(item, append(slices.Clip(path), strconv.Itoa(i)), found)
		}
	}
}
