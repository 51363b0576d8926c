package trino

import (
	"bytes"
	"encoding/json"
	"strings"
)

// inner returns the type of a part.
func inner(s signature, index int) cell {
	var part signature
	if index < len(s.Arguments) {
		_ = json.Unmarshal(s.Arguments[index].Value, &part) // an unknown type is shown as text
	}

	return cellOf(part)
}

func arrayCell(s signature) cell {
	of := inner(s, 0)

	return cell{of.name + "[]", func(line []byte, value json.RawMessage) ([]byte, error) {
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil {
			return nil, err
		}

		line = append(line, '[')

		for i, one := range list {
			if i > 0 {
				line = append(line, ',')
			}

			var err error
			if line, err = of.append(line, one); err != nil {
				return nil, err
			}
		}

		return append(line, ']'), nil
	}}
}

// mapCell writes maps as objects. Trino sends the keys as texts.
func mapCell(s signature) cell {
	key, of := inner(s, 0), inner(s, 1)

	return cell{"map(" + key.name + ", " + of.name + ")", func(line []byte, value json.RawMessage) ([]byte, error) {
		decoder := json.NewDecoder(bytes.NewReader(value))
		if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
			return nil, errCell
		}

		line = append(line, '{')

		for first := true; decoder.More(); first = false {
			if !first {
				line = append(line, ',')
			}

			name, err := decoder.Token()
			if err != nil {
				return nil, err
			}

			quoted, err := json.Marshal(name)
			if err != nil {
				return nil, err
			}

			var one json.RawMessage
			if err := decoder.Decode(&one); err != nil {
				return nil, err
			}

			if line, err = of.append(append(append(line, quoted...), ':'), one); err != nil {
				return nil, err
			}
		}

		return append(line, '}'), nil
	}}
}

// field is a named part of a row.
type field struct {
	Name *struct {
		Name string `json:"name"`
	} `json:"fieldName"`
	Type signature `json:"typeSignature"`
}

// rowCell writes rows as objects, or as arrays if their parts have no names.
func rowCell(s signature) cell {
	var (
		names, shown []string
		parts        []cell
		isNamed      = true
	)

	for _, a := range s.Arguments {
		var f field
		_ = json.Unmarshal(a.Value, &f) // an unknown type is shown as text

		name, part := "", cellOf(f.Type)
		if f.Name != nil {
			name = f.Name.Name
		}

		names, parts, shown = append(names, name), append(parts, part), append(shown, strings.TrimSpace(name+" "+part.name))
		isNamed = isNamed && name != ""
	}

	return cell{"struct(" + strings.Join(shown, ", ") + ")", func(line []byte, value json.RawMessage) ([]byte, error) {
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil || len(list) != len(parts) {
			return nil, errCell
		}

		open, end := byte('['), byte(']')
		if isNamed {
			open, end = '{', '}'
		}

		line = append(line, open)

		for i, one := range list {
			if i > 0 {
				line = append(line, ',')
			}

			if isNamed {
				quoted, err := json.Marshal(names[i])
				if err != nil {
					return nil, err
				}

				line = append(append(line, quoted...), ':')
			}

			var err error
			if line, err = parts[i].append(line, one); err != nil {
				return nil, err
			}
		}

		return append(line, end), nil
	}}
}
