package planner

// Form is the meaning of a question for one dataset.
type Form struct {
	Dataset  string
	Kind     Kind
	Show     []string  // columns of a list
	Measures []Measure // of all other kinds
	Groups   []Group
	Where    []Filter // conditions, joined by AND
	Parts    []Filter // the two sides of a difference or ratio; the part of a share
	Order    *Order
	Limit    int
	Distinct bool
}

// Kind is the kind of a form.
type Kind string

// The kinds.
const (
	List       Kind = "list"       // rows
	Aggregate  Kind = "aggregate"  // measures, for each group if there are groups
	Difference Kind = "difference" // of a measure between two parts
	Share      Kind = "share"      // of a part, or of each group, in the total of a measure
	Ratio      Kind = "ratio"      // of two measures, of a measure in two parts, or of a measure in one part and in all rows
)

// Function is an aggregate function.
type Function string

// The functions.
const (
	Count         Function = "count"
	CountDistinct Function = "count distinct"
	Sum           Function = "sum"
	Average       Function = "average"
	Min           Function = "min"
	Max           Function = "max"
)

// Measure is an aggregated figure. Without a column it counts rows.
type Measure struct {
	Function Function
	Column   string

	written bool
}

// Group is a column that rows are grouped by.
type Group struct {
	Column string
	Grain  Grain // for columns of dates or timestamps

	isYear bool // the column contains years
}

// Comparison is the operator of a filter.
type Comparison string

// The comparisons.
const (
	Is        Comparison = "="
	IsNot     Comparison = "<>"
	Over      Comparison = ">"
	AtLeast   Comparison = ">="
	Under     Comparison = "<"
	AtMost    Comparison = "<="
	IsEmpty   Comparison = "empty"
	IsFilled  Comparison = "filled"
	IsIn      Comparison = "in period"
	IsBetween Comparison = "between"
)

// Filter is a condition on a column.
type Filter struct {
	Column     string
	Comparison Comparison
	Values     []string // alternatives
	Number     float64
	Upper      float64
	Period     Period
	Other      string // column to compare with

	written bool
	isYear  bool
}

// Order is the order of the result: by Column, or by Measure if Column is empty.
type Order struct {
	Column     string
	Measure    int
	Descending bool

	written bool
}
