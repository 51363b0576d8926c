package meaning_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/meaning"
)

// TestColumnMeaning checks what the names, types and values of columns are taken for.
func TestColumnMeaning(t *testing.T) {
	t.Parallel()

	whole := func(name string) meaning.SourceColumn {
		return meaning.SourceColumn{Name: name, Type: "bigint", Distinct: 40, Min: 1.0, Max: 90.0}
	}
	number := func(name string) meaning.SourceColumn {
		return meaning.SourceColumn{Name: name, Type: "double", Distinct: 80, Min: 0.5, Max: 900.0}
	}
	text := func(name string, distinct int64, values ...any) meaning.SourceColumn {
		return meaning.SourceColumn{Name: name, Type: "varchar", Distinct: distinct, Values: values}
	}
	typed := func(name, kind string) meaning.SourceColumn {
		return meaning.SourceColumn{Name: name, Type: kind, Distinct: 50}
	}
	years := func(name string) meaning.SourceColumn {
		return meaning.SourceColumn{Name: name, Type: "bigint", Distinct: 20, Min: 1999.0, Max: 2024.0}
	}

	for _, one := range []struct {
		column meaning.SourceColumn
		want   meaning.Role
	}{
		// figures that add up
		{number("amount"), meaning.Amount},
		{number("total_price"), meaning.Amount},
		{number("totalAmount"), meaning.Amount},
		{number("revenue_eur"), meaning.Amount},
		{number("umsatz"), meaning.Amount},
		{whole("salary"), meaning.Amount},
		{whole("budget"), meaning.Amount},
		{number("weight_kg"), meaning.Amount},
		{number("area_ha"), meaning.Amount},
		{number("monthly_fee"), meaning.Amount},
		{number("net"), meaning.Amount},
		{whole("qty"), meaning.Count},
		{whole("quantity"), meaning.Count},
		{whole("seats"), meaning.Count},
		{whole("number_of_guests"), meaning.Count},
		{whole("n_rooms"), meaning.Count},
		{whole("no_of_visits"), meaning.Count},
		{whole("signups"), meaning.Count},
		{whole("adults"), meaning.Count},
		{number("duration_min"), meaning.Duration},
		{whole("nights"), meaning.Duration},
		{number("hours_worked"), meaning.Duration},
		{whole("minutes_to_resolve"), meaning.Duration},

		// figures that add up over things only
		{whole("headcount"), meaning.Balance},
		{whole("units_in_stock"), meaning.Balance},
		{number("account_balance"), meaning.Balance},
		{number("lagerbestand"), meaning.Unknown}, // words are not divided
		{number("kg_on_hand"), meaning.Balance},

		// figures that never add up
		{number("unit_price"), meaning.Price},
		{number("price"), meaning.Price},
		{number("price_per_night"), meaning.Price},
		{number("rate_pn"), meaning.Price},
		{number("room_rate"), meaning.Price},
		{number("unit_cost"), meaning.Price},
		{number("rating"), meaning.Price},
		{whole("age"), meaning.Price},
		{number("temperature"), meaning.Price},
		{number("preis"), meaning.Price},
		{number("discount_pct"), meaning.Share},
		{number("margin_percent"), meaning.Share},
		{number("occupancy_ratio"), meaning.Share},

		// numbers that are names
		{whole("order_id"), meaning.Identifier},
		{whole("customer_id"), meaning.Identifier},
		{whole("plz"), meaning.Code},
		{whole("postcode"), meaning.Code},
		{whole("invoice_no"), meaning.Code},
		{whole("rank"), meaning.Code},
		{whole("stars"), meaning.Code},
		{number("latitude"), meaning.Code},
		{years("year"), meaning.Year},
		{years("founded"), meaning.Year},
		{whole("year"), meaning.Unknown}, // 1 to 90 are not years
		{number("x17"), meaning.Unknown},
		{number("reading"), meaning.Unknown},

		// the rest
		{typed("placed_on", "date"), meaning.Date},
		{typed("created_at", "timestamp with time zone"), meaning.Date},
		{typed("is_active", "boolean"), meaning.Flag},
		{text("breakfast", 2, "yes", "no"), meaning.Flag},
		{text("no_show", 2, "N", "Y"), meaning.Flag},
		{text("sex", 2, "F", "M"), meaning.Category},
		{text("status", 4, "open", "paid"), meaning.Category},
		{text("country", 30, "AT", "US"), meaning.Category},
		{text("job_title", 6, "Analyst", "Engineer"), meaning.Category},
		{text("customer_name", 90, "Ada", "Bob"), meaning.Name},
		{text("title", 100, "A Day", "B Side"), meaning.Name},
		{text("sku", 100, "A-1", "A-2"), meaning.Identifier},
		{text("iban", 95, "AT1", "AT2"), meaning.Code},
		{text("notes", 99, "fine", "late"), meaning.Text},
		{text("order_uuid", 100, "a", "b"), meaning.Identifier},
	} {
		draft := meaning.Draft(source("orders", one.column))
		require.Equal(t, one.want, draft.Columns[one.column.Name].Role, "%s %s", one.column.Name, one.column.Type)
	}
}

