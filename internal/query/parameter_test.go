package query

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
)

func TestParse(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("9", 38)

	for _, test := range []struct {
		kind  string
		value any
		want  string // "type value"; empty if the value is refused
	}{
		{"", "it's", "varchar it's"},
		{"", "", "varchar "},
		{"", true, "boolean true"},
		{"", json.Number("7"), "integer 7"},
		{"", json.Number("-2147483648"), "integer -2147483648"},
		{"", json.Number("2147483648"), "bigint 2147483648"},
		{"", json.Number("9223372036854775808"), "decimal(19,0) 9223372036854775808"},
		{"", json.Number("-" + long), "decimal(38,0) -" + long},
		{"", json.Number(long + "9"), ""},
		{"", json.Number("0.10"), "decimal(2,2) 0.10"},
		{"", json.Number("0.0"), "decimal(1,1) 0.0"},
		{"", json.Number("-12.5"), "decimal(3,1) -12.5"},
		{"", json.Number("-0.05"), "decimal(2,2) -0.05"},
		{"", json.Number("1e3"), "double 1000"},
		{"", json.Number("1e400"), ""},
		{"", json.Number("1e-400"), ""},
		{"", json.Number("0e-400"), "double 0"},
		{"", []any{"a"}, ""},
		{"date", map[string]any{}, ""},
		{"bigint", json.Number("9007199254740993"), "bigint 9007199254740993"},
		{"BIGINT", "9007199254740993", "bigint 9007199254740993"},
		{"bigint", "9223372036854775808", ""},
		{"bigint", "+1", ""},
		{"bigint", " 1", ""},
		{"bigint", json.Number("1e3"), ""},
		{"bigint", json.Number("1.0"), ""},
		{"bigint", true, ""},
		{"integer", "2147483648", ""},
		{"double", "0x1p-2", ""},
		{"double", "1_0", ""},
		{"double", "NaN", "double NaN"},
		{"double", "nan", ""},
		{"double", "-Infinity", "double -Infinity"},
		{"decimal(4,2)", json.Number("1.5"), "decimal(4,2) 1.50"},
		{"decimal(4,2)", "1.500", "decimal(4,2) 1.50"},
		{"decimal(4,2)", "1.505", ""},
		{"decimal(4,2)", "100", ""},
		{"decimal(38,38)", "0." + long, "decimal(38,38) 0." + long},
		{"decimal(39,1)", "1", ""},
		{"decimal(2,3)", "1", ""},
		{"decimal", "1", ""},
		{"boolean", "TRUE", "boolean true"},
		{"boolean", json.Number("1"), ""},
		{"boolean", "yes", ""},
		{"varchar", json.Number("1"), ""},
		{"varchar", "a\x00b", ""},
		{"date", "2026-02-28", "date 2026-02-28"},
		{"date", "2026-02-29", ""},
		{"date", "0000-01-01", ""},
		{"date", "10000-01-01", ""},
		{"date", "infinity", ""},
		{"date", json.Number("20260228"), ""},
		{"time", "23:59:59.999999", "time 23:59:59.999999"},
		{"time", "24:00:00", ""},
		{"time", "12:00:00.1234567", ""},
		{"timestamp", "2026-11-30", "timestamp 2026-11-30T00:00:00"},
		{"timestamp", "2026-11-30 12:00:00.5", "timestamp 2026-11-30T12:00:00.5"},
		{"timestamp", "2026-11-30T12:00:00+02:00", "timestamp 2026-11-30T10:00:00"},
		{"timestamp", "2026-11-30T12:00:00.1234567Z", ""},
		{"timestamp", "2026-11-30T12:00:00,5", ""},
		{"timestamp", "0001-01-01T00:00:00+02:00", ""},
		{"json", "{}", ""},
		{"blob", "x", ""},
	} {
		parsed, problem := Value{Type: test.kind, Value: test.value}.parse()

		if test.want == "" {
			require.NotEmpty(t, problem, "%s %v", test.kind, test.value)

			continue
		}

		require.Empty(t, problem, "%s %v", test.kind, test.value)
		require.Equal(t, test.want, parsed.Type+" "+*parsed.Value)
	}

	parsed, problem := Value{Type: "date"}.parse()
	require.Empty(t, problem)
	require.Nil(t, parsed.Value)
}

// bound returns a recorded statement with values, and the fault of binding them.
func bound(t *testing.T, text string, given Parameters) (*statement, error) {
	t.Helper()

	s, err := check(trees(t, "parameters")[text])
	require.NoError(t, err)

	values, err := given.parse()
	if err != nil {
		return s, err
	}

	return s, s.bind(Statement{Parameters: given}, values)
}

func inOrder(values ...any) (given Parameters) {
	for _, value := range values {
		given.Values = append(given.Values, Value{Value: value})
	}

	return given
}

func byName(names ...string) Parameters {
	given := Parameters{Named: true}
	for _, name := range names {
		given.Values = append(given.Values, Value{Name: name, Value: "x"})
	}

	return given
}

