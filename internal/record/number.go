package record

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Style is how a document writes numbers and dates where one text has two readings.
type Style struct {
	Decimal rune // '.' or ','; 0 if it is not known
	Days    Order
}

// Order is what comes first in a date of two small numbers and a year.
type Order int

// The orders.
const (
	AnyOrder Order = iota
	DayFirst
	MonthFirst
)

// numeral matches a number in a text. A blank parts only groups of three digits.
var numeral = regexp.MustCompile(`[0-9]+(?:[.,'’][0-9]+|[ \x{a0}\x{202f}][0-9]{3}(?:\b|$))*`)

// numbers returns the readings of a text of digits and signs between them, at most one for each decimal sign. They are canonical: without
// groups, with a point, without superfluous zeros.
func numbers(text string) (readings map[rune]string) {
	readings = map[rune]string{}

	for _, decimal := range ".," {
		if read, ok := numberWith(text, decimal); ok {
			readings[decimal] = read
		}
	}

	return readings
}

const group = 3 // digits

func numberWith(text string, decimal rune) (string, bool) {
	whole, fraction, has := strings.Cut(text, string(decimal))
	if strings.ContainsFunc(fraction, func(r rune) bool { return r < '0' || r > '9' }) || (has && (fraction == "" || whole == "")) {
		return "", false
	}

	between := strings.IndexFunc(whole, func(r rune) bool { return r < '0' || r > '9' })
	if between >= 0 {
		sign, _ := utf8.DecodeRuneInString(whole[between:])
		parts := strings.Split(whole, string(sign))

		if len(parts[0]) > group || parts[0] == "0" || slices.ContainsFunc(parts[1:], func(p string) bool {
			return len(p) != group || strings.ContainsFunc(p, func(r rune) bool { return r < '0' || r > '9' })
		}) {
			return "", false
		}

		whole = strings.Join(parts, "")
	}

	if whole == "" {
		return "", false
	}

	return canonical(whole, fraction), true
}

func canonical(whole, fraction string) string {
	whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	if whole == "" {
		whole = "0"
	}

	if fraction == "" {
		return whole
	}

	return whole + "." + fraction
}

// amount is a number in a text, with its sign and the unit beside it.
type amount struct {
	digits   string // with their signs, as they are written
	readings map[rune]string
	unit     string
	rest     string // letters beside it that are no unit
	leading  bool   // it begins with a zero that is no number on its own
}

// amounts returns all numbers of a text.
func amounts(text string) (list []amount) {
	places := numeral.FindAllStringIndex(text, -1)

	for n, at := range places {
		before, after := text[:at[0]], text[at[1]:]
		if n > 0 {
			before = text[places[n-1][1]:at[0]]
		}

		if n+1 < len(places) {
			after = text[at[1]:places[n+1][0]]
		}

		list = append(list, amountOf(text[:at[0]], before, text[at[0]:at[1]], after))

		// 12 500 can be one number or two.
		if pieces := strings.FieldsFunc(text[at[0]:at[1]], unicode.IsSpace); len(pieces) > 1 {
			for i, piece := range pieces {
				all, left, right := " ", " ", " "
				if i == 0 {
					all, left = text[:at[0]], before
				}

				if i == len(pieces)-1 {
					right = after
				}

				list = append(list, amountOf(all, left, piece, right))
			}
		}
	}

	return list
}

// amountOf reads a number. prefix is all text before it, before and after are what is between it and the numbers beside it.
func amountOf(prefix, before, digits, after string) amount {
	a := amount{digits: digits, readings: numbers(digits), leading: len(digits) > 1 && digits[0] == '0' && isDigit(digits[1])}

	if sign, size := utf8.DecodeLastRuneInString(before); sign == '-' || sign == '−' {
		// A dash between words or numbers is no sign.
		if last, _ := utf8.DecodeLastRuneInString(prefix[:len(prefix)-size]); !isWord(last) {
			for decimal, read := range a.readings {
				if read != "0" {
					a.readings[decimal] = "-" + read
				}
			}

			before = before[:len(before)-size]
		}
	}

	before = strings.TrimRight(before, "+ \u00a0\u202f")
	left, right := lastWord(before), firstWord(after)

	if !isCurrency(left) {
		if last, _ := utf8.DecodeLastRuneInString(prefix); unicode.IsLetter(last) {
			return amount{rest: "a letter"} // a part of a name: M6
		}

		left = ""
	}

	if a.unit = Unit(right); a.unit == "" {
		a.unit, right = Unit(left), ""
	} else if Unit(left) != a.unit {
		left = ""
	}

	a.rest = strings.TrimSpace(strings.TrimSuffix(before, left) + strings.TrimPrefix(strings.TrimSpace(after), right))

	return a
}

// isCurrency reports whether a word names a unit that may stand before a number.
func isCurrency(word string) bool {
	unit := Unit(word)

	return unit != "" && (unit == "$" || len(unit) == len("EUR") && strings.ToUpper(unit) == unit)
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func isUnitRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.Is(unicode.Sc, r) || r == '%' || r == '°'
}

// firstWord returns the word or the sign that a text begins with.
func firstWord(text string) string {
	text = strings.TrimLeftFunc(text, unicode.IsSpace)
	end := strings.IndexFunc(text, func(r rune) bool { return !isUnitRune(r) })

	if end < 0 {
		end = len(text)
	}

	return text[:end]
}

func lastWord(text string) string {
	text = strings.TrimRightFunc(text, unicode.IsSpace)

	from := strings.LastIndexFunc(text, func(r rune) bool { return !isUnitRune(r) })
	if from < 0 {
		return text
	}

	_, size := utf8.DecodeRuneInString(text[from:])

	return text[from+size:]
}

