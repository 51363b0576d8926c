// Package form is the typed meaning of a question, and the compiler from it to SQL.
//
// A form says what is asked for: figures or rows of one dataset, by groups, under conditions, in an order. It does not
// say how datasets are joined: the compiler does, so that no row is counted twice and none is lost silently. The package
// knows nothing of the words of questions.
//
// Guarantees:
//   - The dataset of a form fixes the grain. From there the compiler joins only from many to one, over keys that are
//     unique, at most three hops. Several paths between two datasets are an error that names them, never a choice.
//   - A condition on the many side is EXISTS or NOT EXISTS.
//   - Figures of two datasets are aggregated apart, by the groups that both share, and then joined.
//   - What does not add up is never added up, and what identifies things is never aggregated.
//   - Names and values are quoted, so that they cannot be anything but a name or a value.
package form

import "time"

// Form is what a question asks for.
type Form struct {
	Dataset  string      `json:"dataset"`            // its rows are listed or aggregated
	Show     []Term      `json:"show,omitempty"`     // columns of a list of rows; all if empty. Only without measures
	Distinct bool        `json:"distinct,omitempty"` // of a list: each different row once
	Measures []Measure   `json:"measures,omitempty"`
	Groups   []Group     `json:"groups,omitempty"`
	Where    []Condition `json:"where,omitempty"`  // all of them hold
	Having   []Having    `json:"having,omitempty"` // of the groups
	Order    *Order      `json:"order,omitempty"`
	Limit    int         `json:"limit,omitempty"` // 1 keeps all that tie for first
}

// Column names a column of the form's dataset, or of one that it is joined with.
type Column struct {
	Dataset string   `json:"dataset,omitempty"` // empty: that of the form, or of the measure
	Name    string   `json:"column"`
	Via     []string `json:"via,omitempty"` // foreign key columns of each hop, where several paths lead to the dataset
}

// Term is a column, or a calculation with terms.
type Term struct {
	Column

	Op     Op      `json:"op,omitempty"` // empty for a column
	Args   []Term  `json:"args,omitempty"`
	Number float64 `json:"number,omitempty"` // of Op number
}

// Op is a calculation.
type Op string

// The calculations.
const (
	Number Op = "number"
	Plus   Op = "+"
	Minus  Op = "-"
	Times  Op = "*"
	Over   Op = "/"
	Days   Op = "days" // from the first date to the second
)

// Function is an aggregate function.
type Function string

// The functions.
const (
	Count         Function = "count" // of rows
	CountDistinct Function = "countDistinct"
	Sum           Function = "sum"
	Average       Function = "average"
	Median        Function = "median"
	Min           Function = "min"
	Max           Function = "max"
)

// Measure is an aggregated figure.
type Measure struct {
	Name     string      `json:"name,omitempty"` // what people call it: "revenue"
	Function Function    `json:"function"`
	Of       *Term       `json:"of,omitempty"`      // nil for the count of rows
	Dataset  string      `json:"dataset,omitempty"` // whose rows it aggregates, if not those of the form
	Where    []Condition `json:"where,omitempty"`   // in addition to those of the form
	Per      *Measure    `json:"per,omitempty"`     // it is divided by this one
	Less     *Measure    `json:"less,omitempty"`    // this one is subtracted
	Share    bool        `json:"share,omitempty"`   // in percent: of the rows under Where among all; without Where, of the group among all groups
}

// Group is a column that rows are grouped by.
type Group struct {
	Column

	Grain Grain   `json:"grain,omitempty"` // of dates
	Key   *Column `json:"key,omitempty"`   // what tells apart things that share a name
}

// Grain is the precision by which dates are grouped.
type Grain string

// The grains.
const (
	Day     Grain = "day"
	Week    Grain = "week"
	Month   Grain = "month"
	Quarter Grain = "quarter"
	Year    Grain = "year"
)

// Comparison is how a condition compares.
type Comparison string

// The comparisons.
const (
	Is        Comparison = "is" // one of the values
	IsNot     Comparison = "isNot"
	MoreThan  Comparison = "moreThan"
	AtLeast   Comparison = "atLeast"
	LessThan  Comparison = "lessThan"
	AtMost    Comparison = "atMost"
	Between   Comparison = "between" // both numbers included
	Empty     Comparison = "empty"
	Filled    Comparison = "filled"
	In        Comparison = "in"      // period
	InMonth   Comparison = "inMonth" // the month Number of any year
	Latest    Comparison = "latest"  // rows of the latest date that meets the other conditions on the column
	Exists    Comparison = "exists"  // at least one row of another dataset belongs to the row
	NotExists Comparison = "notExists"
)

// Condition is a condition on rows.
type Condition struct {
	Column

	Is     Comparison `json:"is"`
	Values []any      `json:"values,omitempty"` // texts, numbers, booleans
	Number float64    `json:"number,omitempty"`
	Upper  float64    `json:"upper,omitempty"`
	Period *Period    `json:"period,omitempty"`
	Other  *Column    `json:"other,omitempty"` // column to compare with instead of a number
	Rows   *Rows      `json:"rows,omitempty"`  // of Exists and NotExists
}

// Rows are the rows of a dataset on the many side that belong to a row.
type Rows struct {
	Dataset string      `json:"dataset"`
	Via     []string    `json:"via,omitempty"` // foreign key columns, from the many side, where several paths lead here
	Where   []Condition `json:"where,omitempty"`
}

// Having is a condition on a measure of each group.
type Having struct {
	Measure Measure    `json:"measure"`
	Is      Comparison `json:"is"` // MoreThan, AtLeast, LessThan, AtMost, Is, Between
	Number  float64    `json:"number,omitempty"`
	Upper   float64    `json:"upper,omitempty"`
	Other   *Measure   `json:"other,omitempty"` // instead of a number
}

// Order is the order of the result: by a measure, or by a column of a list.
type Order struct {
	Measure    int   `json:"measure,omitempty"`
	Column     *Term `json:"column,omitempty"`
	Descending bool  `json:"descending,omitempty"`
}

// Period is a range of days. To is not part of it.
type Period struct {
	From time.Time `json:"from,omitzero"` // zero: no limit
	To   time.Time `json:"to,omitzero"`
	Text string    `json:"text,omitempty"` // as people say it: "March 2026"
}
