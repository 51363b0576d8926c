// Package api contains the contract: the hand-written openapi.yaml, and the code that is generated from it: the types,
// the strict server that internal/server implements, and the Go client.
//
// Operations with x-quern-planned are part of the contract but not implemented: they are not in the served document and
// not in the generated code. Operations with x-quern-raw have handwritten handlers, so they are in the document but not
// in the generated code. Operations with x-quern-unread, whose body the server does not parse itself, are only missing
// from the generated server. The marks are for our own code, so Served removes them.
//
// Besides the generated client there are Connect, which returns a client that repeats requests where that is safe
// (Retry), Read, which decodes a response, Pages for lists, Uploader for files, and AskEvents and RunEvents for streams
// that resume after an interruption:
//
//	client, err := api.Connect(api.Settings{Server: "https://quern.example.org", Token: token})
//	me, err := api.Read[api.Me](client.GetMe(ctx))
package api

import (
	_ "embed"
	"encoding/json"
	"maps"
	"strings"
)

//go:generate go run ./gen

// Document is the contract as JSON, with the marks that our own code reads.
//
//go:embed openapi.gen.json
var Document []byte

// Served returns the contract without the marks, as the tree of JSON values that clients get. A tree, because types would
// lose what they do not know.
func Served() (map[string]any, error) {
	var tree map[string]any
	if err := json.Unmarshal(Document, &tree); err != nil {
		return nil, err
	}

	removeMarks(tree)

	return tree, nil
}

func removeMarks(value any) {
	switch value := value.(type) {
	case map[string]any:
		if value["x-quern-either"] == true {
			separate(value)
		}

		maps.DeleteFunc(value, func(key string, _ any) bool {
			return strings.HasPrefix(key, "x-quern-") || key == "x-enum-varnames" || strings.HasPrefix(key, "x-go-type") && key != "x-go-type-name"
		})

		for _, member := range value {
			removeMarks(member)
		}
	case []any:
		for _, element := range value {
			removeMarks(element)
		}
	}
}

// separate turns a schema with the mark x-quern-either into its two alternatives.
func separate(schema map[string]any) {
	list, object := map[string]any{"type": "array"}, map[string]any{"type": "object"}

	for key, value := range schema {
		switch key {
		case "items", "minItems", "maxItems":
			list[key] = value
		case "additionalProperties", "minProperties", "maxProperties":
			object[key] = value
		default:
			continue
		}

		delete(schema, key)
	}

	schema["anyOf"] = []any{list, object}
}
