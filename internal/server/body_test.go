package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
)

func TestParseJSON(t *testing.T) {
	t.Parallel()

	for _, text := range []string{`{}`, ` [1, 2.50, "x", null, true] `, `{"a":{"b":[]},"c":"é"}`, `9007199254740993`, `"\ud83d\ude00"`} {
		value, err := parseJSON([]byte(text))
		require.NoError(t, err, text)

		back, err := json.Marshal(value)
		require.NoError(t, err)
		require.JSONEq(t, text, string(back))
	}

	for text, problem := range map[string]string{
		"":                                  "empty",
		" \n":                               "empty",
		"{":                                 "too early",
		`{"a"`:                              "too early",
		`{"a":1`:                            "too early",
		`[1,`:                               "too early",
		`{"a":1,}`:                          "byte 7",
		`{} {}`:                             "follows",
		`{} x`:                              "follows",
		`{"a":1,"a":2}`:                     "twice",
		`{"x":{"a":1,"\u0061":2}}`:          "twice",
		"\"\xff\"":                          "UTF-8",
		`nul`:                               "",
		`{'a':1}`:                           "byte",
		strings.Repeat("[", maxDepth+2):     "deeper",
		strings.Repeat(`{"a":`, maxDepth+2): "deeper",
	} {
		_, err := parseJSON([]byte(text))
		require.ErrorContains(t, err, problem, text)
	}
}

func schema(t *testing.T, text string) *openapi3.Schema {
	t.Helper()

	var s openapi3.Schema
	require.NoError(t, json.Unmarshal([]byte(text), &s))

	return &s
}

func TestPrune(t *testing.T) {
	t.Parallel()

	s := schema(t, `{"type":"object","required":["name"],"properties":{
		"name":{"type":"string"}, "role":{"type":"string"}, "note":{"type":"string","nullable":true},
		"list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}},
		"map":{"type":"object","additionalProperties":{"type":"string"}},
		"any":{"type":"object"}, "maybe":{"nullable":true,"allOf":[{"type":"object","properties":{"a":{"type":"string"}}}]}}}`)

	value, err := parseJSON([]byte(`{"name":null,"NAME":"x","role":null,"note":null,"other":null,
		"list":[{"a":"1","b":"2"}],"map":{"x":"1"},"any":{"free":1},"maybe":{"a":"1","c":1},"` + strings.Repeat("k", 100) + `":1}`))
	require.NoError(t, err)

	var unknown []fault.Sub

	got, err := json.Marshal(prune(s, value, nil, func(path, known []string) { unknown = append(unknown, unknownField(path, known)) }))
	require.NoError(t, err)
	require.JSONEq(t, `{"name":null,"note":null,"list":[{"a":"1"}],"map":{"x":"1"},"any":{"free":1},"maybe":{"a":"1"}}`, string(got))
	require.Equal(t, []fault.Sub{
		{Code: "NAME", Message: `is not a field of this request; did you mean "name"?`},
		{Code: strings.Repeat("k", 63) + "…", Message: "is not a field of this request; known fields: any, list, map, maybe, name, note, role"},
		{Code: "list.0.b", Message: `is not a field of this request; did you mean "a"?`},
		{Code: "maybe.c", Message: `is not a field of this request; did you mean "a"?`},
		{Code: "other", Message: "is not a field of this request; known fields: any, list, map, maybe, name, note, role"},
	}, merge(unknown, nil))
}

func TestViolations(t *testing.T) {
	t.Parallel()

	s := schema(t, `{"type":"object","required":["name"],"properties":{
		"name":{"type":"string","minLength":2,"maxLength":3}, "role":{"type":"string","enum":["a","b"]}, "when":{"type":"string","format":"date-time"},
		"id":{"type":"string","format":"uuid"}, "size":{"type":"integer","minimum":1,"maximum":9}, "code":{"type":"string","pattern":"^x"},
		"list":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string"}},
		"maybe":{"nullable":true,"allOf":[{"type":"object","properties":{"a":{"type":"string"}}}]}}}`)

	for text, want := range map[string][]fault.Sub{
		`{"name":"äöü","role":"a","when":"2026-01-01T00:00:00Z","id":"0199c0de-1a2b-7c3d-8e4f-5a6b7c8d9e01","size":9,"code":"xy","list":["a"]}`: nil,

		`[]`:                             {{Code: "body", Message: "must be of type object with the fields: name (required), code, id, list, maybe, role, size, when"}},
		`null`:                           {{Code: "body", Message: "must be of type object with the fields: name (required), code, id, list, maybe, role, size, when"}},
		`{}`:                             {{Code: "name", Message: "is required"}},
		`{"name":null}`:                  {{Code: "name", Message: "must be of type string"}},
		`{"name":"abc","maybe":{"a":1}}`: {{Code: "maybe.a", Message: "must be of type string"}},
		`{"name":"abc","maybe":null}`:    nil,
		`{"name":1,"role":"c"}`:          {{Code: "name", Message: "must be of type string"}, {Code: "role", Message: "must be one of: a, b"}},
		`{"name":"a"}`:                   {{Code: "name", Message: "must have at least 2 characters"}},
		`{"name":"abcd"}`:                {{Code: "name", Message: "must have at most 3 characters"}},
		`{"name":"a\u0000","role":"c","code":"x\u0000"}`: {
			{Code: "code", Message: "contains the character U+0000"}, {Code: "name", Message: "contains the character U+0000"}, {Code: "role", Message: "must be one of: a, b"},
		},
		`{"name":"ab","when":"2026-01-01T00:00:00,5Z"}`:               {{Code: "when", Message: "must be a time such as 2026-11-17T09:30:00Z"}},
		`{"name":"a\u0000"}`:                                          {{Code: "name", Message: "contains the character U+0000"}},
		`{"name":"ab","when":"2026-02-31T00:00:00Z"}`:                 {{Code: "when", Message: "must be a time such as 2026-11-17T09:30:00Z"}},
		`{"name":"ab","id":"{0199c0de-1a2b-7c3d-8e4f-5a6b7c8d9e01}"}`: {{Code: "id", Message: "is not a valid uuid"}},
		`{"name":"ab","size":0}`:                                      {{Code: "size", Message: "must be at least 1; it is the size of the file in bytes, and an empty file cannot be loaded"}},
		`{"name":"ab","size":10}`:                                     {{Code: "size", Message: "must be at most 9"}},
		`{"name":"ab","size":1.5}`:                                    {{Code: "size", Message: "must be of type integer"}},
		`{"name":"ab","code":"y"}`:                                    {{Code: "code", Message: "must match ^x"}},
		`{"name":"ab","list":[]}`:                                     {{Code: "list", Message: "must have at least 1 entry"}},
		`{"name":"ab","list":["a","b","c"]}`:                          {{Code: "list", Message: "must have at most 2 entries"}},
		`{"name":"ab","list":["a",2]}`:                                {{Code: "list.1", Message: "must be of type string"}},
	} {
		value, err := parseJSON([]byte(text))
		require.NoError(t, err)
		require.Equal(t, want, violations(s, prune(s, value, nil, func(_, _ []string) {})), text)
	}
}

func FuzzParseJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x",null,{"b":true}]}`))
	f.Add([]byte(`{"a":1,"a":2}`))

	f.Fuzz(func(t *testing.T, text []byte) {
		value, err := parseJSON(text)
		if err != nil {
			return
		}

		if !json.Valid(text) {
			t.Fatalf("%q was taken for JSON", text)
		}

		if _, err := json.Marshal(value); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
