package planner

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"quern.dev/quern/internal/lexicon"
)

const (
	maxPhrase = 5 // words of an operator
	maxName   = 5 // words of a name
)

// matcher finds the possible meanings of words.
type matcher struct {
	*world

	text    string
	tokens  []token
	today   time.Time
	matches []Match
	shorts  map[string][]string // words of names that abbreviate a stem of the question
}

// items returns all meanings of all sequences of words, by their first token.
func (m *matcher) items() [][]*item {
	found := make([][]*item, len(m.tokens))
	m.shorts = m.abbreviations()

	for i := range m.tokens {
		found[i] = m.plain(i)

		for n := 1; n <= maxName && i+n <= len(m.tokens); n++ {
			found[i] = append(found[i], m.names(i, i+n)...)
		}

		if !slices.ContainsFunc(found[i], func(one *item) bool { return one.to == i+1 && (one.kind == columnItem || one.kind == entityItem) }) {
			found[i] = append(found[i], m.opens(i)...)
		}
	}

	for _, v := range m.values() {
		found[v.from] = append(found[v.from], v)

		if !v.guess {
			found[v.from] = slices.DeleteFunc(found[v.from], func(one *item) bool { return one.kind == openItem })
		}

		// A value is not a verb without meaning: "on hold".
		for i := v.from; i < v.to && !v.guess; i++ {
			found[i] = slices.DeleteFunc(found[i], func(one *item) bool { return one.kind == verbItem && one.table < 0 })
		}
	}

	for i := range found {
		found[i] = m.settle(i, found[i])
	}

	return found
}

// settle removes meanings that other meanings of the same word exclude.
func (m *matcher) settle(i int, list []*item) []*item {
	single := func(kinds ...itemKind) bool {
		return slices.ContainsFunc(list, func(one *item) bool { return one.to == i+1 && !one.guess && slices.Contains(kinds, one.kind) })
	}

	// A word in capitals that is a value is a value: IT, NO, US.
	if m.isCode(i) && single(valueItem) {
		return slices.DeleteFunc(list, func(one *item) bool {
			return one.to == i+1 && (one.kind == functionItem || one.kind == opItem || one.kind == unusedItem)
		})
	}

	// An operator is not a function word.
	if single(opItem) {
		list = slices.DeleteFunc(list, func(one *item) bool { return one.kind == functionItem || one.kind == verbItem && one.table < 0 })
	}

	if single(columnItem, entityItem, measureItem, valueItem, periodItem, numberItem, grainItem, opItem, verbItem, openItem) {
		list = slices.DeleteFunc(list, func(one *item) bool { return one.kind == unusedItem })
	}

	return list
}

func isUpper(word string) bool {
	letters := 0

	for _, r := range word {
		if unicode.IsLower(r) {
			return false
		}

		if unicode.IsUpper(r) {
			letters++
		}
	}

	return letters >= 2
}

// plain returns the meanings of a word that do not depend on the data.
func (m *matcher) plain(i int) (list []*item) {
	t := m.tokens[i]

	switch {
	case isEmphasis(t.lower) && m.isNegated():
		list = append(list, &item{kind: functionItem, from: i, to: i + 1})
	case isFunction(t.lower) && (t.lower != "us" || i == 0 || m.tokens[i-1].lower != "the"): // "from the us"
		list = append(list, &item{kind: functionItem, from: i, to: i + 1})
	default:
		list = append(list, &item{kind: unusedItem, from: i, to: i + 1})
	}

	if isLight(t.stem) && !isFunction(t.lower) && !m.isName(t.stem) && (!strings.HasSuffix(t.lower, "ing") || t.lower == "coming") {
		list = append(list, &item{kind: verbItem, from: i, to: i + 1, table: -1, verb: true})
	}

	if p, n := periodAt(m.tokens, i, m.today); n > 0 {
		list = append(list, &item{kind: periodItem, from: i, to: i + n, period: p})
	} else if isYear(t) && !t.percent {
		list = append(list, &item{kind: periodItem, from: i, to: i + 1, period: spanOf(date(int(t.number), 1, 1), "year")})
	}

	if t.isNumber {
		list = append(list, &item{kind: numberItem, from: i, to: i + 1, number: t.number, percent: t.percent, ordinal: t.ordinal, isYear: isYear(t)})
	}

	if g, ok := grainOf(t.lower); ok {
		list = append(list, &item{kind: grainItem, from: i, to: i + 1, grain: g})
	}

	for n := 1; n <= maxPhrase && i+n <= len(m.tokens); n++ {
		if o, ok := operators[m.lowers(i, i+n)]; ok {
			list = append(list, &item{kind: opItem, from: i, to: i + n, op: o})
		}
	}

	return list
}