// scale says how many of the smallest unit of its kind a unit is, as a power of ten.
type scale struct {
	kind  string
	power int
}

var scales = map[string]scale{ //nolint:gochecknoglobals // a table
	"mg": {"mass", 0}, "g": {"mass", 3}, "kg": {"mass", 6}, "t": {"mass", 9},
	"mm": {"length", 0}, "cm": {"length", 1}, "m": {"length", 3}, "km": {"length", 6},
	"ml": {"volume", 0}, "cl": {"volume", 1}, "l": {"volume", 3},
	"Wh": {"energy", 0}, "kWh": {"energy", 3}, "MWh": {"energy", 6},
}

var units = map[string]string{ //nolint:gochecknoglobals // a table
	"€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR", "$": "$", "usd": "USD", "cad": "CAD", "aud": "AUD", "£": "GBP", "gbp": "GBP",
	"chf": "CHF", "fr": "CHF", "¥": "JPY", "jpy": "JPY", "yen": "JPY", "pln": "PLN", "sek": "SEK", "nok": "NOK", "dkk": "DKK", "czk": "CZK",
	"%": "%", "percent": "%", "prozent": "%",
	"mg": "mg", "g": "g", "gram": "g", "grams": "g", "gramm": "g", "kg": "kg", "kilogram": "kg", "kilograms": "kg", "kilogramm": "kg", "kilo": "kg", "t": "t", "tonnes": "t", "tonnen": "t",
	"mm": "mm", "cm": "cm", "m": "m", "meter": "m", "metre": "m", "metres": "m", "km": "km", "kilometer": "km",
	"ml": "ml", "cl": "cl", "l": "l", "liter": "l", "litre": "l", "litres": "l",
	"wh": "Wh", "kwh": "kWh", "mwh": "MWh",
	"pcs": "pieces", "pc": "pieces", "piece": "pieces", "pieces": "pieces", "stk": "pieces", "stück": "pieces", "st": "pieces", "units": "pieces", "ea": "pieces",
	"box": "boxes", "boxes": "boxes", "karton": "boxes", "kartons": "boxes", "carton": "boxes", "cartons": "boxes", "kiste": "boxes", "kisten": "boxes",
	"roll": "rolls", "rolls": "rolls", "rolle": "rolls", "rollen": "rolls", "pair": "pairs", "pairs": "pairs", "paar": "pairs", "set": "sets", "sets": "sets", "satz": "sets",
	"pack": "packs", "packs": "packs", "packung": "packs", "packungen": "packs", "bag": "bags", "bags": "bags", "sack": "bags", "säcke": "bags", "beutel": "bags",
	"bottle": "bottles", "bottles": "bottles", "flasche": "bottles", "flaschen": "bottles", "can": "cans", "cans": "cans", "dose": "cans", "dosen": "cans",
	"pallet": "pallets", "pallets": "pallets", "palette": "pallets", "paletten": "pallets", "sheet": "sheets", "sheets": "sheets", "blatt": "sheets",
	"days": "days", "day": "days", "tage": "days", "tagen": "days", "tag": "days", "months": "months", "monate": "months", "monaten": "months",
	"years": "years", "jahre": "years", "jahren": "years", "hours": "hours", "stunden": "hours", "h": "hours", "minutes": "minutes", "minuten": "minutes", "min": "minutes",
}

// Unit returns the unit that a word or sign names, in one form for all of its names; "" if it names none.
func Unit(word string) string { return units[strings.ToLower(strings.TrimSpace(word))] }

var inUnit = regexp.MustCompile(`(?i)(?:\bin\s+|[(\[]\s*)([\pL\p{Sc}%]+)`)

// UnitOf returns the unit that the name of a field or its description has, "" if none: unit_price_eur, "the price (EUR)", "weight in kg".
func UnitOf(name, description string) string {
	for _, found := range inUnit.FindAllStringSubmatch(description, -1) {
		if unit := Unit(found[1]); unit != "" {
			return unit
		}
	}

	words := strings.FieldsFunc(name, func(r rune) bool { return !isUnitRune(r) })
	if len(words) < 2 {
		return ""
	}

	return Unit(words[len(words)-1])
}

// sameUnit reports whether two units may be the same: a dollar sign is that of several currencies.
func sameUnit(a, b string) bool {
	if a == b {
		return true
	}

	dollars := []string{"USD", "CAD", "AUD"}

	return (a == "$" && slices.Contains(dollars, b)) || (b == "$" && slices.Contains(dollars, a))
}

// convert returns a number in another unit of the same kind.
func convert(number, from, to string) (string, bool) {
	if sameUnit(from, to) {
		return number, true
	}

	one, two := scales[from], scales[to]
	if one.kind == "" || one.kind != two.kind {
		return "", false
	}

	return shift(number, one.power-two.power), true
}

// shift multiplies a canonical number by a power of ten.
func shift(number string, power int) string {
	sign := ""
	if rest, negative := strings.CutPrefix(number, "-"); negative {
		sign, number = "-", rest
	}

	whole, fraction, _ := strings.Cut(number, ".")

	if power >= 0 {
		fraction += strings.Repeat("0", max(power-len(fraction), 0))
		whole, fraction = whole+fraction[:power], fraction[power:]
	} else {
		whole = strings.Repeat("0", max(-power-len(whole)+1, 0)) + whole
		cut := len(whole) + power
		whole, fraction = whole[:cut], whole[cut:]+fraction
	}

	if read := canonical(whole, fraction); read != "0" {
		return sign + read
	}

	return "0"
}