func TestBind(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		text   string
		given  Parameters
		faults string
	}{
		{"SELECT 1", Parameters{}, ""},
		{"SELECT 1", inOrder("x"), "parameters"},
		{"SELECT ?", inOrder("x"), ""},
		{"SELECT ?", Parameters{}, "parameters.0"},
		{"SELECT ?", inOrder(), "parameters.0"},
		{"SELECT ?", inOrder("x", "y"), "parameters.1"},
		{"SELECT ?", byName("x"), "parameters"},
		{"SELECT ?, ?, $1", inOrder("x", "y"), ""},
		{"SELECT ?, ?, $1", inOrder("x"), "parameters.1"},
		{"SELECT $2, $10", inOrder("x", "y"), "parameters.0 parameters.9"},
		{"SELECT $name, $NAME, $other FROM orders", byName("name", "OTHER"), ""},
		{"SELECT $name, $NAME, $other FROM orders", byName("name"), "parameters.other"},
		{"SELECT $name, $NAME, $other FROM orders", Parameters{}, "parameters.name parameters.other"},
		{"SELECT $name, $NAME, $other FROM orders", byName("name", "Name", "other"), "parameters.Name"},
		{"SELECT $name, $NAME, $other FROM orders", byName("names", "other"), "parameters.names parameters.name"},
		{"SELECT $name, $NAME, $other FROM orders", byName("name", "other", "a b"), "parameters"},
		{"SELECT $name, $NAME, $other FROM orders", byName("name", "other", "1"), "parameters"},
		{"SELECT $name, $NAME, $other FROM orders", inOrder("x", "y"), "parameters"},
		{"SELECT * FROM generate_series(1, $1)", inOrder("x"), ""},
		{"SELECT id FROM orders WHERE id IN (SELECT $a FROM items WHERE name = $b) AND list_contains([$c], id)", byName("a", "b", "c"), ""},
	} {
		_, err := bound(t, test.text, test.given)

		if test.faults == "" {
			require.NoError(t, err, test.text)

			continue
		}

		require.True(t, fault.Is(err, fault.ValidationFailed), "%s: %v", test.text, err)

		var fields []string
		for _, sub := range fault.From(err).Subs {
			fields = append(fields, sub.Code)
		}

		require.Equal(t, test.faults, strings.Join(fields, " "), test.text)
	}

	s, err := check(trees(t, "parameters")["SELECT ?"])
	require.NoError(t, err)
	require.True(t, fault.Is(s.bind(Statement{OfRun: true}, nil), fault.QueryInvalid), "an agent is told to write values")
}

// TestValued checks that a statement with parameters reads the same data files as with its values in the text, and that
// its tree keeps the parameters.
func TestValued(t *testing.T) {
	t.Parallel()

	const text = "SELECT * FROM orders WHERE id = $1 AND name >= $2 AND amount < $3 AND day = $4 AND moment BETWEEN $5 AND $6 AND flag = $7 LIMIT $8 OFFSET $9" //nolint:unqueryvet // a statement of a user

	given := inOrder(json.Number("5"), "a", json.Number("-1.25"), "2026-01-31", nil, nil, true, json.Number("50000"), json.Number("7"))
	given.Values[4] = Value{Type: "timestamp", Value: "2026-01-31T12:00:00Z"}
	given.Values[5] = Value{Type: "date", Value: "2026-02-28"}

	s, err := bound(t, text, given)
	require.NoError(t, err)

	var found []string

	for _, c := range s.conditions([]lake.Column{
		{ID: 1, Name: "id", Type: lake.Bigint},
		{ID: 2, Name: "name", Type: lake.Varchar},
		{ID: 3, Name: "amount", Type: lake.Decimal(18, 2)},
		{ID: 5, Name: "day", Type: lake.Date},
		{ID: 6, Name: "moment", Type: lake.Timestamp},
		{ID: 7, Name: "flag", Type: lake.Boolean},
	}) {
		found = append(found, fmt.Sprint(c.Column, c.Operator, c.Value))
	}

	require.Equal(t, []string{
		"1=5", "2>=a", "3<-5/4", "5=2026-01-31 00:00:00 +0000 UTC", "6>=2026-01-31 12:00:00 +0000 UTC", "6<=2026-02-28 00:00:00 +0000 UTC",
	}, found)

	rows, offset, ok := s.limit()
	require.True(t, ok)
	require.EqualValues(t, 50000, rows)
	require.EqualValues(t, 7, offset)

	tree, _ := s.withProvenance()
	require.Equal(t, 9, strings.Count(string(tree), `"PARAMETER"`))
	require.NotContains(t, string(tree), "50000")

	for _, limit := range []Value{{Value: json.Number("-1")}, {Value: json.Number("1.5")}, {Value: "5"}, {}, {Value: true}} {
		s, err := bound(t, "FROM orders LIMIT ?", Parameters{Values: []Value{limit}})
		require.NoError(t, err)

		_, _, ok := s.limit()
		require.False(t, ok)
	}

	require.Empty(t, constantNode(engine.Parameter{}))
}
