package lexicon

// Unit returns the unit that a word in lower case means in a column name or after a number, or "".
func Unit(word string) string {
	switch word {
	case "kg", "g", "t", "mg", "km", "m", "cm", "mm", "ft", "mi", "ha", "h", "min", "s", "ms", "€", "$", "£", "¥", "%", "km²", "m²":
		return word
	case "eur", "euro", "euros":
		return "€"
	case "usd", "dollar", "dollars", "us$":
		return "$"
	case "gbp", "pound", "pounds":
		return "£"
	case "chf", "franken":
		return "CHF"
	case "jpy", "yen":
		return "¥"
	case "pct", "percent", "prozent", "pourcentage", "percentage":
		return "%"
	case "lb", "lbs":
		return "lb"
	case "km2":
		return "km²"
	case "m2":
		return "m²"
	case "c", "°c":
		return "°C"
	case "f", "°f":
		return "°F"
	case "sec":
		return "s"
	}

	return ""
}

// IsMoney reports whether a unit that Unit returns is a currency.
func IsMoney(unit string) bool {
	return unit == "€" || unit == "$" || unit == "£" || unit == "¥" || unit == "CHF"
}

// Quantity returns the quantity that a unit of Unit measures, and the power of ten of the unit. Units of the same
// quantity can be converted. Every other unit is a quantity of its own.
func Quantity(unit string) (of string, exponent int) {
	switch unit {
	case "mg", "g", "kg", "t":
		return "mass", map[string]int{"mg": -3, "g": 0, "kg": 3, "t": 6}[unit]
	case "mm", "cm", "m", "km":
		return "length", map[string]int{"mm": -3, "cm": -2, "m": 0, "km": 3}[unit]
	case "m²", "ha", "km²":
		return "area", map[string]int{"m²": 0, "ha": 4, "km²": 6}[unit]
	case "ms", "s":
		return "time", map[string]int{"ms": -3, "s": 0}[unit]
	}

	return unit, 0
}

// IsMeasure reports whether an English word in lower case is a unit in which a question states a number.
func IsMeasure(word string) bool {
	switch word {
	case "meters", "metres", "meter", "km", "kilometers", "kilometres", "miles", "mph", "kg", "euros", "euro",
		"dollars", "dollar", "usd", "eur", "square", "feet", "ft", "percent", "%", "pounds", "degrees", "hectares",
		"ha", "sq", "people", "minutes", "hours", "seconds", "cm", "tons", "tonnes":
		return true
	default:
		return false
	}
}

// Number returns the number that an English word in lower case means.
func Number(word string) (float64, bool) {
	switch word {
	case "one":
		return 1, true
	case "two":
		return 2, true
	case "three":
		return 3, true
	case "four":
		return 4, true
	case "five":
		return 5, true
	case "six":
		return 6, true
	case "seven":
		return 7, true
	case "eight":
		return 8, true
	case "nine":
		return 9, true
	case "ten":
		return 10, true
	case "twelve":
		return 12, true
	case "twenty":
		return 20, true
	case "fifty":
		return 50, true
	case "hundred":
		return 100, true
	case "thousand":
		return 1000, true
	default:
		return 0, false
	}
}

// Scale returns the powers of ten that a word after a number can mean, in the case in which people write it. A billion
// has nine zeros in English and twelve in other languages.
func Scale(word string) []int {
	switch word {
	case "k", "K", "thousand", "Tsd", "tausend", "Tausend", "mille", "milliers":
		return []int{3}
	case "M", "million", "millions", "Million", "Millionen", "Mio", "mio", "Mill", "mn":
		return []int{6}
	case "bn", "B", "Mrd", "mrd", "Md", "Mds", "Milliarde", "Milliarden", "milliard", "milliards":
		return []int{9}
	case "billion", "billions", "Billion":
		return []int{9, 12}
	case "Billionen", "Bio":
		return []int{12}
	case "trillion", "trillions":
		return []int{12, 18}
	}

	return nil
}
