package grounding_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/grounding"
)

// TestRender checks the text of results: what it shows, how it rounds, and that no cell becomes markup.
func TestRender(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		lead, columns, rows, text string
	}{
		{"number of *orders* where *status* is 'cancelled'", "count:bigint", `{"count":18}`, "Number of orders where status is 'cancelled': 18."},
		{"As it was asked.", "n:bigint", `{"n":200,"__metadata":{"score":1}}`, "As it was asked: 200."},
		{"", "n:bigint", `{"n":200}`, "n 200."},
		{"average of *price_eur*", "average price_eur:double", `{"average price_eur":5641.109357218124}`, "Average of price_eur: 5641.11 €."},
		{"sum of *amount*", "sum amount:double", `{"sum amount":1200.5}`, "Sum of amount: 1200.50."},
		{"sum of *amount*", "sum amount:decimal(38,2)", `{"sum amount":"1200.00"}`, "Sum of amount: 1200.00."},
		{"average of *rating*", "average rating:double", `{"average rating":3.6666666666666665}`, "Average of rating: 3.67."},
		{"average", "x:double", `{"x":0.000123456789}`, "Average: 0.000123."},
		{"average", "x:double", `{"x":1e-7}`, "Average: 0.0000001."},
		{"largest", "order_id:bigint", `{"order_id":1234567}`, "Largest: 1234567."},
		{"the zip", "zip:varchar", `{"zip":"01234.50000"}`, "The zip: 01234.50000."},
		{"oldest", "born:date", `{"born":"1999-01-31"}`, "Oldest: 1999-01-31."},
		{"none", "x:bigint", `{"x":null}`, "None: no value."},
		{"the *carrier*", "carrier:varchar,count:bigint", `{"carrier":"Postbus","count":126}`, "The carrier: carrier Postbus, count 126."},
		{"the *Kunde*", "Kunde:varchar,count:bigint", `{"Kunde":"Kunde Nr. 69","count":38}`, "The Kunde: Kunde Nr. 69, count 38."},
		{"the *Kunde*", "Kunde:varchar,count:bigint", `{"Kunde":"kunde","count":38}`, "The Kunde: kunde, count 38."},
		{"the *Ort*", "Ort:varchar,count:bigint", `{"Ort":"Ortenburg","count":8}`, "The Ort: Ort Ortenburg, count 8."},
		{"the *carrier*", "carrier:varchar,count:bigint", `{"carrier":null,"count":8}`, "The carrier: carrier (empty), count 8."},
		{
			"by *region*", "region:varchar,count:bigint", `{"region":"north","count":34}` + "\n" + `{"region":"south|*x*","count":33}`,
			"By region:\n\n| region | count |\n|---|---:|\n| north | 34 |\n| south\\|\\*x\\* | 33 |",
		},
		{"x", "a:varchar", `{"a":"![i](http://evil/x.png)"}`, "X: `![i](http://evil/x.png)`."},
		{"x", "a:varchar", `{"a":"<img src=x>\n# b"}`, "X: \\<img src=x\\> # b."},
		{"x", "a:varchar", `{"a":"` + strings.Repeat("é", 100) + `"}`, "X: " + strings.Repeat("é", 59) + "…."},
		{"x", "a:varchar", strings.Repeat(`{"a":"b"}`+"\n", 10) + `{"a":"b"}`, "X: 11 rows, listed in the table of the answer."},
		{"x", "a:bigint,b:bigint,c:bigint,d:bigint,e:bigint,f:bigint,g:bigint", `{"a":1}`, "X: 1 row, listed in the table of the answer."},
	} {
		columns, rows := []grounding.Column{}, []json.RawMessage{}

		for one := range strings.SplitSeq(test.columns, ",") {
			name, kind, _ := strings.Cut(strings.ReplaceAll(one, "38", "38,2"), ":")
			if strings.HasSuffix(name, ")") {
				continue
			}

			columns = append(columns, grounding.Column{Name: name, Type: kind})
		}

		for row := range strings.SplitSeq(test.rows, "\n") {
			rows = append(rows, json.RawMessage(row))
		}

		require.Equal(t, test.text, grounding.Render(test.lead, columns, rows, int64(len(rows))))
	}
}

// TestRenderAgrees checks that the check confirms each number that Render shows.
func TestRenderAgrees(t *testing.T) {
	t.Parallel()

	columns := []grounding.Column{{"city", "varchar"}, {"revenue_eur", "double"}, {"orders", "bigint"}}
	rows := []json.RawMessage{}

	for i := range 10 {
		rows = append(rows, json.RawMessage(fmt.Sprintf(`{"city":"City %c","revenue_eur":%d.987654321,"orders":%d}`, 'A'+i, 1000*i+7, 100+i)))
	}

	step := grounding.Step{Columns: []string{"city", "revenue_eur", "orders"}, Rows: rows, RowCount: 10, Complete: true}
	report := grounding.Check(grounding.Render("all cities", columns, rows, 10), "", []grounding.Step{step})
	require.Len(t, report.Claims, 20)

	for _, claim := range report.Claims {
		require.True(t, claim.Verified, "%+v", claim)
	}
}
