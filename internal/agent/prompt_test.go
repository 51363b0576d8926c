package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/query"
)

// wide returns a dataset with columns of every kind and a profile.
func wide(name string, columns int) query.About {
	one := query.About{Meaning: meaning.Meaning{Row: "measurement", Columns: map[string]meaning.Column{}}, Profile: &query.Profile{Keys: [][]string{{"id"}, {"reading_1"}}}}
	one.Name, one.Namespace, one.Owner, one.RowCount = name, "lab", "ada", 12_345

	for i := range columns {
		p := query.ColumnProfile{Distinct: 3, DistinctExact: true}
		c := catalog.Column{Type: "varchar"}
		role := meaning.Category

		switch {
		case i == 0:
			c.Name, c.Type, role = "id", "bigint", meaning.Identifier
			p = query.ColumnProfile{Distinct: 12_345, Min: json.RawMessage(`1`), Max: json.RawMessage(`12345`), Examples: []json.RawMessage{json.RawMessage(`17`), json.RawMessage(`4711`)}}
		case i%3 == 1:
			c.Name, c.Type, role = fmt.Sprintf("reading_%d", i), "double", meaning.Amount
			p = query.ColumnProfile{Distinct: 9_000, Min: json.RawMessage(`0.125`), Max: json.RawMessage(`98765.5`), Examples: []json.RawMessage{json.RawMessage(`12.25`), json.RawMessage(`99.5`), json.RawMessage(`1024.75`)}}
		case i%3 == 2:
			c.Name, c.Type, role = fmt.Sprintf("taken_%d", i), "date", meaning.Date
			p = query.ColumnProfile{Distinct: 700, Min: json.RawMessage(`"2024-01-01"`), Max: json.RawMessage(`"2026-06-30"`)}
		default:
			c.Name = fmt.Sprintf("department_%d", i)

			if i == 30 {
				p.TopValues = counts(`"R&D"`, `"Sales <EU>"`, `"Support"`)
			} else {
				p.TopValues = counts(`"first kind"`, `"second kind"`, `"third kind"`)
			}
		}

		p.Name = c.Name
		one.Columns = append(one.Columns, c)
		one.Profile.Columns = append(one.Profile.Columns, p)
		one.Meaning.Columns[c.Name] = meaning.Column{Role: role}
	}

	return one
}

func counts(values ...string) []query.ValueCount {
	list := make([]query.ValueCount, len(values))
	for i, value := range values {
		list[i] = query.ValueCount{Value: json.RawMessage(value), Count: 5}
	}

	return list
}

// TestPromptSize measures what a model receives about one wide dataset and about twelve usual ones, and limits it: all of it is
// sent with every question, and small models read slowly.
func TestPromptSize(t *testing.T) {
	t.Parallel()

	asked := Question{Username: "ada", Namespace: "lab", Text: "What is the total reading 121 in R&D?"}
	text := func(known ...query.About) string { return plainJSON(notes{Datasets: describe(asked, known)}) }

	one := text(wide("samples", 124))

	var twelve []query.About
	for i := range 12 {
		twelve = append(twelve, wide(fmt.Sprintf("samples_%d", i), 15))
	}

	several := text(twelve...)

	t.Logf("fixed: nl2ql %d, plan %d, answer %d bytes; datasets: 124 columns %d, 12 datasets %d bytes", len(nl2qlPrompt), len(planPrompt), len(answerPrompt), len(one), len(several))
	require.Less(t, len(nl2qlPrompt), 5_800)
	require.Less(t, len(planPrompt), 2_100)
	require.Less(t, len(one), 8_000)
	require.Less(t, len(several), 24_000)

	// Values are as they are, and a figure is not a key.
	require.Contains(t, one, `"R&D"`)
	require.Contains(t, one, `"Sales <EU>"`)
	require.Contains(t, one, `"keys":[["id"]]`)

	// A column that the question names is described, wherever it is. All others have their names.
	require.Contains(t, one, `{"name":"reading_121","type":"double","role":"amount"`)
	require.Contains(t, one, `"taken_119":"date"`)

	for _, c := range wide("samples", 124).Columns {
		require.Equal(t, 1, strings.Count(one, `"`+c.Name+`"`)-strings.Count(one, `["`+c.Name+`"]`), c.Name)
	}
}

// TestDeclaredKey checks that models and the planner are told a declared key before the keys of the profile, and without one.
func TestDeclaredKey(t *testing.T) {
	t.Parallel()

	one := wide("readings", 6)
	one.Key = catalog.Key{Columns: []string{"DEPARTMENT_3", "reading_1"}}
	require.Equal(t, [][]string{{"department_3", "reading_1"}, {"id"}}, noteOf(Question{}, one).Keys)

	one.Profile = nil
	require.Equal(t, [][]string{{"department_3", "reading_1"}}, noteOf(Question{}, one).Keys)
	require.Equal(t, [][]string{{"department_3", "reading_1"}}, planDataset(Question{}, one).Keys)

	one.Key.Columns = []string{"not there yet"}
	require.Empty(t, noteOf(Question{}, one).Keys)
}