// source is a dataset of 100 rows with a column.
func source(name string, columns ...meaning.SourceColumn) meaning.Source {
	return meaning.Source{
		Name: name, Rows: 100, Columns: columns, Keys: [][]string{{"order_id"}, {"sku"}},
		Joins: []meaning.SourceJoin{{Column: "customer_id", To: "customers", Key: "customer_id", Share: 1, IsKey: true}},
	}
}

// TestSnapshots checks that figures of a dataset that repeats the state of things do not add up over time.
func TestSnapshots(t *testing.T) {
	t.Parallel()

	columns := []meaning.SourceColumn{
		{Name: "amount", Type: "double", Distinct: 9},
		{Name: "qty", Type: "bigint", Distinct: 9},
		{Name: "unit_price", Type: "double", Distinct: 9},
		{Name: "x", Type: "double", Distinct: 9},
		{Name: "kg_on_hand", Type: "double", Distinct: 9},
	}

	for _, day := range []string{"snapshot_date", "snap_on", "as_of", "stichtag"} {
		draft := meaning.Draft(source("stock", append(columns, meaning.SourceColumn{Name: day, Type: "date"})...))

		for name, want := range map[string]meaning.Role{
			"amount": meaning.Balance, "qty": meaning.Balance, "x": meaning.Balance, "kg_on_hand": meaning.Balance, "unit_price": meaning.Price, day: meaning.Date,
		} {
			require.Equal(t, want, draft.Columns[name].Role, "%s with %s", name, day)
		}
	}
}

// TestJoins checks which joins of a profile are taken: those whose column is called like what it refers to.
func TestJoins(t *testing.T) {
	t.Parallel()

	kind := func(column string) string {
		if slices.Contains([]string{"quantity", "floor", "id"}, column) {
			return "bigint"
		}

		return "varchar"
	}

	for _, one := range []struct {
		column, to, key string
		isKey, want     bool
	}{
		{"sku", "products", "sku", true, true},
		{"out_br", "branches", "br_cd", true, true},
		{"dept_name", "departments", "dept_name", true, true},
		{"city", "branches", "city", true, false}, // each branch is alone in its city
		{"customer_id", "customers", "customer_id", true, true},
		{"customer_id", "customers", "id", true, true},
		{"customer", "customers", "id", true, true},
		{"dept", "departments", "dept", true, true},
		{"billing_customer_id", "customers", "id", true, true},
		{"customer_id", "customers", "customer_id", false, false}, // several rows
		{"quantity", "products", "id", true, false},               // numbers that happen to occur there
		{"id", "products", "id", true, false},
		{"floor", "customers", "id", true, false},
	} {
		draft := meaning.Draft(meaning.Source{
			Name: "orders", Rows: 100, Columns: []meaning.SourceColumn{{Name: one.column, Type: kind(one.column), Distinct: 20}},
			Joins: []meaning.SourceJoin{{Column: one.column, To: one.to, Key: one.key, Share: 1, IsKey: one.isKey}},
		})
		require.Equal(t, one.want, len(draft.Joins) == 1, "%s to %s.%s", one.column, one.to, one.key)
	}
}