func (m *matcher) lowers(from, to int) string {
	words := make([]string, 0, to-from)
	for _, t := range m.tokens[from:to] {
		words = append(words, t.lower)
	}

	return strings.Join(words, " ")
}

// isNegated reports whether a word of the question says that something is not there.
func (m *matcher) isNegated() bool {
	return slices.ContainsFunc(m.tokens, func(t token) bool {
		o := operators[t.lower]

		return o == opNever || o == opWithout || o == opNot
	})
}

// names returns the columns, entities and measures that words name.
func (m *matcher) names(from, to int) (list []*item) {
	said := m.said(from, to)
	if len(said) == 0 {
		return nil
	}

	verb := to == from+1 && isDeed(m.tokens[from]) && !strings.HasSuffix(m.tokens[from].lower, "ing")      // a booking is a thing
	plural := strings.HasSuffix(m.tokens[to-1].lower, "s") && !strings.HasSuffix(m.tokens[to-1].stem, "s") // not "status"

	for _, t := range m.tables {
		if tier := m.entity(said, t); tier > 0 {
			list = append(list, &item{kind: entityItem, from: from, to: to, table: t.at, verb: verb, plural: plural, tier: tier})
		}

		list = append(list, m.columns(item{kind: columnItem, from: from, to: to, table: t.at, verb: verb, plural: plural}, said)...)

		if verb {
			list = append(list, m.deed(from, said[0], t)...)
		}

		if to == from+1 {
			list = append(list, m.parts(from, said, t)...)
		}

		for i, one := range t.measures {
			if slices.ContainsFunc(one.names, func(n []string) bool { return sameName(said, n) }) {
				list = append(list, &item{kind: measureItem, from: from, to: to, table: t.at, measure: i, tier: 3})
			}
		}
	}

	if !slices.ContainsFunc(list, func(one *item) bool { return one.kind != partItem && (one.kind != verbItem || one.table >= 0) }) {
		list = append(list, m.otherwise(item{from: from, to: to, verb: verb, plural: plural}, said)...)
	}

	m.collisions(list, said)

	// A name in full excludes columns that contain it in part.
	best := 0
	for _, one := range list {
		if one.kind != verbItem && one.kind != partItem {
			best = max(best, one.tier)
		}
	}

	return slices.DeleteFunc(list, func(one *item) bool {
		return one.kind == columnItem && one.tier == 1 && best > 1 || one.kind == partItem && best > 1
	})
}

// columns returns the columns of a table that words name. The name and the key of a row stand for the row, and a column
// that refers to another dataset for the thing there.
func (m *matcher) columns(like item, said []string) (list []*item) {
	t := m.tables[like.table]
	isRow := slices.ContainsFunc(t.nouns, func(n []string) bool { return sameName(said, n) })
	isID := slices.ContainsFunc(said, isIDStem)

	for c := range t.columns {
		if t.columns[c].joined && !isID || isRow && (t.key == c || t.label == c) {
			continue
		}

		// Most columns have nothing to do with the words: no item is made for them.
		if tier, byUnit := m.tier(said, t, &t.columns[c]); tier > 0 {
			one := like
			one.column, one.tier, one.byUnit = c, tier, byUnit
			list = append(list, &one)
		}
	}

	return list
}

