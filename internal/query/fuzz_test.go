package query

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/lake"
)

func seedTrees(f *testing.F) {
	f.Helper()

	known := trees(f, "allowed")

	for _, text := range []string{
		"FROM orders", "WITH RECURSIVE a AS (SELECT * FROM a UNION ALL SELECT * FROM a) SELECT * FROM a", "SELECT * FROM (DESCRIBE orders)",
		"SELECT (SELECT max(id) FROM items), EXISTS (SELECT 1 FROM people), 1 IN (SELECT id FROM goods) FROM orders", "SELECT unnest(tags) FROM orders",
		"SELECT orders.id, shop.orders.id, ada.shop.orders.id FROM shop . orders", "SELECT * FROM bob.sales.leads l", `SELECT * FROM "my.shop"."a-b"`,
		"WITH orders AS (SELECT 1) SELECT * FROM orders, shop.orders", "DESCRIBE shop.orders", "SELECT * FROM information_schema.tables", "SHOW TABLES", "SHOW TABLES FROM ada.shop",
	} {
		f.Add([]byte(known[text]))
	}

	f.Add([]byte(trees(f, "refused")["SELECT getenv('HOME')"]))
	f.Add([]byte(trees(f, "limits")["SELECT * FROM orders LIMIT 5 OFFSET 7"]))

	for _, tree := range trees(f, "parameters") {
		f.Add([]byte(tree))
	}

	f.Add([]byte(trees(f, "conditions")["SELECT * FROM orders WHERE id BETWEEN 1 AND 9"]))
}

// FuzzCheck checks that an allowed tree contains only tables that the check found, and no forbidden function, anywhere in
// the tree.
func FuzzCheck(f *testing.F) {
	seedTrees(f)

	f.Fuzz(func(t *testing.T, tree []byte) {
		s, err := check(tree)
		if err != nil {
			return
		}

		if s.show != nil {
			return // it does not run as written
		}

		names := map[string]bool{}
		for _, found := range s.tables {
			names[found.name] = true
			names[dotted(found.owner, found.namespace, found.name)] = true
		}

		for _, cte := range named(s.tree) {
			names[cte] = true
		}

		checked := withoutConstants(s.tree)

		require.False(t, contains(checked, func(o object) bool {
			owner, _ := o["catalog_name"].(string)
			namespace, _ := o["schema_name"].(string)
			name, _ := o["table_name"].(string)

			if namespace != "" { // nothing hides such a name
				return o["type"] == "BASE_TABLE" && o["class"] == nil && isReference(o) && !names[dotted(owner, namespace, name)]
			}

			return o["type"] == "BASE_TABLE" && o["class"] == nil && isReference(o) && !names[folded(name)] && !names[name]
		}), "a table that was not found")

		require.False(t, contains(checked, func(o object) bool {
			name, _ := o["function_name"].(string)

			return o["class"] == "FUNCTION" && isForbidden(strings.ToLower(name))
		}), "a function that is not possible")

		require.Equal(t, !contains(checked, func(o object) bool { return o["class"] == "PARAMETER" }), len(s.parameters) == 0)

		var given Parameters

		for _, name := range s.parameters {
			given.Named = s.named()
			given.Values = append(given.Values, Value{Name: name, Value: json.Number("5")})
		}

		values, err := given.parse()
		require.NoError(t, err)

		if s.bind(Statement{Parameters: given}, values) != nil {
			return // $2 without $1
		}

		s.firstRows()
		s.conditions([]lake.Column{{ID: 1, Name: "id", Type: lake.Bigint}, {ID: 2, Name: "moment", Type: lake.Timestamp}, {ID: 3, Name: "amount", Type: lake.Decimal(9, 2)}})
	})
}

// FuzzValue checks that a value either comes back as itself or is refused, whatever its type.
func FuzzValue(f *testing.F) {
	for _, kind := range []string{"", "boolean", "integer", "bigint", "double", "decimal(18,4)", "decimal(38,38)", "varchar", "date", "time", "timestamp", "json", "DATE"} {
		for _, text := range []string{"", "0", "-0.5", "1e400", "007", "NaN", "true", "2026-02-30", "2026-11-30", "12:00:00.1234567", "2026-11-30T12:00:00+02:00", "'; DROP", "99999999999999999999999999999999999999", "\x00"} {
			f.Add(kind, text, false)
			f.Add(kind, text, true)
		}
	}

	f.Fuzz(func(t *testing.T, kind, text string, isNumber bool) {
		var given any = text

		if isNumber {
			if !number.MatchString(text) {
				return
			}

			given = json.Number(text)
		}

		parsed, problem := Value{Type: kind, Value: given}.parse()
		if problem != "" {
			return
		}

		if parsed.Type == engine.Varchar {
			require.Equal(t, text, *parsed.Value)
		}

		// What was accepted once has a canonical form, which is accepted again and stays the same.
		again, problem := Value{Type: parsed.Type, Value: *parsed.Value}.parse()
		require.Empty(t, problem)
		require.Equal(t, parsed, again)

		if _, scale, isDecimal := decimalOf(parsed.Type); isDecimal {
			_, fraction, _ := strings.Cut(*parsed.Value, ".")
			require.Len(t, fraction, scale)
		}
	})
}

// isReference reports whether an object is a reference to a table, by a member that only references have.
func isReference(o object) bool {
	_, hasSample := o["sample"]

	return hasSample
}

// withoutConstants returns a tree without constants, whose members are values even if they look like parts of a tree.
func withoutConstants(value any) any {
	switch value := value.(type) {
	case []any:
		kept := make([]any, len(value))
		for i, inner := range value {
			kept[i] = withoutConstants(inner)
		}

		return kept
	case object:
		if value["class"] == "CONSTANT" {
			return nil
		}

		kept := object{}
		for key, inner := range value {
			kept[key] = withoutConstants(inner)
		}

		return kept
	default:
		return value
	}
}

// named returns the names of all common table expressions in a tree.
func named(value any) (names []string) {
	switch value := value.(type) {
	case []any:
		for _, inner := range value {
			names = append(names, named(inner)...)
		}
	case object:
		if name, ok := value["cte_name"].(string); ok {
			names = append(names, folded(name))
		}

		if name, ok := value["key"].(string); ok {
			names = append(names, folded(name))
		}

		for _, inner := range value {
			names = append(names, named(inner)...)
		}
	}

	return names
}

// FuzzTrace checks that withProvenance leaves the original tree unchanged and that its result reads the provenance view and
// has two more columns.
func FuzzTrace(f *testing.F) {
	seedTrees(f)

	f.Fuzz(func(t *testing.T, tree []byte) {
		s, err := check(tree)
		if err != nil {
			return
		}

		before, err := json.Marshal(s.tree)
		require.NoError(t, err)

		made, of := s.withProvenance()

		after, err := json.Marshal(s.tree)
		require.NoError(t, err)
		require.True(t, bytes.Equal(before, after))

		if made == nil {
			return
		}

		require.True(t, slices.ContainsFunc(s.tables, func(found table) bool { return found.name == of.name }))

		changed, err := decoded(made) // a number can be too large for a float64
		require.NoError(t, err)

		root := child(items(changed["statements"])[0], "node")
		require.Equal(t, engine.ProvenanceView, child(root, "from_table")["table_name"])
		require.Len(t, list(root["select_list"]), len(list(s.root["select_list"]))+2)
	})
}

func FuzzLocate(f *testing.F) {
	f.Add("SELECT\n 'ä'", 9)

	f.Fuzz(func(t *testing.T, statement string, at int) {
		require.Error(t, locate(invalid(at, "No."), statement, 0))
	})
}
