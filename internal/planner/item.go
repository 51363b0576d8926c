package planner

import "quern.dev/quern/internal/form"

type itemKind int

const (
	functionItem itemKind = iota
	unusedItem            // no meaning was found
	opItem
	columnItem
	entityItem  // rows of a dataset
	measureItem // figure with a name
	valueItem
	numberItem
	periodItem
	grainItem
	verbItem // a verb that only connects
	partItem // part of the name of a column
	openItem // a date that is not filled: "unpaid"
)

// item is one possible meaning of consecutive words of the question.
type item struct {
	kind     itemKind
	from, to int  // range of tokens
	guess    bool // the words do not say this: it may be offered, not answered

	op      op
	table   int // of a column, entity, measure or value
	column  int
	measure int
	value   any
	number  float64
	percent bool
	ordinal bool
	isYear  bool
	period  span
	grain   form.Grain
	tier    int  // how well words name a column: 3 exactly, 2 without the name of its dataset, 1 in part
	verb    bool // the word is a verb
	plural  bool
	byUnit  bool // the words name the unit of the column

	figure *column // of an entity: a column of numbers of its table whose name has the words, too
	whole  bool    // the words are the whole name of that column
	total  bool    // of a column: the words name a measure of its table, too
}
