package query

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/lake"
)

func TestConditions(t *testing.T) {
	t.Parallel()

	columns := []lake.Column{
		{ID: 1, Name: "id", Type: lake.Bigint},
		{ID: 2, Name: "name", Type: lake.Varchar},
		{ID: 3, Name: "amount", Type: lake.Decimal(18, 2)},
		{ID: 4, Name: "ratio", Type: lake.Double},
		{ID: 5, Name: "day", Type: lake.Date},
		{ID: 6, Name: "moment", Type: lake.Timestamp},
		{ID: 7, Name: "flag", Type: lake.Boolean},
		{ID: 8, Name: "doc", Type: lake.JSON},
		{ID: 9, Name: "x", Type: lake.Bigint},
	}

	want := map[string]string{
		"id = 5": "1 = 5", "5 = id": "1 = 5", "id < 5": "1 < 5", "5 < id": "1 > 5", "id <= 5": "1 <= 5", "5 <= id": "1 >= 5", "id > 5": "1 > 5", "5 > id": "1 < 5", "id >= 5": "1 >= 5", "5 >= id": "1 <= 5",
		"id = -5": "1 = -5", "ID = 5": "1 = 5", "orders.id = 5": "1 = 5", `"Orders".id = 5`: "1 = 5",
		"id BETWEEN 1 AND 9": "1 >= 1, 1 <= 9", "id BETWEEN x AND 9": "1 <= 9",
		"(id = 5 OR id = 6) AND id > 1":                           "1 > 1",
		"id > 1 AND (id < 9 AND name = 'a') AND length(name) > 1": "1 > 1, 1 < 9, 2 = a",
		"id = 9223372036854775807":                                "1 = 9223372036854775807",
		"name = 'a'":                                              "2 = a",
		"name >= ''":                                              "2 >= ",
		"amount = 1.25":                                           "3 = 5/4",
		"amount > -0.5":                                           "3 > -1/2",
		"amount = 7":                                              "3 = 7/1",
		"ratio = 0.1":                                             "4 = 0.1",
		"ratio > 3":                                               "4 > 3",
		"day = '2026-01-31'":                                      "5 = 2026-01-31T00:00:00Z",
		"day = DATE '2026-01-31'":                                 "5 = 2026-01-31T00:00:00Z",
		"moment = '2026-01-31'":                                   "6 = 2026-01-31T00:00:00Z",
		"moment >= DATE '2026-01-31'":                             "6 >= 2026-01-31T00:00:00Z",
		"moment < TIMESTAMP '2026-01-31 10:11:12'":                "6 < 2026-01-31T10:11:12Z",
		"moment < '2026-01-31T10:11:12'":                          "6 < 2026-01-31T10:11:12Z",
		"moment < '2026-01-31 10:11:12.5'":                        "6 < 2026-01-31T10:11:12.5Z",
		"moment >= '2026-01-31 10:11:12.1234567'":                 "6 >= 2026-01-31T10:11:12.123456Z",
		"moment = '2026-01-31 10:11:12,5'":                        "6 = 2026-01-31T10:11:12.5Z", // DuckDB refuses the statement in any case
		"SELECT * FROM orders o WHERE o.id = 5":                   "1 = 5",
		"SELECT count(*), x FROM orders WHERE id = 5 GROUP BY x":  "1 = 5",
		"WITH a AS (SELECT 1) SELECT * FROM orders WHERE id = 5":  "1 = 5",
	}

	for text, tree := range trees(t, "conditions") {
		s, err := check(tree)
		require.NoError(t, err, text)

		var found []string

		for _, c := range s.conditions(columns) {
			value := fmt.Sprint(c.Value)

			switch typed := c.Value.(type) {
			case time.Time:
				value = typed.Format(time.RFC3339Nano)
			case *big.Rat:
				value = typed.String()
			}

			found = append(found, fmt.Sprintf("%d %s %s", c.Column, c.Operator, value))
		}

		key := strings.TrimPrefix(text, "SELECT * FROM orders WHERE ") //nolint:unqueryvet // a statement of a user
		require.Equal(t, want[key], strings.Join(found, ", "), text)
		delete(want, key)
	}

	require.Empty(t, want, "expected, but not recorded")
}
