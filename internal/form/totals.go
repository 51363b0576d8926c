package form

import (
	"slices"
	"strings"
)

// totalNames returns the names of total rows in files. A total row is the sum of other rows.
func totalNames() []string {
	return []string{"Total", "Totals", "TOTAL", "Grand Total", "Subtotal", "Summe", "Gesamt"}
}

// TotalNames returns the names of total rows, joined to one text that can be searched in a value index.
func TotalNames() string { return " . " + strings.Join(totalNames(), " . ") + " ." }

// IsTotal reports whether a value is the name of a total row. Case does not matter. A similar value is no such name: a model Grande is no
// grand total.
func IsTotal(value string) bool {
	return slices.ContainsFunc(totalNames(), func(name string) bool { return strings.EqualFold(name, strings.TrimSpace(value)) })
}

// FindTotals returns a statement that finds the total rows of a dataset. Each row of its result has the name of a column and the name of the
// total row in that column. FindTotals returns "" if no column is text.
func FindTotals(dataset string, columns []ColumnInfo) string {
	names := totalNames()
	for i, name := range names {
		names[i] = literal(strings.ToLower(name))
	}

	var parts []string

	for _, c := range columns {
		if c.kind() == text {
			parts = append(parts, "SELECT DISTINCT "+literal(c.Name)+" AS found_in, "+quoted(c.Name)+" AS found FROM "+quoted(dataset)+
				" WHERE lower(trim("+quoted(c.Name)+")) IN ("+strings.Join(names, ", ")+")")
		}
	}

	return strings.Join(parts, " UNION ALL ")
}
