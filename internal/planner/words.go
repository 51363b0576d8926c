package planner

import (
	"strings"

	"quern.dev/quern/internal/meaning"
)

// op is what an operator word asks for.
type op string

const (
	opCount    op = "count"
	opSum      op = "sum"
	opAverage  op = "average"
	opMedian   op = "median"
	opMost     op = "most"
	opLeast    op = "least"
	opHighest  op = "highest"
	opLowest   op = "lowest"
	opDearest  op = "dearest"  // by the price
	opCheapest op = "cheapest" // by the price
	opLongest  op = "longest"  // by a duration or length
	opShortest op = "shortest"
	opSeller   op = "best selling"
	opHeaviest op = "heaviest" // by the weight
	opLightest op = "lightest"
	opLatest   op = "latest"
	opEarliest op = "earliest"
	opTop      op = "top"
	opBottom   op = "bottom"
	opGroup    op = "group"
	opBy       op = "by"
	opSort     op = "sort"
	opDown     op = "descending"
	opUp       op = "ascending"
	opDistinct op = "distinct"
	opShare    op = "share"
	opVersus   op = "versus"
	opAnd      op = "and"
	opOr       op = "or"
	opNot      op = "not"
	opWithout  op = "without"
	opNever    op = "never"
	opYet      op = "yet"
	opStill    op = "still"
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
	opDearer   op = "dearer" // "more expensive than"
	opCheaper  op = "cheaper"
	opHeavier  op = "heavier"
	opLighter  op = "lighter"
	opWho      op = "who"
	opWhich    op = "which"
	opWhen     op = "when"
	opCompare  op = "compare"
	opList     op = "list"
	opHowMuch  op = "how much"
	opOften    op = "most often"
	opAcross   op = "across"
	opNow      op = "now"  // without those that have ended
	opOnly     op = "only" // it repeats that a condition restricts
	opIdle     op = "idle" // it says nothing: "do we have"
)

// operators are the operators of English by phrase.
//
//nolint:gochecknoglobals // it is read only, and costly to make
var operators = func() map[string]op {
	known := map[string]op{}

	for o, words := range map[op]string{
		opCount:    "how many|number of|the number of|count of|count|no of|total number of|total count of|how many of|the total number of|overall number of",
		opNow:      "currently|now|right now|at the moment|at present|as of now|presently",
		opOnly:     "only",
		opIdle:     "do we have|do we run|do we carry|do we offer|do we operate|do we own|do we stock|do we keep|we have|we run|we carry|we offer|we operate|we own|we stock|at all",
		opHowMuch:  "how much",
		opSum:      "total|sum|sum of|the sum of|combined|in total|altogether|total of|overall|in sum|totals",
		opAverage:  "average|mean|avg|on average|average of|the average of|the average|mean of|the mean",
		opMedian:   "median|median of|the median",
		opMost:     "most|the most|highest number of|largest number of|greatest number of|most number of",
		opLeast:    "least|fewest|the fewest|the least|lowest number of|smallest number of|fewest number of",
		opHighest:  "highest|largest|biggest|greatest|maximum|max|the highest|the largest|the biggest|the maximum|the greatest|maximum of|max of",
		opLowest:   "lowest|smallest|minimum|min|the lowest|the smallest|the minimum|minimum of|min of",
		opDearest:  "most expensive|the most expensive|priciest|costliest|highest priced|dearest",
		opCheapest: "cheapest|the cheapest|least expensive|lowest priced",
		opLongest:  "longest|the longest",
		opShortest: "shortest|the shortest",
		opSeller:   "best selling|best sold|bestselling|top selling|most sold|the best selling|the most sold|the top selling",
		opHeaviest: "heaviest|the heaviest",
		opLightest: "lightest|the lightest",
		opHeavier:  "heavier than|weighing more than|that weigh more than",
		opLighter:  "lighter than|weighing less than|that weigh less than",
		opLatest:   "last|the last|latest|newest|most recent|most recently|the latest|the newest|the most recent|the most recently",
		opEarliest: "first|the first|earliest|oldest|the earliest|the oldest",
		opTop:      "top|the top",
		opBottom:   "bottom|the bottom",
		opGroup:    "per|each|for each|for every|every|in each|grouped by|group by|broken down by|split by|by each|per each|of each|breakdown by|break down by|at each|on each|from each|for each of",
		opBy:       "by",
		opSort:     "sorted by|ordered by|order by|sort by|ranked by|rank by",
		opDown:     "descending|in descending order|from highest to lowest|from largest to smallest|highest first|largest first|desc|biggest first|most first",
		opUp:       "ascending|in ascending order|from lowest to highest|from smallest to largest|lowest first|smallest first|asc|in alphabetical order|alphabetically",
		opDistinct: "different|distinct|unique|number of different|number of distinct|number of unique|the number of different|the number of distinct|how many different|how many distinct|how many unique|count of distinct",
		opShare:    "share of|share|% of|what % of|percentage of|percentage|percent of|percent|proportion of|proportion|fraction of|what percent of|what percentage of|what share of|how much of|what part of|the percentage of|the share of|the proportion of",
		opVersus:   "vs|versus|compared to|compared with|against",
		opAnd:      "and|as well as|&|along with|plus",
		opOr:       "or|either",
		opNot:      "not|except|excluding|other than|except for|n't|aren't|isn't|wasn't|weren't|didn't|don't|doesn't|haven't|hasn't|leaving out|non",
		opWithout:  "without|zero|with zero|without any|without a|without an|without a single|no|have no|has no|had no|with no|having no|missing|have no registered|who have no|that have no|not have a|not have any",
		opNever:    "never|have never|has never|had never|never had|have never had|has never had|never been|have never been|has never been",
		opYet:      "yet",
		opStill:    "still|currently still",
		opBetween:  "between|in between",
		opTo:       "to|through",
		opAfter:    "after|later than",
		opBefore:   "before|earlier than|prior to",
		opSince:    "since|from|starting from|starting in|on or after|in or after",
		opUntil:    "until|till|up until|through to|on or before|in or before",
		opOver:     "more than|over|above|greater than|higher than|larger than|exceeding|exceeds|bigger than|longer than|>|in excess of",
		opAtLeast:  "at least|no less than|not less than|no fewer than|a minimum of|>=|greater than or equal to|or more|or higher|and above|or above|and up|or greater",
		opUnder:    "less than|under|below|fewer than|lower than|smaller than|shorter than|<",
		opAtMost:   "at most|no more than|not more than|up to|a maximum of|<=|less than or equal to|or less|or fewer|or below|and below|or lower",
		opEqual:    "exactly|equal to|equals|=|precisely",
		opDearer:   "more expensive than|costing more than|that cost more than|which cost more than|cost more than|dearer than|priced above|priced over",
		opCheaper:  "cheaper than|less expensive than|costing less than|that cost less than|cost less than|priced below|priced under",
		opWho:      "who|whom",
		opWhich:    "which|what|what's|which of|what are|which are|what is|what was|what were|name of|the name of|names of|the names of|what is the name of",
		opWhen:     "when|on which date|on what date|on which day|what date",
		opCompare:  "compare|comparison of|compare the",
		opList:     "i want to see|i want to know|we want to know|i need|i would like to see|i would like to know|let me know|let me see|list|show|give|display|return|list all|show all|give me|show me|tell me|list of|a list of|find|get|provide|list the",
		opOften:    "most often|most common|the most common|most frequent|most frequently|the most often|most popular|the most popular",
		opAcross:   "across all|across|over all|for all|of all|in all|from all|all",
	} {
		for phrase := range strings.SplitSeq(words, "|") {
			known[phrase] = o
		}
	}

	return known
}()

