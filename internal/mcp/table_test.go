package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/run"
)

func cells(columns int, cell string) (names []query.Column, row json.RawMessage) {
	var pairs []string

	for i := range columns {
		name := fmt.Sprintf("c%d", i)
		names = append(names, query.Column{Name: name, Type: "VARCHAR"})
		pairs = append(pairs, fmt.Sprintf("%q:%s", name, cell))
	}

	return names, json.RawMessage("{" + strings.Join(pairs, ",") + "}")
}

// textOf returns the text of a result, which must be its structured content too.
func textOf(t *testing.T, answer *sdk.CallToolResult) string {
	t.Helper()

	text, isText := answer.Content[0].(*sdk.TextContent)
	require.True(t, isText)

	structured, isRaw := answer.StructuredContent.(json.RawMessage)
	require.True(t, isRaw)
	require.True(t, string(structured) == text.Text) //nolint:testifylint // byte by byte, and too long to print

	return text.Text
}

// TestTableFits checks that the first row is always shown, whatever its size, and that the result never exceeds its size.
func TestTableFits(t *testing.T) {
	t.Parallel()

	for _, columns := range []int{1, 2, 100, 5000} {
		for what, cell := range map[string]string{
			"small": `1`, "long": `"` + strings.Repeat("x", 1<<20) + `"`, "wide letters": `"` + strings.Repeat("\u8a9e", 5000) + `"`,
			"escapes": `"` + strings.Repeat(`\u0001`, 5000) + `"`, "quotes": `"` + strings.Repeat(`\"`, 5000) + `"`,
			"escaped letters": `"` + strings.Repeat(`\u00e4`, 900) + `"`, "nested": `{"a":[` + strings.Repeat(`"y",`, 5000) + `1]}`,
		} {
			if columns*len(cell) > 20<<20 {
				continue // such a row does not exist
			}

			names, row := cells(columns, cell)
			table := newTable(names, newBudget())

			added, err := table.add(row)
			require.NoError(t, err)
			require.True(t, added, "%d columns, %s", columns, what)

			for range 2000 {
				if added, err = table.add(row); !added {
					break
				}

				require.NoError(t, err)
			}

			require.LessOrEqual(t, len(table.Columns), maxColumns)

			answer, err := result(queryResult{table: table, Truncated: true, TruncatedBy: "bytes", Hint: readOn + table.hint()})
			require.NoError(t, err, "%d columns, %s", columns, what)
			require.True(t, json.Valid([]byte(textOf(t, answer))))
		}
	}
}

// TestExactNumbers checks that numbers keep all digits, and that texts are not escaped for HTML.
func TestExactNumbers(t *testing.T) {
	t.Parallel()

	table := newTable([]query.Column{{Name: "n"}, {Name: "d"}, {Name: "s"}, {Name: "missing"}}, newBudget())
	added, err := table.add(json.RawMessage(`{"__metadata":{"score":1},"n":9007199254740993,"d":123456789012345678901234567.890,"s":"R&D <b>"}`))
	require.NoError(t, err)
	require.True(t, added)

	answer, err := result(table)
	require.NoError(t, err)
	require.Contains(t, textOf(t, answer), `[9007199254740993,123456789012345678901234567.890,"R&D <b>",null]`)
}

// TestClip checks that a clipped text is a beginning of the text and has the size.
func TestClip(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		text, most := rapid.String().Draw(t, "text"), rapid.IntRange(3, 40).Draw(t, "most")
		clipped := clip(text, most)

		if clipped != text {
			require.True(t, strings.HasPrefix(text, strings.TrimSuffix(clipped, ellipsis)))
		}

		require.True(t, utf8.ValidString(clipped))
		require.LessOrEqual(t, size(clipped), most+2)
	})
}

// TestRunsFit checks that a run with texts, options and steps of any size is shown within the size.
func TestRunsFit(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("\u0001 long text ", 20_000)
	names, row := cells(300, `"`+strings.Repeat("x", 5000)+`"`)
	held := run.Result{Response: long, Interpretation: long, Model: long, Outcome: "answer", Clarification: &agent.Choice{Question: long, Options: []agent.Option{{Number: 1, Interpretation: long}, {Number: 2, Interpretation: long}}}}

	for range 40 {
		held.Basis, held.Explained = "rules", append(held.Explained, run.Explained{Words: long, As: "value", Dataset: long, Column: "status"})
	}

	for i := range 40 {
		held.Steps = append(held.Steps, run.Step{Index: i, Instruction: long, Query: long, Columns: names, Data: []json.RawMessage{row, row}, RowCount: 2})
	}

	for _, r := range []run.Run{
		{Status: run.Completed, Result: &held},
		{Status: run.Waiting, Result: &held},
		{Status: run.Failed, Error: fault.New(fault.Internal, long)},
		{Status: run.Running, ID: uuid.New()},
	} {
		answer, err := result(showRun(r))
		require.NoError(t, err)
		require.NotEmpty(t, answer.Content)
	}

	shown := showRun(run.Run{Status: run.Completed, Result: &held})
	require.Len(t, shown.Steps, shownSteps)
	require.NotEmpty(t, shown.Steps[shownSteps-1].Query)
	require.NotEmpty(t, shown.Hint)
	require.EqualValues(t, "rules", shown.Basis)
	require.Equal(t, "status", shown.Explained[0].Column)
}

// TestArguments checks the forms of arguments that models send.
func TestArguments(t *testing.T) {
	t.Parallel()

	list, err := definitions()
	require.NoError(t, err)

	for _, d := range list {
		if d.Name != "query" && d.Name != "ask" {
			continue
		}

		args, err := parseArguments(d, json.RawMessage(map[string]string{
			"query": `{"sql": "SELECT 1", "limit": "7", "parameters": "[9007199254740993]", "namespace": "ann/shop/", "asOf": null}`,
			"ask":   `{"question": "x", "namespace": "shop", "datasets": "[\"a\",\"b\"]"}`,
		}[d.Name]))
		require.NoError(t, err)

		if d.Name == "ask" {
			require.Equal(t, []string{"a", "b"}, args.list("datasets"))
			require.Equal(t, "shop", args.namespace().Namespace)

			continue
		}

		require.Equal(t, 7, args.integer("limit", defaultRows, 1, maxRows))
		require.Equal(t, []any{json.Number("9007199254740993")}, args.value("parameters"))
		require.Equal(t, "ann", args.namespace().Username)
		require.True(t, args.moment("asOf").IsZero())
		require.NoError(t, args.check())

		args.integer("sql", 0, 0, 1)
		require.Error(t, args.check())
	}
}
