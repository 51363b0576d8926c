package form

import "quern.dev/quern/internal/meaning"

// Schema is what the compiler knows of the datasets.
type Schema struct {
	Datasets []Dataset
}

// Dataset is a dataset with its meaning.
type Dataset struct {
	Name    string // as statements write it
	Row     string // what one row is: "order"
	Columns []ColumnInfo
	Keys    [][]string // sets of columns that are unique in the pinned snapshot
	Joins   []Join
	Label   string            // column that names a row; empty if there is none
	Units   map[string]string // of named measures
	Totals  []Condition       // rows that meet one of them are sums of other rows; figures leave them out
}

// ColumnInfo is a column with its meaning.
type ColumnInfo struct {
	Name     string
	Type     string // as SQL writes it
	Role     meaning.Role
	Unit     string
	HasNulls bool
}

// Join leads from a row to at most one row of another dataset.
type Join struct {
	Columns []string
	To      string
	Keys    []string
	Partial bool // some rows have no partner, or that is not known
}
