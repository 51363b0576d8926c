package llm

import (
	"encoding/json"
	"fmt"
	"slices"
)

// understood returns the keywords of a JSON schema that providers accept when they guarantee that answers follow it.
// All other keywords make a schema narrower, so removing them makes it wider. The answer is validated against the
// original schema in any case.
func understood() []string {
	return []string{"type", "description", "properties", "required", "items", "enum", "const", "anyOf", "$ref", "$defs"}
}

// lower returns a schema as providers accept it: objects are closed and other keywords are removed. If all is true,
// every property is required, as OpenAI demands, and properties that were optional may be null.
func lower(schema json.RawMessage, all bool) (json.RawMessage, error) {
	document, err := parseJSON(schema)
	if err != nil {
		return nil, err
	}

	root, ok := document.(object)
	if !ok {
		return nil, fmt.Errorf("a schema must be an object, not %T", document)
	}

	return json.Marshal(lowered(root, all))
}

func lowered(schema object, all bool) object {
	if some, found := schema.get("oneOf"); found && !has(schema, "anyOf") {
		schema = append(slices.Clone(schema), member{"anyOf", some})
	}

	var result object

	for _, m := range schema {
		if !slices.Contains(understood(), m.name) {
			continue
		}

		switch value := m.value.(type) {
		case object:
			switch m.name {
			case "properties":
				m.value = loweredProperties(value, textsOf(schema, "required"), all)
			case "$defs":
				m.value = eachOf(value, func(_ string, of object) object { return lowered(of, all) })
			case "items":
				m.value = lowered(value, all)
			}
		case []any:
			if m.name == "anyOf" {
				m.value = loweredList(value, all)
			}
		}

		if m.name != "required" {
			result = append(result, m)
		}
	}

	if kind, _ := schema.get("type"); kind == "object" || has(schema, "properties") {
		properties, _ := valueOf[object](schema, "properties")
		required := textsOf(schema, "required")

		if all {
			required = properties.names()
		}

		list := make([]any, 0, len(required))
		for _, name := range required {
			list = append(list, name)
		}

		result = append(result, member{"required", list}, member{"additionalProperties", false})
	}

	return result
}

func loweredProperties(properties object, required []string, all bool) object {
	return eachOf(properties, func(name string, of object) object {
		down := lowered(of, all)
		if all && !slices.Contains(required, name) && !nullable(of) {
			return object{{"anyOf", []any{down, object{{"type", "null"}}}}}
		}

		return down
	})
}

func loweredList(list []any, all bool) []any {
	down := make([]any, 0, len(list))

	for _, one := range list {
		if o, ok := one.(object); ok {
			down = append(down, lowered(o, all))
		}
	}

	return down
}

func eachOf(of object, do func(name string, value object) object) object {
	var result object

	for _, m := range of {
		if value, ok := m.value.(object); ok {
			m.value = do(m.name, value)
		}

		result = append(result, m)
	}

	return result
}