// entity returns how well words name the rows of a table: 3 by its name, 2 by the last word of its name, if no other
// table has it.
func (m *matcher) entity(said []string, t *table) int {
	if slices.ContainsFunc(t.nouns, func(n []string) bool { return sameName(said, n) }) {
		return 3
	}

	last := func(o *table) string { return o.nouns[0][len(o.nouns[0])-1] }

	if len(said) != 1 || len(t.nouns) == 0 || len(t.nouns[0]) < 2 || said[0] != last(t) || isContainer(said[0]) {
		return 0
	}

	for _, o := range m.tables {
		if o != t && len(o.nouns) > 0 && last(o) == said[0] {
			return 0
		}
	}

	return 2
}

// parts returns the columns whose name contains a word, without being named by it: "paid" and the payment type.
func (m *matcher) parts(from int, said []string, t *table) (list []*item) {
	for c := range t.columns {
		one := &t.columns[c]
		if len(one.strong) > 1 && len(said) == 1 && (slices.Contains(one.strong, said[0]) || slices.Contains(one.strong, deedNoun(said[0]))) {
			list = append(list, &item{kind: partItem, from: from, to: from + 1, table: t.at, column: c, tier: 1})
		}
	}

	return list
}

// said returns the stems of words that may be a name. A name does not begin or end with a function word.
func (m *matcher) said(from, to int) (stems []string) {
	for i, t := range m.tokens[from:to] {
		edge := i == 0 || i == to-from-1

		switch {
		case t.isNumber && !edge, t.isNumber && to-from == 1:
			return nil
		case isFunction(t.lower) || t.lower == "&":
			if edge {
				return nil
			}

			switch t.lower {
			case "of", "the":
			case "on", "in", "for": // a name may contain them: "kg on hand"
				stems = append(stems, t.lower)
			default:
				return nil
			}

			continue
		case operators[t.lower] == opAnd || operators[t.lower] == opBy:
			return nil
		default:
			words := nameStems(t.lower)
			if len(words) == 0 { // a sign
				return nil
			}

			if len(words) == 1 && words[0] == "quantity" && m.isName(t.stem) { // something is called item
				words[0] = t.stem
			}

			stems = append(stems, words...)
		}
	}

	return stems
}

// nameStems returns the stems of a word of a question as they are written in names.
func nameStems(word string) []string {
	switch word {
	case "units", "items", "pieces":
		return []string{"quantity"}
	case "min", "mon", "no", "pay", "cat", "res", "desc", "loc", "inv", "pa", "pm", "ins", "act", "cap", "pop", "disc", "ret", "est", "drv", "rm", "br", "tot", "val", "vol", "comm":
		return []string{lexicon.Stem(word)}
	}

	return stemsOf(word)
}

// isWeakNoun reports whether people add a stem to the name of a column: "e-mail address".
func isWeakNoun(stem string) bool {
	return isIDStem(stem) || stem == "address" || stem == "nam" || stem == "dat" || stem == "typ" || stem == "kind"
}

// isUnitWord reports whether a stem is the name of a unit.
func isUnitWord(stem, unit string) bool {
	switch stem {
	case "kg", "kilo", "kilogram", "kilogramm":
		return unit == "kg"
	case "ton", "tonn":
		return unit == "t"
	case "hectar", "ha":
		return unit == "ha"
	case "kilometr", "kilometer", "km":
		return unit == "km"
	case "hour":
		return unit == "hours"
	case "minut":
		return unit == "minutes"
	case "litr", "liter":
		return unit == "l"
	default:
		return false
	}
}

func isIDStem(stem string) bool {
	return stem == "id" || stem == "number" || stem == "cod" || stem == "key" || stem == "ref"
}

// isDeed reports whether a word says that something was done.
func isDeed(t token) bool {
	return lexicon.IsVerb(t.lower) || t.lower == "rented" || t.lower == "billed" || t.stem == "sell" || t.stem == "buy" || t.stem == "pay" || t.stem == "spend"
}

// deedNoun returns the stem of the noun for what is done: "sold" are sales.
func deedNoun(stem string) string {
	switch stem {
	case "sell":
		return "sal"
	case "buy", "purchas":
		return "purchas"
	case "pay":
		return "payment"
	case "ship":
		return "shipment"
	case "deliver":
		return "delivery"
	case "register":
		return "registration"
	case "subscrib":
		return "subscription"
	case "rent":
		return "rental"
	case "bill":
		return "invoic"
	default:
		return stem
	}
}