// isFunction reports whether a word has no meaning of its own in a question. The list is closed: a word that could
// restrict, order or compare is not in it.
func isFunction(word string) bool {
	switch word {
	case "a", "an", "the", "of", "in", "on", "at", "for", "from", "to", "into", "with", "within", "during", "as",
		"i", "me", "my", "we", "us", "our", "ours", "you", "your", "it", "its", "they", "them", "their", "there", "here", "this", "that", "these", "those", "whose",
		"is", "are", "was", "were", "be", "been", "got", "get", "being", "am", "do", "does", "did", "have", "has", "had", "having", "can", "could", "would", "will", "s",
		"please", "tell", "so", "where", "far", "right", "ever", "any", "some", "such", "also",
		"records", "entries", "data", "dataset", "table", "figures", "respectively", "exist", "exists", "recorded", "while", "hi", "hello", "thanks", "just":
		return true
	default:
		return false
	}
}

// isEmphasis reports whether a word only stresses that something is not there: "have never booked anything".
func isEmphasis(word string) bool {
	return word == "anything" || word == "single" || word == "anyone" || word == "whatsoever"
}

// isLight reports whether a verb only connects a thing and what is said about it: "how many bookings did guests make".
func isLight(stem string) bool {
	switch stem {
	case "make", "mak", "do", "have", "belong", "com", "come", "exist", "contain", "happen", "occur", "giv", "given", "issu", "plac", "perform", "conduct":
		return true
	default:
		return isWork(stem) || isLive(stem) || isRelation(stem)
	}
}

// isWork reports whether a verb says what persons do where they are listed: "how many employees work in Vienna".
func isWork(stem string) bool { return stem == "work" }

// isLive reports whether a verb says where persons are at home.
func isLive(stem string) bool { return stem == "liv" || stem == "resid" }

// isRelation reports whether a verb says what connects two things: "claims handled by each adjuster". It explains
// nothing if they are connected in several ways, or if it is said of one thing.
func isRelation(stem string) bool {
	switch stem {
	case "handl", "manag", "serv", "assign", "run", "hold", "lead":
		return true
	default:
		return false
	}
}

// isWeakOf reports whether an added stem fits what a column is: an "order date" is not the number of the order.
func isWeakOf(stem string, role meaning.Role) bool {
	isID := role == meaning.Identifier || role == meaning.Code

	switch {
	case stem == "dat":
		return role == meaning.Date
	case stem == "typ" || stem == "kind":
		return role == meaning.Category
	case isIDStem(stem):
		return isID || role == meaning.Category || role == meaning.Text
	default:
		return !isID && role != meaning.Date && !role.IsFigure()
	}
}
