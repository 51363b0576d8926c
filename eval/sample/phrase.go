package sample

import "slices"

// phrases returns the sentences for a fact in a format.
func phrases(what string, in Format) []string {
	return slices.Concat(plainly(what)[in], freely(what)[in], related(what)[in])
}

func plainly(what string) [3][]string {
	return map[string][3][]string{
		"cell": {
			{
				"The {c} of {a} is {0}.", "{a} has a {c} of {0}.", "For {a}, {c} is {0}.", "{a} comes to {0} ({c}).", "At {0}, {a} stands out in {c}.",
				"**{a}** leads with **{0}** ({c}).", "{a}'s {c} is {0}.", "{a} has {0} {c}.", "{a} stands at {0}.", "{c}: {0} ({a}).",
			},
			{
				"{c} von {a} ist {0}.", "Bei {a} beträgt {c} {0}.", "{a} kommt auf {0} ({c}).", "Mit {0} bei {c} fällt {a} auf.",
				"**{a}** führt mit **{0}** ({c}).", "{a} verzeichnet bei {c} {0}.", "{a} hat {0} {c}.", "{a} liegt bei {0}.",
			},
			{
				"{c} de {a} : {0}.", "Pour {a}, {c} est de {0}.", "{a} atteint {0} ({c}).", "Avec {0}, {a} se distingue pour {c}.",
				"**{a}** mène avec **{0}** ({c}).", "{c} s’établit à {0} pour {a}.", "{a} compte {0} {c}.", "{a} se situe à {0}.",
			},
		},
		"day": {
			{"For {a}, {c} is {0}.", "{a}: {c} on {0}."},
			{"{c} bei {a}: {0}.", "{a}: {c} am {0}."},
			{"{c} pour {a} : {0}.", "{a} : {c} le {0}."},
		},
		"quote": {
			{"The {c} of {a} is {0}.", "{a} has {0} as {c}."},
			{"{c} von {a} ist {0}.", "{a} hat {0} als {c}."},
			{"{c} de {a} est {0}.", "{a} a {0} comme {c}."},
		},
		"count": {
			{"The result has {0} rows.", "There are {0} entries."},
			{"Es gibt {0} Zeilen.", "Das Ergebnis hat {0} Einträge."},
			{"Il y a {0} lignes.", "Le résultat compte {0} entrées."},
		},
		"sum": {
			{"In total, {c} is {0}.", "The total {c} is {0}.", "All together, {c} adds up to {0}."},
			{"Insgesamt beträgt {c} {0}.", "Die Summe von {c} ist {0}."},
			{"Au total, {c} s’élève à {0}.", "La somme de {c} est de {0}."},
		},
		"average": {
			{"On average, {c} is {0}.", "The average {c} is {0}."},
			{"Im Durchschnitt beträgt {c} {0}.", "Der Mittelwert von {c} ist {0}."},
			{"En moyenne, {c} est de {0}.", "La moyenne de {c} est de {0}."},
		},
		"most": {
			{"The highest {c} is {0}, for {a}.", "{a} has the highest {c}: {0}."},
			{"Der höchste Wert von {c} ist {0}, bei {a}.", "{a} hat den höchsten Wert bei {c}: {0}."},
			{"La plus haute valeur de {c} est {0}, pour {a}.", "{a} a le plus de {c} : {0}."},
		},
		"least": {
			{"The lowest {c} is {0}, for {a}.", "{a} has the lowest {c}: {0}."},
			{"Der niedrigste Wert von {c} ist {0}, bei {a}.", "{a} hat den kleinsten Wert bei {c}: {0}."},
			{"La plus basse valeur de {c} est {0}, pour {a}.", "{a} a le moins de {c} : {0}."},
		},
		"more": {
			{"{a} is {0} above {b} in {c}.", "In {c}, {a} has {0} more than {b}."},
			{"{a} liegt bei {c} um {0} über {b}.", "{a} hat bei {c} {0} mehr als {b}."},
			{"{a} dépasse {b} de {0} pour {c}.", "Pour {c}, {a} a {0} de plus que {b}."},
		},
		"fewer": {
			{"{a} is {0} below {b} in {c}.", "In {c}, {a} has {0} less than {b}."},
			{"{a} liegt bei {c} um {0} unter {b}.", "{a} hat bei {c} {0} weniger als {b}."},
			{"{a} est inférieur à {b} de {0} pour {c}.", "Pour {c}, {a} a {0} de moins que {b}."},
		},
		"difference": {
			{"The difference in {c} between {a} and {b} is {0}."},
			{"Der Unterschied bei {c} zwischen {a} und {b} beträgt {0}."},
			{"L’écart de {c} entre {a} et {b} est de {0}."},
		},
		"share": {
			{"{a} accounts for {0} of total {c}.", "The share of {a} in the total {c} is {0}."},
			{"Der Anteil von {a} an {c} insgesamt beträgt {0}.", "{a} macht {0} der Summe von {c} aus."},
			{"{a} représente {0} du total de {c}.", "La part de {a} dans le total de {c} est de {0}."},
		},
		"rise": {
			{"From {a} to {b}, {c} rises by {0}.", "{c} is {0} higher for {b} than for {a}."},
			{"Von {a} zu {b} steigt {c} um {0}.", "{c} ist bei {b} um {0} höher als bei {a}."},
			{"De {a} à {b}, {c} augmente de {0}.", "{c} est supérieur de {0} pour {b} par rapport à {a}."},
		},
		"fall": {
			{"From {a} to {b}, {c} falls by {0}.", "{c} is {0} lower for {b} than for {a}."},
			{"Von {a} zu {b} sinkt {c} um {0}.", "{c} ist bei {b} um {0} niedriger als bei {a}."},
			{"De {a} à {b}, {c} baisse de {0}.", "{c} est inférieur de {0} pour {b} par rapport à {a}."},
		},
		"rise from": {
			{"{c} goes from {0} ({a}) to {1} ({b}), an increase of {2}."},
			{"{c} steigt von {0} ({a}) auf {1} ({b}), ein Plus von {2}."},
			{"{c} passe de {0} ({a}) à {1} ({b}), soit une hausse de {2}."},
		},
		"fall from": {
			{"{c} goes from {0} ({a}) to {1} ({b}), a decrease of {2}."},
			{"{c} fällt von {0} ({a}) auf {1} ({b}), ein Minus von {2}."},
			{"{c} passe de {0} ({a}) à {1} ({b}), soit une baisse de {2}."},
		},
		"pair": {
			{"In {c}, {a} has {0}, {b} has {1}.", "{a} is at {0} and {b} at {1} ({c}).", "{a} and {b} have a {c} of {0} and {1}."},
			{"Bei {c} hat {a} {0}, {b} hat {1}.", "{a} liegt bei {0} und {b} bei {1} ({c})."},
			{"Pour {c}, {a} a {0}, {b} a {1}.", "{a} est à {0} et {b} à {1} ({c})."},
		},
		"two": {
			{"{a} has a {c} of {0} and a {d} of {1}.", "{a}: {0} for {c}, {1} for {d}."},
			{"{a} hat bei {c} {0} und bei {d} {1}.", "{a}: {0} bei {c}, {1} bei {d}."},
			{"Pour {a}, {c} est de {0} et {d} de {1}.", "{a} : {0} pour {c}, {1} pour {d}."},
		},
		"ranking": {
			{"{a} is at {0} in {c}, {b} at {1} and {x} at {2}.", "In {c}, {a} has {0}, {b} has {1} and {x} has {2}.", "{a} ({0}), {b} ({1}) and {x} ({2}) stand out in {c}."},
			{"Bei {c} liegt {a} bei {0}, {b} bei {1} und {x} bei {2}.", "{a} ({0}), {b} ({1}) und {x} ({2}) fallen bei {c} auf."},
			{"Pour {c}, {a} est à {0}, {b} à {1} et {x} à {2}.", "{a} ({0}), {b} ({1}) et {x} ({2}) se distinguent pour {c}."},
		},
		"list": {
			{"\n\n{c}:\n", "\n\nBy {c}:\n"},
			{"\n\n{c}:\n", "\n\nWerte von {c}:\n"},
			{"\n\n{c} :\n", "\n\nValeurs de {c} :\n"},
		},
		"table": {{""}, {""}, {""}},
		"invented": {
			{"The average of the whole market is {0}.", "Outside of this data, {0} were expected.", "According to experts it is {0}."},
			{"Der Durchschnitt des ganzen Marktes ist {0}.", "Außerhalb dieser Daten wurden {0} erwartet.", "Nach Meinung von Fachleuten sind es {0}."},
			{"La moyenne de tout le marché est de {0}.", "Hors de ces données, {0} étaient attendus.", "Selon les experts, c’est {0}."},
		},
		// Other text of a writer: numbers of the question, years and words. None of it is a claim.
		"opening": {
			{"Here is what the data says.", "Since {y}, this is the picture:", "For the top {q}:", "The result for {y}:"},
			{"Das sagen die Daten.", "Seit {y} sieht es so aus:", "Für die ersten {q}:", "Das Ergebnis für {y}:"},
			{"Voici ce que disent les données.", "Depuis {y}, voici la situation :", "Pour les {q} premiers :", "Le résultat pour {y} :"},
		},
		"question": {
			{"What do the top {q} look like since {y}?", "Give me an overview, with at most {q} lines.", "How does it look?"},
			{"Wie sehen die ersten {q} seit {y} aus?", "Gib mir einen Überblick mit höchstens {q} Zeilen.", "Wie sieht es aus?"},
			{"Que donnent les {q} premiers depuis {y} ?", "Donne-moi un aperçu en {q} lignes au plus.", "Quelle est la situation ?"},
		},
	}[what]
}
