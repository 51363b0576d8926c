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

// matchRange is the number of rows of a file whose matches one row of the result lists.
const matchRange = 1 << 16

// ordinal is SQL for the order of a row among all rows of a view. A file has fewer than 2^40 rows.
const ordinal = `(CAST(` + engine.ProvenanceFile + ` AS BIGINT) * 1099511627776 + ` + engine.ProvenanceRow + `)`

// keySQL returns the columns of a key as a list, the condition that none is null, and the condition that they are equal in the
// relation r and another one.
func keySQL(key []lake.Column, other string) (list, known, same string) {
	var names, isKnown, isSame []string

	for _, c := range key {
		name := `"` + strings.ReplaceAll(c.Name, `"`, `""`) + `"`
		names, isKnown = append(names, name), append(isKnown, name+` IS NOT NULL`)
		isSame = append(isSame, "r."+name+" = "+other+"."+name)
	}

	return strings.Join(names, ", "), strings.Join(isKnown, " AND "), strings.Join(isSame, " AND ")
}

// repeatedSQL returns the statement for rows whose key occurs before, with the first row that has it, in order. It runs in a
// sealed process, as the next one does.
func repeatedSQL(key []lake.Column, limit int) string {
	list, known, same := keySQL(key, "t")

	return fmt.Sprintf(`WITH t AS (SELECT %[1]s, min(%[4]s) AS "__first" FROM %[5]s WHERE %[2]s GROUP BY %[1]s HAVING count(*) > 1)
		SELECT r.__file AS a, r.__row AS b, t."__first" // 1099511627776 AS c, t."__first" %% 1099511627776 AS d
		FROM (FROM %[5]s SELECT *, %[4]s AS "__at") r JOIN t ON %[3]s WHERE r."__at" > t."__first" ORDER BY r."__at" LIMIT %[6]d`,
		list, known, same, ordinal, newRows, limit)
}

// matchSQL returns the statement for new rows that have the key of a row of a later file, and for old rows (with hasOld) that have the key of
// a new row. There can be millions of them, so a row of the result lists those of a range of a file.
func matchSQL(key []lake.Column, hasOld bool) string {
	list, known, same := keySQL(key, "n")

	parts := []string{fmt.Sprintf(`SELECT 1 AS a, r.__file AS b, r.__row AS c FROM %s r JOIN n ON %s WHERE r.__file < n."__last"`, newRows, same)}
	if hasOld {
		parts = append(parts, fmt.Sprintf(`SELECT 0, r.__file, r.__row FROM %s r SEMI JOIN n ON %s`, oldRows, same))
	}

	return fmt.Sprintf(`WITH n AS (SELECT %[1]s, max(__file) AS "__last" FROM %[2]s WHERE %[3]s GROUP BY %[1]s)
		SELECT a, b, list(c) AS "rows" FROM (%[4]s) GROUP BY a, b, c // %[5]d`, list, newRows, known, strings.Join(parts, " UNION ALL "), matchRange)
}

// violationSQL returns the statement that finds the new rows that violate a key, in order. A row violates it if its key has a null, if an old row has
// the same key (with hasOld), or if an earlier new row has it (with isUnique). The column c is the file of that earlier row, or the reason as a
// negative number.
func violationSQL(key []lake.Column, hasOld, isUnique bool, limit int) string {
	list, known, same := keySQL(key, "t")
	parts := []string{fmt.Sprintf(`SELECT __file, __row, -%d AS c, 0 AS d FROM %s WHERE NOT (%s)`, isNull, newRows, known)}
	isOld := ""

	if hasOld {
		parts = append(parts, fmt.Sprintf(`SELECT r.__file, r.__row, -%d, 0 FROM %s r SEMI JOIN %s t ON %s`, isPresent, newRows, oldRows, same))
		isOld = fmt.Sprintf(` ANTI JOIN %s t ON %s`, oldRows, same)
	}

	if isUnique {
		parts = append(parts, fmt.Sprintf(`SELECT r.__file, r.__row, t."__first" // 1099511627776, t."__first" %% 1099511627776
			FROM (SELECT r.*, %[1]s AS "__at" FROM (SELECT r.* FROM %[2]s r%[3]s) r) r
			JOIN (SELECT %[4]s, min(%[1]s) AS "__first" FROM %[2]s WHERE %[5]s GROUP BY %[4]s HAVING count(*) > 1) t ON %[6]s
			WHERE r."__at" > t."__first"`, ordinal, newRows, isOld, list, known, same))
	}

	return fmt.Sprintf(`SELECT __file AS a, __row AS b, c, d FROM (%s) ORDER BY a, b LIMIT %d`, strings.Join(parts, " UNION ALL "), limit)
}

// countSQL returns the statement for the number of rows with null in the key, and of rows whose key occurs before.
func countSQL(key []lake.Column) string {
	list, known, _ := keySQL(key, "t")

	return fmt.Sprintf(`SELECT (SELECT count(*) FROM %[1]s WHERE NOT (%[2]s)) AS a,
		(SELECT CAST(coalesce(sum("__n" - 1), 0) AS BIGINT) FROM (SELECT count(*) AS "__n" FROM %[1]s WHERE %[2]s GROUP BY %[3]s)) AS b, 0 AS c, 0 AS d`,
		oldRows, known, list)
}
