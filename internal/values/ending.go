package values

import "strings"

// ending is how a word and its plural end, and how many letters the shorter one has at least.
type ending struct {
	one, many string
	letters   int
}

// endings of English, German and French nouns. After folding Städte is stadte, and needs no more than its ending.
func endings() []ending {
	return []ending{
		{"", "s", 3},
		{"", "es", 3},
		{"y", "ies", 3},
		{"f", "ves", 4},
		{"fe", "ves", 4},
		{"is", "es", 5},
		{"man", "men", 4},
		{"", "e", 4},
		{"", "n", 4},
		{"", "en", 4},
		{"", "er", 4},
		{"", "nen", 6},
		{"", "x", 4},
		{"al", "aux", 5},
	}
}

// otherEndings are the plurals and the singulars that a word may have.
func otherEndings(word string) []string {
	var others []string

	change := func(from, to string, e ending) {
		if stem, ok := strings.CutSuffix(word, from); ok && len(stem)+min(len(e.one), len(e.many)) >= e.letters-1 && len(stem)+len(e.one) >= e.letters {
			others = append(others, stem+to)
		}
	}

	for _, e := range endings() {
		change(e.one, e.many, e)
		change(e.many, e.one, e)
	}

	return others
}

// stopWord is true of words that say nothing by themselves, folded. They count as parts of longer values, and where
// they are written exactly as a value is and not in small letters.
func stopWord(folded string) bool {
	switch folded {
	case "a", "an", "the", "new", "old", "neu", "neue", "alt", "alte", "nouveau", "nouvelle", "this", "that", "these", "those", "all", "any", "each", "every", "some", "no", "not", "none",
		"and", "or", "but", "if", "then", "than", "so", "as", "at", "by", "for", "from", "in", "into", "of", "off", "on",
		"onto", "out", "over", "per", "to", "under", "up", "via", "with", "without", "about", "after", "before", "between",
		"during", "since", "until", "i", "me", "my", "mine", "we", "us", "our", "you", "your", "he", "him", "his", "she",
		"her", "it", "its", "they", "them", "their", "who", "whom", "whose", "which", "what", "when", "where", "why", "how",
		"is", "am", "are", "was", "were", "be", "been", "being", "do", "does", "did", "done", "doing", "has", "have", "had",
		"having", "can", "could", "may", "might", "must", "shall", "should", "will", "would", "there", "here", "also",
		"only", "just", "more", "most", "less", "least", "few", "many", "much", "other", "another", "same", "such", "too",
		"very", "own", "both", "either", "neither", "yet", "still", "again", "ever", "never", "now", "today", "s", "t", "d",
		"ll", "m", "re", "ve", "show", "list", "give", "tell", "find", "get", "display", "count", "number", "sum", "total",
		"average", "mean", "compare", "please", "want", "need", "know", "like", "make", "top", "bottom", "first", "last",
		"highest", "lowest", "best", "worst", "der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einem",
		"einer", "eines", "und", "oder", "aber", "wenn", "dann", "als", "wie", "im", "auf", "aus", "bei", "mit", "nach",
		"seit", "von", "vom", "zu", "zum", "zur", "fur", "gegen", "ohne", "um", "durch", "uber", "unter", "vor", "hinter",
		"neben", "zwischen", "ich", "mich", "mir", "mein", "meine", "wir", "uns", "unser", "du", "dich", "dir", "dein",
		"er", "ihn", "ihm", "sein", "seine", "sie", "ihr", "ihre", "es", "man", "wer", "wen", "wem", "wessen", "welche",
		"welcher", "welches", "welchen", "welchem", "wann", "wo", "warum", "wieso", "ist", "bin", "bist", "sind", "war",
		"waren", "wird", "werden", "wurde", "wurden", "hat", "habe", "haben", "hatte", "hatten", "kann", "konnen", "soll",
		"sollen", "muss", "mussen", "nicht", "kein", "keine", "nur", "auch", "noch", "schon", "sehr", "mehr", "weniger",
		"meisten", "alle", "alles", "jede", "jeder", "jedes", "jeden", "zeige", "zeig", "liste", "gib", "nenne", "finde",
		"wieviel", "wieviele", "viel", "viele", "anzahl", "summe", "le", "la", "les", "l", "un", "une", "de", "et", "ou",
		"mais", "si", "alors", "que", "qui", "quoi", "dont", "quel", "quelle", "quels", "quelles", "quand", "comment",
		"pourquoi", "combien", "je", "j", "moi", "mon", "ma", "mes", "nous", "notre", "nos", "vous", "votre", "vos", "tu",
		"te", "toi", "ton", "ta", "tes", "il", "elle", "ils", "elles", "lui", "leur", "leurs", "se", "son", "sa", "ses",
		"ce", "cet", "cette", "ces", "c", "est", "sont", "suis", "sommes", "etes", "etait", "ont", "ai", "avons", "avez",
		"avait", "par", "pour", "dans", "sur", "sous", "avec", "sans", "entre", "vers", "chez", "en", "au", "aux", "y",
		"ne", "pas", "plus", "moins", "tous", "tout", "toute", "toutes", "autre", "autres", "meme", "tres", "montre",
		"montrez", "donne", "donnez", "trouve", "nombre", "ihnen", "dieser", "diese":
		return true
	default:
		return false
	}
}
