package form

import (
	"slices"
	"strings"
)

// totalNames returns the names that rows have in files if they are sums of other rows.
func totalNames() []string {
	return []string{"Total", "Totals", "TOTAL", "Grand Total", "Subtotal", "Summe", "Gesamt"}
}

// TotalNames returns the names as one text, for a search in a value index.
func TotalNames() string { return " . " + strings.Join(totalNames(), " . ") + " ." }

// IsTotal reports whether a value is one of the names, and not only similar: a model Grande is no grand total.
func IsTotal(value string) bool {
	return slices.ContainsFunc(totalNames(), func(name string) bool { return strings.EqualFold(name, strings.TrimSpace(value)) })
}

// FindTotals returns a statement for the names that rows of a dataset have because they are sums of other rows: in each row a column and
// the name in it. It returns "" if no column is text.
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
