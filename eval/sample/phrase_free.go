package sample

// freely returns sentences with other words. The check was first measured with them before its author had seen any of
// them.
func freely(what string) [3][]string {
	return map[string][3][]string{
		"cell": {
			{"Looking at {c}, {a} reached {0}.", "We see {0} for {a} when it comes to {c}.", "The figure for {a} ({c}) was {0}, which is notable.", "As of now {a} reports {c} at {0}."},
			{"Beim Blick auf {c} erreicht {a} {0}.", "Für {a} ergibt sich bei {c} ein Wert von {0}.", "{a} weist {0} aus ({c})."},
			{"En regardant {c}, on voit que {a} atteint {0}.", "Pour {a}, on relève {0} ({c}).", "La valeur de {c} pour {a} s’élève à {0}."},
		},
		"day": {
			{"The {c} date recorded for {a} is {0}.", "According to the data, {c} of {a} falls on {0}."},
			{"Laut Daten fällt {c} von {a} auf den {0}.", "Das Datum {c} bei {a} lautet {0}."},
			{"D’après les données, {c} de {a} tombe le {0}.", "La date {c} pour {a} est le {0}."},
		},
		"quote": {
			{"In the column {c}, {a} is listed with {0}.", "{a} belongs to {0} ({c})."},
			{"In der Spalte {c} steht bei {a} {0}.", "{a} gehört zu {0} ({c})."},
			{"Dans la colonne {c}, {a} figure avec {0}.", "{a} relève de {0} ({c})."},
		},
		"count": {
			{"The query returned {0} rows in all.", "Overall, {0} records match."},
			{"Die Abfrage lieferte {0} Zeilen.", "{0} Datensätze passen."},
			{"La requête renvoie {0} lignes.", "Il y a {0} enregistrements."},
		},
		"sum": {
			{"Adding everything up gives a total {c} of {0}.", "Combined, the {c} amounts to {0}."},
			{"Zusammen ergibt das bei {c} {0}.", "Über alle Zeilen beträgt die Summe von {c} {0}."},
			{"L’ensemble donne {0} au total pour {c}.", "Le total de {c} atteint {0}."},
		},
		"average": {
			{"The mean {c} across all rows works out to {0}.", "{c} averages {0}."},
			{"Durchschnittlich liegt {c} bei {0}.", "Im Mittel sind es {0} bei {c}."},
			{"{c} est en moyenne de {0}.", "La valeur moyenne de {c} vaut {0}."},
		},
		"most": {
			{"Having the largest {c}, {a} comes out on top at {0}.", "{a} tops the list by {c} ({0})."},
			{"Spitzenreiter bei {c} ist {a} mit {0}.", "Am meisten hat {a}, nämlich {0} ({c})."},
			{"En tête pour {c} : {a}, avec {0}.", "{a} arrive en tête pour {c} ({0})."},
		},
		"least": {
			{"{a} comes last by {c} ({0}).", "The minimum {c} belongs to {a}, at {0}."},
			{"Schlusslicht bei {c} ist {a} mit {0}.", "Am wenigsten hat {a}, nämlich {0} ({c})."},
			{"{a} arrive en dernier pour {c} ({0}).", "Le minimum de {c} revient à {a}, avec {0}."},
		},
		"more": {
			{"{a} beats {b} in {c} by {0}.", "Compared with {b}, {a} shows {0} more in {c}."},
			{"Gegenüber {b} hat {a} {0} mehr ({c}).", "{a} übertrifft {b} bei {c} um {0}."},
			{"Par rapport à {b}, {a} a {0} de plus ({c})."},
		},
		"fewer": {
			{"{a} trails {b} in {c} by {0}.", "Compared with {b}, {a} shows {0} less in {c}."},
			{"Gegenüber {b} hat {a} {0} weniger ({c})."},
			{"Par rapport à {b}, {a} a {0} de moins ({c})."},
		},
		"difference": {
			{"{a} and {b} are {0} apart in {c}.", "The gap between {a} and {b} in {c} amounts to {0}."},
			{"Zwischen {a} und {b} liegen bei {c} {0}.", "Die Differenz zwischen {a} und {b} ({c}): {0}."},
			{"Entre {a} et {b}, la différence de {c} est de {0}."},
		},
		"share": {
			{"Of the total {c}, {0} comes from {a}.", "{a} makes up {0} of the overall {c}."},
			{"Von {c} insgesamt entfallen {0} auf {a}.", "{a} stellt {0} des gesamten Werts von {c}; das ist sein Anteil."},
			{"{0} du total de {c} proviennent de {a}.", "{a} pèse {0} dans le total de {c}."},
		},
		"rise": {
			{"{c} increased by {0} between {a} and {b}.", "Compared with {a}, {c} of {b} is up {0}."},
			{"Zwischen {a} und {b} nahm {c} um {0} zu, ein Anstieg.", "Gegenüber {a} liegt {c} bei {b} {0} höher."},
			{"Entre {a} et {b}, {c} a progressé de {0}.", "Par rapport à {a}, {c} de {b} est en hausse de {0}."},
		},
		"fall": {
			{"{c} decreased by {0} between {a} and {b}.", "Compared with {a}, {c} of {b} is down {0}."},
			{"Zwischen {a} und {b} ging {c} um {0} zurück, ein Rückgang.", "Gegenüber {a} liegt {c} bei {b} {0} niedriger."},
			{"Entre {a} et {b}, {c} a reculé de {0}.", "Par rapport à {a}, {c} de {b} est en baisse de {0}."},
		},
		"rise from": {
			{"While {a} has a {c} of {0}, {b} has {1}, i.e. {2} more."},
			{"Während {a} bei {c} {0} hat, sind es bei {b} {1}, also {2} mehr."},
			{"Alors que {a} a {0} pour {c}, {b} en a {1}, soit {2} de plus et donc une hausse."},
		},
		"fall from": {
			{"While {a} has a {c} of {0}, {b} has {1}, i.e. {2} less."},
			{"Während {a} bei {c} {0} hat, sind es bei {b} {1}, also {2} weniger."},
			{"Alors que {a} a {0} pour {c}, {b} en a {1}, soit {2} de moins."},
		},
		"pair": {
			{"{a} posted {0} and {b} posted {1} in {c}.", "By {c}: {a} – {0}; {b} – {1}.", "Whereas {a} shows {0} in {c}, {b} shows {1}."},
			{"{a} meldet {0}, {b} dagegen {1} ({c}).", "Nach {c}: {a} – {0}; {b} – {1}."},
			{"{a} affiche {0} alors que {b} affiche {1} ({c}).", "Selon {c} : {a} – {0} ; {b} – {1}."},
		},
		"two": {
			{"For {a} the {c} comes to {0}, while the {d} comes to {1}.", "{a}, with {0} in {c}, also has {1} in {d}."},
			{"{a} hat {0} ({c}) sowie {1} ({d}).", "Bei {a} beträgt {c} {0}, {d} dagegen {1}."},
			{"{a} a {0} ({c}) ainsi que {1} ({d}).", "Chez {a}, {c} vaut {0}, tandis que {d} vaut {1}."},
		},
		"ranking": {
			{"{a} leads by {c} with {0}, ahead of {b} with {1} and {x} with {2}.", "In terms of {c}: {a} {0}, {b} {1}, {x} {2}."},
			{"{a} liegt bei {c} mit {0} vor {b} mit {1} und {x} mit {2}."},
			{"{a} devance pour {c} avec {0} {b} avec {1} et {x} avec {2}."},
		},
		"list":     {{"\n\nHere are the values of {c}:\n"}, {"\n\nHier die Werte von {c}:\n"}, {"\n\nVoici les valeurs de {c} :\n"}},
		"table":    {{""}, {""}, {""}},
		"invented": {{"For comparison, the industry sees {0}.", "Last year it was {0}."}, {"Zum Vergleich: Die Branche hat {0}.", "Im Vorjahr waren es {0}."}, {"À titre de comparaison, le secteur a {0}.", "L’an dernier, c’était {0}."}},
		"opening":  {{"Sure!", "Here is the overview for {y}.", "Below are the top {q}."}, {"Gerne!", "Hier die Übersicht für {y}.", "Hier die besten {q}."}, {"Bien sûr !", "Voici l’aperçu pour {y}.", "Voici les {q} meilleurs."}},
		"question": {{"Show the best {q} since {y}.", "Why?"}, {"Zeige die besten {q} seit {y}.", "Warum?"}, {"Montre les {q} meilleurs depuis {y}.", "Pourquoi ?"}},
	}[what]
}
