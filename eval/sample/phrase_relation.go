package sample

// related returns the sentences for facts that are stated in words: a number word, a superlative, a place in a ranking, a
// comparison, a multiple, a direction, a fraction, a year. They were written before the check knew any of them.
func related(what string) [3][]string {
	return map[string][3][]string{
		"word": {
			{"{a} has {0} {c}.", "The {c} of {a} is {0}.", "For {a}, the {c} comes to {0}."},
			{"{a} hat {0} {c}.", "Bei {a} beträgt {c} {0}.", "{c} von {a} ist {0}."},
			{"{a} compte {0} {c}.", "Pour {a}, {c} est de {0}.", "{c} de {a} : {0}."},
		},
		"superlative most": {
			{"{a} has the {0} {c}.", "The {0} {c} belongs to {a}.", "With the {0} {c}, {a} stands out.", "No one has a {c} as high as {a}, which is the {0}."},
			{"{a} hat den {0} Wert bei {c}.", "Der {0} Wert von {c} gehört {a}.", "Mit dem {0} Wert bei {c} fällt {a} auf."},
			{"{a} a la valeur la {0} pour {c}.", "La valeur la {0} de {c} revient à {a}.", "Pour {c}, la valeur la {0} est celle de {a}."},
		},
		"superlative least": {
			{"{a} has the {0} {c}.", "The {0} {c} belongs to {a}.", "With the {0} {c}, {a} comes last."},
			{"{a} hat den {0} Wert bei {c}.", "Der {0} Wert von {c} gehört {a}.", "Mit dem {0} Wert bei {c} ist {a} Schlusslicht."},
			{"{a} a la valeur la {0} pour {c}.", "La valeur la {0} de {c} revient à {a}.", "Pour {c}, la valeur la {0} est celle de {a}."},
		},
		"place": {
			{"{a} ranks {0} by {c}.", "{a} is in {0} place by {c}.", "By {c}, {a} takes {0} place.", "In the ranking by {c}, {a} comes {0}."},
			{"{a} liegt nach {c} an {0} Stelle.", "Nach {c} belegt {a} den {0} Platz.", "In der Rangliste nach {c} steht {a} an {0} Stelle."},
			{"{a} occupe la {0} place pour {c}.", "Pour {c}, {a} arrive en {0} position.", "Au classement par {c}, {a} prend la {0} place."},
		},
		"comparison": {
			{"{a} has a {0} {c} than {b}.", "The {c} of {a} is {0} than that of {b}.", "{c} is {0} for {a} than for {b}."},
			{"{a} hat bei {c} einen {0} Wert als {b}.", "{c} ist bei {a} {0} als bei {b}.", "Der Wert von {c} ist bei {a} {0} als bei {b}."},
			{"{c} de {a} est {0} à {c} de {b}.", "Pour {c}, {a} est {0} à {b}.", "La valeur de {c} pour {a} est {0} à celle de {b}."},
		},
		"multiple": {
			{"{a} has {0} the {c} of {b}.", "The {c} of {a} is {0} that of {b}.", "In {c}, {a} reaches {0} the value of {b}."},
			{"{a} hat bei {c} {0} so viel wie {b}.", "{c} ist bei {a} {0} so hoch wie bei {b}.", "Bei {c} erreicht {a} {0} so viel wie {b}."},
			{"{a} atteint pour {c} {0} la valeur de {b}.", "{c} de {a} vaut {0} la valeur de {b}.", "Pour {c}, {a} affiche {0} la valeur de {b}."},
		},
		"direction": {
			{"From {a} to {b}, {c} {0}.", "Between {a} and {b}, {c} {0}.", "{c} {0} from {a} to {b}.", "{c} {0} between {a} and {b}."},
			{"Von {a} zu {b} {0} {c}.", "Zwischen {a} und {b} {0} {c}.", "{c} {0} von {a} zu {b}."},
			{"De {a} à {b}, {c} {0}.", "Entre {a} et {b}, {c} {0}.", "{c} {0} de {a} à {b}."},
		},
		"fraction": {
			{"{a} accounts for {0} of total {c}.", "{a} makes up {0} of the overall {c}.", "The share of {a} in the total {c} is {0}."},
			{"{a} macht {0} der Summe von {c} aus.", "Der Anteil von {a} an {c} insgesamt beträgt {0}."},
			{"{a} représente {0} du total de {c}.", "La part de {a} dans le total de {c} est de {0}."},
		},
		"year": {
			{"The {c} of {a} is {0}.", "For {a}, the {c} is {0}.", "{a}: {c} {0}.", "{a} has {0} as its {c}."},
			{"{c} von {a} ist {0}.", "Bei {a} ist {c} {0}.", "{a}: {c} {0}."},
			{"{c} de {a} est {0}.", "Pour {a}, {c} est {0}.", "{a} : {c} {0}."},
		},
	}[what]
}

// highest and the other functions return words for a relation, one list for each format.
func highest() [3][]string {
	return [3][]string{{"highest", "largest", "greatest"}, {"höchsten", "größten"}, {"plus haute", "plus élevée", "plus grande"}}
}

func lowest() [3][]string {
	return [3][]string{{"lowest", "smallest"}, {"niedrigsten", "kleinsten", "geringsten"}, {"plus basse", "plus faible", "plus petite"}}
}

func higher() [3][]string {
	return [3][]string{{"higher", "larger", "greater"}, {"höher", "größer"}, {"supérieur", "supérieure"}}
}

func lower() [3][]string {
	return [3][]string{{"lower", "smaller"}, {"niedriger", "kleiner", "geringer"}, {"inférieur", "inférieure"}}
}

func rose() [3][]string {
	return [3][]string{{"rose", "increased", "went up", "grew"}, {"stieg", "steigt", "wuchs"}, {"augmente", "a augmenté", "progresse"}}
}

func fell() [3][]string {
	return [3][]string{{"fell", "decreased", "went down", "declined", "dropped"}, {"fiel", "sank", "sinkt"}, {"baisse", "a baissé", "diminue", "recule"}}
}

func places() [3][]string {
	return [3][]string{
		{"first", "second", "third", "fourth", "fifth"},
		{"erster", "zweiter", "dritter", "vierter", "fünfter"},
		{"première", "deuxième", "troisième", "quatrième", "cinquième"},
	}
}

// times returns how a writer says a multiple, by the factor.
func times(factor int) [3][]string {
	return [3][]string{
		{[]string{2: "twice", 3: "three times", 4: "four times"}[factor]},
		{[]string{2: "doppelt", 3: "dreimal", 4: "viermal"}[factor]},
		{[]string{2: "deux fois", 3: "trois fois", 4: "quatre fois"}[factor]},
	}
}

func parts() [3][]string {
	return [3][]string{
		{"a quarter", "a third", "half", "two thirds", "three quarters"},
		{"ein Viertel", "ein Drittel", "die Hälfte", "zwei Drittel", "drei Viertel"},
		{"un quart", "un tiers", "la moitié", "deux tiers", "trois quarts"},
	}
}
