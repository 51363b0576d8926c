package ingest

import (
	"fmt"
	"strings"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/lake"
)

// The names of views in statements about keys.
const (
	oldRows = "old"
	newRows = "new"
)

// ordinal is SQL for the order of a row among all rows of a view. A file has fewer than 2^40 rows.
const ordinal = `(CAST(` + engine.ProvenanceFile + ` AS BIGINT) * 1099511627776 + ` + engine.ProvenanceRow + `)`

// keySQL returns the columns of a key as a list, the condition that none is null, and the condition that they are equal in the
// relations a and b.
func keySQL(key []lake.Column, a, b string) (list, known, same string) {
	var names, isKnown, isSame []string

	for _, c := range key {
		name := `"` + strings.ReplaceAll(c.Name, `"`, `""`) + `"`
		names, isKnown = append(names, name), append(isKnown, name+` IS NOT NULL`)
		isSame = append(isSame, a+"."+name+" = "+b+"."+name)
	}

	return strings.Join(names, ", "), strings.Join(isKnown, " AND "), strings.Join(isSame, " AND ")
}

// repeatedSQL returns the statement for rows whose key occurs before, with the first row that has it, in order. It runs in a
// sealed process, as the next one does.
func repeatedSQL(key []lake.Column, limit int) string {
	list, known, same := keySQL(key, "r", "t")

	return fmt.Sprintf(`WITH t AS (SELECT %[1]s, min(%[4]s) AS "__first" FROM %[5]s WHERE %[2]s GROUP BY %[1]s HAVING count(*) > 1)
		SELECT r.__file AS a, r.__row AS b, t."__first" // 1099511627776 AS c, t."__first" %% 1099511627776 AS d
		FROM (FROM %[5]s SELECT *, %[4]s AS "__at") r JOIN t ON %[3]s WHERE r."__at" > t."__first" ORDER BY r."__at" LIMIT %[6]d`,
		list, known, same, ordinal, newRows, limit)
}

// matchSQL returns the statement for old rows that have the key of a new row, and for new rows that have the key of a row of a
// later file.
func matchSQL(key []lake.Column) string {
	list, known, same := keySQL(key, "r", "n")

	return fmt.Sprintf(`WITH n AS (SELECT %[1]s, max(__file) AS "__last" FROM %[4]s WHERE %[2]s GROUP BY %[1]s)
		SELECT 0 AS a, r.__file AS b, r.__row AS c, 0 AS d FROM %[5]s r SEMI JOIN n ON %[3]s
		UNION ALL SELECT 1, r.__file, r.__row, 0 FROM %[4]s r JOIN n ON %[3]s WHERE r.__file < n."__last"`, list, known, same, newRows, oldRows)
}
