package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// form validates answers against a schema.
type form struct {
	schema   *jsonschema.Schema
	document object
}

const schemaName = "urn:quern:answer"

func compile(s Schema) (*form, error) {
	document, err := parseJSON(s.JSON)
	if err != nil {
		return nil, fmt.Errorf("the schema %s: %w", s.Name, err)
	}

	root, ok := document.(object)
	if kind, _ := root.get("type"); !ok || kind != "object" {
		return nil, fmt.Errorf("the schema %s does not describe an object", s.Name)
	}

	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(s.JSON))
	if err != nil {
		return nil, err
	}

	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{}) // a schema may not refer to other documents

	if err := compiler.AddResource(schemaName, plain); err != nil {
		return nil, err
	}

	compiled, err := compiler.Compile(schemaName)
	if err != nil {
		return nil, fmt.Errorf("the schema %s: %w", s.Name, err)
	}

	return &form{schema: compiled, document: root}, nil
}

// longestProblem is the maximum length of a problem in the message to the model, in bytes.
const longestProblem = 1500

// check returns the answer as JSON without Markdown and superfluous nulls, or the problem of the answer as text for the
// model.
func (f *form) check(text string) (string, error) {
	text = unfenced(text)

	value, err := parseJSON([]byte(text))
	if err != nil {
		return text, errors.New("it is not JSON")
	}

	// PostgreSQL cannot store this character.
	if strings.Contains(text, `\u0000`) {
		return text, errors.New(`it contains the character \u0000`)
	}

	// For providers that require every property, the model writes null to leave out an optional one.
	if whole, ok := value.(object); ok {
		if pruned, changed := prune(whole, f.document, f.document); changed {
			shorter, err := json.Marshal(pruned)
			if err != nil {
				return text, err
			}

			text = string(shorter)
		}
	}

	plain, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return text, errors.New("it is not JSON")
	}

	if err := f.schema.Validate(plain); err != nil {
		_, problem, found := strings.Cut(err.Error(), "\n") // the first line names the schema
		if !found {
			problem = err.Error()
		}

		return text, errors.New(strings.ToValidUTF8(problem[:min(len(problem), longestProblem)], ""))
	}

	return text, nil
}

// unfenced returns the JSON inside a Markdown code block, which some models write.
func unfenced(text string) string {
	text = strings.TrimSpace(text)

	inner, opened := strings.CutPrefix(text, "```")
	inner, closed := strings.CutSuffix(inner, "```")

	if !opened || !closed {
		return text
	}

	return strings.TrimSpace(strings.TrimPrefix(inner, "json"))
}

// prune removes members that are null, optional and not allowed to be null.
func prune(value, schema, root object) (pruned object, changed bool) {
	schema = resolve(schema, root)
	properties, _ := valueOf[object](schema, "properties")
	required := textsOf(schema, "required")

	for _, m := range value {
		of, known := valueOf[object](properties, m.name)

		if m.value == nil && known && !slices.Contains(required, m.name) && !nullable(resolve(of, root)) {
			changed = true

			continue
		}

		if known {
			var inner bool
			m.value, inner = pruneAny(m.value, of, root)
			changed = changed || inner
		}

		pruned = append(pruned, m)
	}

	return pruned, changed
}

func pruneAny(value any, schema, root object) (any, bool) {
	switch value := value.(type) {
	case object:
		return prune(value, schema, root)
	case []any:
		items, found := valueOf[object](resolve(schema, root), "items")
		if !found {
			return value, false
		}

		changed := false

		for i := range value {
			pruned, inner := pruneAny(value[i], items, root)
			value[i], changed = pruned, changed || inner
		}

		return value, changed
	default:
		return value, false
	}
}

// resolve follows references within the schema.
func resolve(schema, root object) object {
	for range 16 {
		ref, found := valueOf[string](schema, "$ref")
		if !found {
			return schema
		}

		at := root

		for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			at, _ = valueOf[object](at, part)
		}

		schema = at
	}

	return schema
}

func nullable(schema object) bool {
	if kind, _ := schema.get("type"); kind == "null" || slices.Contains(textsOf(schema, "type"), "null") {
		return true
	}

	if only, found := schema.get("enum"); found {
		list, _ := only.([]any)

		return slices.Contains(list, nil)
	}

	for _, word := range []string{"anyOf", "oneOf"} {
		some, _ := schema.get(word)
		list, _ := some.([]any)

		for _, one := range list {
			if o, ok := one.(object); ok && nullable(o) {
				return true
			}
		}
	}

	_, typed := schema.get("type")

	return len(schema) == 0 || (!typed && !has(schema, "anyOf", "oneOf", "const", "enum", "$ref"))
}
