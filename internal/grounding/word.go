package grounding

import "strings"

// Words that change what a figure means, in English, German and French. They are looked for in lower case.

func set(words string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		all[word] = true
	}

	return all
}

func hasAny(words []string, of map[string]bool) bool {
	for _, word := range words {
		if of[word] {
			return true
		}
	}

	return false
}

// topic is what words of a sentence speak of.
type topic uint

const (
	rises topic = 1 << iota
	falls
	sums
	averages
	shares
	counts
	mosts
	clauses // words that divide a sentence into parts that may speak of different rows
	english
	continental
)

// vocabulary gives the topics of words.
func vocabulary() map[string]topic {
	all := map[string]topic{}

	for is, words := range map[topic]string{
		rises: `rise rises rose risen rising grow grows grew grown growth increase increases increased up higher more above gain gains gained exceed exceeds
			steigt stieg steigen stiegen gestiegen anstieg wächst wuchs gewachsen zunahme zugenommen zuwachs mehr höher über plus erhöht erhöhte
			augmente augmenté augmentation hausse progresse progressé croissance dépasse supérieur supérieure`,
		falls: `fall falls fell fallen drop drops dropped decrease decreases decreased decline declines declined down lower less fewer below under loss deficit
			sinkt sank sinken gesunken fällt fiel gefallen rückgang zurückgegangen abnahme abgenommen weniger niedriger geringer unter minus verlust
			baisse baissé diminue diminué diminution recul recule reculé chute inférieur inférieure moins perte`,
		sums:     `total totals sum altogether together overall combined insgesamt gesamt summe zusammen gesamtsumme somme totale totaux ensemble`,
		averages: `average averages averaged mean avg durchschnitt durchschnittlich mittelwert mittel moyenne moyen`,
		shares:   `share shares account accounts accounted total overall anteil anteile insgesamt gesamt gesamten summe part parts représente représentent`,
		counts: `rows row entries entry results records items lines zeilen zeile einträge eintrag ergebnisse datensätze
			lignes ligne entrées entrée résultats enregistrements`,
		mosts: `highest largest most biggest maximum max greatest höchste höchsten höchster größte größten meisten maximal plus haute haut élevé élevée maximale
			lowest smallest least minimum min fewest niedrigste niedrigsten kleinste kleinsten wenigsten moins basse bas minimale faible`,
		english:     `the of is are has have with for by to was were from`,
		continental: `der die das ist von bei und mit den im le la les est du des pour et de au en dans`,
		clauses:     `and und et while whereas ahead but während sowie vor aber mais tandis alors ainsi puis`,
	} {
		for word := range strings.FieldsSeq(words) {
			all[word] |= is
		}
	}

	return all
}

func percentNames() map[string]bool {
	return set(`pct percent percentage prozent pourcentage rate ratio share growth change margin anteil quote taux part wachstum marge croissance`)
}

func moneyNames() map[string]bool {
	return set(`price prices cost costs revenue revenues sales amount amounts salary salaries wage wages budget income expense expenses fee fees paid profit spend
		spending payment payments value worth earnings turnover preis preise kosten umsatz umsätze betrag gehalt lohn einnahmen ausgaben gewinn wert erlös
		prix coût coûts chiffre montant salaire budget revenu revenus dépenses bénéfice valeur recettes total`)
}

// scale is the power of ten of a word behind a number, or two. A billion has nine zeros in English and twelve elsewhere.
func scale(word string) []int {
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

// unitWord is the unit that a word of a column's name or behind a number stands for.
func unitWord(folded string) string {
	switch folded {
	case "kg", "g", "t", "mg", "km", "m", "cm", "mm", "ft", "mi", "ha", "h", "min", "s", "ms", "€", "$", "£", "¥", "%", "km²", "m²":
		return folded
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

func isMoney(unit string) bool {
	return unit == "€" || unit == "$" || unit == "£" || unit == "¥" || unit == "CHF"
}

// sizes are units that can be turned into each other.
func sizes(unit string) (of string, exponent int) {
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

// unitOfName is the unit that a column's name tells. Money and percent may stand anywhere, short words only at the end.
func unitOfName(name string, words []string) string {
	for _, sign := range []string{"€", "$", "£", "¥", "%", "km²", "m²", "°C", "°F"} {
		if strings.Contains(name, sign) {
			return sign
		}
	}

	for _, word := range words {
		if unit := unitWord(word); isMoney(unit) || unit == "%" {
			return unit
		}
	}

	if len(words) > 1 {
		return unitWord(words[len(words)-1])
	}

	return ""
}

// nearness is what a word before a number says of its rounding.
type nearness int

const (
	exactly nearness = iota
	about
	over
	under
)

// nearWord reads the last word before a number, with the one before it.
func nearWord(before, last string) nearness {
	switch last {
	case "about", "around", "roughly", "approximately", "approx", "some", "circa", "ca", "rund", "etwa", "ungefähr", "environ", "quelque":
		return about
	case "nearly", "almost", "knapp", "fast", "presque":
		return under
	case "over", "than", "über", "als", "gut":
		return over
	case "de":
		if before == "près" {
			return about
		}

		if before == "plus" {
			return over
		}
	}

	return exactly
}
