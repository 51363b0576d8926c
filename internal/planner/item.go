package planner

type itemKind int

const (
	noise itemKind = iota
	weak           // word with little meaning
	unknown
	operator
	columnItem
	rowsItem // rows of the dataset
	valueItem
	numberItem
	periodItem
	grainItem
)

// item is a possible meaning of consecutive words of the question.
type item struct {
	kind     itemKind
	from, to int // range of tokens
	score    float64

	op      op
	word    string    // last word of an operator
	columns []mention // most likely first
	values  []valueOf
	number  float64
	percent bool
	ordinal bool
	isYear  bool
	period  Period
	grain   Grain
	stem    string // of a single word
	verb    bool   // a verb; for a grain, an adverb
}

// mention is a column that words may name.
type mention struct {
	column int
	score  float64
}

// valueOf is a value that words may mean.
type valueOf struct {
	column int
	value  string
	guess  bool
}
