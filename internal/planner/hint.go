package planner

import "quern.dev/quern/internal/lexicon"

// isDeed reports whether a stem is a verb that refers to a figure: "earn" refers to the salary.
func isDeed(stem string) bool {
	switch stem {
	case "earn", "pay", "cost", "sell", "spend", "weigh", "invoic", "bill", "charg", "last":
		return true
	default:
		return false
	}
}

// isWeak reports whether a stem only connects a name and a figure and has little other meaning: "who scored the
// points".
func isWeak(stem string) bool {
	switch stem {
	case "play", "scor", "releas", "call", "writ", "publish", "air", "compet", "award", "represent", "driv", "direct", "sing", "only", "appear", "wrot",
		"win", "perform", "produc", "creat", "design", "attend", "total", "actual", "record":
		return true
	default:
		return false
	}
}

// rowHints returns stems of dataset names that a word refers to without naming them.
func rowHints(stem string) []string {
	switch stem {
	case "staff", "employe", "worker", "colleague", "headcount":
		return []string{"employe", "staff", "worker"}
	case "client", "customer", "buyer":
		return []string{"customer", "client", "buyer"}
	default:
		return nil
	}
}

// hintStems returns the stems of the column names that a word refers to without naming them.
func hintStems(word string) []string {
	list := hints(word)
	for i := range list {
		list[i] = lexicon.Stem(list[i])
	}

	return list
}

// hints returns the column names that a stem refers to without naming them.
func hints(stem string) []string {
	switch stem {
	case "earn", "wag", "salary", "income", "pay":
		return []string{"salary", "wage", "pay", "income", "earning", "price", "amount", "fee", "total"}
	case "expensiv", "cheap", "cheapest", "cost", "costly", "pric", "worth", "pricey":
		return []string{"price", "cost", "fee", "fare", "amount", "value"}
	case "money", "revenu", "turnover", "sell", "sal":
		return []string{"revenue", "sales", "turnover", "amount", "total", "price"}
	case "spend":
		return []string{"spent", "spend", "spending", "cost", "amount", "expense"}
	case "invoic", "bill", "charg":
		return []string{"amount", "total", "charge"}
	case "long", "longest", "longer", "duration", "shortest", "shorter":
		return []string{"length", "duration", "time", "minutes", "hours", "days", "runtime", "distance"}
	case "tall", "tallest", "taller", "high":
		return []string{"height", "elevation", "altitude"}
	case "heavy", "heaviest", "heavier", "lightest", "lighter", "weigh":
		return []string{"weight", "mass"}
	case "fast", "fastest", "quick", "speed":
		return []string{"speed"}
	case "larg", "largest", "larger", "big", "biggest", "bigger", "smallest", "smaller", "siz":
		return []string{"size", "area", "amount", "total", "revenue", "population"}
	case "old", "age":
		return []string{"age"}
	case "popul", "peopl", "person", "inhabitant", "resident":
		return []string{"population"}
	case "rat", "best", "worst":
		return []string{"rating", "score"}
	case "staff", "worker", "colleague":
		return []string{"employee", "staff"}
	case "client", "customer", "buyer":
		return []string{"customer", "client", "buyer"}
	case "traffic":
		return []string{"visits", "visitors"}
	case "nation":
		return []string{"country", "nationality"}
	case "country":
		return []string{"nation", "nationality"}
	case "town":
		return []string{"city"}
	case "team", "club":
		return []string{"team", "club"}
	case "film", "movi", "song", "book", "album", "show":
		return []string{"title"}
	default:
		return nil
	}
}

// hinted returns the column of numbers that a word most likely refers to without naming it, or -1.
func (r *reader) hinted(word string) int {
	best, most := -1, 0.0

	for i := range r.columns {
		c := &r.columns[i]
		if score := hintScore(hintStems(lexicon.Stem(word)), c); c.kind == number && score > most {
			best, most = i, score
		}
	}

	return best
}
