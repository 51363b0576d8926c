package query

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
)

func value(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}

	return text
}

func TestDraft(t *testing.T) {
	t.Parallel()

	customers := catalog.Item{Dataset: catalog.Dataset{Name: "customers"}}
	many := make([]engine.ValueCount, 10)

	for i := range many {
		many[i] = engine.ValueCount{Value: value(fmt.Sprint("v", i)), Count: 1}
	}

	many[0].Count = 300

	made := Profile{
		Rows: 1_234_567, Keys: [][]string{{"store", "day"}},
		Joins: []Join{{Column: "customer", With: customers, To: "id"}},
		Columns: []ColumnProfile{
			{Name: "store", Type: engine.Bigint, Distinct: 20, DistinctExact: true, Min: value(1), Max: value(20), Mean: new(10.25)},
			{Name: "day", Type: engine.Timestamp, Distinct: 400, DistinctExact: true, Min: value("2021-01-01T00:00:00"), Max: value("2021-12-31T23:00:00")},
			{Name: "customer", Type: "decimal(20,0)", Nulls: 3, Distinct: 1_000_000, Min: value(1), Max: value("90000000000000000000")},
			{Name: "price", Type: "decimal(9,2)", Distinct: 500, DistinctExact: true, Min: value(0.5), Max: value(99.95), Mean: new(12.345678)},
			{Name: "nothing", Type: engine.Varchar, Nulls: 1_234_567, DistinctExact: true},
			{Name: "same", Type: engine.Varchar, Nulls: 617_283, Distinct: 1, DistinctExact: true, TopValues: []engine.ValueCount{{Value: value("x"), Count: 617_284}}},
			{Name: "paid", Type: engine.Boolean, Distinct: 2, DistinctExact: true, TopValues: []engine.ValueCount{{Value: value(true), Count: 1_234_560}, {Value: value(false), Count: 7}}},
			{
				Name: "text", Type: engine.Varchar, Distinct: 900, Shortest: new(int64(0)), Longest: new(int64(5000)), TopValues: many,
				Examples: []json.RawMessage{value("a  b\nc"), value(strings.Repeat("ü", 200))},
			},
			{Name: "more", Type: engine.JSON, Distinct: 900, DistinctExact: true},
		},
	}

	drafted := made.draft()
	require.Equal(t, "One row for each store and day. 1,234,567 rows with 9 columns: store, day, customer, price, nothing, same, paid, text, more. "+
		`day goes from "2021-01-01T00:00:00" to "2021-12-31T23:00:00". customer probably joins with id of customers.`, drafted.DataDescription)
	require.Equal(t, map[string]string{
		"store":    "Whole number. From 1 to 20, 10.25 on average.",
		"day":      `Date and time. From "2021-01-01T00:00:00" to "2021-12-31T23:00:00".`,
		"customer": `Whole number. From 1 to "90000000000000000000". Empty in less than 1 % of the rows. Probably the id of customers.`,
		"price":    "Decimal number. From 0.5 to 99.95, 12.3457 on average.",
		"nothing":  "Text. Always empty.",
		"same":     `Text. Always "x". Empty in 50 % of the rows.`,
		"paid":     "True or false. One of true (more than 99 %), false (less than 1 %).",
		"text":     `Text. 0 to 5,000 characters long. For example "a b c", "` + strings.Repeat("ü", 59) + `…".`,
		"more":     "JSON.",
	}, drafted.SchemaDefinition)

	require.Equal(t, "No rows yet.", (&Profile{}).draft().DataDescription)
	require.Equal(t, "1 row with 1 column: a.", (&Profile{Rows: 1, Columns: []ColumnProfile{{Name: "a", Type: engine.JSON, Distinct: 1}}}).draft().DataDescription)
}

// TestDraftBounds checks that the draft of a large dataset meets the limits of a definition.
func TestDraftBounds(t *testing.T) {
	t.Parallel()

	made := Profile{Rows: 100, Keys: [][]string{{strings.Repeat("n", 300)}}}
	long := value(strings.Repeat("\"ü😀\n", 50))

	for i := range 2000 {
		c := ColumnProfile{Name: fmt.Sprint(strings.Repeat("n", 290), i), Type: engine.Varchar, Distinct: 10, DistinctExact: true}
		for range 10 {
			c.TopValues = append(c.TopValues, engine.ValueCount{Value: long, Count: 10})
		}

		made.Columns = append(made.Columns, c)
		made.Joins = append(made.Joins, Join{Column: c.Name, To: c.Name, With: catalog.Item{Dataset: catalog.Dataset{Name: "d"}}})
	}

	drafted := made.draft()
	require.LessOrEqual(t, utf8.RuneCountInString(drafted.DataDescription), 10_000)
	require.Len(t, drafted.SchemaDefinition, 2000)

	for _, text := range drafted.SchemaDefinition {
		require.LessOrEqual(t, utf8.RuneCountInString(text), 500)
		require.True(t, utf8.ValidString(text))
	}
}
