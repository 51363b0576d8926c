package planner

// Form is what a question means, for one dataset.
type Form struct {
	Dataset  string
	Kind     Kind
	Show     []string  // columns of a list
	Measures []Measure // of everything else
	Groups   []Group
	Where    []Filter // all of them hold
	Parts    []Filter // of a difference or ratio the two sides, of a share the part
	Order    *Order
	Limit    int
	Distinct bool
}

// Kind is the shape of an answer.
type Kind string

// The kinds.
const (
	List       Kind = "list"       // rows
	Aggregate  Kind = "aggregate"  // measures, by groups if there are any
	Difference Kind = "difference" // of a measure between two parts
	Share      Kind = "share"      // of a part, or of each group, in the total of a measure
	Ratio      Kind = "ratio"      // of two measures, or of a measure in two parts, or in one and all rows
)

// Function makes one value of many.
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

// Measure is a figure. Without a column it counts rows.
type Measure struct {
	Function Function
	Column   string

	written bool
}

// Group is what rows are grouped by.
type Group struct {
	Column string
	Grain  Grain // of times

	isYear bool // the column has years
}

// Comparison is how a filter compares.
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
	Values     []string // one of them
	Number     float64
	Upper      float64
	Period     Period
	Other      string // a column to compare with

	written bool
	isYear  bool
}

// Order is by a measure if there are measures, else by a column.
type Order struct {
	Column     string
	Measure    int
	Descending bool

	written bool
}
