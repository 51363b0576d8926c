package planner

import "regexp"

// An order to change something begins with its verb, possibly after polite words. Verbs that are nouns as often ("share
// of orders", "change in price", "update time") count only before words that cannot follow a noun.
var (
	polite = regexp.MustCompile(`(?i)^\W*((please|kindly|now|just|then|and|also|hey|ok|okay|go ahead and|(can|could|would|will) you|i('d| would) like (you )?to|i (want|need) (you )?to|let('s| us))\W+)*`)

	changes = regexp.MustCompile(`(?i)^(` +
		`(delete|erase|truncate|insert|purge|wipe|overwrite)\b(\W+\w|\W*$)` +
		`|(remove|drop|update|change|set|alter|modify|edit|rename|replace|move|share|unshare|revoke|grant)\s+(all|any|each|every|everything|the|this|that|these|those|my|our|its|table|dataset|namespace|column|row|rows|record|records|access)\b` +
		`|(add|append|create|make)\s+(an?|another|new|some)\s+(new\s+|empty\s+|more\s+)?(datasets?|namespaces?|columns?|rows?|records?|entry|entries)\b` +
		`|update\s+\S+\s+set\b)`)
)

// Changes reports whether a question is an order to change, share or delete something. Such an order is never executed,
// because questions only read.
func Changes(question string) bool {
	return changes.MatchString(question[len(polite.FindString(question)):])
}
