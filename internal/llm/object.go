package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// object is a JSON object that keeps the order of its members. A model writes the properties of an answer in the order
// of the schema, and can base later properties on earlier ones.
type object []member

type member struct {
	name  string
	value any // object, []any, string, json.Number, bool or nil
}

func (o object) get(name string) (any, bool) {
	for _, m := range o {
		if m.name == name {
			return m.value, true
		}
	}

	return nil, false
}

func (o object) names() []string {
	names := make([]string, 0, len(o))
	for _, m := range o {
		names = append(names, m.name)
	}

	return names
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer

	out.WriteByte('{')

	for i, m := range o {
		if i > 0 {
			out.WriteByte(',')
		}

		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}

		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}

		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}

	out.WriteByte('}')

	return out.Bytes(), nil
}

func valueOf[T any](o object, name string) (T, bool) {
	value, _ := o.get(name)
	typed, ok := value.(T)

	return typed, ok
}

// textsOf returns the strings in the list that a member contains.
func textsOf(o object, name string) (found []string) {
	list, _ := valueOf[[]any](o, name)
	for _, one := range list {
		if text, ok := one.(string); ok {
			found = append(found, text)
		}
	}

	return found
}

func has(o object, names ...string) bool {
	return slices.ContainsFunc(o, func(m member) bool { return slices.Contains(names, m.name) })
}

// deepest is the maximum nesting of values.
const deepest = 100

var errNesting = errors.New("it is nested too deeply")

func parseJSON(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()

	value, err := parseValue(decoder, 0)
	if err != nil {
		return nil, err
	}

	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text after the JSON")
	}

	return value, nil
}

func parseValue(decoder *json.Decoder, depth int) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}

	delimiter, nested := token.(json.Delim)
	if !nested {
		return token, nil
	}

	if depth == deepest {
		return nil, errNesting
	}

	if delimiter == '[' {
		list := []any{}

		for decoder.More() {
			value, err := parseValue(decoder, depth+1)
			if err != nil {
				return nil, err
			}

			list = append(list, value)
		}

		_, err = decoder.Token()

		return list, err
	}

	members := object{}

	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}

		text, ok := name.(string)
		if !ok {
			return nil, errors.New("a name is not a string")
		}

		value, err := parseValue(decoder, depth+1)
		if err != nil {
			return nil, err
		}

		members = append(members, member{text, value})
	}

	_, err = decoder.Token()

	return members, err
}
