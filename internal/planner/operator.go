package planner

import "strings"

// op is the function of an operator word.
type op string

const (
	opCount    op = "count"
	opHowMuch  op = "how much"
	opSum      op = "sum"
	opAverage  op = "average"
	opMost     op = "most"  // a superlative with descending order
	opLeast    op = "least" // a superlative with ascending order
	opLatest   op = "latest"
	opEarliest op = "earliest"
	opTop      op = "top"
	opGroup    op = "group"
	opBy       op = "by"
	opOrder    op = "order"
	opDown     op = "descending"
	opUp       op = "ascending"
	opShare    op = "share"
	opRatio    op = "ratio"
	opOutOf    op = "out of"
	opDiff     op = "difference"
	opHowMore  op = "how much more"
	opHowLess  op = "how much less"
	opMore     op = "more" // "more A than B", "more, A or B"
	opLess     op = "less"
	opOlder    op = "older" // "older, A or B"
	opNewer    op = "newer"
	opThan     op = "than"
	opCompare  op = "compare"
	opNot      op = "not"
	opEmpty    op = "empty"
	opDistinct op = "distinct"
	opAnd      op = "and"
	opOr       op = "or"
	opBetween  op = "between"
	opTo       op = "to"
	opAfter    op = "after"
	opBefore   op = "before"
	opSince    op = "since"
	opUntil    op = "until"
	opOver     op = ">"
	opAtLeast  op = ">="
	opUnder    op = "<"
	opAtMost   op = "<="
	opEqual    op = "="
	opWho      op = "who"
	opWhich    op = "which"
	opWhen     op = "when"
	opWhere    op = "where"
	opList     op = "list"
	opAsk      op = "yes or no"
	opOften    op = "often"
	opTimes    op = "times"
	opUnable   op = "what a form cannot hold"
)

// phrases returns the operators of English by phrase. Longer phrases take precedence.
func phrases() map[string]op {
	known := map[string]op{}

	for o, words := range map[op]string{
		opCount:    "how many|number of|the number of|count of|count|number|amount of|no of|quantity of|headcount|total number of|total count of|total amount of|overall number of|tally of",
		opHowMuch:  "how much",
		opSum:      "total|sum|sum of|overall|combined|altogether|in total|total of|totals|sum total of|all together|add up",
		opAverage:  "average|mean|avg|on average|average of|typical|typically|mean of",
		opMost:     "most|highest|largest|biggest|greatest|maximum|max|longest|best|maximal|strongest|highest number of|greatest number of|largest number of|most number of|the most|highest value of|tallest|heaviest|fastest|widest|deepest|most amount of|largest amount of|greatest amount of|highest amount of",
		opLeast:    "least|lowest|smallest|fewest|minimum|min|shortest|worst|minimal|lowest number of|smallest number of|fewest number of|least number of|least amount of|lowest amount of|lightest|smallest amount of|lowest value of|cheapest",
		opLatest:   "latest|newest|most recent|most recently|last|youngest",
		opEarliest: "earliest|oldest|first",
		opTop:      "top|bottom",
		opGroup:    "per|each|for each|for every|every|in each|grouped by|group by|broken down by|split by|by each|per each|of each|for all|breakdown by|break down by|at each|on each|from each",
		opBy:       "by",
		opOrder:    "sorted by|ordered by|order by|sort by|sorted|ordered|order the results by|sort the results by|rank by|ranked by",
		opDown:     "descending|in descending order|from highest to lowest|from largest to smallest|from most to least|from longest to shortest|highest first|largest first|from best to worst|starting from the top|desc|from the best to the lowest|in descending order by",
		opUp:       "ascending|in ascending order|from lowest to highest|from smallest to largest|alphabetically|in alphabetical order|lowest first|asc|from shortest to longest",
		opShare:    "share of|share|percentage of|percentage|percent of|percent|proportion of|proportion|fraction of|what percent of|how much of|what part of|part of|portion of",
		opRatio:    "ratio|ratio of|the ratio of",
		opOutOf:    "out of",
		opDiff:     "difference|difference between|difference in|the difference between|the difference in|gap between",
		opHowMore:  "how much more|how many more|how much higher|how much larger|how much bigger|how much longer|how much taller",
		opHowLess:  "how many fewer|how much less|how many less|how much lower|how much smaller",
		opMore:     "more|greater|larger|higher|bigger|longer|better|taller|heavier",
		opLess:     "less|fewer|lower|smaller|shorter|worse|lighter",
		opOlder:    "older|earlier|sooner",
		opNewer:    "newer|younger|later|more recent|more recently",
		opThan:     "than|compared to|compared with|versus|vs",
		opCompare:  "compare|comparison of|comparison between|compare the",
		opNot:      "not|never|except|excluding|other than|except for|n't|aren't|isn't|wasn't|weren't|didn't|don't|doesn't|haven't|hasn't|besides|not yet",
		opEmpty:    "without|without any|missing|no|have no|has no|had no|with no",
		opDistinct: "different|distinct|unique|how many different|how many distinct|how many unique|number of different|number of distinct|number of unique",
		opAnd:      "and|as well as|&|along with",
		opOr:       "or|either",
		opBetween:  "between|in between",
		opTo:       "to|through",
		opAfter:    "after|later than|following",
		opBefore:   "before|earlier than|prior to|previous to",
		opSince:    "since|from|starting from|starting in|as of|in or after|on or after",
		opUntil:    "until|till|up until|through to|in or before|on or before",
		opOver:     "more than|over|above|greater than|higher than|larger than|exceeding|exceeds|exceed|exceeded|bigger than|longer than|>|better than|in excess of",
		opAtLeast:  "at least|no less than|not less than|no fewer than|minimum of|a minimum of|>=|greater than or equal to|or more|or higher|and above|or above|and up|and more|or greater",
		opUnder:    "less than|under|below|fewer than|lower than|smaller than|shorter than|<|cheaper than",
		opAtMost:   "at most|no more than|not more than|up to|maximum of|<=|less than or equal to|or less|or fewer|or below|and below|or lower",
		opEqual:    "exactly|equal to|equals|=|precisely|of exactly",
		opWho:      "who|whom|whose",
		opWhich:    "which|what|what's|which of|name of|names of|what kind of|which ones",
		opWhen:     "when|on which date|on what date|what date|which date|what day|on which day|on what day",
		opWhere:    "where",
		opList:     "list|show|give|display|name|return|tell|find|get|list all|show all|give me|show me|tell me|list of|a list of|i want|i need|see|provide|identify|names",
		opTimes:    "how many times|how often|number of times|the number of times|total number of times",
		opUnable:   "name a|name an|name one|consecutive|consecutively|next|previous|in a row|list a|give a",
		opOften:    "most often|most common|most frequent|most frequently|the most often|the most common|most popular|the most times|most times|more often",
	} {
		for phrase := range strings.SplitSeq(words, "|") {
			known[phrase] = o
		}
	}

	return known
}
