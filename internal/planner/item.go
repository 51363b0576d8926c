package planner

type itemKind int

const (
	noise itemKind = iota
	weak           // a word that says little
	unknown
	operator
	columnItem
	rowsItem // the rows of the dataset
	valueItem
	numberItem
	periodItem
	grainItem
)

// item is what some words of the question may mean.
type item struct {
	kind     itemKind
	from, to int // tokens
	score    float64

	op      op
	word    string    // the last one, of an operator
	columns []mention // the likeliest first
	values  []valueOf
	number  float64
	percent bool
	ordinal bool
	isYear  bool
	period  Period
	grain   Grain
	stem    string // of a single word
	verb    bool   // it says that something happened
}

// mention is a column that words may name.
type mention struct {
	column int
	score  float64
}

// valueOf is a value that words may be.
type valueOf struct {
	column int
	value  string
	guess  bool
}
