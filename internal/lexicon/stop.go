package lexicon

// IsStop reports whether a folded word of English, German or French has no meaning of its own in a value. Stop words
// still count as parts of longer values. Alone they match only a value with exactly the same spelling, and only if they
// are not in lower case.
func IsStop(folded string) bool {
	switch folded {
	// English
	case "a", "an", "the", "new", "old", "this", "that", "these", "those", "all", "any", "each", "every", "some",
		"no", "not", "none", "and", "or", "but", "if", "then", "than", "so", "as", "at", "by", "for", "from", "in",
		"into", "of", "off", "on", "onto", "out", "over", "per", "to", "under", "up", "via", "with", "without",
		"about", "after", "before", "between", "during", "since", "until", "i", "me", "my", "mine", "we", "us", "our",
		"you", "your", "he", "him", "his", "she", "her", "it", "its", "they", "them", "their", "who", "whom", "whose",
		"which", "what", "when", "where", "why", "how", "is", "am", "are", "was", "were", "be", "been", "being", "do",
		"does", "did", "done", "doing", "has", "have", "had", "having", "can", "could", "may", "might", "must",
		"shall", "should", "will", "would", "there", "here", "also", "only", "just", "more", "most", "less", "least",
		"few", "many", "much", "other", "another", "same", "such", "too", "very", "own", "both", "either", "neither",
		"yet", "still", "again", "ever", "never", "now", "today", "s", "t", "d", "ll", "m", "re", "ve", "show",
		"list", "give", "tell", "find", "get", "display", "count", "number", "sum", "total", "average", "mean",
		"compare", "please", "want", "need", "know", "like", "make", "top", "bottom", "first", "last", "highest",
		"lowest", "best", "worst":
		return true
	// German
	case "der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einem", "einer", "eines", "und", "oder",
		"aber", "wenn", "dann", "als", "wie", "im", "auf", "aus", "bei", "mit", "nach", "seit", "von", "vom", "zu",
		"zum", "zur", "fur", "gegen", "ohne", "um", "durch", "uber", "unter", "vor", "hinter", "neben", "zwischen",
		"ich", "mich", "mir", "mein", "meine", "wir", "uns", "unser", "du", "dich", "dir", "dein", "er", "ihn", "ihm",
		"sein", "seine", "sie", "ihr", "ihre", "es", "man", "wer", "wen", "wem", "wessen", "welche", "welcher",
		"welches", "welchen", "welchem", "wann", "wo", "warum", "wieso", "ist", "bin", "bist", "sind", "war", "waren",
		"wird", "werden", "wurde", "wurden", "hat", "habe", "haben", "hatte", "hatten", "kann", "konnen", "soll",
		"sollen", "muss", "mussen", "nicht", "kein", "keine", "nur", "auch", "noch", "schon", "sehr", "mehr",
		"weniger", "meisten", "alle", "alles", "jede", "jeder", "jedes", "jeden", "zeige", "zeig", "liste", "gib",
		"nenne", "finde", "wieviel", "wieviele", "viel", "viele", "anzahl", "summe", "ihnen", "dieser", "diese",
		"neu", "neue", "alt", "alte":
		return true
	// French
	case "le", "la", "les", "l", "un", "une", "de", "et", "ou", "mais", "si", "alors", "que", "qui", "quoi", "dont",
		"quel", "quelle", "quels", "quelles", "quand", "comment", "pourquoi", "combien", "je", "j", "moi", "mon",
		"ma", "mes", "nous", "notre", "nos", "vous", "votre", "vos", "tu", "te", "toi", "ton", "ta", "tes", "il",
		"elle", "ils", "elles", "lui", "leur", "leurs", "se", "son", "sa", "ses", "ce", "cet", "cette", "ces", "c",
		"est", "sont", "suis", "sommes", "etes", "etait", "ont", "ai", "avons", "avez", "avait", "par", "pour",
		"dans", "sur", "sous", "avec", "sans", "entre", "vers", "chez", "en", "au", "aux", "y", "ne", "pas", "plus",
		"moins", "tous", "tout", "toute", "toutes", "autre", "autres", "meme", "tres", "montre", "montrez", "donne",
		"donnez", "trouve", "nombre", "nouveau", "nouvelle":
		return true
	default:
		return false
	}
}

// IsFiller reports whether an English word in lower case says nothing about what a question asks for. It includes words
// that IsStop does not, such as "table", and leaves out words that the planner interprets, such as "not".
func IsFiller(word string) bool {
	switch word {
	case "the", "a", "an", "of", "in", "on", "at", "for", "with", "is", "are", "was", "were", "be", "been", "do",
		"does", "did", "done", "have", "has", "had", "we", "our", "us", "i", "me", "my", "you", "your", "they",
		"their", "them", "it", "its", "he", "his", "she", "her", "there", "that", "this", "these", "those", "please",
		"can", "could", "would", "will", "all", "any", "into", "as", "so", "also", "out", "up", "about", "just",
		"currently", "now", "so far", "yet", "s", "being", "both", "within", "during", "among", "amongst", "overall",
		"exist", "exists", "data", "table", "dataset", "rows", "row", "records", "record", "entries", "entry",
		"database", "value", "values", "respective", "respectively", "corresponding", "type", "types", "kind", "item",
		"items", "chart", "listed", "results", "result", "appear", "appears", "included", "include", "includes",
		"contain", "contains", "across", "come", "comes", "came", "coming", "made", "make", "makes", "get", "gets",
		"got", "go", "goes", "went", "work", "works", "working", "worked", "live", "lives", "living", "lived",
		"located", "found", "happen", "happened", "take", "took", "taken", "place", "belong", "belongs", "use",
		"uses", "used", "receive", "received", "through", "via", "whole", "give", "gave", "given", "handle",
		"handled", "handles", "own", "owns", "owned", "hold", "holds", "held", "keep", "kept", "run", "runs", "ran",
		"stay", "stays", "stayed", "manage", "manages", "managed", "lead", "leads", "deliver", "delivers", "offer",
		"offers", "offered", "serve", "serves", "serving", "having", "using", "containing", "offering", "stored",
		"registered", "bring", "brings", "brought", "must", "should", "them all", "answer", "calculate", "compute",
		"determine", "according", "based", "ever", "information", "details", "has been", "say", "still", "already",
		"particular", "certain", "such", "then", "here", "per se", "too", "very", "each other":
		return true
	default:
		return false
	}
}
