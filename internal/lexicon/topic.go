package lexicon

import "strings"

// Topic is a set of meanings that the words of a sentence have. These words change what a figure means.
type Topic uint

// The meanings of words.
const (
	Rises Topic = 1 << iota
	Falls
	Sums
	Averages
	Shares
	Counts
	Mosts
	Clauses // words that divide a sentence into parts, which may be about different rows
	English
	Continental
)

// Topics returns the topics of words in lower case, in English, German and French.
func Topics() map[string]Topic {
	all := map[string]Topic{}

	for is, words := range map[Topic]string{
		Rises: `rise rises rose risen rising grow grows grew grown growth increase increases increased up higher more above gain gains gained exceed exceeds
			steigt stieg steigen stiegen gestiegen anstieg wächst wuchs gewachsen zunahme zugenommen zuwachs mehr höher über plus erhöht erhöhte
			augmente augmenté augmentation hausse progresse progressé croissance dépasse supérieur supérieure`,
		Falls: `fall falls fell fallen drop drops dropped decrease decreases decreased decline declines declined down lower less fewer below under loss deficit
			sinkt sank sinken gesunken fällt fiel gefallen rückgang zurückgegangen abnahme abgenommen weniger niedriger geringer unter minus verlust
			baisse baissé diminue diminué diminution recul recule reculé chute inférieur inférieure moins perte`,
		Sums:     `total totals sum altogether together overall combined insgesamt gesamt summe zusammen gesamtsumme somme totale totaux ensemble`,
		Averages: `average averages averaged mean avg durchschnitt durchschnittlich mittelwert mittel moyenne moyen`,
		Shares:   `share shares account accounts accounted total overall anteil anteile insgesamt gesamt gesamten summe part parts représente représentent`,
		Counts: `rows row entries entry results records items lines zeilen zeile einträge eintrag ergebnisse datensätze
			lignes ligne entrées entrée résultats enregistrements`,
		Mosts: `highest largest most biggest maximum max greatest höchste höchsten höchster größte größten meisten maximal plus haute haut élevé élevée maximale
			lowest smallest least minimum min fewest niedrigste niedrigsten kleinste kleinsten wenigsten moins basse bas minimale faible`,
		English:     `the of is are has have with for by to was were from`,
		Continental: `der die das ist von bei und mit den im le la les est du des pour et de au en dans`,
		Clauses:     `and und et while whereas ahead but während sowie vor aber mais tandis alors ainsi puis`,
	} {
		for word := range strings.FieldsSeq(words) {
			all[word] |= is
		}
	}

	return all
}

// IsPercentName reports whether a word in the name of a column indicates percentages. The word is in lower case.
func IsPercentName(word string) bool {
	switch word {
	case "pct", "percent", "percentage", "prozent", "pourcentage", "rate", "ratio", "share", "growth", "change",
		"margin", "anteil", "quote", "taux", "part", "wachstum", "marge", "croissance":
		return true
	default:
		return false
	}
}

// IsMoneyName reports whether a word in the name of a column indicates amounts of money. The word is in lower case.
func IsMoneyName(word string) bool {
	switch word {
	case "price", "prices", "cost", "costs", "revenue", "revenues", "sales", "amount", "amounts", "salary",
		"salaries", "wage", "wages", "budget", "income", "expense", "expenses", "fee", "fees", "paid", "profit",
		"spend", "spending", "payment", "payments", "value", "worth", "earnings", "turnover", "preis", "preise",
		"kosten", "umsatz", "umsätze", "betrag", "gehalt", "lohn", "einnahmen", "ausgaben", "gewinn", "wert",
		"erlös", "prix", "coût", "coûts", "chiffre", "montant", "salaire", "revenu", "revenus", "dépenses",
		"bénéfice", "valeur", "recettes", "total":
		return true
	default:
		return false
	}
}

// Nearness is the rounding that a word before a number expresses.
type Nearness int

// The kinds of rounding.
const (
	Exactly Nearness = iota
	About
	Over
	Under
)

// Near interprets the last two words before a number, in lower case.
func Near(before, last string) Nearness {
	switch last {
	case "about", "around", "roughly", "approximately", "approx", "some", "circa", "ca", "rund", "etwa", "ungefähr", "environ", "quelque":
		return About
	case "nearly", "almost", "knapp", "fast", "presque":
		return Under
	case "over", "than", "über", "als", "gut":
		return Over
	case "de":
		if before == "près" {
			return About
		}

		if before == "plus" {
			return Over
		}
	}

	return Exactly
}
