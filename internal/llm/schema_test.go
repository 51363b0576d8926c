package llm

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func containsText(all, part string) bool { return strings.Contains(all, part) }

func TestLower(t *testing.T) {
	t.Parallel()

	const full = `{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"x","type":"object","properties":{
		"z":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/step"}},
		"a":{"oneOf":[{"type":"string","format":"date"},{"type":"null"}]},
		"kind":{"enum":["one","two"]}},
		"required":["z"],"$defs":{"step":{"type":"object","properties":{"sql":{"type":"string","maxLength":10},"why":{"type":["string","null"]}},"required":["sql"]}}}`

	strict, err := lower(json.RawMessage(full), true)
	require.NoError(t, err)
	require.Equal(t, compact(t, `{"type":"object","properties":{
		"z":{"type":"array","items":{"$ref":"#/$defs/step"}},
		"a":{"anyOf":[{"type":"string"},{"type":"null"}]},
		"kind":{"anyOf":[{"enum":["one","two"]},{"type":"null"}]}},
		"$defs":{"step":{"type":"object","properties":{"sql":{"type":"string"},"why":{"type":["string","null"]}},"required":["sql","why"],"additionalProperties":false}},
		"required":["z","a","kind"],"additionalProperties":false}`), string(strict))

	loose, err := lower(json.RawMessage(full), false)
	require.NoError(t, err)
	require.Equal(t, compact(t, `{"type":"object","properties":{
		"z":{"type":"array","items":{"$ref":"#/$defs/step"}},
		"a":{"anyOf":[{"type":"string"},{"type":"null"}]},
		"kind":{"enum":["one","two"]}},
		"$defs":{"step":{"type":"object","properties":{"sql":{"type":"string"},"why":{"type":["string","null"]}},"required":["sql"],"additionalProperties":false}},
		"required":["z"],"additionalProperties":false}`), string(loose))

	f, err := compile(Schema{Name: "x", JSON: json.RawMessage(full)})
	require.NoError(t, err)

	for answer, want := range map[string]string{
		`{"z":[{"sql":"SELECT 1","why":null}],"a":null,"kind":null}`: `{"z":[{"sql":"SELECT 1","why":null}],"a":null}`,
		`{"z":[{"sql":"SELECT 1"}]}`:                                 `{"z":[{"sql":"SELECT 1"}]}`,
		" ```json\n{\"z\":[{\"sql\":\"\"}]}\n``` ":                   `{"z":[{"sql":""}]}`,
	} {
		got, problem := f.check(answer)
		require.NoError(t, problem)
		require.Equal(t, want, got)
	}

	for answer, want := range map[string]string{
		`{"z":[]}`:                          "minItems: got 0, want 1",
		`{"z":[{"sql":"12345678901"}]}`:     "maxLength: got 11, want 10",
		`{"z":null}`:                        "got null, want array",
		`{"z":[{"sql":""}],"kind":"x"}`:     "value must be one of",
		`{"z":[{"sql":""}]} and more`:       "it is not JSON",
		`["z"]`:                             "got array, want object",
		strings.Repeat("[", 100_000):        "it is not JSON",
		`{"z":[{"sql":"` + "\x00" + `"}]}`:  "it is not JSON",
		strings.Repeat(`{"z":`, 200) + `1}`: "it is not JSON",
		``:                                  "it is not JSON",
		`{"z":[{"sql":"\u0000"}]}`:          "it contains the character",
		"```":                               "it is not JSON",
	} {
		_, problem := f.check(answer)
		require.ErrorContains(t, problem, want)
		require.NotContains(t, problem.Error(), "urn:")
		require.LessOrEqual(t, len(problem.Error()), longestProblem)
	}

	_, err = compile(Schema{JSON: json.RawMessage(`{"type":"string"}`)})
	require.Error(t, err)
	_, err = compile(Schema{JSON: json.RawMessage(`{"type":"object","properties":{"x":{"$ref":"file:///etc/passwd"}}}`)})
	require.Error(t, err, "a schema refers to nothing outside")
}

func compact(t *testing.T, text string) string {
	t.Helper()

	value, err := parseJSON([]byte(text))
	require.NoError(t, err)

	out, err := json.Marshal(value)
	require.NoError(t, err)

	return string(out)
}

// TestWhateverAModelSays is a property test and not a fuzz target: building a fuzz target would instrument the vendors'
// clients, which takes minutes and gigabytes.
func TestWhateverAModelSays(t *testing.T) {
	t.Parallel()

	f, err := compile(Schema{Name: "count", JSON: json.RawMessage(countSchema)})
	require.NoError(t, err)

	pieces := []string{
		`{`, `}`, `[`, `]`, `:`, `,`, `null`, `"reading"`, `"count"`, `"note"`, `"all"`, `3`, `-1`, `1e400`, `"`, "```", "json", `\u0000`, "\xff", " ",
		`{"reading":"all","count":3`, `,"note":null}`,
	}

	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "")

		got, problem := f.check(text)
		if problem != nil {
			return
		}

		var answer struct {
			Reading string      `json:"reading"`
			Count   json.Number `json:"count"`
			Note    *string     `json:"note"`
		}
		if err := json.Unmarshal([]byte(got), &answer); err != nil || answer.Reading == "" || strings.HasPrefix(answer.Count.String(), "-") {
			t.Fatalf("%q became %q: %v", text, got, err)
		}
	})
}
