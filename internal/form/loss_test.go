package form_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/form"
)

// check runs the check of a statement.
func (d *database) check(t *testing.T, statement form.Statement) (found []form.Found) {
	t.Helper()

	if statement.Check.SQL == "" {
		return nil
	}

	rows, err := d.rows(statement.Check.SQL)
	require.NoError(t, err, statement.Check.SQL)

	for _, row := range rows {
		values := strings.Fields(row)
		require.Len(t, values, 4, statement.Check.SQL)

		var f form.Found

		f.Loss, _ = strconv.Atoi(values[0])
		f.Lost, _ = strconv.ParseInt(values[1], 10, 64)
		f.Among, _ = strconv.ParseInt(values[2], 10, 64)

		if values[3] != "-" {
			amount, err := strconv.ParseFloat(values[3], 64)
			require.NoError(t, err)

			f.Amount = &amount
		}

		require.LessOrEqual(t, f.Lost, f.Among, statement.Check.SQL)

		found = append(found, f)
	}

	return found
}

func filled(column string) form.Condition {
	return form.Condition{Column: col(column), Is: form.Filled}
}

// TestLosses checks that no row of the dataset that is counted vanishes unsaid because it lacks a row of another one. Of the
// six orders of the shop one has no customer_id, and one has that of no customer.
func TestLosses(t *testing.T) {
	t.Parallel()

	freight := of(form.Sum, "freight")
	worth := calc(form.Times, term("quantity"), term("products.price"))

	set := shop()
	set.rows["order_lines"] += `, (1, 99, 5, 1.0)`
	db := set.open(t)

	for name, one := range map[string]struct {
		form form.Form
		want []string
	}{
		"groups that must have a name": {
			form.Form{Dataset: "orders", Measures: measures(freight), Groups: groups("customers.state"), Where: where(filled("customers.id"))},
			[]string{"2 of 6 rows of *orders* have no *customer* and are not counted; their total *freight* is 3."},
		},
		"among the rows that meet other conditions": {
			form.Form{Dataset: "orders", Measures: measures(freight), Groups: groups("customers.state"), Where: where(filled("customers.id"), is("status", "open"))},
			[]string{"1 of 2 rows of *orders* has no *customer* and is not counted; its total *freight* is 1."},
		},
		"a condition on the other dataset": {
			form.Form{Dataset: "orders", Measures: measures(count()), Where: where(is("customers.city", "Vienna"))},
			[]string{"2 of 6 rows of *orders* have no *customer* and are not counted."},
		},
		"rows that do not meet other conditions anyway": {
			form.Form{Dataset: "orders", Measures: measures(count()), Where: where(is("customers.city", "Vienna"), is("status", "cancelled"))}, nil,
		},
		"conditions on two other datasets": { // the line of order 5, which has no customer, is of a mug; that of order 7 too
			form.Form{Dataset: "order_lines", Measures: measures(of(form.Sum, "quantity")), Where: where(is("customers.city", "Vienna"), is("products.name", "Mug"))},
			[]string{"3 of 9 rows of *order_lines* have no *customer* or no *product* and are not counted; their total *quantity* is 9."},
		},
		"a condition that rows without a partner meet": {
			form.Form{Dataset: "orders", Measures: measures(count()), Where: where(isNot("customers.city", "Vienna"))}, nil,
		},
		"groups that need no name": {
			form.Form{Dataset: "orders", Measures: measures(freight), Groups: groups("customers.state")}, nil,
		},
		"a figure that needs the other dataset": {
			form.Form{Dataset: "order_lines", Measures: measures(count(), called("revenue", form.Measure{Function: form.Sum, Of: &worth}))},
			[]string{"1 of 9 rows of *order_lines* has no *product* and does not count towards the total *quantity* × *price* of the *product* (*revenue*)."},
		},
		"a share of rows that need the other dataset": {
			form.Form{Dataset: "orders", Measures: measures(with(share(count()), is("customers.city", "Vienna"))), Where: where(is("status", "paid"))},
			[]string{"1 of 3 rows of *orders* has no *customer* and does not count towards the percentage."},
		},
		"figures of two datasets": {
			form.Form{Dataset: "orders", Measures: measures(freight, on("tickets", count())), Groups: groups("customers.state"), Where: where(filled("customers.id"))},
			[]string{"2 of 6 rows of *orders* have no *customer* and are not counted; their total *freight* is 3."},
		},
		"all rows have partners": {
			form.Form{Dataset: "tickets", Measures: measures(count()), Where: where(is("customers.city", "Vienna"))}, nil,
		},
		"one dataset": {form.Form{Dataset: "orders", Measures: measures(count()), Where: where(is("status", "paid"))}, nil},
		"a list":      {form.Form{Dataset: "orders", Show: terms("id"), Where: where(is("customers.city", "Vienna"))}, nil},
	} {
		statement, err := set.schema.Compile(one.form)
		require.NoError(t, err, name)
		require.Equal(t, one.want, statement.Check.Sentences(db.check(t, statement)), "%s: %s", name, statement.Check.SQL)
	}
}

// TestUncounted checks what is said if the check fails: nothing about rows that all have partners.
func TestUncounted(t *testing.T) {
	t.Parallel()

	set := shop()

	statement, err := set.schema.Compile(form.Form{Dataset: "orders", Measures: measures(count()), Where: where(is("customers.city", "Vienna"))})
	require.NoError(t, err)
	require.Equal(t, []string{"Rows of *orders* that have no *customer* are not counted. How many there are could not be counted."}, statement.Check.Uncounted())

	// Each order line has a product, as far as is known.
	for i := range set.schema.Datasets {
		for j := range set.schema.Datasets[i].Joins {
			set.schema.Datasets[i].Joins[j].Partial = false
		}
	}

	statement, err = set.schema.Compile(form.Form{Dataset: "order_lines", Measures: measures(count()), Where: where(is("products.category", "home"))})
	require.NoError(t, err)
	require.NotEmpty(t, statement.Check.SQL)
	require.Empty(t, statement.Check.Uncounted())
	require.Empty(t, statement.Check.Sentences([]form.Found{{Loss: 0, Lost: 0, Among: 8}, {Loss: 7, Lost: 1, Among: 8}, {Loss: -1, Lost: 1, Among: 8}}))
}
